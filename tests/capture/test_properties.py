"""Properties, descriptors and the attribute hooks of classes."""

from __future__ import annotations

import functools

import torch

from capture.harness import call, data, program


@program
def test_property_reads_state():
    class Box:
        def __init__(self):
            self._n = 2

        @property
        def n(self):
            return self._n * 10

    box = Box()

    def f(x):
        return x * box.n

    yield f
    yield call(data(2))
    yield call(data(2))
    box._n = 3
    yield call(data(2))


@program
def test_property_with_side_effect():
    class Counter:
        reads = 0

        @property
        def value(self):
            self.reads += 1
            return self.reads

    counter = Counter()

    def f(x):
        return x + counter.value + counter.value

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_property_setter():
    class Range:
        def __init__(self):
            self._high = 1
            self.log = []

        @property
        def high(self):
            return self._high

        @high.setter
        def high(self, value):
            self.log.append(value)
            if value > 5:
                raise ValueError(f"{value} is too high")
            self._high = value

    span = Range()

    def f(x, n):
        span.high = n
        span.high += 1
        return x * span.high

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 3)
    yield call(data(2), 5)


@program
def test_property_deleter():
    class Box:
        def __init__(self):
            self._v = 1

        @property
        def v(self):
            return self._v

        @v.deleter
        def v(self):
            del self._v

    def f(x, box, delete):
        y = x + box.v
        if delete:
            del box.v
        return y, hasattr(box, "v")

    yield f
    yield call(data(2), Box(), False)
    yield call(data(2), Box(), False)
    yield call(data(2), Box(), True)


@program
def test_property_without_setter_raises():
    class Box:
        @property
        def v(self):
            return 1

    def f(x, box, write):
        y = x * 2
        if write:
            box.v = 3
        return y + box.v

    yield f
    yield call(data(2), Box(), False)
    yield call(data(2), Box(), False)
    yield call(data(2), Box(), True)


@program
def test_property_of_tensor():
    class Layer:
        def __init__(self, weight):
            self.weight = weight

        @property
        def normalized(self):
            return self.weight / self.weight.norm()

    layer = Layer(data(3, 3))

    def f(x):
        return x @ layer.normalized

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    layer.weight = data(3, 3)
    yield call(data(2, 3))


@program
def test_cached_property():
    class Table:
        def __init__(self, n):
            self.n = n
            self.computed = 0

        @functools.cached_property
        def values(self):
            self.computed += 1
            return torch.arange(self.n) * 2.0

    table = Table(3)

    def f(x):
        return x + table.values

    yield f
    yield call(data(3))
    yield call(data(3))
    del table.values
    yield call(data(3))
    table.values = torch.ones(3)
    yield call(data(3))


@program
def test_data_descriptor():
    class Clamped:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner):
            if instance is None:
                return self
            return getattr(instance, self.name, 0)

        def __set__(self, instance, value):
            setattr(instance, self.name, min(value, 10))

    class Model:
        size = Clamped()

    model = Model()

    def f(x, n):
        model.size = n
        return x * model.size, type(Model.size).__name__

    yield f
    yield call(data(2), 4)
    yield call(data(2), 4)
    yield call(data(2), 40)


@program
def test_non_data_descriptor_is_shadowed():
    class Lazy:
        def __get__(self, instance, owner):
            return 5

    class Model:
        size = Lazy()

    model = Model()

    def f(x):
        return x * model.size

    yield f
    yield call(data(2))
    yield call(data(2))
    model.__dict__["size"] = 7
    yield call(data(2))
    del model.size
    yield call(data(2))


@program
def test_property_replaced_on_class():
    class Box:
        @property
        def v(self):
            return 1

    box = Box()

    def f(x):
        return x * box.v

    yield f
    yield call(data(2))
    yield call(data(2))
    Box.v = property(lambda self: 7)
    yield call(data(2))
    Box.v = 9
    yield call(data(2))


@program
def test_property_inherited_and_overridden():
    class Base:
        k = 2

        @property
        def v(self):
            return self.k

    class Child(Base):
        k = 3

        @property
        def v(self):
            return super().v * 100

    def f(x, obj):
        return x * obj.v, Base.v.fget(obj)

    yield f
    yield call(data(2), Base())
    yield call(data(2), Child())
    yield call(data(2), Base())
    yield call(data(2), Child())


@program
def test_property_on_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.rate = 0.5

        @property
        def weight(self):
            return self.linear.weight * self.rate

        def forward(self, x):
            return x @ self.weight

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.rate = 2.0
    yield call(data(2, 3))


@program
def test_property_that_raises_attribute_error_falls_to_getattr():
    class Odd:
        @property
        def v(self):
            raise AttributeError("inner")

        def __getattr__(self, name):
            return 42 if name == "v" else 0

    def f(x, obj):
        return x + obj.v, obj.anything

    yield f
    yield call(data(2), Odd())
    yield call(data(2), Odd())
    yield call(data(3), Odd())


@program
def test_class_level_descriptor_and_classmethod_property():
    class Meta(type):
        @property
        def size(cls):
            return len(cls.__name__)

    class Item(metaclass=Meta):
        pass

    def f(x):
        return x * Item.size

    yield f
    yield call(data(2))
    yield call(data(2))
    Item.__name__ = "LongerName"
    yield call(data(2))


@program
def test_descriptor_returning_bound_method():
    class Bound:
        def __init__(self, function):
            self.function = function

        def __get__(self, instance, owner):
            return functools.partial(self.function, instance, 10)

    class Model:
        def __init__(self, n):
            self.n = n

        @Bound
        def run(self, shift, x):
            return x * self.n + shift

    model = Model(2)

    def f(x):
        return model.run(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    model.n = 3
    yield call(data(2))
