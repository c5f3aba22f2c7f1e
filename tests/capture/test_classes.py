"""Instances of the user's own classes: inheritance, special methods, dataclasses, enums."""

from __future__ import annotations

import abc
import copy
import dataclasses
import enum

import torch

from capture.harness import call, data, program


@program
def test_instance_made_inside():
    class Pair:
        def __init__(self, first, second):
            self.first = first
            self.second = second

        def total(self):
            return self.first + self.second

    def f(x, n):
        pair = Pair(x, x * n)
        pair.third = pair.total()
        return pair

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program
def test_super_chain():
    class Base:
        def __init__(self, scale):
            self.scale = scale

        def run(self, x):
            return x * self.scale

    class Middle(Base):
        def run(self, x):
            return super().run(x) + 1

    class Leaf(Middle):
        def __init__(self, scale):
            super().__init__(scale)
            self.calls = 0

        def run(self, x):
            self.calls += 1
            return super(Leaf, self).run(x) - self.calls  # noqa: UP008

    leaf = Leaf(3.0)
    yield leaf.run
    yield call(data(2))
    yield call(data(2))
    leaf.scale = 4.0
    yield call(data(2))


@program
def test_diamond_inheritance():
    class Root:
        def names(self):
            return ["root"]

    class Left(Root):
        def names(self):
            return ["left", *super().names()]

    class Right(Root):
        def names(self):
            return ["right", *super().names()]

    class Bottom(Left, Right):
        def names(self):
            return ["bottom", *super().names()]

    def f(x, obj):
        return x * len(obj.names()), obj.names()

    yield f
    yield call(data(2), Bottom())
    yield call(data(2), Bottom())
    yield call(data(2), Left())


@program
def test_slots():
    class Vector:
        __slots__ = ("x", "y")

        def __init__(self, x, y):
            self.x = x
            self.y = y

    def f(v, n):
        v.x = v.x * n
        w = Vector(v.y, v.x)
        del v.y
        return w

    yield f
    yield call(Vector(data(2), data(2)), 2)
    yield call(Vector(data(2), data(2)), 2)
    yield call(Vector(data(2), data(2)), 3)


@program
def test_dataclass():
    @dataclasses.dataclass
    class Config:
        width: int
        scale: float = 0.5
        names: list = dataclasses.field(default_factory=list)

    def f(x, config):
        config.names.append(config.width)
        other = dataclasses.replace(config, scale=config.scale * 2)
        return x * other.scale, other, config == other, dataclasses.asdict(config)

    yield f
    yield call(data(2), Config(3))
    yield call(data(2), Config(3))
    yield call(data(2), Config(4, 1.5, ["a"]))


@program
def test_frozen_dataclass():
    @dataclasses.dataclass(frozen=True, order=True)
    class Point:
        x: int
        y: int = 0

        def __post_init__(self):
            object.__setattr__(self, "norm", self.x**2 + self.y**2)

    def f(t, point, write):
        table = {point: t * point.norm}
        if write:
            point.x = 5
        return (
            table[Point(point.x, point.y)],
            Point(1) < point,
            hash(point) == hash(Point(point.x, point.y)),
        )

    yield f
    yield call(data(2), Point(3, 4), False)
    yield call(data(2), Point(3, 4), False)
    yield call(data(2), Point(1, 4), False)
    yield call(data(2), Point(1, 4), True)


@program
def test_dataclass_output_with_slots():
    @dataclasses.dataclass(slots=True)
    class Output:
        logits: torch.Tensor
        hidden: tuple = ()

    def f(x, n):
        return Output(x @ x.t(), tuple(x + i for i in range(n)))

    yield f
    yield call(data(2, 2), 1)
    yield call(data(2, 2), 1)
    yield call(data(2, 2), 2)


@program
def test_enum():
    class Mode(enum.Enum):
        ADD = "add"
        MULTIPLY = "multiply"

        @property
        def short(self):
            return self.value[0]

    def f(x, mode):
        if mode is Mode.ADD:
            x = x + 1
        elif mode == Mode.MULTIPLY:
            x = x * 2
        return x, mode.name, mode.short, Mode("add"), Mode["ADD"], [m.value for m in Mode]

    yield f
    yield call(data(2), Mode.ADD)
    yield call(data(2), Mode.ADD)
    yield call(data(2), Mode.MULTIPLY)


@program
def test_int_enum_and_flag():
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = enum.auto()

    class Access(enum.Flag):
        READ = enum.auto()
        WRITE = enum.auto()

    def f(x, level, access):
        if Access.WRITE in access:
            x = x + 10
        return x * level, level > Level.LOW, level + 1, access | Access.READ

    yield f
    yield call(data(2), Level.LOW, Access.READ)
    yield call(data(2), Level.LOW, Access.READ)
    yield call(data(2), Level.HIGH, Access.READ | Access.WRITE)


@program
def test_class_attribute_shadowed_by_instance():
    class Layer:
        scale = 2

        def run(self, x):
            return x * self.scale

    layer = Layer()
    yield layer.run
    yield call(data(2))
    yield call(data(2))
    Layer.scale = 3
    yield call(data(2))
    layer.scale = 10
    yield call(data(2))
    del layer.scale
    yield call(data(2))


@program
def test_class_attribute_counts_instances():
    class Node:
        count = 0

        def __init__(self):
            Node.count += 1
            self.number = Node.count

    def f(x):
        return x * Node().number + Node().number

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_abstract_class():
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        def __init__(self, side):
            self.side = side

        def area(self):
            return self.side**2

    def f(side, kind):
        return (Square if kind == "square" else Shape)(*[side] * (kind == "square")).area()

    yield f
    yield call(data(2), "square")
    yield call(data(2), "square")
    yield call(data(2), "shape")


@program
def test_static_and_class_methods():
    class Tools:
        base = 10

        @staticmethod
        def double(x):
            return x * 2

        @classmethod
        def shift(cls, x):
            return x + cls.base

    class Other(Tools):
        base = 20

    def f(x, tools):
        return tools.double(x), tools.shift(x), Tools.shift(x)

    yield f
    yield call(data(2), Tools())
    yield call(data(2), Tools())
    yield call(data(2), Other())
    Other.base = 30
    yield call(data(2), Other)


@program
def test_isinstance_and_issubclass():
    class Animal: ...

    class Dog(Animal): ...

    def f(x, pet):
        if isinstance(pet, Dog):
            return x * 2, type(pet).__name__
        return x, issubclass(type(pet), Animal), type(pet) is Animal

    yield f
    yield call(data(2), Dog())
    yield call(data(2), Dog())
    yield call(data(2), Animal())


@program
def test_class_reassigned_on_instance():
    class First:
        def run(self, x):
            return x + 1

    class Second:
        def run(self, x):
            return x + 2

    obj = First()

    def f(x):
        return obj.run(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    obj.__class__ = Second
    yield call(data(2))


@program
def test_method_stored_on_instance():
    class Box:
        def __init__(self, n):
            self.n = n

        def up(self, x):
            return x + self.n

        def down(self, x):
            return x - self.n

    box = Box(3)
    box.go = box.up

    def f(x):
        return box.go(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    box.go = box.down
    yield call(data(2))
    box.go = Box(100).up
    yield call(data(2))


@program
def test_copy_of_objects():
    class Tree:
        def __init__(self, value):
            self.value = value
            self.children = []

    def f(x, tree):
        shallow = copy.copy(tree)
        deep = copy.deepcopy(tree.children)
        tree.children.append(x)
        return shallow, deep, len(shallow.children)

    yield f
    yield call(data(2), Tree(1))
    yield call(data(2), Tree(1))
    tree = Tree(2)
    tree.children.append([5])
    yield call(data(2), tree)


@program
def test_private_names_and_class_body_values():
    class Holder:
        values = [i * 2 for i in range(3)]  # noqa: RUF012
        __secret = 7

        def run(self, x):
            return x * self.__secret + sum(self.values) + Holder.__secret

    holder = Holder()
    yield holder.run
    yield call(data(2))
    yield call(data(2))
    Holder._Holder__secret = 9
    yield call(data(2))


@program
def test_class_defined_inside():
    def f(x, n):
        class Local:
            factor = n

            def __init__(self, value):
                self.value = value

            def run(self):
                return self.value * self.factor + n

        return Local(x).run(), Local.__name__

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program
def test_tensors_as_attributes_of_plain_object():
    class State:
        pass

    state = State()
    state.hidden = data(3)

    def f(x):
        state.hidden = (state.hidden + x).tanh()
        state.steps = getattr(state, "steps", 0) + 1
        return state.hidden

    yield f
    yield call(data(3))
    yield call(data(3))
    state.hidden = data(2, 3)
    yield call(data(3))
