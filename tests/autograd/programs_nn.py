"""Networks: layers with state, recurrence, attention, convolutions, losses."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograd.compare import indices, leaf, plain
from autograd.program import Programs, module, program

NN: Programs = {}


# --- Normalisation --------------------------------------------------------------------------------


@program(NN, lambda: (leaf(4, 3, 5), plain(3), plain(3).abs(), leaf(3), leaf(3)))
def batch_norm_train(x: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, mean, var, w, b, training=True)


@program(NN, lambda: (leaf(4, 3, 5), plain(3), plain(3).abs(), leaf(3), leaf(3)))
def batch_norm_eval(x: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, mean, var, w, b, training=False)


@module(NN, lambda: (leaf(4, 3, 5, 5),))
def batch_norm_module() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())


@module(NN, lambda: (leaf(4, 3, 5, 5),))
def batch_norm_module_eval() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()


@module(NN, lambda: (leaf(4, 3),))
def batch_norm_with_average() -> nn.Module:
    return nn.BatchNorm1d(3, momentum=0.5, affine=False)


class SharedNorm(nn.Module):
    """The same statistics are updated twice in a call."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.norm(x) * 2)


@module(NN, lambda: (leaf(4, 3),))
def batch_norm_used_twice() -> nn.Module:
    return SharedNorm()


@module(NN, lambda: (leaf(4, 3, 6),))
def instance_norm() -> nn.Module:
    return nn.InstanceNorm1d(3, affine=True, track_running_stats=True)


@program(NN, lambda: (leaf(4, 3, 6),))
def instance_norm_function(x: Tensor) -> Tensor:
    return F.instance_norm(x)


@module(NN, lambda: (leaf(2, 4, 6),))
def group_and_layer_norm() -> nn.Module:
    return nn.Sequential(nn.GroupNorm(2, 4), nn.LayerNorm(6), nn.RMSNorm(6))


# --- Recurrence -----------------------------------------------------------------------------------


# Not to the last bit: eagerly it is a kernel of oneDNN, which a trace cannot use.
@module(NN, lambda: (leaf(5, 2, 3),), tolerance=1e-5)
def lstm() -> nn.Module:
    return nn.LSTM(3, 4, num_layers=2, dropout=0.3, bidirectional=True)


@module(NN, lambda: (leaf(2, 5, 3), leaf(1, 2, 4)))
def gru() -> nn.Module:
    return nn.GRU(3, 4, batch_first=True)


@module(NN, lambda: (leaf(5, 2, 3),))
def rnn() -> nn.Module:
    return nn.RNN(3, 4, nonlinearity="relu")


class Unrolled(nn.Module):
    """A cell called in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[1], 4)
        outputs = []
        for step in x:
            h, c = self.cell(step, (h, c))
            outputs.append(h)
        return torch.stack(outputs)


@module(NN, lambda: (leaf(5, 2, 3),))
def lstm_cell_unrolled() -> nn.Module:
    return Unrolled()


# --- Attention ------------------------------------------------------------------------------------


@program(NN, lambda: (leaf(2, 2, 5, 8), leaf(2, 2, 5, 8), leaf(2, 2, 5, 8)))
def attention_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@program(NN, lambda: (leaf(2, 2, 5, 8), leaf(2, 2, 6, 8), leaf(2, 2, 6, 8), plain(5, 6)))
def attention_with_bool_mask(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m > -1)


@program(NN, lambda: (leaf(2, 2, 5, 8), leaf(2, 2, 6, 8), leaf(2, 2, 6, 8), leaf(5, 6)))
def attention_with_bias(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m)


@program(NN, lambda: (leaf(2, 2, 5, 8), leaf(2, 2, 5, 8), leaf(2, 2, 5, 8)))
def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.2)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.attention(x, x, x)


@module(NN, lambda: (leaf(2, 5, 8),))
def multihead_attention() -> nn.Module:
    return SelfAttention()


@module(NN, lambda: (leaf(2, 5, 8),))
def multihead_attention_eval() -> nn.Module:
    return SelfAttention().eval()


@module(NN, lambda: (leaf(2, 5, 8),))
def transformer_encoder_layer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.1, batch_first=True)


@module(NN, lambda: (plain(2, 5, 8),))
def transformer_encoder_layer_eval() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True).eval()


@module(NN, lambda: (leaf(4, 2, 8), leaf(5, 2, 8)))
def transformer() -> nn.Module:
    return nn.Transformer(8, 2, 1, 1, dim_feedforward=16)


# --- Convolutions and pooling ---------------------------------------------------------------------


@program(NN, lambda: (leaf(2, 3, 9), leaf(4, 3, 3), leaf(4)))
def conv1d(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv1d(x, w, b, stride=2, padding=1)


@program(NN, lambda: (leaf(2, 4, 9, 8), leaf(4, 2, 3, 3), leaf(4)))
def conv2d_in_groups(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv2d(x, w, b, padding="same", groups=2, dilation=2)


@program(NN, lambda: (leaf(1, 2, 5, 5, 5), leaf(3, 2, 3, 3, 3)))
def conv3d(x: Tensor, w: Tensor) -> Tensor:
    return F.conv3d(x, w)


@program(NN, lambda: (leaf(2, 3, 5, 5), leaf(3, 4, 3, 3), leaf(4)))
def conv_transpose2d(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv_transpose2d(x, w, b, stride=2, output_padding=1)


@program(NN, lambda: (leaf(2, 3, 8, 8),))
def pooling(x: Tensor) -> tuple[Tensor, ...]:
    pooled, where = F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)
    return (
        F.max_unpool2d(F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True)[1], 2),
        pooled,
        where,
        F.avg_pool2d(x, 2, ceil_mode=True),
        F.adaptive_avg_pool2d(x, (3, 3)),
        F.adaptive_max_pool2d(x, 2),
        F.lp_pool2d(x.abs(), 2.0, 2),
    )


@program(NN, lambda: (leaf(1, 2, 4, 4),))
def interpolation(x: Tensor) -> tuple[Tensor, ...]:
    return (
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True),
        F.interpolate(x, size=(7, 5), mode="bicubic", antialias=True),
        F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
        F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None], [1, 2, 3, 3], False)),
    )


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.b = nn.BatchNorm2d(4)
        self.c = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.c(F.relu(self.b(self.a(x)), inplace=True)) + x, inplace=True)


@module(NN, lambda: (leaf(2, 3, 8, 8),))
def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        Residual(),
        nn.Dropout2d(0.2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
        nn.LogSoftmax(-1),
    )


@module(NN, lambda: (plain(2, 3, 8, 8).to(memory_format=torch.channels_last),))
def conv_net_channels_last() -> nn.Module:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Conv2d(4, 2, 1))
    return net.to(memory_format=torch.channels_last)


# --- Embeddings, losses, whole modules ------------------------------------------------------------


@module(NN, lambda: (indices(10, 2, 5),))
def embedding() -> nn.Module:
    return nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 3))


@program(NN, lambda: (indices(6, 9), leaf(6, 4)))
def embedding_bag(index: Tensor, w: Tensor) -> Tensor:
    return F.embedding_bag(index, w, torch.tensor([0, 3, 5]), mode="mean")


@module(NN, lambda: (indices(10, 4),))
def embedding_with_max_norm() -> nn.Module:
    return nn.Embedding(10, 4, max_norm=0.5)


@program(NN, lambda: (leaf(6, 5), indices(5, 6), leaf(5)))
def cross_entropy(x: Tensor, target: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return (
        F.cross_entropy(x, target, label_smoothing=0.1),
        F.cross_entropy(x, target, w.detach().abs(), ignore_index=2, reduction="sum"),
        F.cross_entropy(x, x.detach().softmax(-1), reduction="none"),
    )


@program(NN, lambda: (leaf(6, 5), leaf(6, 5)))
def losses(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (
        F.mse_loss(x, y),
        F.smooth_l1_loss(x, y),
        F.huber_loss(x, y, reduction="sum"),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        F.cosine_embedding_loss(x, y, torch.ones(6)),
        F.triplet_margin_loss(x, y, x + y),
    )


@program(NN, lambda: (leaf(4, 5),))
def activations(x: Tensor) -> Tensor:
    y = F.gelu(x) + F.silu(x) + F.elu(x) + F.selu(x) + F.softplus(x) + F.leaky_relu(x)
    return y + F.hardswish(x) + F.mish(x) + F.glu(torch.cat([x, x], 1)) + F.prelu(x, x[0, :1])


class Tied(nn.Module):
    """The embedding's weight is the last layer's too."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embedding(tokens).tanh())


@module(NN, lambda: (indices(10, 2, 5),))
def tied_weights() -> nn.Module:
    return Tied()


class Counter(nn.Module):
    """Writes to buffers: one in place, one that shares its memory with another."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(4))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return (x - self.mean) * self.scale / self.calls


@module(NN, lambda: (leaf(3, 4),))
def buffers_changed() -> nn.Module:
    return Counter()


class Frozen(nn.Module):
    """Some parameters take no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4).requires_grad_(False)
        self.b = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).relu())


@module(NN, lambda: (plain(3, 4),))
def frozen_parameters() -> nn.Module:
    return Frozen()


@module(NN, lambda: (leaf(3, 4),))
def weight_norm() -> nn.Module:
    return nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))


@module(NN, lambda: (leaf(3, 4),))
def spectral_norm() -> nn.Module:
    return nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))


class KeywordOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> dict[str, Any]:
        hidden = []
        for layer in self.layers:
            x = F.gelu(layer(x)) + x
            hidden.append(x)
        return {"last": x, "hidden": tuple(hidden)}


@module(NN, lambda: (leaf(3, 4),))
def all_hidden_states() -> nn.Module:
    return KeywordOnly()


@module(NN, lambda: (leaf(3, 4, dtype=torch.bfloat16),))
def bfloat16_network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).bfloat16()
