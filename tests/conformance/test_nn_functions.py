"""torch.nn.functional where PyTorch's own samples do not reach: attention, in place, old forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from conformance.eager import check

WIDTH, HEADS, LENGTH, BATCH = 8, 2, 5, 3


def functional(name: str, *args: Any, **kwargs: Any) -> None:
    check(f"torch.nn.functional.{name}", getattr(F, name), *args, **kwargs)


def random(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **kwargs: Any) -> None:
    bias = kwargs.pop("bias", random(3 * WIDTH))
    bias_k, bias_v = kwargs.pop("bias_kv", (None, None))
    zero = kwargs.pop("add_zero_attn", False)
    dropout = kwargs.pop("dropout_p", 0.0)
    weights = (random(3 * WIDTH, WIDTH), bias, bias_k, bias_v, zero, dropout)
    output = (random(WIDTH, WIDTH), random(WIDTH))
    functional(
        "multi_head_attention_forward", query, key, value, WIDTH, HEADS, *weights, *output, **kwargs
    )


QUERY = random(LENGTH, BATCH, WIDTH)
OTHER = random(LENGTH + 1, BATCH, WIDTH)
CAUSAL = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
PADDING = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
PADDING[:, -1] = True


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": None},
        {"attn_mask": CAUSAL},
        {"attn_mask": CAUSAL, "is_causal": True},
        {"attn_mask": torch.zeros(BATCH * HEADS, LENGTH, LENGTH)},
        {"key_padding_mask": PADDING},
        {"key_padding_mask": PADDING, "attn_mask": CAUSAL, "is_causal": True},
        {"bias_kv": (random(1, 1, WIDTH), random(1, 1, WIDTH)), "attn_mask": CAUSAL},
        {"add_zero_attn": True, "key_padding_mask": PADDING},
        {"dropout_p": 0.5},
        {"dropout_p": 0.5, "training": False},
        {"average_attn_weights": False},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_attention(options: dict[str, Any], need_weights: bool) -> None:
    attention(QUERY, QUERY, QUERY, need_weights=need_weights, **options)


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_between_sequences(need_weights: bool) -> None:
    attention(QUERY, OTHER, OTHER, need_weights=need_weights)
    attention(QUERY, OTHER, OTHER * 2, need_weights=need_weights)
    attention(QUERY, OTHER, OTHER, need_weights=need_weights, bias=None)
    one = random(LENGTH, WIDTH)
    attention(one, one, one, need_weights=need_weights)
    attention(one, one, one, need_weights=need_weights, key_padding_mask=PADDING[0])
    separate = {f"{letter}_proj_weight": random(WIDTH, WIDTH + (letter != "q")) for letter in "qkv"}
    wide = random(LENGTH, BATCH, WIDTH + 1)
    attention(
        QUERY, wide, wide, need_weights=need_weights, use_separate_proj_weight=True, **separate
    )


@pytest.mark.parametrize(
    "call",
    [
        ("relu",),
        ("relu6",),
        ("elu", 0.5),
        ("selu",),
        ("celu", 2.0),
        ("leaky_relu", 0.2),
        ("silu",),
        ("mish",),
        ("hardswish",),
        ("hardsigmoid",),
        ("hardtanh", -0.5, 0.5),
        ("threshold", 0.1, 20.0),
        ("rrelu", 0.1, 0.3, True),
        ("dropout", 0.5, True),
        ("alpha_dropout", 0.5, True),
        ("feature_alpha_dropout", 0.5, True),
        ("dropout1d", 0.5, True),
    ],
    ids=str,
)
def test_in_place(call: tuple[Any, ...]) -> None:
    name, *rest = call
    functional(name, random(4, 6), *rest)
    functional(name, random(4, 6), *rest, inplace=True)


def test_dropout_of_channels() -> None:
    for name, sizes in [
        ("dropout1d", (2, 3)),
        ("dropout2d", (2, 3, 4, 4)),
        ("dropout3d", (2, 3, 2, 2)),
    ]:
        functional(name, random(*sizes), 0.5)
        functional(name, random(*sizes), 0.5, True, True)
        functional(name, random(*sizes), 0.5, False)


def test_embedding() -> None:
    ids = torch.tensor([[1, 2, 0], [3, 3, 9]])
    weight = random(10, 4)
    for padding in (None, 0, 3, -1, -10, 10, -11):
        functional("embedding", ids, weight, padding)
    functional("embedding", ids, weight, max_norm=0.5, norm_type=1.0)
    functional("embedding_bag", ids, weight)
    functional("embedding_bag", weight, ids)
    functional("embedding_bag", ids, weight, mode="max", max_norm=0.5)
    offsets = torch.tensor([0, 2])
    functional("embedding_bag", ids.flatten(), weight, offsets, mode="sum", padding_idx=3)
    functional(
        "embedding_bag", ids, weight, mode="sum", per_sample_weights=random(2, 3), offsets=None
    )


def test_normalisation_updates_running_statistics() -> None:
    x = random(2, 3, 4, 4)
    stats = (torch.zeros(3), torch.ones(3))
    functional("batch_norm", x, *stats, random(3), random(3), True, 0.2, 1e-3)
    functional("batch_norm", x, *stats)
    functional("batch_norm", x, None, None, training=True)
    functional("batch_norm", random(1, 3), *stats, training=True)
    functional("instance_norm", x, *stats, random(3), None, True)
    functional("instance_norm", x, *stats, use_input_stats=False)
    functional("instance_norm", random(2, 3, 1), use_input_stats=True)
    functional("group_norm", x, 3, random(3), random(3))
    functional("layer_norm", x, (4, 4), random(4, 4), random(4, 4))
    functional("rms_norm", x, (4,), random(4))
    for size in (2, 3):
        functional("local_response_norm", x, size)
        functional("local_response_norm", random(2, 4, 5), size, 1e-2, 0.5, 2)
    functional("normalize", x, 3.0, (1, 2))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "nll_loss"])
@pytest.mark.parametrize("flags", [(None, None), (True, None), (False, True), (None, False)])
@pytest.mark.filterwarnings("ignore")
def test_old_flags_of_losses(name: str, flags: tuple[Any, Any]) -> None:
    x = random(4, 3).log_softmax(1)
    target = torch.tensor([0, 2, 1, 1]) if name == "nll_loss" else random(4, 3).softmax(1)
    functional(name, x, target, size_average=flags[0], reduce=flags[1])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean", "unknown"])
@pytest.mark.filterwarnings("ignore")
def test_reductions_of_losses(reduction: str) -> None:
    x, y = random(4, 3), random(4, 3).abs()
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        functional(name, x, y, reduction=reduction)
        functional(name, x, y, reduction=reduction, weight=random(4, 3))
        functional(name, x, y[:1], reduction=reduction)
    functional("kl_div", x.log_softmax(1), y, reduction=reduction, log_target=True)
    functional("gaussian_nll_loss", x, y, 0.5, full=True, reduction=reduction)
    functional("gaussian_nll_loss", x, y, y[:, :1], reduction=reduction)
    functional("gaussian_nll_loss", x, y, y[:, 0], reduction=reduction)
    functional("multilabel_soft_margin_loss", x, y, random(3), reduction=reduction)
    functional("binary_cross_entropy", x.sigmoid(), y.clamp(0, 1), random(3), reduction=reduction)
    for swap in (False, True):
        functional("triplet_margin_loss", x, y, x * 2, swap=swap, reduction=reduction)
        functional("triplet_margin_with_distance_loss", x, y, x * 2, swap=swap, reduction=reduction)


MODES = [
    "nearest",
    "nearest-exact",
    "area",
    "linear",
    "bilinear",
    "bicubic",
    "trilinear",
    "lanczos",
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_interpolate(mode: str, dims: int) -> None:
    x = random(2, 3, *range(4, 4 + dims))
    functional("interpolate", x, 7, mode=mode)
    functional("interpolate", x, (7, 3, 5)[:dims], mode=mode)
    functional("interpolate", x, scale_factor=1.7, mode=mode)
    functional("interpolate", x, scale_factor=[2, 1.5, 0.6][:dims], mode=mode)
    functional("interpolate", x, scale_factor=1.7, mode=mode, recompute_scale_factor=True)
    for align in (False, True):
        functional("interpolate", x, 7, mode=mode, align_corners=align)
        functional("interpolate", x, 7, mode=mode, antialias=True, align_corners=align)
    functional("interpolate", x, mode=mode)
    functional("interpolate", x, 7, 2.0, mode)


def test_pooling() -> None:
    x = random(2, 3, 8, 8)
    functional("max_pool2d", x, 3, 2, 1, return_indices=True)
    functional("max_pool2d", x, (2, 3), None, 0, 1, True)
    functional("adaptive_avg_pool2d", x, (None, 2))
    functional("adaptive_max_pool2d", x, (3, None), True)
    functional("lp_pool2d", x, float("inf"), 2)
    functional("lp_pool2d", x.abs(), 1.5, (2, 3), 1)
    pooled, indices = F.max_pool2d(x, 2, return_indices=True)
    functional("max_unpool2d", pooled, indices, 2)
    functional("max_unpool2d", pooled, indices, 2, output_size=(2, 3, 9, 9))
    functional("fractional_max_pool2d", x, 2, output_ratio=(0.5, 0.7))
    functional("fractional_max_pool2d", x, 2, (4, 3), return_indices=True)


def test_sampling() -> None:
    theta = random(2, 2, 3)
    functional("affine_grid", theta, (2, 3, 4, 4), align_corners=False)
    functional("affine_grid", theta, (2, 3, 1, 4), True)
    functional("affine_grid", theta, (2, 3, 0, 4), True)
    grid = random(2, 4, 4, 2)
    for mode in ("bilinear", "nearest", "bicubic", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            functional("grid_sample", random(2, 3, 5, 5), grid, mode, padding, True)


def test_softmax_family() -> None:
    for sizes in [(4,), (2, 3), (2, 3, 4), (2, 3, 4, 5)]:
        for name in ("softmax", "log_softmax", "softmin"):
            functional(name, random(*sizes))
            functional(name, random(*sizes), -1, 3, torch.float64)
    functional("gumbel_softmax", random(3, 4), tau=0.5)
    functional("gumbel_softmax", random(3, 4), tau=2, hard=True)
