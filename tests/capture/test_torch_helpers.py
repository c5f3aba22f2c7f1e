"""What torch offers besides operators: types, modes, seeds, inspection, pytrees."""

from __future__ import annotations

import torch
import torch.utils._pytree as pytree

from capture.harness import call, data, program


@program(call(data(2)), call(data(2)), call(3), call([data(2)]))
def test_is_tensor(value):
    if torch.is_tensor(value):
        return value * 2, isinstance(value, torch.Tensor), isinstance(value, torch.nn.Parameter)
    return torch.zeros(1), torch.is_tensor(value)


@program(call(data(2)), call(data(2, dtype=torch.complex64)), call(data(2, dtype=torch.int64)))
def test_kinds_of_dtype(x):
    return (
        x * 1,
        torch.is_floating_point(x),
        torch.is_complex(x),
        x.dtype.is_signed,
        x.element_size(),
        x.dtype.itemsize,
    )


@program(call(data(2)), call(data(2, dtype=torch.float64)), call(data(2, dtype=torch.bfloat16)))
def test_finfo(x):
    info = torch.finfo(x.dtype)
    return x.clamp(min=info.min / 2), info.eps, info.tiny, info.max, info.bits, x + info.eps


@program(
    call(data(2, dtype=torch.int64)),
    call(data(2, dtype=torch.int32)),
    call(data(2, dtype=torch.uint8)),
)
def test_iinfo(x):
    info = torch.iinfo(x.dtype)
    return x.fill_(info.max), info.min, info.bits


@program(call(data(2)), call(data(2)), call(data(3)))
def test_default_dtype(x):
    return x.to(torch.get_default_dtype()), torch.tensor(1.0).dtype, torch.get_default_device()


@program(call(data(2, 3)), call(data(2, 3)), call(data(3, 3)))
def test_size_objects(x):
    size = torch.Size([2, 3])
    return (
        x.shape == size,
        size.numel(),
        isinstance(x.shape, tuple),
        x.shape[0],
        torch.Size((1, *x.shape)),
        hash(size) == hash((2, 3)),
    )


@program(call(data(2)), call(data(2)), call(data(3)))
def test_devices(x):
    device = torch.device("cpu")
    return (
        x.to(device),
        x.device == device,
        str(device),
        device.index,
        x.is_cuda,
        torch.cuda.is_available(),
    )


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_manual_seed(x, seed):
    torch.manual_seed(seed)
    first = torch.rand(2)
    state = torch.get_rng_state()
    second = torch.rand(2)
    torch.set_rng_state(state)
    return x + first, second == torch.rand(2), torch.initial_seed()


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_own_generator(x, seed):
    generator = torch.Generator().manual_seed(seed)
    return x + torch.rand(2, generator=generator), torch.randint(9, (2,), generator=generator)


@program
def test_generator_from_outside():
    generator = torch.Generator().manual_seed(1)

    def f(x):
        return x + torch.randn(2, generator=generator)

    yield f
    yield call(data(2))
    yield call(data(2))
    generator.manual_seed(1)
    yield call(data(2))


@program(call(data(2)), call(data(2, dtype=torch.int32)), call(data(2, dtype=torch.bool)))
def test_promotion_helpers(x):
    return (
        torch.result_type(x, 1.0),
        torch.promote_types(x.dtype, torch.float16),
        torch.can_cast(x.dtype, torch.int64),
        x + 0,
    )


@program(call(data(2)), call(data(2, grad=True)), call(data(2)))
def test_grad_inspection(x):
    y = x * 2
    return y, y.is_leaf, y.grad_fn is None, x.grad is None, torch.is_grad_enabled()


@program(
    call({"a": data(2), "b": [data(2), 1]}),
    call({"a": data(2), "b": [data(2), 1]}),
    call({"a": data(2)}),
)
def test_tree_map(tree):
    leaves, spec = pytree.tree_flatten(tree)
    doubled = pytree.tree_map(lambda leaf: leaf * 2, tree)
    return doubled, len(leaves), pytree.tree_unflatten(leaves, spec)


@program(call(data(2), torch.float32), call(data(2), torch.float64), call(data(2), torch.float32))
def test_dtype_as_argument(x, dtype):
    table = {torch.float32: 1, torch.float64: 2}
    return x.to(dtype) * table[dtype], dtype == torch.float32, str(dtype)


@program(call(data(2)), call(data(2)), call(data(3)))
def test_num_threads_and_versions(x):
    return (
        x * 2,
        torch.get_num_threads() > 0,
        torch.__version__.split(".")[0],
        torch.backends.mkldnn.is_available() in (True, False),
    )


@program(call(data(2), data(2)), call(data(2), data(2)), call(data(3), data(1)))
def test_broadcast_helpers(x, y):
    a, b = torch.broadcast_tensors(x, y)
    return a + b, torch.broadcast_shapes(x.shape, y.shape), torch.atleast_2d(x)


@program(call(data(4, 4)), call(data(4, 4)), call(data(2, 2)), tolerance=True)
def test_linear_algebra(x):
    symmetric = x @ x.t() + torch.eye(x.shape[0])
    return (
        torch.linalg.norm(x),
        torch.linalg.cholesky(symmetric),
        torch.linalg.solve(symmetric, x),
        torch.linalg.det(symmetric),
    )


@program(call(data(8)), call(data(8)), call(data(4)), tolerance=True)
def test_fourier(x):
    return torch.fft.rfft(x).abs(), torch.fft.ifft(torch.fft.fft(x)).real, torch.special.expit(x)


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)), tolerance=True)
def test_vmap_and_grad(x):
    def loss(row):
        return (row**2).sum()

    return (
        torch.vmap(loss)(x),
        torch.func.grad(loss)(x[0]),
        torch.func.vmap(torch.func.grad(loss))(x),
    )


@program(
    call(data(2, 3, grad=True)),
    call(data(2, 3, grad=True)),
    call(data(4, 3, grad=True)),
    tolerance=True,
)
def test_checkpoint(x):
    def block(v):
        return torch.tanh(v @ torch.ones(3, 3))

    return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)


@program
def test_custom_autograd_function():
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= ctx.limit) * 2, None

    def f(x, limit):
        return Clip.apply(x * 1, limit)

    yield f
    yield call(data(3, grad=True), 1.0)
    yield call(data(3, grad=True), 1.0)
    yield call(data(3, grad=True), 0.1)
    yield call(data(3), 0.1)


@program
def test_tensor_subclass():
    class Tagged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(getattr(func, "__name__", "?"))
            return super().__torch_function__(func, types, args, kwargs or {})

    log = []

    def f(x, y):
        return (x + y).sum()

    yield f
    yield call(data(2), data(2))
    yield call(data(2).as_subclass(Tagged), data(2))
    yield call(data(2), data(2))


@program
def test_torch_function_mode_of_the_caller():
    from torch.overrides import TorchFunctionMode

    class Double(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.sin else result

    def f(x):
        return torch.sin(x) + 1

    yield f
    yield call(data(2))
    with Double():
        yield call(data(2))
    yield call(data(2))


@program(call(data(2)), call(data(2)), call(data(3)))
def test_warning_inside(x):
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)
    return x * 2, [str(entry.message) for entry in caught]


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2), warns=True)
def test_warning_reaches_the_user(x, n):
    import warnings

    if n == 2:
        warnings.warn(f"n is {n}", DeprecationWarning, stacklevel=1)
    return x * n


@program(call(data(2)), call(data(2)), call(data(3)))
def test_typing_helpers_and_annotations(x):
    from typing import Optional, cast

    y: Optional[torch.Tensor] = x * 2  # noqa: UP045
    z = cast(torch.Tensor, y)
    total: float = float(z.ndim)
    return z + total


@program(call(data(3)), call(data(3)), call(data(3)))
def test_tensors_from_numbers_are_new_ones(x):
    """Ahead of time they are constants of the graph, which once were returned themselves."""
    number = torch.tensor(5)
    values = torch.tensor([1.0, 2.0])
    values.add_(x[:2])
    return number, torch.tensor([3, 4])[:1], x.new_tensor([1, 2]), values


@torch.library.custom_op("assay_capture::increment", mutates_args={"x"})
def increment(x: torch.Tensor) -> None:
    x.add_(1)


@program(call(data(3)), call(data(3)), call(data(4)))
def test_operator_of_a_library_that_writes_to_its_argument(x):
    y = x * 2
    increment(y)
    increment(x)
    return x + y


@program
def test_functional_call_under_grad():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2)

    def f(x):
        values = {name: value.detach() for name, value in layer.named_parameters()}
        return torch.func.grad(lambda p: torch.func.functional_call(layer, p, (x,)).sum())(values)

    yield f
    for _ in range(3):
        yield call(data(3, 4))


class PassesOn(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@program
def test_dispatch_mode_of_the_caller():
    """Its handler runs below autograd: a graph traced there once ran kernels on no memory."""

    def f(x):
        return x.sin() + 1

    yield f
    yield call(data(3, 4))
    for _ in range(4):
        with PassesOn():
            yield call(data(3, 4))
    yield call(data(3, 4, grad=True))


@program(
    call(torch.tensor([0, 2])),
    call(torch.tensor([1, 1])),
    call(torch.tensor([0, 3])),
    call(torch.tensor([-1, 0])),
    graphs=1,
    breaks=0,
)
def test_one_hot_of_given_classes(x):
    return torch.nn.functional.one_hot(x, 3) + 1


@program(call(torch.tensor([0, 2])), call(torch.tensor([1, 1])), call(torch.tensor([3, 1])))
def test_one_hot_of_as_many_classes_as_there_are(x):
    return torch.nn.functional.one_hot(x) + 1


@program(*[call(data(3), data(3).abs() + 1) for _ in range(3)], breaks=0)
def test_distributions(x, scale):
    normal = torch.distributions.Normal(x, scale)
    uniform = torch.distributions.Uniform(x, x + scale)
    return normal.log_prob(x), normal.rsample((2,)), uniform.sample(), normal.entropy()
