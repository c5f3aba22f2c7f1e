"""Attributes of classes that the program sets."""

from __future__ import annotations

from capture.harness import call, data, program


@program(breaks=0)
def test_constant():
    class Config:
        scale = 1

    def f(x):
        Config.scale = 3
        return x * Config.scale

    yield f
    yield call(data(3))
    Config.scale = 5
    yield call(data(3))
    yield call(data(3))


@program(breaks=0)
def test_counter():
    class Config:
        calls = 0

    def f(x):
        Config.calls += 1
        return x * Config.calls

    yield f
    for _ in range(4):
        yield call(data(3))


@program(breaks=0)
def test_tensor_is_kept_in_a_class():
    class Config:
        last = None

    def f(x):
        before = Config.last
        Config.last = x
        kept = Config.last
        return x if before is None else kept + before

    yield f
    for _ in range(4):
        yield call(data(3))


@program(breaks=0)
def test_new_attribute_and_del():
    class Config:
        pass

    def f(x):
        Config.extra = x + 1
        y = Config.extra * 2
        del Config.extra
        return y, hasattr(Config, "extra")

    yield f
    for _ in range(3):
        yield call(data(3))


@program
def test_class_with_subclasses():
    class Base:
        scale = 1

    class Derived(Base):
        pass

    def f(x):
        Base.scale += 1
        return x * Derived.scale + Derived().scale

    yield f
    yield call(data(3))
    Derived.scale = 7
    yield call(data(3))
    yield call(data(3))


@program(breaks=0)
def test_method_of_an_instance_sees_it():
    class Counter:
        total = 0

        def add(self, x):
            type(self).total = self.total + 1
            return x * self.total

    counter = Counter()

    def f(x):
        return counter.add(x) + Counter.total

    yield f
    for _ in range(3):
        yield call(data(3))


@program(breaks=0)
def test_instance_attribute_hides_it():
    class Config:
        scale = 1

    config = Config()
    config.scale = 10

    def f(x):
        Config.scale = 2
        return x * config.scale

    yield f
    yield call(data(3))
    del config.scale
    yield call(data(3))
    yield call(data(3))


@program
def test_metaclass_with_setattr():
    class Meta(type):
        def __setattr__(cls, name, value):
            super().__setattr__(name, value * 2)

    class Config(metaclass=Meta):
        scale = 1

    def f(x):
        Config.scale = 3
        return x * Config.scale

    yield f
    for _ in range(3):
        yield call(data(3))


@program
def test_break_after_the_write():
    class Config:
        scale = 1

    def f(x):
        Config.scale += 1
        x = x * Config.scale
        print("break")
        return x + Config.scale

    yield f
    for _ in range(3):
        yield call(data(3))
