"""Programs with what the standard library offers beside lists and dicts: deques, defaultdicts,
counters, heaps, named tuples, slots, partials, getters, exceptions as objects.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import heapq
import itertools
import operator
import sys
import typing

import torch

from capture.harness import call, data, program

three = (call(data(3)), call(data(3)), call(data(3)))


# ---- Deques ----


@program(*three, breaks=0)
def test_deque_made_inside(x):
    d = collections.deque([x, x + 1], maxlen=3)
    d.append(x + 2)
    d.append(x + 3)
    d.extendleft([1])
    return d, [v for v in d if not isinstance(v, int)], len(d), bool(d), d[0]


@program(*three, breaks=0)
def test_breadth_first(x):
    graph = {0: [1, 2], 1: [3], 2: [3], 3: []}
    queue, seen, order = collections.deque([0]), {0}, []
    while queue:
        node = queue.popleft()
        order.append(node)
        x = x + node
        for other in graph[node]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return x, order


@program
def test_deque_as_history():
    class History(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = collections.deque(maxlen=2)

        def forward(self, x):
            self.last.append(x * 2)
            return sum(self.last)

    yield History()
    for _ in range(5):
        yield call(data(2))


@program
def test_deque_arguments_differ():
    def function(x, d):
        d.appendleft(x)
        d.rotate(1)
        return x + len(d), d.maxlen

    yield function
    deque = collections.deque
    for d in (deque(), deque([1]), deque([1], 1), deque([2], 3), deque(), deque([1])):
        yield call(data(2), d)


# ---- Dicts with more ----


@program(*three, breaks=0)
def test_defaultdict_made_inside(x):
    sums = collections.defaultdict(lambda: x * 0)
    sums["a"] = sums["a"] + 1
    sums["b"] += x
    groups = collections.defaultdict(list, {"z": [1]})
    groups["z"].append(2)
    groups["y"].append(3)
    counts = collections.defaultdict(int)
    for letter in "hello":
        counts[letter] += 1
    return sums["a"], sums["b"], groups, dict(counts), list(groups.items())


@program
def test_defaultdict_of_the_program():
    groups = collections.defaultdict(list)

    def function(x, key):
        groups[key].append(1)
        return x + len(groups[key]) + len(groups)

    yield function
    for key in ("a", "a", "b", "a", "c", "b"):
        yield call(data(2), key)
    groups.default_factory = lambda: [9, 9]
    yield call(data(2), "q")
    yield call(data(2), "r")


@program(*three, breaks=0)
def test_counter_made_inside(x):
    counts = collections.Counter("abca")
    counts["z"] += 2
    counts.update(["a", "q"])
    return x * counts["a"], counts["zz"], sorted(counts.items()), sum(counts.values())


@program(
    *[call(data(2), {"a": 1, "b": 2}, {"b": 3, "c": 4}) for _ in range(3)],
    call(data(2), {"a": 1}, {"a": 3}),
    breaks=0,
)
def test_views_as_sets(x, a, b):
    both = a.keys() & b.keys()
    return x + len(both), a.keys() | b.keys(), a.items() ^ b.items(), {"a"} <= a.keys()


@program(*[call({"a": data(2), "b": data(2)}) for _ in range(3)], breaks=0)
def test_dict_changed_and_walked_through(d):
    d["c"] = d["a"] + 1
    d.pop("b")
    result = {key: value * 2 for key, value in d.items()}, len(d), list(d), "b" in d
    d.clear()
    return result


# ---- Order ----


@program(*three, breaks=0)
def test_heap(x):
    heap = [5, 3, 8]
    heapq.heapify(heap)
    heapq.heappush(heap, 1)
    return x + heapq.heappop(heap), heap


@program(*three, breaks=0)
def test_least_and_greatest(x):
    ages = {"a": 2, "b": 1}
    return (
        max([], default=7),
        min([x, x + 1], key=lambda v: v.ndim),
        max("a", "bb", key=len),
        max(ages, key=ages.get),
        min(x.shape),
    )


@program(*three, breaks=0)
def test_sorted_by_keys(x):
    rows = [(3, "a"), (1, "b"), (2, "c")]
    tensors = [x + 2, x]
    tensors.sort(key=lambda t: t.dim())
    by_name = sorted(rows, key=lambda row: row[1], reverse=True)
    return by_name, sorted(rows), tensors, sorted(["b", "A"], key=str.lower)


# ---- Functions in C that call back ----


@program(*three, breaks=0)
def test_map_of_tensor_functions(x):
    sines = list(map(torch.sin, [x, x + 1]))
    sums = list(map(operator.add, [x, x], [1, 2]))
    first = next(map(torch.cos, itertools.repeat(x)))
    return sines, sums, first, list(map(x.add, [1, 2])), list(filter(callable, [1, len]))


@program(*three, breaks=0)
def test_accumulated_tensors(x):
    return (
        list(itertools.accumulate([x, x, x])),
        list(itertools.accumulate([x, x], torch.mul)),
        list(itertools.accumulate([1, 2, 3], initial=x)),
    )


@program(*three, breaks=0)
def test_partials_made_inside(x):
    def function(a, b, c=1, *, d=2):
        return a * b + c + d

    one = functools.partial(function, x, d=5)
    two = functools.partial(one, c=7)
    return one(2), two(3), two.func is function, two.keywords, len(two.args), one, two


@program
def test_partial_is_alive_across_a_break():
    def function(x):
        partial = functools.partial(torch.add, x, alpha=2)
        print("break")
        return partial(x), partial

    yield function
    for _ in range(3):
        yield call(data(2))


class Node:
    def __init__(self, child):
        self.child = child


@program(*three, breaks=0)
def test_getters(x):
    rows = sorted([(2, "b"), (1, "c")], key=operator.itemgetter(0))
    return (
        operator.itemgetter(1)([1, x]),
        operator.itemgetter(0, 1)((x, 2)),
        operator.attrgetter("child.child")(Node(Node(x))),
        operator.methodcaller("sum", 0)(x),
        rows,
    )


FIRST, SECOND = operator.itemgetter(0), operator.itemgetter(1)


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0), call(data(2), 1))
def test_getters_of_the_program(x, i):
    get = SECOND if i else FIRST
    return x * get([2, 3])


@program(*three, breaks=0)
def test_wrapped_inside(x):
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * 2

        return wrapper

    @doubled
    def add_one(y):
        """Adds one."""
        return y + 1

    return add_one(x), add_one.__name__, add_one.__doc__, add_one.__wrapped__(x)


# ---- Tuples and objects ----

Point = collections.namedtuple("Point", "x y")


class Vector(Point):
    __slots__ = ()

    def total(self):
        return self.x + self.y


class Open(Point):
    pass


@program(*three, breaks=0)
def test_named_tuples_made_inside(x):
    vector = Vector(x, x + 1)
    return vector.total(), vector._replace(y=x), Vector._make([x, x]), vector._asdict(), vector


@program(*three, breaks=0)
def test_named_tuple_with_an_attribute(x):
    point = Open(x, x + 1)
    point.extra = x + 2
    return point.extra, point


@program
def test_named_tuples_differ():
    yield lambda point: point.x * point.y
    for point in (Point(data(2), 3), Point(data(2), 3), Point(data(2), 4), Vector(data(2), 4)):
        yield call(point)


@program(*[call(data(3, 2)) for _ in range(3)], breaks=0)
def test_return_type_made_inside(x):
    return torch.return_types.max((x, x + 1)), torch.max(x, 1).indices


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class MoreSlots(Slots):
    __slots__ = ("c",)


class SlotsAndDict(Slots):
    pass


@program(*three, breaks=0)
def test_objects_with_slots_made_inside(x):
    one = Slots(x + 1)
    one.b = 3
    two = MoreSlots(x)
    two.c, two.b = [x, two.a], one
    three = SlotsAndDict(x)
    three.z = 5
    return one, two, three, one.a * one.b


@program
def test_object_with_slots_across_a_break():
    def change(slots, x):
        slots.a = slots.a + 1
        slots.b = x
        print("break")
        slots.a = slots.a * 2

    def function(x):
        slots = Slots(x)
        slots.a = x * 3
        change(slots, x)
        return slots.a + slots.b

    yield function
    for _ in range(3):
        yield call(data(2))


@program
def test_copies_of_objects_with_slots():
    def function(x, thing):
        one, two = copy.copy(thing), copy.deepcopy(thing)
        return x + one.a + two.a, one.z, two.z

    yield function
    for a in (1, 1, 2):
        thing = SlotsAndDict(a)
        thing.z = [a]
        yield call(data(2), thing)


@program(*three, breaks=0)
def test_notes_on_a_tensor(x):
    y = x + 1
    y.tag = 3
    y.seen = ["a", x]
    return y, y.tag


@program
def test_notes_on_an_argument():
    def function(x):
        x.tag = getattr(x, "tag", 0) + 1
        return x * x.tag

    yield function
    x = data(2)
    for _ in range(4):
        yield call(x)
    yield call(data(2))


Either = int | str


@program(call(data(2), 3), call(data(2), 3), call(data(2), "a"), call(data(2), 2.5))
def test_union_of_types(x, n):
    return x + len(Either.__args__), typing.get_args(Either)


# ---- Exceptions as objects ----


class Coded(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code

    def __str__(self):
        return f"{self.args[0]}:{self.code}"


@program(*three, breaks=0)
def test_texts_of_exceptions(x):
    texts = []
    for error in (ValueError("a"), KeyError("k"), RuntimeError("x", 3), ValueError()):
        try:
            raise error
        except Exception as caught:
            texts.append((str(caught), repr(caught), caught.args, type(caught).__name__))
    return x + 1, texts


@program(*three, breaks=0)
def test_exception_with_init(x):
    try:
        raise Coded("m", x.shape[0])
    except Coded as error:
        x, text = x + error.code, str(error)
    try:
        try:
            {}["a"]
        except KeyError as missing:
            raise Coded("n", 2) from missing
    except Coded as error:
        return x, text, type(error.__cause__).__name__, str(error.__cause__)


@program
def test_inside_and_outside_of_a_handler():
    yield lambda x: x + 1 if sys.exc_info()[0] is None else x + 2
    yield call(data(2))
    yield call(data(2))
    try:
        raise ValueError("q")
    except ValueError:
        yield call(data(2))
        yield call(data(2))
    yield call(data(2))


@program(*three, breaks=0)
def test_exit_stack(x):
    log = []

    @contextlib.contextmanager
    def entered(n):
        log.append(n)
        try:
            yield n
        finally:
            log.append(-n)

    with contextlib.ExitStack() as stack:
        for i in (1, 2):
            x = x + stack.enter_context(entered(i))
        stack.callback(log.append, 7)
    return x, log


@program(*three)
def test_comparison_of_dicts_that_raises(x):
    """The truth of a tensor is asked for inside of the comparison."""
    ours = collections.OrderedDict(a=x, b=1)
    ours.popitem()
    return x + 1, ours == collections.OrderedDict(a=x + 1)
