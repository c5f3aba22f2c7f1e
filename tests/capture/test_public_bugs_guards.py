"""Programs that Dynamo got wrong once, after public issues of PyTorch: stale guards.

The numbers are those of github.com/pytorch/pytorch/issues unless another repository is named. The
programs are our own; each says what went wrong there.
"""

from __future__ import annotations

import random

import torch
from torch import nn

from capture.harness import call, data, program


@program
def test_identity_of_mutable_objects():
    """#196173: a branch on the identity of two objects was stale, and its writes were lost."""

    class Cell:
        def __init__(self):
            self.value = 0

    def f(x, a, b):
        if a is b:
            a.value += 10
            return x * a.value
        b.value += 1
        return x + b.value

    one, two = Cell(), Cell()
    yield f
    yield call(data(2), one, two)
    yield call(data(2), one, one)
    yield call(data(2), two, one)
    yield call(data(2), two, two)


@program
def test_cache_of_module_replaced_between_calls():
    """#115774: the write went to the cache of the first call."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = torch.zeros(2)

        def forward(self, x, position):
            self.cache[position] = x
            return self.cache

    net = Net()
    yield net
    yield call(data(1), torch.tensor([0]))
    net.cache = torch.zeros(2)
    yield call(data(1), torch.tensor([1]))
    net.cache = torch.ones(2)
    yield call(data(1), torch.tensor([1]))


@program
def test_module_attribute_changes():
    """#98928: a changed attribute of a module did not recompile."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.options = {"scale": 1.0}
            self.mode = "a"

        def forward(self, x):
            y = self.linear(x) * self.options["scale"]
            return y if self.mode == "a" else -y

    net = Net()
    yield net
    yield call(data(2, 2))
    net.options["scale"] = 3.0
    yield call(data(2, 2))
    net.mode = "b"
    yield call(data(2, 2))
    net.linear.weight = nn.Parameter(data(2, 2))
    yield call(data(2, 2))


@program
def test_argument_that_was_a_global_at_first():
    """#120861: one guard served for the argument and for the global it happened to be."""
    global NUMBERS
    NUMBERS = [1, 2, 3]

    def f(numbers, x):
        return x + NUMBERS[-1] + numbers[-1]

    yield f
    yield call(NUMBERS, data(2))
    yield call([3, 2, 1], data(2))
    yield call([1, 2], data(2))
    NUMBERS.append(7)
    yield call(NUMBERS, data(2))


@program
def test_closures_over_different_methods_of_tensor():
    """#197811: the captured method descriptor was not guarded."""

    def make(operation):
        def g(x, y):
            return operation(x, y)

        return g

    def f(g, x, y):
        return g(x, y)

    yield f
    yield call(make(torch.Tensor.__add__), data(2), data(2))
    yield call(make(torch.Tensor.__mul__), data(2), data(2))
    yield call(make(torch.Tensor.add), data(2), data(2))
    yield call(make(torch.sub), data(2), data(2))


@program
def test_float_of_method_and_attribute():
    """#117496: the value of a float argument and of a float attribute was ignored."""

    class Scale:
        def __init__(self, t):
            self.t = t

        def run(self, x, t):
            return x * t + self.t

    scale = Scale(8.0)
    yield scale.run
    for t in (8.0, 4.0, 2.0, 1.0):
        scale.t = t
        yield call(data(2), t)


@program
def test_functions_that_differ_in_defaults():
    """#178365: functions of one code and different defaults shared a graph."""

    def make(offset):
        def g(x, k=offset):
            return x + k

        return g

    def f(x, g):
        return g(x)

    yield f
    for offset in (0, 1, 2):
        yield call(data(2), make(offset))


@program
def test_submodule_shadowed_in_the_instance_dict():
    """#197859: an entry of __dict__ that shadows a submodule was not seen."""

    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

    wrapper = Wrapper()
    yield wrapper
    yield call(data(2, 2))
    object.__setattr__(wrapper, "inner", nn.Linear(2, 3))
    yield call(data(2, 2))
    del wrapper.__dict__["inner"]
    yield call(data(2, 2))


@program
def test_hooks_added_and_removed():
    """#117758: hooks registered after the first call were ignored."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []
    yield net
    yield call(data(2, 2))
    handle = net[0].register_forward_hook(
        lambda module, args, out: seen.append(out.shape) or out * 2
    )
    yield call(data(2, 2))
    before = net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    yield call(data(2, 2))
    handle.remove()
    yield call(data(2, 2))
    before.remove()
    yield call(data(2, 2))


@program(call(data(4)), call(data(5)), call(data(6)), call(data(7)))
def test_size_in_f_string(x):
    """#129882: the name of a symbol appeared in the text."""
    return f"{x.size(0)} of {x.numel() * 2:>4}", x * 2


@program(call(data(14)), call(data(15)), call(data(16)), call(data(25)))
def test_size_rounded_to_tens(x):
    """#198064: round(n, -1) of a size did nothing."""
    return round(x.shape[0], -1), x * round(x.shape[0] * 5, -1)


@program(call(data(2), 0), call(data(2), 0), call(data(2), 1))
def test_seed_of_random(x, seed):
    """#197101: random.seed() had no effect on the first call."""
    random.seed(seed)
    return x + random.random(), random.randint(0, 100), random.uniform(1, 2)


@program(call(data(2), 5), call(data(2), 5), call(data(2), 6))
def test_shuffle_and_sample(x, n):
    """#197085: the same permutation on every call."""
    numbers = list(range(n))
    random.shuffle(numbers)
    return x * numbers[0], numbers, random.sample(range(n), 3)


@program(call(data(2)), call(data(2)), call(data(3)))
def test_manual_seed_inside(x):
    """#107187 and #118735: torch.manual_seed() was ignored."""
    generator = torch.Generator().manual_seed(42)
    first = torch.rand(1, generator=generator)
    torch.manual_seed(42)
    return x + 1, first, torch.rand(1), torch.rand(1)


@program(call(data(2, 3)), call(data(2, 3)), call(data(1, 4)))
def test_legacy_constructor_with_size(x):
    """#196467: torch.Tensor(size) made a tensor of the sizes."""
    made = torch.Tensor(x.size())
    return made.zero_(), torch.Tensor(tuple(x.size())), made.shape


@program(call([1, 2]), call([3, 4]), call([5, 6, 7]))
def test_legacy_constructor_with_changing_integers(numbers):
    """#135432: integers that change between calls were stored as raw bits."""
    return torch.Tensor(numbers), torch.tensor(numbers, dtype=torch.float32), torch.tensor(numbers)


@program
def test_branch_on_global_table_by_size():
    """#98533: an empty branch made a compiled graph drop out."""
    global TABLE
    TABLE = {3: 1}

    def f(x, y):
        index = TABLE.get(x.shape[-1])
        if index is not None:
            y[index] += 1
        return y

    yield f
    yield call(data(3), torch.zeros(5))
    yield call(data(4), torch.zeros(5))
    yield call(data(3), torch.zeros(5))
    TABLE[4] = 2
    yield call(data(4), torch.zeros(5))


@program
def test_default_list_filled_and_read():
    """#178365, the other half: a mutable default keeps what earlier calls put there."""

    def remember(x, history=[]):  # noqa: B006
        history.append(x)
        return sum(history)

    def f(x):
        return remember(x) + remember(x * 2)

    yield f
    yield call(data(2))
    yield call(data(2))
    remember.__defaults__ = ([],)
    yield call(data(2))
