"""NumPy in captured programs: each call of it is one call of the graph, so results are its own."""

from __future__ import annotations

import numpy
import torch

import assay
from capture.harness import call, data, program


def array(*shape, dtype=numpy.float64):
    return data(*shape).numpy().astype(dtype)


CALLS = (call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))
ARRAYS = (call(array(2, 3)), call(array(2, 3)), call(array(2, 3, dtype=numpy.float32)))


@program(*CALLS, breaks=0)
def test_there_and_back(x):
    return torch.from_numpy(x.numpy() + 1) * x, torch.as_tensor(numpy.abs(x.numpy()))


@program(*ARRAYS, breaks=0)
def test_functions_and_operators(a):
    b = numpy.sum(a, axis=0) + a[0] * 2 - a.mean() / 3
    return b, a > b, -a, a.T @ a, numpy.linalg.norm(a), a.astype(numpy.int32).max(), a.clip(0, 1)


@program(*ARRAYS, breaks=0)
def test_what_an_array_says_of_itself(a):
    if not isinstance(a, numpy.ndarray) or a.dtype == numpy.float32:
        return a.ndim, a.shape
    return a.dtype == numpy.float64, a.size, a.strides, len(a), a.itemsize, [row.sum() for row in a]


@program(*CALLS, breaks=0)
def test_constants(x):
    grid = numpy.arange(6).reshape(2, 3)
    count = numpy.prod((2, 3))
    offset = numpy.array([1, 2]).tolist()[1] + int(count) + float(numpy.float32(0.5))
    return x * numpy.float64(3.0) + offset, x.reshape(int(numpy.prod(x.shape))), grid


@program(*[call(data(3, 4), numpy.array([n, 2])) for n in (0, 1, 2)], breaks=0)
def test_tensors_indexed_by_arrays(x, index):
    return x[:, index], x[index]


@program(*[call(data(3), numpy.float32(n)) for n in (1, 2, 3)], breaks=0)
def test_scalars_from_outside(x, n):
    return x * n, n + 1


@program(*[call(array(4), data(4)) for _ in range(3)], breaks=0)
def test_changes_in_place(a, x):
    a[0] = 3
    a += 1
    a[1:] *= a[0]
    b = x.numpy()
    b -= a
    return x + torch.from_numpy(a), a


@program
def test_state():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = numpy.ones(3)

        def forward(self, x):
            return x + torch.from_numpy(self.weight)

    module = Module()
    yield module
    yield call(data(2, 3))
    module.weight += 1
    yield call(data(2, 3))
    module.weight = numpy.zeros((2, 3), dtype=numpy.float32)
    yield call(data(2, 3))
    module.weight = numpy.zeros((2, 6))[:, ::2]
    yield call(data(2, 3))


@program(call(array(4)), call(array(4)), call(-abs(array(4))), call(abs(array(4))))
def test_values_decide(a):
    if a.sum() > 0:
        a = a * 2
    return a[a > 0], numpy.unique(a), f"{a[0]:.2f}", a[1].item(), float(a[2]), {float(a[3]): 1}


@program(call(array(4)), call(array(4)), call(numpy.ones(4)))
def test_sizes_that_follow_from_values(a):
    return numpy.unique(a) + 1


@program(*[call(data(4, grad=True)) for _ in range(3)], backends=("aot_eager", "native"))
def test_ahead_of_time(x):
    y = x.sin()
    scale = numpy.abs(y.detach().numpy()).max()
    return y * torch.tensor(scale) + torch.from_numpy(numpy.ones(4, dtype=numpy.float32))


@program(*[call(data(4)) for _ in range(3)], backends=("aot_eager", "native"))
def test_memory_that_no_storage_tells(x):
    y = torch.from_numpy(x.numpy())
    y.add_(1)
    return x * 2


@program(call(array(3)), call(array(3)), call(numpy.array(["a", "b"])), call(array(3)[::-1]))
def test_arrays_that_torch_does_not_have(a):
    return a.copy(), a.shape


def test_wrap_numpy() -> None:
    @assay.compile(backend="eager", fullgraph=True)
    @torch.compiler.wrap_numpy
    def f(a):
        return numpy.stack([a * 2, a])

    for n in (2.0, 3.0):
        x = torch.full((3,), n)
        torch.testing.assert_close(f(x), torch.stack([x * 2, x]))


@program(*[call(array(4)) for _ in range(3)])
def test_constants_that_are_changed(a):
    b = numpy.arange(4.0)
    c = b[1:]
    b += a
    d = numpy.arange(4.0)
    torch.from_numpy(d).add_(torch.from_numpy(a))
    return c.tolist(), float(c[0]), d.tolist()


def read_only(a):
    a.flags.writeable = False
    return a


def sums(a):
    return a + 1, numpy.broadcast_to(a, (2, 4)).sum()


@program(warns=True)
def test_an_array_that_is_read_only():
    yield sums
    for _ in range(3):
        yield call(read_only(array(4)))
