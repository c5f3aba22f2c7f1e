"""Programs that Dynamo got wrong once, after public issues of PyTorch: the Python side.

The numbers are those of github.com/pytorch/pytorch/issues unless another repository is named. The
programs are our own; each says what went wrong there.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import collections

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
