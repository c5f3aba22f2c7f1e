"""Programs that Dynamo got wrong once, after public issues of PyTorch: the Python side.

The numbers are those of github.com/pytorch/pytorch/issues unless another repository is named. The
programs are our own; each says what went wrong there.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import collections
import random

import torch
from torch import nn

from capture.harness import call, data, program


@program(call(data(1), 3), call(data(1), 3), call(data(1), 5))
def test_list_grows_while_iterated(x, limit):
    """#175855: elements appended during the iteration were not visited."""
    values = [x.sum()]

    def grow():
        for item in values:
            if len(values) < limit:
                values.append(item + 1)
            yield item

    return torch.stack(list(grow())).sum()


@program(call(data(2), [1, 2, 3, 4]), call(data(2), [1, 2, 3, 4]), call(data(2), [5, 6]))
def test_iter_of_partly_used_reversed_iterator(x, numbers):
    """#196211: iter() on a partly consumed reversed iterator started again."""
    backwards = reversed(numbers)
    first = next(backwards)
    rest = list(iter(backwards))
    return x * first, rest


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
def test_list_of_the_class():
    """#169253: appends to a list that is an attribute of the class were dropped."""

    class Net(nn.Module):
        seen = []  # noqa: RUF012

        def forward(self, x):
            Net.seen.append(x)
            self.seen.append(len(self.seen))
            return x * 2

    net = Net()
    yield net
    yield call(data(2))
    yield call(data(2))
    Net.seen = []
    yield call(data(2))


@program
def test_generator_leaves_with_its_return_value():
    """#198190: a returned generator came back as an iterator without its return value or send()."""

    def f(x, n):
        def steps():
            received = yield x * 1
            yield x * (received or n)
            return "done"

        return steps()

    yield f
    results = []
    for n in (2, 2, 3):
        generator = yield call(data(2), n)
        results.append(next(generator))
        results.append(generator.send(n * 10))
        try:
            next(generator)
        except StopIteration as stop:
            results.append(stop.value)


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
def test_global_rebound_in_a_loop():
    """#191821: the second round read the object of the first."""
    global HOLDER

    class Holder:
        def __init__(self, hidden):
            self.hidden = hidden

    HOLDER = Holder(torch.zeros(()))

    def region():
        return HOLDER.hidden + 1

    def f(x, n):
        global HOLDER
        for _ in range(n):
            HOLDER = Holder(x)
            x = region()
        return x

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_extend_with_generator_that_reads_the_list(x, n):
    """#133063: the generator was exhausted before the list grew."""
    values = [x, x * 2]
    values.extend(values[-1] + i for i in range(1, n))
    return values


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
def test_move_to_end_of_argument():
    """#198189: the new order of an OrderedDict was not written back."""

    def f(x, cache, key):
        cache.move_to_end(key)
        while len(cache) > 2:
            cache.popitem(last=False)
        return x + 1

    cache = collections.OrderedDict(a=1, b=2)
    yield f
    yield call(data(2), cache, "a")
    yield call(data(2), cache, "a")
    cache["c"] = 3
    yield call(data(2), cache, "b")


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_element_of_nested_list_written_and_read(x, n):
    """#103563: a stale inner element was read."""
    rows = [[0] * n, [1] * n]
    for i in range(n):
        rows[0][i] = x if i == 0 else rows[0][i - 1] + 1
    return rows[0][-1], rows


@program
def test_truth_of_module_with_length():
    """#145284: a module with __len__ as a condition failed."""

    class Cache(nn.Module):
        def __init__(self, keys):
            super().__init__()
            self.keys = keys

        def __len__(self):
            return len(self.keys)

    def f(x, keys):
        cache = Cache(keys)
        return x + 1 if cache else x + 2

    yield f
    yield call(data(2), [])
    yield call(data(2), [1])
    yield call(data(2), [])


@program
def test_not_equal_falls_back_to_equal():
    """#142055: != ignored the user's __eq__."""

    class Key:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        __hash__ = None

    def f(x, a, b):
        return x + 1, Key(a) != Key(b), Key(a) == Key(b)

    yield f
    yield call(data(2), 1, 1)
    yield call(data(2), 1, 1)
    yield call(data(2), 1, 2)


@program(call(data(2), 0), call(data(2), 1), call(data(2), 0))
def test_truth_of_empty_module_list(x, n):
    """#102315: an empty ModuleList was true."""
    layers = nn.ModuleList([nn.Identity() for _ in range(n)])
    return (x if layers else -x), bool(layers), len(layers)


@program
def test_set_subclass_with_own_iterator():
    """#186671: comparing sets went through the overridden __iter__."""

    class Odd(set):
        def __iter__(self):
            return iter([99])

    def f(x, a, b):
        return x, a == b, a <= b, list(b), len(b)

    yield f
    yield call(data(2), {1, 2}, Odd({1, 2}))
    yield call(data(2), {1, 2}, Odd({1, 2}))
    yield call(data(2), {1, 2}, Odd({3}))


@program
def test_blocked_special_methods():
    """PR 181771: a special method set to None fell through to the default."""

    class NoTruth:
        __bool__ = None

    class NoLength:
        def __len__(self):
            return -1

    def f(x, obj):
        y = x + 1
        return y if obj else -y

    yield f
    yield call(data(2), object())
    yield call(data(2), NoTruth())
    yield call(data(2), NoLength())
    yield call(data(2), None)


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
def test_failing_assignment_is_caught():
    """#165385: an attribute that cannot be set raised after the frame, not inside it."""

    class Plain: ...

    class Slotted:
        __slots__ = ("a",)

    def f(x, obj, name):
        try:
            setattr(obj, name, 1)
        except AttributeError as error:
            return x + 1, str(error)
        return x - 1

    yield f
    yield call(data(2), Plain(), "__weakref__")
    yield call(data(2), Slotted(), "b")
    yield call(data(2), Slotted(), "a")


@program
def test_property_setter_and_getter_run():
    """#176599: setter and getter of a property were bypassed."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self._scale = 1.0
            self.sets = 0

        @property
        def scale(self):
            return self._scale * 2

        @scale.setter
        def scale(self, value):
            self.sets += 1
            self._scale = min(value, 5.0)

        def forward(self, x, value):
            self.scale = value
            return x * self.scale

    layer = Layer()
    yield layer
    yield call(data(2), 2.0)
    yield call(data(2), 2.0)
    yield call(data(2), 9.0)


@program
def test_property_setter_on_new_nested_objects():
    """#172000: the setter of an object made inside ran on an object without attributes."""

    class Node:
        def __init__(self, child=None):
            self._child = child
            self._names = None

        @property
        def names(self):
            return self._names

        @names.setter
        def names(self, value):
            self._names = value
            if self._child is not None:
                self._child.names = [f"{name}.child" for name in value]

    def f(x, name):
        root = Node(Node())
        root.names = [name]
        return x * len(root._child.names[0]), root

    yield f
    yield call(data(2), "time")
    yield call(data(2), "time")
    yield call(data(2), "place")


@program
def test_attribute_of_a_class_is_set():
    """#150864: a class attribute was set inside."""

    class Registry:
        last = None

    def f(x, n):
        Registry.last = x * n
        Registry.count = getattr(Registry, "count", 0) + 1
        return x + Registry.count

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


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


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_attribute_of_local_class_across_a_break(x, n):
    """#192872: the append before the break was lost."""

    class Holder:
        items = []  # noqa: RUF012

    Holder.items.append(n)
    y = x * 2
    print("break")
    Holder.items.append(2)
    return y.sum() + len(Holder.items), Holder.items


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
def test_captured_containers_written_in_a_method():
    """#197896: writes to captured containers in a method of an object made inside were dropped."""
    log, counts = [], {"n": 0}

    class Helper:
        def touch(self, tag):
            log.append(tag)
            counts["n"] += 1
            counts[tag] = len(log)

    def f(x, tag):
        Helper().touch(tag)
        return x * counts["n"]

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(2), "b")


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


@program(call(data(2), "missing"), call(data(2), "missing"), call(data(2), "shape"))
def test_missing_attribute_of_tensor_is_caught(x, name):
    """#174166: AttributeError of a tensor could not be caught."""
    try:
        return getattr(x, name)
    except AttributeError:
        return x * 2


@program(call(data(2, 3)), call(data(2, 3)), call(data(2)))
def test_torch_error_is_caught_inside(x):
    """#148475: the error of an operator became a hard error that user code could not catch."""
    try:
        x.expand_as(torch.zeros(2))
    except RuntimeError:
        return x.sin()
    return x.cos()


@program(call(torch.tensor(1)), call(torch.tensor(0)), call(torch.tensor(2)), call(torch.tensor(0)))
def test_zero_division_in_an_operator_is_caught(x):
    """pytorch/torchdynamo#318: the handler did not run when the graph raised."""
    try:
        return 1 // x
    except RuntimeError:
        return x + 2


@program(
    call(data(4, 4), torch.tensor([1])),
    call(data(4, 4), torch.tensor([99])),
    call(data(4, 4), torch.tensor([99])),
    call(data(4, 4), torch.tensor([1])),
)
def test_autocast_ends_when_the_graph_raises(x, index):
    """#195488: an error inside autocast left it on."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x.index_select(0, index) @ x


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
def test_dict_subclass_written():
    """#133117: writes to a subclass of dict."""

    class Config(dict): ...

    config = Config(a=2)

    def f(x, n):
        config["b"] = n
        config.update(c=x)
        return x * config["a"] * config["b"], config.pop("c") is x

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    config["a"] = 7
    yield call(data(2), 3)


@program
def test_list_subclass_that_filters():
    """#100181: append and extend of a subclass of list."""

    class NoNone(list):
        def append(self, item):
            if item is not None:
                super().append(item)

        def extend(self, items):
            super().extend(item for item in items if item is not None)

    def f(x, extra):
        values = NoNone()
        values.append(x)
        values.append(None)
        values.extend([x + 1, extra])
        return torch.cat(values, dim=0), len(values)

    yield f
    yield call(data(2, 2), None)
    yield call(data(2, 2), None)
    yield call(data(2, 2), data(2, 2))


@program
def test_global_dict_replaced_each_step():
    """#167596: a global dict that is made anew and filled from methods."""
    global SUMMARY
    SUMMARY = {}

    class Part(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def forward(self, x):
            y = torch.sin(x)
            SUMMARY[self.name] = y.shape
            return y

    parts = nn.ModuleList([Part("a"), Part("b")])

    def f(x):
        global SUMMARY
        SUMMARY = {}
        for part in parts:
            x = part(x)
        return x

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_return_with_finally():
    """#103706: try: return ... finally: ... failed."""
    log = []

    class Net(nn.Module):
        def forward(self, x, n):
            try:
                return x * n
            finally:
                log.append(n)

    net = Net()
    yield net
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_text_of_objects():
    """#130301: str() of an object of the user's."""

    class Named:
        def __init__(self, n):
            self.n = n

        def __str__(self):
            return f"number {self.n}"

    def f(x, n):
        return x, str(Named(n)), f"{Named(n)}!", [str(part) for part in (Named(1), None, 2.0)]

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


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
