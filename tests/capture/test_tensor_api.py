"""A walk over the tensor API: methods, shapes, dtypes, reductions, functions of torch and F."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from capture.harness import call, data, program


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)), graphs=1)
def test_pointwise_methods(x):
    return x.abs().sqrt(), x.exp().log1p(), x.sigmoid(), x.clamp(-1, 1), x.neg().sign(), x.pow(2)


@program(
    call(data(2, 3), data(2, 3)), call(data(2, 3), data(2, 3)), call(data(2, 3), data(3)), graphs=1
)
def test_binary_operators(x, y):
    return x + y, x - y, x * y, x / (y.abs() + 1), x // (y.abs() + 1), x % (y.abs() + 1), x**2


@program(
    call(data(2, 3), data(2, 3)),
    call(data(2, 3), data(2, 3)),
    call(data(1, 3), data(2, 1)),
    graphs=1,
)
def test_comparisons(x, y):
    return x > y, x <= 0, x == x, x != y, torch.maximum(x, y), (x > 0) & (y > 0), ~(x > y)


@program(
    call(data(2, 3, dtype=torch.int64)),
    call(data(2, 3, dtype=torch.int64)),
    call(data(3, dtype=torch.int32)),
)
def test_integers(x):
    return x // 2, x % 3, x << 1, x & 3, x / 2, x + 1.5, x.bitwise_not(), x.float()


@program(
    call(data(3, dtype=torch.bool)),
    call(data(3, dtype=torch.bool)),
    call(data(2, 2, dtype=torch.bool)),
)
def test_bools(x):
    return x.any(), x.all(), x.sum(), ~x, x ^ True, x.int() * 2, x.logical_or(~x)


@program(
    call(data(3, dtype=torch.complex64)),
    call(data(3, dtype=torch.complex64)),
    call(data(2, dtype=torch.complex64)),
)
def test_complex(x):
    return x.abs(), x.angle(), x * 2j, x.conj() * x, x.real + x.imag, torch.view_as_real(x)


@program(
    call(data(3, dtype=torch.bfloat16)),
    call(data(3, dtype=torch.bfloat16)),
    call(data(3, dtype=torch.float16)),
)
def test_half_precision(x):
    return x * 1.1, x + 1e-4, x.float() * 1.1, (x * x).sum(), x.to(torch.float64)


@program(call(data(3, 4)), call(data(3, 4)), call(data(2, 4)), graphs=1)
def test_reductions(x):
    return x.sum(), x.mean(0), x.sum(-1, keepdim=True), x.prod(1), x.std(), x.var(0), x.norm(dim=1)


@program(call(data(3, 4)), call(data(3, 4)), call(data(2, 4)))
def test_named_tuple_results(x):
    best = x.max(dim=1)
    values, indices = x.sort(descending=True)
    top = x.topk(2, dim=1)
    return best.values, best.indices, values[0], indices, top.values, torch.min(x, 0), x.median(1)


@program(call(data(3, 4)), call(data(3, 4)), call(data(2, 4)), graphs=1)
def test_arg_functions(x):
    return (
        x.argmax(),
        x.argmin(1),
        x.argsort(dim=1),
        x.cumsum(0),
        x.cumprod(1),
        x.flip(0),
        x.roll(1),
    )


@program(call(data(2, 6)), call(data(2, 6)), call(data(4, 6)), graphs=1)
def test_shapes(x):
    y = x.view(x.size(0), 2, 3)
    return y.permute(2, 0, 1), y.transpose(1, 2), y.flatten(1), y.squeeze(), x.unsqueeze(-1), x.T


@program(call(data(2, 6)), call(data(2, 6)), call(data(3, 6)))
def test_size_arithmetic(x):
    size = x.shape
    whole = size + (1,)
    return (
        size,
        whole,
        size[0] * size[1] == x.numel(),
        size[:-1] + (3, 2),
        len(size),
        tuple(size),
        torch.Size([1]) + size,
    )


@program(call(data(2, 6)), call(data(2, 6)), call(data(3, 6)), graphs=1)
def test_shape_reads(x):
    batch, width = x.size()
    y = x.reshape(batch * 2, width // 2)
    return y, x.size(-1), x.dim(), x.numel(), x.stride(0), x.nelement(), x.ndim, y.size()


@program(call(data(4, 2)), call(data(4, 2)), call(data(6, 2)), graphs=1)
def test_cat_stack_split(x):
    halves = x.split(2)
    a, b = x.chunk(2)
    return (
        torch.cat([a, b * 2]),
        torch.stack([a, b], dim=1),
        halves[0],
        torch.hstack((a, b)),
        x.unbind(1),
    )


@program(
    call(data(2, 3), data(3, 2)),
    call(data(2, 3), data(3, 2)),
    call(data(4, 3), data(3, 5)),
    graphs=1,
)
def test_matrix_products(x, y):
    z = x @ y
    return (
        z,
        torch.mm(x, y),
        torch.einsum("ij,jk->ki", x, y),
        torch.matmul(x, y[:, 0]),
        torch.outer(x[0], y[:, 0]),
    )


@program(
    call(data(2, 3, 4), data(2, 4, 3)),
    call(data(2, 3, 4), data(2, 4, 3)),
    call(data(1, 3, 4), data(1, 4, 3)),
)
def test_batched_products(x, y):
    return torch.bmm(x, y), torch.baddbmm(torch.ones(3, 3), x, y), torch.einsum("bij,bjk->bk", x, y)


@program(call(data(3)), call(data(3)), call(data(2)))
def test_in_place_chain(x):
    y = x.clone()
    y.add_(1).mul_(2).clamp_(min=0)
    y += x
    y -= 1
    y *= 3
    y /= 2
    y **= 2
    return y


@program(call(data(2, 3)), call(data(2, 3)), call(data(2, 4)), graphs=1)
def test_activation_functions(x):
    return (
        F.relu(x),
        F.gelu(x),
        F.silu(x),
        F.softmax(x, dim=-1),
        F.log_softmax(x, -1),
        F.leaky_relu(x, 0.1),
    )


@program(call(data(2, 4)), call(data(2, 4)), call(data(3, 4)), tolerance=True)
def test_normalization_functions(x):
    return (
        F.layer_norm(x, (4,)),
        F.normalize(x, dim=1),
        F.group_norm(x[:, :, None], 2),
        F.rms_norm(x, (4,)),
    )


@program(
    call(data(2, 3), torch.tensor([0, 2])),
    call(data(2, 3), torch.tensor([1, 1])),
    call(data(1, 3), torch.tensor([2])),
)
def test_losses(x, target):
    return (
        F.cross_entropy(x, target),
        F.nll_loss(x, target, reduction="sum"),
        F.mse_loss(x, x * 2),
        F.smooth_l1_loss(x, -x),
    )


@program(call(data(1, 2, 4, 4)), call(data(1, 2, 4, 4)), call(data(2, 2, 4, 4)), tolerance=True)
def test_image_functions(x):
    return (
        F.avg_pool2d(x, 2),
        F.interpolate(x, scale_factor=2),
        F.pad(x, (1, 1)),
        F.adaptive_avg_pool2d(x, 1),
        F.unfold(x, 2),
    )


@program(call(data(3)), call(data(3)), call(data(2, 2)))
def test_copies_and_conversions(x):
    return (
        x.clone(),
        x.to(torch.float64),
        x.double().float(),
        x.type(torch.int32),
        x.to("cpu"),
        x.cpu(),
        x.type_as(x.double()),
    )


@program(call(data(3)), call(data(3)), call(data(3, dtype=torch.float64)))
def test_constructors_like(x):
    y = torch.empty_like(x).fill_(2)
    return (
        y,
        torch.zeros_like(x),
        torch.ones_like(x, dtype=torch.int64),
        torch.full_like(x, 3),
        x.new_zeros(2),
        x.new_tensor([1, 2]),
        x.new_full((2,), 7),
    )


@program(call(3, 2), call(3, 2), call(4, 1), graphs=1)
def test_constructors(n, m):
    return (
        torch.zeros(n, m),
        torch.ones((n,)),
        torch.full((m,), 1.5),
        torch.arange(n),
        torch.arange(0, n, 0.5),
        torch.linspace(0, 1, n),
        torch.eye(n),
    )


@program(call(3), call(3), call(4))
def test_constructors_from_values(n):
    return (
        torch.tensor(n),
        torch.tensor([1.5, n]),
        torch.tensor([[n], [2]]),
        torch.as_tensor([True, False]),
        torch.tensor([]),
        torch.scalar_tensor(n),
    )


@program(call(data(3)), call(data(3)), call(data(4)))
def test_random_constructors(x):
    torch.manual_seed(5)
    return (
        torch.rand(2),
        torch.randn_like(x),
        torch.randint(0, 5, (3,)),
        torch.randperm(4),
        torch.bernoulli(torch.full((3,), 0.5)),
        torch.normal(0.0, 1.0, (2,)),
    )


@program(
    call(data(4), 0.5, True),
    call(data(4), 0.5, True),
    call(data(4), 0.25, True),
    call(data(4), 0.5, False),
)
def test_dropout(x, p, training):
    return F.dropout(x, p, training), F.dropout(x + 1, p=0.1), torch.dropout(x, p, training)


@program(call(data(3), data(3)), call(data(3), data(3)), call(data(1), data(3)))
def test_out_variants(x, y):
    out = torch.empty(3)
    torch.mul(x, y, out=out)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.sort(y, out=(values, indices))
    return out, values, indices


@program(call(torch.tensor(2.0)), call(torch.tensor(3.0)), call(torch.tensor(-1.0)))
def test_scalar_tensors(x):
    y = x * 2
    return y, y.shape, y.dim(), x + torch.tensor(1), y.expand(3), y.reshape(1), torch.stack([x, y])


@program(call(data(3), 2), call(data(3), 2), call(data(3), 2.5))
def test_type_promotion(x, n):
    i = torch.arange(3)
    return (
        i + n,
        i * x,
        (i > 1) + n,
        torch.result_type(i, n),
        torch.tensor(1) + i.float(),
        i.to(torch.int8) + i,
    )


@program(call(data(2, 3)), call(data(2, 3)), call(data(3, 3)))
def test_device_and_dtype_arguments(x):
    device = x.device
    y = torch.zeros(2, dtype=x.dtype, device=device)
    return (
        y,
        x.to(device=device, dtype=torch.float64),
        torch.arange(3, device="cpu"),
        device == torch.device("cpu"),
        device.type,
    )


@program(call(data(4)), call(data(4)), call(data(6)))
def test_where_and_nonzero_free_functions(x):
    return (
        torch.where(x > 0, x, 0.0),
        torch.clamp(x, max=0.5),
        torch.isnan(x / 0).any(),
        torch.nan_to_num(x / 0),
        torch.sign(x),
    )


@program(
    call(data(3, grad=True)),
    call(data(3, grad=True)),
    call(data(2, 3, grad=True)),
)
def test_autograd_grad(x):
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x)
    return first * 2, y.detach()


# Graphs differentiated ahead of time cannot be differentiated twice.
@program(
    call(data(3, grad=True)),
    call(data(3, grad=True)),
    call(data(2, 3, grad=True)),
    backends=("eager",),
)
def test_double_backward(x):
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    return first, y.detach()


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(3)))
def test_detach_and_requires_grad(x):
    y = x.detach() * 2
    z = x * y
    return y, z, z.requires_grad, y.is_leaf, (x * 2).detach().requires_grad_()


@program(call(data(2, 3)), call(data(2, 3)), call(data(2, 5)))
def test_tensor_methods_through_torch(x):
    return (
        torch.Tensor.add(x, 1),
        torch.add(x, x, alpha=2),
        x.add(x, alpha=0.5),
        torch.sub(x, 1),
        x.rsub(1),
        torch.true_divide(x, 2),
    )


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))
def test_repeat_expand_tile(x):
    return (
        x.repeat(2, 1),
        x.repeat_interleave(2, dim=0),
        x.expand(2, *x.shape),
        x.tile((1, 2)),
        x.broadcast_to(3, *x.shape),
    )


@program(call(data(3, 2)), call(data(3, 2)), call(data(4, 2)))
def test_meshgrid_and_cartesian(x):
    a, b = torch.meshgrid(x[:, 0], x[:, 1], indexing="ij")
    return (
        a,
        b,
        torch.cdist(x, x),
        torch.cartesian_prod(x[:2, 0], x[:2, 1]),
        torch.combinations(x[:, 0]),
    )


@program(call(data(3), 3), call(data(3), 3), call(data(3), 4))
def test_wrong_argument_types_raise(x, n):
    y = x + 1
    if n == 4:
        return torch.relu(y, "no")
    return y


@program(*[call(data(6, 2), torch.tensor(i)) for i in ([2, 4], [2, 4], [1, 5], [3, 3])])
def test_split_by_values(x, positions):
    """The sizes follow from values that no operator is seen to read."""
    return [part * part.shape[0] for part in x.tensor_split(positions)]


@program(*[call(data(3, 4, 2), torch.tensor(n)) for n in ([4, 2, 3], [4, 2, 3], [1, 4, 2])])
def test_packed_sequences(x, lengths):
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        x, lengths, batch_first=True, enforce_sorted=False
    )
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(packed)
    return packed.data * packed.data.shape[0], padded + padded.shape[0]


@program
def test_recurrent_layer_on_packed_sequences():
    torch.manual_seed(0)
    layer = torch.nn.GRU(2, 3, batch_first=True)

    def f(x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        result, last = layer(packed)
        return result.data + 1, last * 2

    yield f
    for lengths in ([4, 3, 1], [4, 3, 1], [3, 2, 2]):
        yield call(data(3, 4, 2), torch.tensor(lengths))


@program(*[call(data(2, 2)) for _ in range(3)], breaks=0)
def test_types_of_python_as_dtypes(x):
    return x.to(bool), x.to(int), torch.zeros(2, dtype=float)


@program(*[call(data(2, 2)) for _ in range(3)], breaks=0)
def test_a_number_is_added_to_in_place(x):
    number = 1
    number += x
    other = 2
    other -= x
    return number, other


@program(*[call(data(2, 2, grad=True)) for _ in range(3)], breaks=0)
def test_data_and_the_gradient_of_a_new_tensor(x):
    return x.data * 2, torch.ones(2).grad


@program(call(data(4)), call(data(4)), call(data(5)), call(data(2)))
def test_check_with_a_message(x):
    torch._check(x.shape[0] > 3, lambda: f"{x.shape[0]} is too small")
    return x + 1
