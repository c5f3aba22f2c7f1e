"""Programs that Dynamo or AOTAutograd got wrong once, after public issues: aliases and gradients.

The numbers are those of github.com/pytorch/pytorch/issues unless another repository is named. The
programs are our own; each says what went wrong there.
"""

from __future__ import annotations

import torch
from torch import nn

import assay
from capture.harness import call, data, program


@program(call(data(4, grad=True)), call(data(4, grad=True)), call(data(4)))
def test_detach_in_place(x):
    """#176854: requires_grad stayed true after detach_()."""
    y = x * 2
    y.detach_()
    return y + 1, y.requires_grad, y


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(2, grad=True)))
def test_grad_mode_is_left_off(x):
    """#112072: set_grad_enabled(False) ended with the graph."""
    y = x.clone()
    torch.set_grad_enabled(False)
    return y, y.clone()


@program
def test_enable_grad_under_no_grad_of_the_caller():
    """#114338: outputs computed under enable_grad did not require grad, or became one object."""

    def f(x):
        with torch.enable_grad():
            a = x + 1
        b = x + 1
        return a, b, a is b

    yield f
    torch.set_grad_enabled(False)
    yield call(data(3, grad=True))
    yield call(data(3, grad=True))
    torch.set_grad_enabled(True)
    yield call(data(3, grad=True))


@program(call(data(2, 3, grad=True)), call(data(2, 3, grad=True)), call(data(1, 3)))
def test_slice_assignment_makes_it_require_grad(vector):
    """#169179: the target of a sliced assignment did not require grad."""
    rows, columns = torch.triu_indices(3, 3, 1)
    matrix = torch.zeros(vector.shape[0], 3, 3)
    matrix[:, rows, columns] = vector
    needs = matrix.requires_grad
    return matrix - matrix.transpose(-2, -1), needs


@program(call(data(2, 3)), call(data(2, 3)), call(data(1, 2, 3)))
def test_detached_copy_requires_grad_again(x):
    """#168278: the shape of the result changed."""
    y = x.clone().detach().requires_grad_(True)
    rank = y.ndim
    return torch.sqrt(torch.abs(y)) + rank, y.is_leaf


@program
def test_copy_into_buffer_without_grad():
    """#158561: copy_() into a tensor under no_grad raised."""
    weight = data(3, grad=True)
    target = torch.zeros(3)

    def f(x):
        with torch.no_grad():
            target.copy_(weight * x)
        return target + 1

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(1))


@program
def test_in_place_on_argument_that_is_a_strided_view():
    """#93363: the base of a view with gradient was not written."""

    def f(view):
        view.add_(1.0)

    yield f
    for step in (2, 2, 3):
        base = data(6, grad=True) * 1
        yield call(base[::step])


@program(call(data(2, grad=True)), call(data(2, grad=True)), call(data(3, grad=True)))
def test_in_place_on_leaf_under_no_grad(x):
    """#90844: the write to a leaf under no_grad raised."""
    with torch.no_grad():
        x.add_(1)
    return x * 2


@program
def test_arguments_start_to_overlap():
    """#139789: the graph made for separate tensors was used for overlapping ones."""

    def f(x, y):
        x.mul_(2)
        return x + y

    yield f
    yield call(data(4), data(4))
    base = data(8)
    yield call(base[:4], base[2:6])
    yield call(base[:4], base[4:])
    yield call(base[:4], base[:4])


@program(call(data(1)), call(data(1)), call(data(2)))
def test_resize_of_a_view(x):
    """#191449: resize_() of a view changed the shape of its base."""
    base = x + 1
    alias = base.view(-1)
    alias.resize_(12)
    return base + 1, alias.shape


@program
def test_data_of_argument_replaced_after_view():
    """#94773: the view taken before x.data = ... must stay on the old storage."""

    def f(x):
        view = x[:]
        x.data = torch.ones(3)
        view.add_(1)
        return view, x

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    yield call(data(4))


@program(call(data(4)), call(data(4)), call(data(6)))
def test_resize_of_argument(x):
    """#97921: the new size of an argument was not seen outside."""
    x.resize_(x.numel() - 2)
    x.mul_(2)
    return x


@program(call(data(3)), call(data(3)), call(data(2, 3)))
def test_unsqueeze_in_place(x):
    """#93259: unsqueeze_() of an argument failed."""
    y = x.unsqueeze_(0)
    return y, x.shape, y is x


@program(
    call(data(2, 3, dtype=torch.float16), data(2, 3)),
    call(data(2, 3, dtype=torch.float16), data(2, 3)),
    call(data(2, 3), data(2, 3, dtype=torch.float64)),
)
def test_copy_of_other_dtype_then_view(x, y):
    """#95262: copy_() with a conversion, then a view of the argument, failed."""
    y.copy_(x)
    return torch.moveaxis(y, 0, 1)


@program
def test_views_changed_in_place_before_the_call():
    """#113793: arguments that are views of a tensor written before failed."""

    def f(parts):
        return [part * 2 for part in parts]

    yield f
    for rows in (4, 4, 6):
        base = data(rows, 2)
        parts = base.split(2)
        parts[0].add_(1)
        yield call(parts)


@program(call(data(2, 3), 1.0), call(data(2, 3), 1.0), call(data(2, 3), 0.0))
def test_invalid_alpha_raises(x, alpha):
    """#183762: celu_ with alpha 0 returned NaN instead of raising."""
    return torch.celu_(x, alpha)


@program(
    call(torch.tensor([0.5, 0.5])), call(torch.tensor([0.5, 0.5])), call(torch.tensor([0.5, 1.5]))
)
def test_invalid_probability_raises(p):
    """#185246: bernoulli accepted probabilities above 1."""
    return torch.bernoulli(p)


@program
def test_retain_grad_of_argument():
    """#146212: retain_grad() was ignored."""

    def f(x, y):
        y.retain_grad()
        return torch.sin(y) + x

    yield f
    for size in (4, 4, 3):
        x = data(size, grad=True)
        y = torch.cos(x)
        yield call(x, y)


@program(call(data(8, grad=True)), call(data(8, grad=True)), call(data(8)))
def test_detached_sibling_of_views(x):
    """PR 194479: a detached output took the gradient from views of the same tensor."""
    y = torch.sin(x)
    return y[0:4], y[4:8], y.detach()


@program(call(data(2, grad=True)), call(data(2, grad=True)), call(data(2)))
def test_detach_of_argument(x):
    """pytorch/functorch#1052: detach() of an argument required grad."""
    return x.detach(), x.detach() + 1, x


# With aot_eager the gradients are computed in float32, although backward() is called under
# autocast: see "Known differences" in docs/capture.md.
@program(backends=("eager",))
def test_inner_autocast_off_holds_in_backward():
    """#179804: backward ignored autocast(enabled=False)."""
    linear = nn.Linear(8, 8)

    def f(x):
        with torch.autocast("cpu", enabled=False):
            return x.float() @ linear.weight.t()

    yield f
    torch.set_autocast_enabled("cpu", True)
    yield call(data(4, 8, dtype=torch.bfloat16, grad=True))
    yield call(data(4, 8, dtype=torch.bfloat16, grad=True))
    torch.set_autocast_enabled("cpu", False)
    yield call(data(4, 8, grad=True))


@program(
    call(torch.tensor([[0, 0]]), data(2, 3)),
    call(torch.tensor([[0, 1]]), data(2, 3)),
    call(torch.tensor([[1, 1]]), data(2, 3)),
)
def test_indexed_addition_to_itself(index, y):
    """#138908: y[i] += y[i] with a repeated index was applied twice."""
    y[index] += y[index]


@program(call(data(2, 12, 2)), call(data(2, 12, 2)), call(data(2, 10, 2)))
def test_unused_random_draw_counts(x):
    """#143431: a random tensor that is not used was dropped, and the next one changed."""
    unused = torch.rand(2, 12)
    order = torch.argsort(torch.rand(*unused.shape), dim=-1)[:, :6]
    return x[torch.arange(2).unsqueeze(-1), order % x.shape[1]]


@program(
    call(torch.tensor([-0.5, -0.1, 0.0])),
    call(torch.tensor([-0.5, -0.1, 0.0])),
    call(torch.tensor([-0.0, 0.0])),
)
def test_negative_zero(x):
    """#189799 and #183606: the sign of zero changed."""
    y = torch.ceil(x)
    return torch.reciprocal(y + torch.zeros_like(y)), 1.0 / torch.frac(x), torch.minimum(x, -x)


@program
def test_tensor_written_in_a_generator():
    """#146628: a returned generator ran ahead and wrote the tensor too early."""

    def f(x):
        def steps():
            x.add_(1)
            yield x.sum()
            x.mul_(2)
            yield x.sum()

        return steps()

    yield f
    log = []
    for size in (2, 2, 3):
        x = data(size)
        generator = yield call(x)
        log.append(x.clone())
        log.append(next(generator))
        log.append(x.clone())
        log.append(list(generator))


@program
def test_custom_function_returns_its_argument():
    """PR 194534: an argument returned as it is from a custom Function, then written."""

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    def f(x):
        y = Identity.apply(x * 1)
        return y * 2 + 1

    yield f
    yield call(data(2, grad=True))
    yield call(data(2, grad=True))
    yield call(data(2))


@program
def test_random_like_of_permuted_tensor():
    """#177652: randn_like of a permuted tensor drew in another order."""

    def f(x):
        torch.manual_seed(0)
        return torch.randn_like(x), torch.rand_like(x, memory_format=torch.contiguous_format)

    yield f
    yield call(data(5, 4).permute(1, 0))
    yield call(data(5, 4).permute(1, 0))
    yield call(data(5, 4))


@program
def test_write_through_one_name_seen_through_the_other():
    """#139789, within the call: two arguments are one tensor."""

    def f(x, y):
        x.add_(1)
        z = y * 2
        y.mul_(3)
        return x + z

    yield f
    yield call(data(3), data(3))
    same = data(3)
    yield call(same, same)
    yield call(data(3), data(3))
    yield call(same, same.view(3))


@program(call(data(1, 3)), call(data(1, 3)), call(data(2, 3)))
def test_in_place_on_expanded_tensor(x):
    """#93363's family: writing to an expanded tensor raises where several elements are one."""
    y = (x + 1).expand(4, 3) if x.shape[0] == 1 else x + 1
    y.mul_(2)
    return y


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_a_number_becomes_a_tensor_in_place(x):
    total, power, items = 0, 2.0, [1]
    total += x
    power **= x
    items += x
    return total, power, items


@program(*[call(bytearray([0, 1, 2])) for _ in range(3)])
def test_a_storage_is_one_of_its_class(text):
    storage = torch.BoolStorage.from_buffer(text, "big")
    return isinstance(storage, torch.BoolStorage), isinstance(storage, torch.FloatStorage)


@program(*[call(data(2, 2, grad=True), data(2, 2, grad=True)) for _ in range(3)])
def test_backward_does_not_go_beyond_detach(a, b):
    made = a @ torch.ones(2, 2)
    (made - 1).abs().mean().backward()
    (b @ made.detach()).mean().backward()
    return a.grad, b.grad


@program(*[call(data(3), data(3)) for _ in range(3)])
def test_tangents(x, t):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        return torch.autograd.forward_ad.unpack_dual(sine(dual)).tangent


def sine(x):
    return x.sin() * 2


def test_inputs_that_are_called_the_same() -> None:
    """Keys of a dict that are tensors: placeholders of a GraphModule still differ in name."""

    def f(x):
        return sum(x * notes[key] for key in notes)

    notes = {torch.ones(2): torch.ones(2), torch.zeros(2): torch.full((2,), 3.0)}
    compiled = assay.compile(f, backend=lambda graph, inputs: graph)
    for x in (torch.ones(2), torch.randn(2)):
        torch.testing.assert_close(compiled(x), f(x))
