"""Programs that call a torch.autograd.Function whose inputs require grad.

The call is one in the graph, and runs as in eager every time. What its forward reads is guarded as
anything else; a forward that does more than compute breaks.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

import assay
from capture import engine
from capture.harness import call, data, program


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor * 3 + x, None


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x.cos() * 2 + y


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (first * y + second if wanted[0] else None), (
            first * x + second if wanted[1] else None
        )


class Mask(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        ctx.set_materialize_grads(False)
        return x * 2, positive

    @staticmethod
    def backward(ctx, grad, _):
        return grad * 5


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sizes):
        ctx.sizes = tuple(x.shape)
        return x.view(sizes)

    @staticmethod
    def backward(ctx, grad):
        return -grad.reshape(ctx.sizes), None


SLOPE = 3.0


class ReadsGlobalInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * SLOPE


class ReadsGlobalInForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * SLOPE + len(SEEN)

    @staticmethod
    def backward(ctx, grad):
        return grad


SEEN: list[int] = []


class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        SEEN.append(1)
        return x * len(SEEN)

    @staticmethod
    def backward(ctx, grad):
        SEEN.append(2)
        return grad * len(SEEN)


class Prints(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        print("forward", x.shape)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad + ctx.saved_tensors[0]


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        noise = torch.rand_like(x)
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class WritesToClone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[0] = 0
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


class Picky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.shape[0] == 2:
            raise ValueError("two")
        return x @ torch.ones(x.shape[0])

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(3)


class ReturnsInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x, y + 1

    @staticmethod
    def backward(ctx, first, second):
        return first * 2, second * 3


def leaf(*shape):
    return data(*shape, grad=True)


three = tuple(call(leaf(3)) for _ in range(3))


@program(*three, breaks=0, graphs=1)
def test_saved_tensors_and_numbers(x):
    return Scale.apply(x, 2.0).sum() + Scale.apply(x * 2, 3.0)


@program(call(leaf(3), 2), call(leaf(3), 5), call(leaf(3), 2))
def test_number_from_outside(x, factor):
    return Scale.apply(x, factor)


@program(*three, breaks=0)
def test_setup_context(x):
    return Sine.apply(x) + 1


@program(call(leaf(3), leaf(3)), call(leaf(3), data(3)), call(data(3), leaf(3)), breaks=0)
def test_several_results(x, y):
    first, second = Pair.apply(x, y)
    return first * second, first.requires_grad


@program(*three, breaks=0)
def test_result_without_gradient(x):
    doubled, positive = Mask.apply(x)
    return torch.where(positive, doubled, 0.0), positive.requires_grad


@program(call(leaf(3)), call(leaf(3)), call(leaf(4)), call(data(4)))
def test_straight_through(x):
    return Round.apply(x * 3) + Round.apply(x)


@program(call(leaf(2, 3)), call(leaf(2, 3)), call(leaf(3, 2)), breaks=0)
def test_sizes_on_the_context(x):
    return Reverse.apply(x, (-1,)) * 2


@program(*three, breaks=0)
def test_under_other_modes(x):
    with torch.no_grad():
        a = Scale.apply(x, 2.0)
    y = x * a
    with torch.enable_grad():
        return Scale.apply(y, 2.0), a.requires_grad


@program(*three)
def test_under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return Sine.apply(x.outer(x) @ x.outer(x))


@program
def test_backward_reads_a_global_that_changes():
    global SLOPE
    yield lambda x: ReadsGlobalInBackward.apply(x) * 2
    yield call(leaf(3))
    yield call(leaf(3))
    SLOPE = 5.0
    yield call(leaf(3))


@program
def test_forward_reads_globals_that_change():
    global SLOPE
    yield lambda x: ReadsGlobalInForward.apply(x) * 2
    yield call(leaf(3))
    SLOPE = 5.0
    yield call(leaf(3))
    yield call(leaf(3))
    SEEN.append(1)
    yield call(leaf(3))
    SEEN.clear()


@program
def test_forward_reads_what_was_changed_just_before():
    def f(x):
        SEEN.append(1)
        y = ReadsGlobalInForward.apply(x)
        SEEN.append(1)
        return y * len(SEEN)

    yield f
    for _ in range(3):
        yield call(leaf(3))
    SEEN.clear()


@program
def test_forward_and_backward_have_effects():
    def f(x):
        return Counts.apply(x) + len(SEEN)

    yield f
    for _ in range(4):
        yield call(leaf(3))
        seen = list(SEEN)
    del seen
    SEEN.clear()


@program(*three)
def test_forward_breaks(x):
    y = x * 2
    return Prints.apply(y) + y


@program(*three)
def test_forward_draws_random_numbers(x):
    return Noisy.apply(x), torch.rand(2)


@program(*three)
def test_forward_writes_to_its_input(x):
    return InPlace.apply(x + 1) * 2


@program(*three)
def test_forward_writes_to_a_copy(x):
    return WritesToClone.apply(x) + x


@program(call(leaf(3)), call(leaf(2)), call(leaf(3)), call(leaf(2)))
def test_forward_raises(x):
    return Picky.apply(x * 2) + 1


@program(call(leaf(3), leaf(3)), call(leaf(3), leaf(3)), call(leaf(3), data(3)))
def test_forward_returns_its_input(x, y):
    first, second = ReturnsInput.apply(x, y)
    return first * second, first is x


@program
def test_forward_is_replaced():
    class Changing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    yield lambda x: Changing.apply(x) + 1
    yield call(leaf(3))
    yield call(leaf(3))
    Changing.forward = staticmethod(lambda ctx, x: x[:1] * 3)
    yield call(leaf(3))
    Changing.backward = staticmethod(lambda ctx, grad: (grad * 5).expand(3))
    yield call(leaf(3))
    yield call(leaf(3))


@program
def test_class_as_argument():
    yield lambda function, x: function.apply(x) + 1
    for function in (Round, Sine, Round, WritesToClone):
        yield call(function, leaf(3))


@program
def test_in_a_module():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            first, second = Pair.apply(x, self.weight)
            return first.relu() + second + self.calls

    layer = Layer()
    yield layer
    for _ in range(4):
        yield call(data(3))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_whole_graph(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return Sine.apply(Scale.apply(x, 2.0)).sum()

    engine.reset()
    compiled = assay.compile(f, backend=backend, fullgraph=True)
    for _ in range(3):
        x = torch.randn(4, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        expected, actual = f(x), compiled(y)
        expected.backward()
        actual.backward()
        torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(y.grad, x.grad)


def test_backend_in_python_gets_the_call() -> None:
    targets = []

    def backend(module: torch.fx.GraphModule, _: object) -> object:
        targets.extend(str(node.target) for node in module.graph.nodes)
        return module.forward

    compiled = assay.compile(lambda x: Sine.apply(x) + 1, backend=backend, fullgraph=True)
    x = torch.randn(3, requires_grad=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert "assay_python.call_one.default" in targets


class Filled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        made = torch.zeros_like(x)
        made += x.detach().exp()
        made.masked_fill_(x > 1, 0)
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx, gradient):
        (made,) = ctx.saved_tensors
        return gradient * made


@program(*[call(data(3, grad=True)) for _ in range(3)], breaks=0)
def test_forward_writes_to_what_it_made(x):
    return Filled.apply(x * 2) + 1


class Increased(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counter):
        counter.add_(1)
        return x * counter

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


@program
def test_forward_writes_to_what_is_older():
    counter = torch.zeros(())

    def f(x):
        return Increased.apply(x, counter)

    yield f
    for _ in range(4):
        yield call(data(3, grad=True))


class Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, gradient):
        return gradient.reshape(ctx.shape) * 3


@program(call(data(3)), call(data(3)), call(data(3, grad=True)), breaks=0)
def test_setup_of_a_context_without_gradients(x):
    return Doubled.apply(x)


@program(*[call(data(4, 3)) for _ in range(3)])
def test_inside_of_a_transform(x):
    gradient = torch.func.grad(lambda y: Doubled.apply(y).sum())(x)
    return torch.vmap(Doubled.apply)(x), gradient
