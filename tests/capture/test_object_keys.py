"""Objects and tensors as keys of dicts and items of sets: which are the same one matters."""

from __future__ import annotations

import collections
import operator

import torch

from capture.harness import call, data, program


class Key:
    pass


def with_keys(function):
    """Called with two objects, with one object twice, and with the two in another order."""

    def world():
        yield function
        one, other = Key(), Key()
        yield call(data(3), one, other)
        yield call(data(3), one, one)
        yield call(data(3), other, one)

    world.__name__ = function.__name__
    world.__qualname__ = function.__qualname__
    return program(world)


def with_tensors(function):
    def world():
        yield function
        one, other = data(3), data(3)
        yield call(data(3), one, other)
        yield call(data(3), one, one)
        yield call(data(3), other, one)

    world.__name__ = function.__name__
    world.__qualname__ = function.__qualname__
    return program(world)


@with_keys
def test_dict_display(x, a, b):
    return x * len({a: 1, b: 2})


@with_keys
def test_set_display(x, a, b):
    return x * len({a, b})


@with_keys
def test_comprehensions(x, a, b):
    return x * len(dict.fromkeys((a, b), 1)), len({(k, 1) for k in (a, b)})


@with_keys
def test_setitem_and_getitem(x, a, b):
    table = {}
    table[a] = 1
    table[b] = 2
    return x * table[a]


@with_keys
def test_methods_of_dict(x, a, b):
    table = {a: 1}
    found = table.get(b, 5)
    table.setdefault(b, 6)
    inside = b in table, b in table.keys()
    popped = table.pop(b, None)
    return x * found, inside, popped, len(table)


@with_keys
def test_set_methods(x, a, b):
    items = set()
    items.add(a)
    items.add(b)
    count = len(items)
    items.discard(b)
    return x * count, len(items), len({a}.union([b])), {a} == {b}, {a}.issubset({b})


@with_keys
def test_constructors(x, a, b):
    both = [a, b]
    counted = collections.Counter(both)
    paired = dict(zip(both, (1, 2), strict=True))
    return x * len(set(both)), len(dict.fromkeys(both)), len(counted), len(paired)


@with_keys
def test_in_set(x, a, b):
    return x * (b in {a}), b not in frozenset([a])


@with_keys
def test_defaultdict(x, a, b):
    table = collections.defaultdict(int)
    table[a] += 1
    table[b] += 1
    return x * table[a]


@with_keys
def test_identity_as_functions(x, a, b):
    return x * operator.is_(a, b), operator.is_not(a, b), operator.eq(a, b), a.__eq__(b) is True


@with_keys
def test_tuples_as_keys(x, a, b):
    return x * len({(a, 1): 1, (b, 1): 2})


@with_tensors
def test_tensors_in_a_set(x, a, b):
    return x * len({a, b}), a in {b}


@with_tensors
def test_tensors_as_keys(x, a, b):
    table = {a: 1}
    table[b] = 2
    return x * len(table), table[a]


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)), breaks=0)
def test_computed_tensors_as_keys(x):
    y = x + 1
    table = {x: 1, y: 2}
    return table[x], table[y], y in table, x * 2 in table


@program
def test_keys_of_a_dict_from_outside():
    keys = [Key(), Key(), Key()]
    table = {keys[0]: 2, keys[1]: 3}

    def f(x, key):
        return x * table[key] if key in table else x

    yield f
    yield call(data(3), keys[0])
    yield call(data(3), keys[1])
    yield call(data(3), keys[2])
    table[keys[2]] = 5
    yield call(data(3), keys[2])


@program
def test_memo_of_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    model.append(model[1])  # twice in the model

    def f(x):
        for module in model.modules():
            x = x + 1 if isinstance(module, torch.nn.ReLU) else x * 2
        for _, child in model.named_children():
            x = child(x)
        return x

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    model[2] = torch.nn.ReLU()
    yield call(data(2, 3))
