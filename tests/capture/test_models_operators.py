"""operator, itertools and builtins that ask methods of their arguments."""

from __future__ import annotations

import collections
import functools
import itertools
import operator

import torch

from capture.harness import call, data, program

CALLS = (call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))


class Number:
    def __init__(self, value):
        self.value = value

    def __abs__(self):
        return 8

    def __round__(self, digits=0):
        return 9 + digits

    def __divmod__(self, other):
        return 1, other

    def __index__(self):
        return self.value

    def __reversed__(self):
        return iter([2, 1])

    def __eq__(self, other):
        return self.value == getattr(other, "value", other)

    def __hash__(self):
        return self.value


@program(*CALLS, breaks=0)
def test_methods_of_numbers(x):
    n = Number(3)
    return (
        x * abs(n) + round(n) + round(n, 2),
        divmod(n, 2),
        list(range(n)),
        operator.index(n),
        list(reversed(n)),
        n != Number(4),
        n != Number(3),
    )


@program(*CALLS, breaks=0)
def test_operator(x):
    items = [1, 2, 1]
    operator.delitem(items, 0)
    return (
        x,
        items,
        operator.is_(x, x),
        operator.is_not(x, None),
        operator.countOf([1, 2, 1], 1),
        operator.indexOf([3, 4], 4),
        operator.length_hint([1, 2]),
        operator.concat([1], [2]),
        operator.iadd(x.clone(), 1),
    )


@program(*CALLS, breaks=0)
def test_groupby_and_tee(x):
    groups = [(key, list(group)) for key, group in itertools.groupby([1, 1, 2, 3, 3])]
    letters = [key for key, _ in itertools.groupby("aAb", key=str.upper)]
    first, second = itertools.tee([x, x + 1])
    return groups, letters, list(first), sum(second), list(first)


@program(*CALLS)
def test_tee_of_an_iterator(x):
    numbers = iter([1, 2, 3])
    first, second = itertools.tee(numbers)
    return x * next(first), next(second), list(numbers)


@program(*CALLS, breaks=0)
def test_more_of_itertools(x):
    return x + 1, list(itertools.combinations_with_replacement("ab", 2))


@program(*CALLS, breaks=0)
def test_iter_with_a_sentinel(x):
    numbers = iter([1, 2, 3, 4])
    return [x * i for i in iter(lambda: next(numbers), 3)], list(numbers)


class Items:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index * 2


@program(*CALLS, breaks=0)
def test_loop_over_getitem(x):
    return [x * i for i in Items()], list(Items())


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


@program(*CALLS, breaks=0)
def test_in_without_contains(x):
    left = Countdown(5)
    return x * (3 in left), left.left, 9 not in Countdown(3)


@program(*CALLS, breaks=0)
def test_deque(x):
    items = collections.deque([x, 1, "a"], maxlen=4)
    items[1] = 7
    copied = items.copy()
    del items[0]
    return copied, items, items.count("a"), items.index(7), "a" in items, items.maxlen


@program(*CALLS, breaks=0)
def test_sets(x):
    frozen = frozenset([1, 2])
    items = {3, 1}
    smallest = items.pop()
    return (
        x * smallest,
        items,
        frozen.issubset({1, 2, 3}),
        frozen.issuperset({1}),
        frozen.isdisjoint({5}),
        frozen.difference([1]),
        frozen.symmetric_difference([1, 5]),
        hash(frozen) == hash(frozenset([2, 1])),
    )


@program(*CALLS, breaks=0)
def test_text(x):
    return (
        x,
        "-".join(str(i) for i in range(3)),
        "abc".translate(str.maketrans("a", "b")),
        float.fromhex("0x1.8p0"),
    )


class Lazy:
    def __init__(self, start):
        self.start = start

    @functools.cached_property
    def value(self):
        return self.start + 1


@program(*CALLS, breaks=0)
def test_cached_property_of_a_new_object(x):
    lazy = Lazy(x)
    return lazy.value * 2, lazy.value is lazy.value, vars(lazy)


@program
def test_cached_property():
    lazy = Lazy(1)

    def f(x):
        return x * lazy.value

    yield f
    yield call(data(3))
    yield call(data(3))
    del lazy.value
    lazy.start = 5
    yield call(data(3))


class Twice:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, 1)

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2)

    def __delete__(self, instance):
        delattr(instance, self.name)


class HasTwice:
    size = Twice()


@program(*CALLS, breaks=0)
def test_descriptor_that_sets_and_deletes(x):
    thing = HasTwice()
    thing.size = 3
    before = thing.size
    del thing.size
    return x * before + thing.size


class Made(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.tag = len(args)
        return made


class Tagged(metaclass=Made):
    def __init__(self, a, b=0):
        self.a = a + b


@program(*CALLS, breaks=0)
def test_metaclass_that_makes_instances(x):
    return Tagged(x, b=2).a * Tagged(x).tag


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@program(*CALLS, breaks=0)
def test_match_on_attributes(x):
    match Point(x, 3):
        case Point(a, 2):
            return a
        case Point(a, b=3):
            x = a + 1
    match Point(1, 2):
        case Point(c=_):
            return x
        case Tagged():
            return x
        case Point(one, two):
            return x * one + two


@program
def test_function_with_a_cache():
    calls = []
    offset = 1

    @functools.cache
    def cached(n):
        calls.append(n)
        return [n, n + offset]

    def f(x, n):
        found = cached(n)
        found.append(0)
        return x * found[1], found is cached(n)

    yield f
    yield call(data(3), 3)
    yield call(data(3), 3)
    yield call(data(3), 4)
    cached.cache_clear()
    offset = 5
    yield call(data(3), 3)
    yield call(data(3), 3)


@program
def test_tensor_from_a_cache():
    @functools.cache
    def mask(size):
        return torch.ones(size).tril()

    def f(x):
        return x * mask(x.shape[0])

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(2))


class Numbers(list):
    def total(self):
        return sum(self)


@program(*CALLS, breaks=0)
def test_subclass_of_list(x):
    numbers = Numbers([1, 2])
    numbers.append(3)
    return x * numbers.total() + numbers[0], numbers, [n + 1 for n in numbers]
