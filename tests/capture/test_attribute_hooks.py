"""`__getattr__` and its relatives, and the order in which attributes are found."""

from __future__ import annotations

from capture.harness import call, data, program


@program
def test_getattr_hook():
    class Open:
        def __init__(self):
            self.asked = []

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            self.asked.append(name)
            return len(name)

    def f(x, obj):
        return x * obj.width + obj.asked.__len__(), getattr(obj, "_none", 3), hasattr(obj, "_none")

    yield f
    yield call(data(2), Open())
    yield call(data(2), Open())
    obj = Open()
    obj.width = 100
    yield call(data(2), obj)


@program
def test_getattribute_hook():
    class Watched:
        def __init__(self):
            self.n = 1

        def __getattribute__(self, name):
            if name == "n":
                LOG.append(name)
                return object.__getattribute__(self, "n") * 10
            return object.__getattribute__(self, name)

    global LOG
    LOG = []
    obj = Watched()

    def f(x):
        return x * obj.n

    yield f
    yield call(data(2))
    yield call(data(2))
    obj.n = 2
    yield call(data(2))


@program
def test_setattr_hook():
    class Recorder:
        def __init__(self):
            object.__setattr__(self, "written", [])

        def __setattr__(self, name, value):
            self.written.append(name)
            object.__setattr__(self, name, value)

        def __delattr__(self, name):
            self.written.append("del " + name)
            object.__delattr__(self, name)

    obj = Recorder()

    def f(x, n):
        obj.value = x * n
        obj.count = n
        del obj.count
        return obj.value, len(obj.written)

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_delegation_by_getattr():
    class Inner:
        def __init__(self):
            self.scale = 2.0

        def run(self, x):
            return x * self.scale

    class Proxy:
        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

    inner = Inner()
    proxy = Proxy(inner)

    def f(x):
        return proxy.run(x) + proxy.scale

    yield f
    yield call(data(2))
    yield call(data(2))
    inner.scale = 3.0
    yield call(data(2))
    proxy.scale = 50.0
    yield call(data(2))


@program
def test_attribute_error_of_missing_attribute():
    class Empty: ...

    def f(x, obj):
        y = x + 1
        return y * obj.scale

    obj = Empty()
    yield f
    obj.scale = 2
    yield call(data(2), obj)
    yield call(data(2), obj)
    yield call(data(2), Empty())
    Empty.scale = 4
    yield call(data(2), Empty())


@program
def test_getattr_setattr_delattr_builtins():
    class Bag: ...

    def f(x, bag, name):
        setattr(bag, name, x)
        value = getattr(bag, name)
        found = hasattr(bag, name), hasattr(bag, "other")
        if name == "temporary":
            delattr(bag, name)
        return value * 2, found, getattr(bag, "none", None), vars(bag), sorted(bag.__dict__)

    yield f
    yield call(data(2), Bag(), "kept")
    yield call(data(2), Bag(), "kept")
    yield call(data(2), Bag(), "temporary")


@program
def test_slots_with_defaults_and_dict():
    class Base:
        __slots__ = ("a",)

    class Child(Base):
        def __init__(self):
            self.a = 1
            self.b = 2

    child = Child()

    def f(x):
        child.a += 1
        child.b += child.a
        return x * child.a + child.b

    yield f
    yield call(data(2))
    yield call(data(2))
    child.a = 100
    yield call(data(2))


@program
def test_attribute_lookup_order():
    class Base:
        name = "base"

    class Child(Base):
        pass

    child = Child()

    def f(x):
        return x + len(child.name), child.name

    yield f
    yield call(data(2))
    Child.name = "the child"
    yield call(data(2))
    child.name = "own"
    yield call(data(2))
    del child.name
    del Child.name
    Base.name = "new base!"
    yield call(data(2))
