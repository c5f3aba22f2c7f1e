"""Programs that no single graph can hold: each break must leave eager's behavior behind."""

from __future__ import annotations

import sys
import time

import numpy
import torch

from capture import engine
from capture.harness import call, data, program


@program(
    call(data(3), data(3)),
    call(data(3), data(3)),
    call(data(3), -data(3).abs()),
    graphs=3,
    breaks=2,
)
def test_print_and_branch(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


@program(call(data(3)), call(data(3)), call(data(4)), graphs=2, breaks=1)
def test_print_between(x):
    y = x * 2
    print("shape", y.shape, "sum")
    return y + 1


@program(call(data(3), 2), call(data(3), 2), call(data(3), 3))
def test_print_of_tensor_and_numbers(x, n):
    y = x * n
    print(y, n, sep=" | ", end="!\n")
    return y - 1


@program(call(data(3)), call(data(3)), call(data(3)))
def test_item(x):
    total = x.sum().item()
    return x * total, total


@program(call(torch.tensor(2)), call(torch.tensor(3)), call(torch.tensor(2)))
def test_item_as_size(n):
    return torch.ones(n.item()) * n, int(n), float(n), bool(n)


@program(call(torch.tensor([1.0])), call(torch.tensor([-1.0])), call(torch.tensor([2.0])))
def test_branch_on_tensor(x):
    y = x * 2
    if y > 0:
        y = y + 100
    else:
        y = y - 100
    return y * 3


@program(call(torch.tensor(10.0)), call(torch.tensor(3.0)), call(torch.tensor(0.0)))
def test_while_on_tensor(x):
    steps = 0
    while x > 1:
        x = x / 2
        steps += 1
    return x, steps


@program(call(data(3)), call(data(3)), call(data(2)))
def test_tolist(x):
    numbers = (x * 10).int().tolist()
    return x + sum(numbers), numbers, sorted(numbers)


@program(call(data(3)), call(data(3)), call(data(2, 2)))
def test_numpy_round_trip(x):
    array = (x * 2).numpy()
    array = numpy.sqrt(numpy.abs(array)) + 1
    return torch.from_numpy(array) * x


@program(call(data(3)), call(data(3)), call(data(2)))
def test_numpy_shares_memory(x):
    array = x.numpy()
    array[0] = 5
    x.add_(1)
    return x * 2, array


@program(call(data(3), 1), call(data(3), 1), call(data(3), 2))
def test_break_at_depth_three(x, n):
    def outer(v):
        return middle(v * 2) + 1

    def middle(v):
        w = inner(v - 1)
        return w * 3

    def inner(v):
        u = v + n
        print("inner", n)
        return u.sin()

    return outer(x) * 2


@program(call(data(3), 3), call(data(3), 3), call(data(3), 2))
def test_break_in_loop(x, n):
    for i in range(n):
        x = x * 2
        print("round", i)
        x = x + i
    return x


@program(call(data(3), 3), call(data(3), 3), call(data(3), 2))
def test_break_in_loop_with_state(x, n):
    history, total = [], 0
    for i in range(n):
        y = x + i
        history.append(y.sum().item())
        total += history[-1]
        x = y * 0.5
    return x, total, history


@program(call(data(3, grad=True)), call(data(3, grad=True)), call(data(2, grad=True)))
def test_break_inside_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print("grad", torch.is_grad_enabled())
        z = y + 1
    return x * z, torch.is_grad_enabled()


@program(call(data(3), 1), call(data(3), 0), call(data(3), 1))
def test_break_inside_try(x, n):
    try:
        y = x * 2
        print("trying")
        y = y + 6 // n
    except ZeroDivisionError:
        print("failed")
        y = x - 1
    finally:
        print("finally")
    return y * 3


@program(call(data(3), 3), call(data(3), 3), call(data(3), 2))
def test_break_inside_comprehension(x, n):
    def show(i):
        print("item", i)
        return x * i

    return [show(i) + 1 for i in range(n)], sum(show(i) for i in range(n))


@program(call(data(3), 3), call(data(3), 3), call(data(3), 2))
def test_break_inside_generator(x, n):
    def values():
        for i in range(n):
            print("yielding", i)
            yield x * i

    total = 0
    for value in values():
        total = total + value
    return total


@program
def test_break_inside_property():
    class Box:
        def __init__(self, n):
            self.n = n

        @property
        def value(self):
            print("read")
            return self.n * 2

    box = Box(2)

    def f(x):
        y = x + 1
        return y * box.value

    yield f
    yield call(data(3))
    yield call(data(3))
    box.n = 5
    yield call(data(3))


@program
def test_break_inside_init():
    class Box:
        def __init__(self, value):
            self.value = value * 2
            print("made")
            self.late = self.value + 1

    def f(x):
        box = Box(x + 1)
        return box.value, box.late, box

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(2))


@program(
    call(torch.tensor([0.0, 1.0, 2.0])),
    call(torch.tensor([0.0, 0.0, 2.0])),
    call(torch.tensor([0.0])),
)
def test_nonzero(x):
    indices = x.nonzero()
    return indices, x[indices[:, 0]] * 2, indices.shape


@program(call(data(4)), call(data(4)), call(data(6)))
def test_mask_indexing(x):
    positive = x[x > 0]
    x[x < 0] = 0
    return positive * 2, positive.numel(), x


@program(
    call(torch.tensor([1, 2, 1])), call(torch.tensor([1, 1, 1])), call(torch.tensor([3, 2, 1, 3]))
)
def test_unique(x):
    values, counts = x.unique(return_counts=True)
    return values * 2, counts, len(values)


@program(
    call(data(3), torch.tensor(2)), call(data(3), torch.tensor(1)), call(data(3), torch.tensor(0))
)
def test_tensor_as_index_and_range(x, n):
    for i in range(n):
        x = x + i
    return x[: int(n)], [1, 2, 3][n]


@program(call(data(3)), call(data(3)), call(data(2)))
def test_is_close_and_equal(x):
    if torch.equal(x, x.clone()) and torch.allclose(x, x + 1e-9):
        return x * 2
    return x


@program(call(data(3), 0), call(data(3), 0), call(data(3), 1))
def test_unknown_c_function(x, n):
    y = x * 2
    started = time.perf_counter() > 0
    size = sys.getsizeof([]) > 0
    return y + n, started, size


@program(call(data(3)), call(data(3)), call(data(2)))
def test_live_containers_across_a_break(x):
    values = [x, x + 1]
    table = {"values": values, "first": values[0]}
    pair = (values, table)
    print("break")
    values.append(x * 3)
    table["n"] = len(pair[0])
    return pair, table["first"] is values[0]


@program
def test_live_objects_across_a_break():
    class Node:
        def __init__(self, value, parent=None):
            self.value = value
            self.parent = parent

    def f(x):
        root = Node(x + 1)
        child = Node(x * 2, root)
        print(child.parent is root)
        child.parent.value = child.value + root.value
        return root, child

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program(call(data(3), 2), call(data(3), 2), call(data(3), 4))
def test_live_closures_across_a_break(x, n):
    count = n

    def step(v):
        nonlocal count
        count += 1
        return v * count

    y = step(x)
    print("count", count)
    return step(y), count


@program(call(data(3), 2), call(data(3), 2), call(data(3), 3))
def test_live_iterator_across_a_break(x, n):
    numbers = iter(range(n + 2))
    x = x + next(numbers)
    print("break")
    x = x + next(numbers)
    return x, list(numbers), list(zip(range(2), "ab", strict=True))


@program(call(data(3)), call(data(3)), call(data(2)))
def test_break_in_the_middle_of_an_expression(x):
    return [x * 2, print("first"), x + print_and_return(3), {"k": x - print_and_return(4)}]


def print_and_return(value):
    print("value", value)
    return value


@program(call(data(3), 1), call(data(3), 1), call(data(3), 2))
def test_break_in_argument_and_default(x, n):
    def g(a, b=0, *rest, **named):
        print(len(rest), sorted(named))
        return a * b + sum(rest)

    return g(x, print_and_return(n), 3, 4, k=print_and_return(5))


@program
def test_break_in_method_with_effects():
    class Counter:
        def __init__(self):
            self.n = 0
            self.log = []

        def step(self, x):
            self.n += 1
            self.log.append(x * self.n)
            print("step", self.n)
            self.log.append(self.n)
            return x + self.n

    counter = Counter()
    yield counter.step
    yield call(data(2))
    yield call(data(2))
    counter.n = 10
    yield call(data(2))


@program
def test_break_in_hook():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    net[0].register_forward_hook(lambda module, args, output: print("hook", output.shape))
    yield net
    yield call(data(3, 2))
    yield call(data(3, 2))
    yield call(data(4, 2))


@program
def test_break_in_context_manager():
    class Loud:
        def __enter__(self):
            print("enter")
            return 3

        def __exit__(self, *details):
            print("exit", details[0])

    def f(x, n):
        with Loud() as k:
            y = x * k
            return y + 6 // n

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 0)


@program(call(data(2)), call(data(2)), call(data(3)))
def test_exception_after_a_break(x):
    y = x * 2
    print("before")
    z = y + 1
    return z.view(7)


@program(call(torch.tensor(1.0)), call(torch.tensor(-1.0)), call(torch.tensor(5.0)))
def test_assert_on_tensor_value(x):
    y = x * 2
    if not (y < 8).all():
        raise ValueError(f"too large: {y.item()}")
    return y if y.sum() > 0 else -y


@program(call(data(3)), call(data(3)), call(data(2)))
def test_input_written_before_and_after_a_break(x):
    x.add_(1)
    view = x[1:]
    print(x.sum() > 100)
    view.mul_(2)
    return x, view


@program
def test_disabled_function():
    seen = []

    @engine.disable
    def untouched(v):
        seen.append(v.shape)
        return v * 2 + 1

    def f(x):
        return untouched(x + 1) - 1

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_asked_for_break():
    seen = []

    def f(x, n):
        y = x * n
        seen.append(n)
        engine.graph_break()
        seen.append(-n)
        return y + len(seen)

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program(call(data(2), "3 + 4"), call(data(2), "3 + 4"), call(data(2), "n * 2"))
def test_eval_and_exec(x, text):
    n = 5
    scope = {"n": n}
    exec("m = n + 1", scope)
    return x * eval(text, {"n": n}), scope["m"], sorted(locals())


@program(call(data(3).abs(), data(3)), call(data(3).abs(), data(3)), call(-data(3).abs(), data(3)))
def test_a_distribution_validates(scale, x):
    return torch.distributions.Normal(x, scale).log_prob(x)


@program(*[call(data(3)) for _ in range(3)], backends=("eager",), breaks=0)
def test_a_leaf_is_made(x):
    y = (x * 2).detach().requires_grad_()
    return y, (y * 3).sin(), y.is_leaf, y.requires_grad
