"""Programs that build, read and change containers."""

from __future__ import annotations

import collections
from typing import NamedTuple

import torch

from capture.harness import call, data, program


@program(call([data(3), data(3)]), call([data(3), data(3)]), call([data(3)]), call([]))
def test_list_argument(tensors):
    total = torch.zeros(3)
    for tensor in tensors:
        total = total + tensor
    return total


@program(call(data(3), []), call(data(3), []), call(data(3), [data(3)]))
def test_append_to_argument(x, seen):
    seen.append(x * 2)
    seen.append(len(seen))
    return sum(seen[:1])


@program(
    call(data(3), [1, 2, 3, 4]), call(data(3), [1, 2, 3, 4]), call(data(3), [4, 3, 2, 1]), graphs=1
)
def test_list_methods(x, numbers):
    numbers.insert(1, 10)
    numbers.extend([7, 8])
    last = numbers.pop()
    third = numbers.pop(2)
    numbers.remove(10)
    numbers.reverse()
    return (
        x * last + third,
        numbers.index(4),
        numbers.count(1),
        numbers.copy(),
        numbers + [0],
        numbers * 2,
    )


@program(call(data(3), [3, 1, 2]), call(data(3), [3, 1, 2]), call(data(3), [-3, 1, -2]))
def test_sort_in_place_with_key(x, numbers):
    numbers.sort(key=abs, reverse=True)
    return x * numbers[0], sorted(numbers), sorted(numbers, key=lambda n: -n)


@program(
    call(data(3), [0, 1, 2, 3, 4, 5]), call(data(3), [0, 1, 2, 3, 4, 5]), call(data(3), [5, 4])
)
def test_list_slices_read_and_written(x, numbers):
    head = numbers[:2]
    numbers[1:3] = [10, 20, 30]
    numbers[::2] = [0] * len(numbers[::2])
    del numbers[-1]
    del numbers[:1]
    return x + head[0], head, numbers, numbers[::-1]


@program(call(data(3), 4), call(data(3), 4), call(data(3), 2), call(data(3), 0))
def test_list_index_error(x, n):
    values = [x + i for i in range(n)]
    return values[2]


@program(
    call(data(3), {"a": 1, "b": 2}),
    call(data(3), {"a": 1, "b": 2}),
    call(data(3), {"b": 2, "a": 1}),
)
def test_dict_order_matters(x, table):
    for name, value in table.items():
        x = x * value + len(name)
        if name == "a":
            x = x + 1
    return x, list(table)


@program(
    call({"x": data(3), "y": data(3)}), call({"x": data(3), "y": data(3)}), call({"x": data(3)})
)
def test_dict_of_tensors(batch):
    x = batch["x"]
    y = batch.get("y")
    if "y" in batch:
        x = x + y
    return {"out": x, "input": batch["x"]}


@program(call(data(3), {}), call(data(3), {}), call(data(3), {"n": 5, "old": 0}))
def test_dict_written(x, state):
    state["n"] = state.get("n", 0) + 1
    state.setdefault("first", x)
    state.update({"last": x * 2}, extra=3)
    state.pop("old", None)
    return x * state["n"]


@program(call(data(3), {"a": 1}), call(data(3), {"a": 1}), call(data(3), {"b": 1}))
def test_key_error(x, table):
    y = x + 1
    return y * table["a"]


@program(
    call(data(3), {"a": 1}, {"b": 2}),
    call(data(3), {"a": 1}, {"b": 2}),
    call(data(3), {"a": 1}, {"a": 5}),
)
def test_dict_union_and_unpacking(x, left, right):
    both = left | right
    again = {**right, **left, "c": x}
    left |= right
    return both, again, dict(zip("ab", (1, 2), strict=True)), dict(left, a=x)


@program(
    call(data(3), {"a": 1, "b": 2, "c": 3}),
    call(data(3), {"a": 1, "b": 2, "c": 3}),
    call(data(3), {"c": 3}),
)
def test_dict_deletion_and_popitem(x, table):
    if "a" in table:
        del table["a"]
    key, value = table.popitem()
    return x * value, key, list(table.keys()), list(table.values()), len(table)


@program(call(data(3), 3), call(data(3), 3), call(data(3), 5))
def test_dict_changed_while_iterated(x, n):
    table = {i: x * i for i in range(n)}
    for key in table:
        if key == 3:
            table[n] = x
    return table


@program(
    call(data(3), {1, 2, 3}), call(data(3), {1, 2, 3}), call(data(3), {3, 4}), call(data(3), set())
)
def test_set_operations(x, numbers):
    numbers.add(9)
    numbers.discard(1)
    other = {2, 3, 5}
    return (
        x * len(numbers | other),
        numbers & other,
        numbers - other,
        numbers ^ other,
        3 in numbers,
        numbers <= other,
    )


@program(call(data(3), "abca"), call(data(3), "abca"), call(data(3), "xyz"))
def test_set_of_strings_sorted(x, text):
    letters = set(text)
    return x + len(letters), sorted(letters), frozenset(text)


@program(
    call(data(3), (1, (2, 3))), call(data(3), (1, (2, 3))), call(data(3), (4, (5, 6))), graphs=1
)
def test_tuple_unpacking(x, nested):
    a, (b, c) = nested
    first, *rest = a, b, c
    return x * a + b - c, rest, nested + (first,), nested[1][::-1], (1, 2) < nested[1]


@program(call(data(3)), call(data(3)), call(data(4)))
def test_swap_through_tuple(x):
    a, b = x + 1, x + 2
    a, b = b, a
    (a, b), c = (b, a), a
    return a, b, c


@program
def test_namedtuple():
    Point = collections.namedtuple("Point", ["x", "y"], defaults=[5])

    def f(t, point):
        moved = point._replace(x=point.x + 1)
        a, b = moved
        return t * a + b, moved, Point(t), point._asdict(), Point._fields, point.index(point.y)

    yield f
    yield call(data(3), Point(1, 2))
    yield call(data(3), Point(1, 2))
    yield call(data(3), Point(3))


@program
def test_typed_namedtuple_with_method():
    class Box(NamedTuple):
        low: torch.Tensor
        high: torch.Tensor
        name: str = "box"

        def size(self):
            return self.high - self.low

    def f(box):
        return Box(box.low - 1, box.high + 1, box.name * 2), box.size(), box.low is box[0]

    yield f
    yield call(Box(data(3), data(3)))
    yield call(Box(data(3), data(3)))
    yield call(Box(data(2), data(2), "other"))


@program
def test_deque():
    recent = collections.deque(maxlen=3)

    def f(x, n):
        recent.append(x * n)
        recent.appendleft(n)
        recent.rotate(1)
        return recent[0], len(recent), recent[-1]

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)
    recent.clear()
    yield call(data(2), 2)


@program(call(data(3), 4), call(data(3), 4), call(data(3), 2))
def test_deque_as_queue(x, n):
    queue = collections.deque(range(n))
    out = []
    while queue:
        i = queue.popleft()
        out.append(x * i)
        if i == 2:
            queue.extend([7, 8])
    return out, queue


@program(call(data(3), "abcab"), call(data(3), "abcab"), call(data(3), ""))
def test_counter(x, text):
    counts = collections.Counter(text)
    counts.update("a")
    counts["z"] -= 1
    return x * counts["a"], counts.most_common(1), counts["missing"], dict(counts), counts


@program(
    call(data(3), [("a", 1), ("b", 2), ("a", 3)]),
    call(data(3), [("a", 1), ("b", 2), ("a", 3)]),
    call(data(3), []),
)
def test_defaultdict_groups(x, pairs):
    groups = collections.defaultdict(list)
    for key, value in pairs:
        groups[key].append(x * value)
    return groups, len(groups["never"]), "never" in groups


@program
def test_defaultdict_factory_has_effects():
    made = []

    def factory():
        made.append(len(made))
        return torch.full((2,), float(len(made)))

    table = collections.defaultdict(factory)

    def f(x, key):
        return x + table[key]

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(2), "b")
    yield call(data(2), "b")


@program(call(data(3), "b"), call(data(3), "b"), call(data(3), "c"))
def test_ordered_dict(x, key):
    table = collections.OrderedDict(a=1, b=2, c=3)
    table.move_to_end(key)
    first = table.popitem(last=False)
    table.move_to_end("c", last=False)
    return x * next(iter(table.values())), first, table, list(reversed(table))


@program
def test_ordered_dict_argument_reordered_between_calls():
    table = collections.OrderedDict(a=1.0, b=2.0)

    def f(x):
        for value in table.values():
            x = (x + value) * 2
        return x

    yield f
    yield call(data(2))
    yield call(data(2))
    table.move_to_end("a")
    yield call(data(2))


@program(call(data(3), 2), call(data(3), 2), call(data(3), 3))
def test_nested_containers(x, n):
    tree = {"leaves": [(x * i, {"depth": i}) for i in range(n)], "count": n}
    tree["leaves"][0][1]["depth"] = 100
    tree["first"] = tree["leaves"][0]
    return tree


@program
def test_container_holds_itself():
    def f(x, loop):
        loop.append(x + len(loop))
        return loop[0] is loop, loop

    loop = []
    loop.append(loop)
    yield f
    yield call(data(2), loop)
    yield call(data(2), loop)
    loop.pop()
    yield call(data(2), loop)


@program(call([data(3)]), call([data(3)]), call([data(3), data(3)]))
def test_returned_list_is_the_argument(values):
    values += [values[0] * 2]
    return values


@program(call(data(3), 2), call(data(3), 2), call(data(3), 4), graphs=1)
def test_list_multiplication_shares_elements(x, n):
    rows = [[x]] * n
    rows[0].append(x + 1)
    flat = [x] * n
    return rows, flat


@program
def test_list_subclass():
    class Stack(list):
        def push(self, value):
            self.append(value)
            self.pushed = getattr(self, "pushed", 0) + 1

        def __len__(self):
            return 100

    def f(x, stack):
        stack.push(x * 2)
        return x + len(stack), stack.pushed

    stack = Stack()
    yield f
    yield call(data(2), stack)
    yield call(data(2), stack)
    yield call(data(2), Stack([1]))


@program
def test_dict_subclass_with_missing():
    class Table(dict):
        def __missing__(self, key):
            self[key] = len(self) * 10
            return self[key]

    def f(x, table, key):
        return x + table[key], table.get(key), len(table)

    table = Table()
    yield f
    yield call(data(2), table, "a")
    yield call(data(2), table, "a")
    yield call(data(2), table, "b")
    yield call(data(2), Table(c=1), "c")


@program
def test_user_dict_with_attribute_access():
    class Config(dict):
        def __getattr__(self, name):
            try:
                return self[name]
            except KeyError as error:
                raise AttributeError(name) from error

        def __setattr__(self, name, value):
            self[name] = value

    def f(x, config):
        config.calls = config.get("calls", 0) + 1
        return x * config.scale if hasattr(config, "scale") else x

    config = Config(scale=2)
    yield f
    yield call(data(2), config)
    yield call(data(2), config)
    config.scale = 3
    yield call(data(2), config)
    del config["scale"]
    yield call(data(2), config)


@program(
    call(data(3), [1, 2], [1, 2]), call(data(3), [1, 2], [1, 2]), call(data(3), [1, 2], [1, 3])
)
def test_comparison_of_containers(x, a, b):
    return x, a == b, a < b, a is b, (1, a) == (1, b), {"k": a} == {"k": b}, [x] == [x]


@program(call(data(3), ["a", "b"]), call(data(3), ["a", "b"]), call(data(3), []))
def test_truth_of_containers(x, names):
    if names and not {} and not () and "":
        return x
    if not names:
        return x * 0
    return x * bool(names), len(names)


@program(call(data(4)), call(data(4)), call(data(6)))
def test_dict_with_tuple_and_none_keys(x):
    table = {(1, "a"): x[0], None: x[1], 2.0: x[2], True: x[3]}
    return table[1, "a"] + table[None], table[2], table[1], table


@program
def test_dict_keyed_by_tensor_and_module():
    weight = data(3)
    linear = torch.nn.Linear(3, 3)
    table = {weight: 2.0, linear: 3.0}

    def f(x):
        return linear(x) * table[linear] + weight * table[weight], weight in table

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    table[weight] = 5.0
    yield call(data(2, 3))


@program(call(data(3), (3, 4)), call(data(3), (3, 4)), call(data(3), [3, 4]))
def test_tuple_and_list_are_told_apart(x, shape):
    if isinstance(shape, tuple):
        return x.sum() + torch.zeros(shape)
    return x.sum() + torch.ones(*shape), shape == (3, 4), shape == [3, 4]


@program(call(data(3), [5, 1, 4]), call(data(3), [5, 1, 4]), call(data(3), [2]))
def test_min_max_index_of_list(x, numbers):
    best = max(range(len(numbers)), key=numbers.__getitem__)
    return x * best, min(numbers), max(numbers, default=0), min([], default=None), numbers[best]


@program
def test_global_cache_of_tensors():
    global CACHE
    CACHE = {}

    def table(n):
        if n not in CACHE:
            CACHE[n] = torch.arange(n, dtype=torch.float32)
        return CACHE[n]

    def f(x):
        return x + table(x.shape[-1])

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(5))
    yield call(data(3))


@program(call(data(3), [1, 2]), call(data(3), [1, 2]), call(data(3), [3, 4]), graphs=1, breaks=0)
def test_operators_called_by_name(x, numbers):
    numbers.__setitem__(0, 7)
    numbers.__delitem__(1)
    more = numbers.__add__([5]).__mul__(2)
    some = {1, 2}.__or__({3}).__and__({2, 3})
    merged = {"a": 1}.__or__({"b": 2})
    answers = (numbers.__eq__([7]), {1}.__le__({1, 2}), (1, 2).__lt__((1, 3)), {}.__ne__({1: 1}))
    return (
        x * len(more),
        more,
        sorted(some),
        merged,
        answers,
        b"a,b".split(b","),
        (-7).__floordiv__(2),
    )


@program(call(data(3), [1]), call(data(3), [1]), call(data(3), (1,)))
def test_operators_that_are_not_implemented(x, other):
    return x + 1, {1}.__or__(other), [1].__eq__(other), [1].__lt__((1,))


@program(call(data(3), 1), call(data(3), 1), call(data(3), 2), graphs=1, breaks=0)
def test_in_views_of_a_dict(x, number):
    found = {"a": 1, "b": x}
    return (
        x * 2,
        ("a", number) in {"a": 1}.items(),
        number in {"a": 1}.values(),
        "b" in found.keys(),
    )


@program(call(data(3), []), call(data(3), {}), call(data(3), set()), call(data(3), []))
def test_hash_of_what_has_none(x, container):
    try:
        return x + hash(container)
    except TypeError as error:
        return x - 1, str(error)
