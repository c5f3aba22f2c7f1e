"""Classes with special methods: calls, items, operators, truth, iteration."""

from __future__ import annotations

import torch

from capture.harness import call, data, program


@program
def test_metaclass():
    class Registry(type):
        made = 0

        def __call__(cls, *args):
            Registry.made += 1
            instance = super().__call__(*args)
            instance.number = Registry.made
            return instance

    class Item(metaclass=Registry):
        def __init__(self, value):
            self.value = value

    def f(x):
        item = Item(x * 2)
        return item.value + item.number, item.number

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_callable_instance():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x, *, bias=0):
            return x * self.factor + bias

    scale = Scale(2)
    yield scale
    yield call(data(2))
    yield call(data(2), bias=1)
    scale.factor = 5
    yield call(data(2))


@program
def test_getitem_and_setitem():
    class Grid:
        def __init__(self):
            self.cells = {}
            self.reads = 0

        def __getitem__(self, key):
            self.reads += 1
            return self.cells.get(key, 1)

        def __setitem__(self, key, value):
            self.cells[key] = value

        def __delitem__(self, key):
            del self.cells[key]

        def __contains__(self, key):
            return key in self.cells

        def __len__(self):
            return len(self.cells)

    grid = Grid()

    def f(x, key):
        old = grid[key, 0]
        grid[key, 0] = x
        grid["n"] = len(grid)
        if key == 3:
            del grid["n"]
        return x * old, "n" in grid, grid[1:2, ...] == 1 if key == 5 else None

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 3)


@program
def test_arithmetic_operators():
    class Dual:
        def __init__(self, value, slope):
            self.value = value
            self.slope = slope

        def __add__(self, other):
            return Dual(self.value + other.value, self.slope + other.slope)

        def __mul__(self, other):
            if not isinstance(other, Dual):
                return NotImplemented
            return Dual(
                self.value * other.value, self.value * other.slope + self.slope * other.value
            )

        def __rmul__(self, number):
            return Dual(number * self.value, number * self.slope)

        def __neg__(self):
            return Dual(-self.value, -self.slope)

        def __iadd__(self, other):
            self.value = self.value + other.value
            return self

    def f(x, n):
        a, b = Dual(x, 1.0), Dual(x * 2, 2.0)
        a += b
        return a * b + -b, n * a

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3.0)


@program
def test_comparison_operators():
    class Version:
        def __init__(self, number):
            self.number = number
            self.compared = 0

        def __eq__(self, other):
            self.compared += 1
            return isinstance(other, Version) and self.number == other.number

        def __lt__(self, other):
            return self.number < other.number

        __hash__ = None

    def f(x, a, b):
        y = x if a == b else -x
        return y, a != b, a < b, a > b, a in [b], sorted([b, a])[0].number

    yield f
    yield call(data(2), Version(1), Version(2))
    yield call(data(2), Version(1), Version(2))
    yield call(data(2), Version(3), Version(3))


@program
def test_truth_and_length():
    class Flag:
        def __init__(self, value):
            self.value = value
            self.asked = 0

        def __bool__(self):
            self.asked += 1
            return self.value

    class Sized:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    def f(x, flag, sized):
        if flag and sized:
            x = x + 1
        return x if not flag else x * 2, bool(sized), len(sized)

    yield f
    yield call(data(2), Flag(True), Sized(1))
    yield call(data(2), Flag(True), Sized(1))
    yield call(data(2), Flag(True), Sized(0))
    yield call(data(2), Flag(False), Sized(2))


@program
def test_iterator_class():
    class Countdown:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    def f(x, countdown):
        for n in countdown:
            x = x + n
        return x, list(countdown), countdown

    yield f
    yield call(data(2), Countdown(3))
    yield call(data(2), Countdown(3))
    yield call(data(2), Countdown(1))


@program
def test_new_and_singleton():
    class Single:
        only = None

        def __new__(cls):
            if cls.only is None:
                cls.only = super().__new__(cls)
                cls.only.uses = 0
            return cls.only

    def f(x):
        single = Single()
        single.uses += 1
        return x * single.uses, Single() is single

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_init_subclass_and_type():
    made = []

    class Base:
        def __init_subclass__(cls, tag="none"):
            made.append((cls.__name__, tag))

    def f(x, name):
        cls = type(name, (Base,), {"scale": 3})
        return x * cls.scale + cls().scale, cls.__mro__[1] is Base

    yield f
    yield call(data(2), "A")
    yield call(data(2), "A")
    yield call(data(2), "B")


@program
def test_hash_and_equality_as_dict_key():
    class Key:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            return hash(self.name)

        def __eq__(self, other):
            return self.name == other.name

    table = {Key("a"): 2.0}

    def f(x, name):
        return x * table.get(Key(name), 1.0)

    yield f
    yield call(data(2), "a")
    yield call(data(2), "b")
    table[Key("b")] = 5.0
    yield call(data(2), "b")
    table[Key("a")] = 7.0
    yield call(data(2), "a")


@program
def test_matmul_and_contains_overloads():
    class Rotation:
        def __init__(self, matrix):
            self.matrix = matrix

        def __matmul__(self, other):
            if isinstance(other, torch.Tensor):
                return self.matrix @ other
            return Rotation(self.matrix @ other.matrix)

        def __rmatmul__(self, other):
            return other @ self.matrix

        def __pow__(self, n):
            result = self
            for _ in range(n - 1):
                result = result @ self
            return result

    def f(m, n):
        r = Rotation(m)
        return (r**n) @ m, m @ r, -1 * (r @ m)

    yield f
    yield call(data(2, 2), 2)
    yield call(data(2, 2), 2)
    yield call(data(2, 2), 3)
