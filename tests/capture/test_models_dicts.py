"""Mappings of all kinds become dicts, and dicts are updated from them."""

from __future__ import annotations

import collections
import collections.abc

import torch

from capture.harness import call, data, program

CALLS = (call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))


class Table(collections.abc.MutableMapping):
    def __init__(self, **items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __setitem__(self, key, value):
        self.items_[key] = value

    def __delitem__(self, key):
        del self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def scaled(x, a=1, b=2):
    return x * a + b


@program
def test_mapping_written_in_python():
    table = Table(a=3)

    def f(x):
        made = dict(table)
        made.update(table)
        return x * made["a"], scaled(x, **table), {**table}, list(table.items()), len(table)

    yield f
    yield call(data(3))
    yield call(data(3))
    table["b"] = 5
    yield call(data(3))


@program(*CALLS, breaks=0)
def test_update_from_pairs(x):
    table = {"a": 1}
    table.update([("b", x), ("c", 2)])
    table.update((name, x + 1) for name in "de")
    table.update(zip("fg", (1, 2), strict=True), h=3)
    return table


@program(*CALLS)
def test_update_from_what_is_not_pairs(x):
    table = {}
    try:
        table.update([("a", 1), ("b", 2, 3)])
    except ValueError as error:
        return x + 1, str(error), table


@program(*CALLS)
def test_update_from_numbers(x):
    try:
        dict([1, 2])
    except TypeError as error:
        return x + 1, str(error)


@program
def test_update_of_a_dict_from_outside():
    table = {}

    def f(x):
        table.update(enumerate([x, x + 1]))
        return table[1] * 2

    yield f
    for _ in range(3):
        yield call(data(3))


@program
def test_functional_call():
    module = torch.nn.Linear(3, 3)
    values = {name: value.detach() * 2 for name, value in module.named_parameters()}

    def f(x):
        return torch.func.functional_call(module, values, (x,))

    yield f
    for _ in range(3):
        yield call(data(2, 3))


@program(*CALLS, breaks=0)
def test_ordered_dict(x):
    table = collections.OrderedDict([("a", x), ("b", 1)])
    table.move_to_end("a")
    table["c"] = 2
    first = table.popitem(last=False)
    table.update(d=3)
    return (
        table,
        first,
        table.pop("c"),
        table.setdefault("e", 4),
        list(reversed(table)),
        table.copy(),
    )


@program(*CALLS, breaks=0)
def test_fromkeys(x):
    table = collections.defaultdict.fromkeys("ab", 1)
    table.setdefault("c", 10)
    return x * table["c"], table, collections.OrderedDict.fromkeys([1, 2], x)


@program(*CALLS, breaks=0)
def test_views(x):
    table = {"a": 1, "b": 2}
    return x + 1, table.keys().isdisjoint({"c"}), table.keys() & {"a"}, "a" in table.keys()
