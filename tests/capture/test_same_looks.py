"""Programs that get objects of one type that differ in what C code reads of them: the value of a
subclass of int or str, items of nested containers, identity, what a class is a subclass of.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy
import torch

from capture.harness import call, data, program


class Names(list): ...


class Pair(tuple): ...


class Table(dict): ...


class Members(set): ...


class Text(str): ...


class Whole(int): ...


class Real(float): ...


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    A = "a"
    B = "bb"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n

    def __str__(self) -> str:
        return f"n{self.n}"


class Equal(Plain):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.n == other.n

    def __hash__(self) -> int:
        return self.n


def differ(function: Callable[..., Any], *arguments: tuple[Any, ...]) -> Any:
    """A program that is called with each of the arguments twice, and then with the first again."""

    @program
    def test():
        yield function
        for these in arguments:
            yield call(data(3), *these)
            yield call(data(3), *these)
        yield call(data(3), *arguments[0])

    return test


test_sum_of_lists = differ(lambda x, items: x + sum(items + [1]), (Names([1]),), (Names([2]),))
test_repeated_list = differ(lambda x, items: x + len(items * 2), (Names([1]),), (Names([2, 3]),))
test_list_on_the_right = differ(lambda x, items: x + sum([1] + items), (Names([1]),), (Names([2]),))
test_sum_of_tuples = differ(lambda x, t: x + sum(t + (1,)), (Pair([1]),), (Pair([2]),))
test_union_of_dicts = differ(lambda x, d: x + len(d | {"q": 1}), (Table(a=1),), (Table(b=2, c=1),))
test_union_of_sets = differ(lambda x, s: x + sum(s | {100}), (Members([1]),), (Members([2, 3]),))
test_sum_of_texts = differ(lambda x, s: x + ord((s + "q")[0]), (Text("a"),), (Text("b"),))
test_methods_of_a_text = differ(lambda x, s: x + ord(s.upper()), (Text("a"),), (Text("b"),))
test_integer_added = differ(lambda x, n: x + (n + 1), (Whole(1),), (Whole(2),))
test_integer_times_tensor = differ(lambda x, n: x * n, (Whole(1),), (Whole(2),))
test_integer_compared = differ(lambda x, n: x + (n > 1), (Whole(1),), (Whole(2),))
test_truth_of_an_integer = differ(lambda x, n: x + 1 if n else x, (Whole(1),), (Whole(0),))
test_range_of_an_integer = differ(lambda x, n: x + sum(range(n)), (Whole(3),), (Whole(2),))
test_integer_as_size = differ(lambda x, n: torch.zeros(n), (Whole(3),), (Whole(2),))
test_integer_negated = differ(lambda x, n: x + (-n), (Whole(3),), (Whole(2),))
test_integer_as_text = differ(lambda x, n: (x + 1, f"{n}"), (Whole(3),), (Whole(2),))
test_float_doubled = differ(lambda x, n: x + n * 2, (Real(3),), (Real(2),))
test_numpy_float = differ(
    lambda x, a: x + a.sum(), (numpy.array([1.0, 2.0]),), (numpy.array([1.0, 5.0]),)
)
test_member_added = differ(lambda x, e: x + (e + 1), (Level.LOW,), (Level.HIGH,))
test_member_converted = differ(lambda x, e: x + int(e), (Level.LOW,), (Level.HIGH,))
test_member_as_text = differ(
    lambda x, e: (x + 1, f"{e}", str(e), repr(e)), (Level.LOW,), (Level.HIGH,)
)
test_hash_of_a_member = differ(lambda x, e: x + hash(e), (Level.LOW,), (Level.HIGH,))
test_member_as_index = differ(lambda x, e: x[e] + [5, 6, 7][e], (Level.LOW,), (Level.HIGH,))
test_member_as_key = differ(
    lambda x, e: x + {Level.LOW: 5, Level.HIGH: 6}[e], (Level.LOW,), (Level.HIGH,)
)
test_member_in_a_tuple = differ(
    lambda x, e: x + 1 if e in (Level.LOW, 7) else x, (Level.LOW,), (Level.HIGH,)
)
test_member_is_text = differ(lambda x, e: x + len(e) + (e == "a"), (Mode.A,), (Mode.B,))
test_flags = differ(lambda x, r: x + (r | Right.READ).value, (Right.READ,), (Right.WRITE,))
test_nested_list_in_list = differ(
    lambda x, i, items: x + 1 if i in items else x, ([1, 2], [[1, 2], [3]]), ([1, 2], [[1, 5], [3]])
)
test_index_of_nested_list = differ(
    lambda x, i, items: x + items.index(i), ([1], [[1], [3]]), ([1], [[3], [1]])
)
test_count_of_nested_list = differ(
    lambda x, i, items: x + items.count(i), ([1], [[1], [3]]), ([1], [[1], [1]])
)
test_sorted_nested_lists = differ(
    lambda x, items: x * sorted(items)[0][0], ([[2], [1]],), ([[3], [4]],), ([[4], [3]],)
)
test_sorted_by_key = differ(
    lambda x, items: x * sorted(items, key=lambda o: o.n)[0].n,
    ([Plain(2), Plain(1)],),
    ([Plain(3), Plain(4)],),
)
test_text_of_nested_containers = differ(
    lambda x, v: (x + 1, str(v), f"{v}"), ([1, [2]],), ([1, [3]],), ({"a": [1]},), ({"a": [2]},)
)
test_distance = differ(lambda x, p, q: x + math.dist(p, q), ([1, 2], [3, 4]), ([1, 2], [3, 5]))
test_text_in_python = differ(lambda x, o: (x + 1, f"{o}", str(o)), (Plain(1),), (Plain(2),))

ONE, TWO = Plain(1), Plain(1)
test_hash_by_identity = differ(lambda x, o: x + (hash(o) == hash(ONE)), (ONE,), (TWO,))
test_id = differ(lambda x, o: x + (id(o) == id(ONE)), (ONE,), (TWO,))
test_hash_in_python = differ(lambda x, o: x + hash(o), (Equal(1),), (Equal(2),))
test_object_in_list = differ(
    lambda x, o, items: x + 1 if o in items else x, (ONE, [TWO]), (ONE, [TWO, ONE]), (TWO, [TWO])
)
test_object_in_dict = differ(
    lambda x, o, d: x + d.get(o, 3) + (o in d), (ONE, {TWO: 1}), (ONE, {ONE: 2}), (TWO, {TWO: 1})
)
test_equal_object_in_list = differ(
    lambda x, o, items: x + (o in items) + items.count(o),
    (Equal(1), [Equal(2)]),
    (Equal(2), [Equal(2)]),
)


class Kept:
    thing = ONE
    items: ClassVar[list[int]] = []


test_is_attribute_of_class = differ(
    lambda x, o: x + 1 if o is Kept.thing else x + o.n, (ONE,), (TWO,)
)


@program
def test_list_of_a_class_is_the_argument():
    def function(x, items):
        Kept.items.append(2)
        items.append(3)
        return x + len(Kept.items) + len(items)

    yield function
    Kept.items = []
    yield call(data(2), Kept.items)
    yield call(data(2), [])
    yield call(data(2), [])
    yield call(data(2), Kept.items)


@program
def test_method_is_the_argument():
    class Adds:
        def method(self, x):
            return x + 1

    adds = Adds()

    def function(x, other):
        return adds.method(x) + other(adds, x)

    yield function
    yield call(data(2), Adds.method)
    yield call(data(2), Adds.method)
    yield call(data(2), lambda self, x: x * 2)
    yield call(data(2), Adds.method)


@program
def test_dict_of_an_object_is_the_argument():
    def function(x, owner, table):
        owner.v = 1
        table["v"] = 2
        return x + owner.v

    yield function
    one, two = Plain(1), Plain(2)
    yield call(data(2), one, {})
    yield call(data(2), one, {})
    yield call(data(2), one, one.__dict__)
    yield call(data(2), two, one.__dict__)


@program
def test_instances_by_a_metaclass():
    class Decides(type):
        def __instancecheck__(cls, instance):
            return cls.answer

    class Anything(metaclass=Decides):
        answer = True

    yield lambda x: x + 1 if isinstance(x, Anything) else x - 1
    yield call(data(2))
    yield call(data(2))
    Anything.answer = False
    yield call(data(2))


@program
def test_class_registered_later():
    class Abstract(abc.ABC):  # noqa: B024
        pass

    class Concrete: ...

    yield lambda x, o: x + isinstance(o, Abstract) + issubclass(Concrete, Abstract)
    thing = Concrete()
    yield call(data(2), thing)
    yield call(data(2), thing)
    Abstract.register(Concrete)
    yield call(data(2), thing)
    yield call(data(2), thing)


@program
def test_bases_of_a_class_change():
    class One: ...

    class Two: ...

    class Derived(One): ...

    yield lambda x, o: x + isinstance(o, One)
    thing = Derived()
    yield call(data(2), thing)
    yield call(data(2), thing)
    Derived.__bases__ = (Two,)
    yield call(data(2), thing)


@program
def test_class_between_gets_the_method():
    class Base:
        def act(self, x):
            return x + 1

    class Middle(Base): ...

    class Last(Middle):
        def act(self, x):
            return super().act(x) * 2

    yield Last().act
    yield call(data(2))
    yield call(data(2))
    Middle.act = lambda self, x: x - 1
    yield call(data(2))
    del Middle.act
    yield call(data(2))


@program
def test_partial_is_changed():
    partial = functools.partial(lambda x, a, b=1: x + a + b, a=2)
    yield lambda x: partial(x)
    yield call(data(2))
    yield call(data(2))
    partial.keywords["a"] = 7
    yield call(data(2))
    partial.keywords["b"] = 7
    yield call(data(2))
    partial.__setstate__((lambda x, **keywords: x * 3, (), {}, {}))
    yield call(data(2))


@program
def test_inference_tensors_start_to_overlap():
    def function(x, y):
        x.add_(1)
        return y * 2

    yield function
    with torch.inference_mode():
        a, b = data(6), data(6)
        yield call(a, b)
        yield call(a, b)
        yield call(a[:3], b[:3])
        yield call(a[:3], a[1:4])
        yield call(a[:3], a[:3])


@program
def test_sets_of_another_order():
    def function(x, s):
        for k in s:
            x = x * 2 + k
        first, *rest = s
        return x, list(s), [k + 1 for k in s], first, rest

    yield function
    one, two = set(), set()
    for a, b in ((8, 0), (0, 8)):
        one.add(a)
        two.add(b)
    for s in (one, one, two, two, one, {1, 2}, frozenset([3, 4])):
        yield call(data(2), s)


@program
def test_changed_dict_is_walked_through():
    def function(x, d):
        d["new"] = x
        return x + len(d), list(d), [key for key, _ in d.items()]

    yield function
    for d in ({"a": 1}, {"a": 1}, {"new": 1}, {"b": 3, "c": 4}, collections.OrderedDict(z=1)):
        yield call(data(2), d)
