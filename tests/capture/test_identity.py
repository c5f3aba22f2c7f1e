"""One object reached in two ways, of which one changes: `is` must see it."""

from __future__ import annotations

import enum
import sys
import types
from typing import ClassVar

from capture.harness import call, data, program


class Mode(enum.Enum):
    fast = 1
    slow = 2


class Holder:
    shared: ClassVar = [1]


@program
def test_global_and_member_of_enum():
    global mode
    mode = Mode.fast

    def f(x):
        return x + 1 if mode is Mode.fast else x - 1

    yield f
    yield call(data(3))
    mode = Mode.slow
    yield call(data(3))
    mode = Mode.fast
    yield call(data(3))


@program
def test_global_and_attribute_of_class():
    global held
    held = Holder.shared

    def f(x):
        return x + 1 if held is Holder.shared else x - 1

    yield f
    yield call(data(3))
    held = [1]
    yield call(data(3))
    held = Holder.shared
    yield call(data(3))


@program
def test_global_and_default():
    global held
    held = Holder.shared

    def choose(x, other=held):
        return x + 1 if held is other else x - 1

    def f(x):
        return choose(x) if held else x

    yield f
    yield call(data(3))
    held = [1]
    yield call(data(3))
    held = Holder.shared
    yield call(data(3))


@program
def test_argument_and_attribute_of_instance():
    holder = Holder()

    def f(x, other):
        return x + len(other) if other is holder.shared else x - 1

    yield f
    yield call(data(3), Holder.shared)
    yield call(data(3), [1])
    holder.shared = [1, 2]
    yield call(data(3), Holder.shared)
    yield call(data(3), holder.shared)


@program
def test_module_that_import_finds():
    name = "assay_module_of_a_test"

    def install(scale):
        module = types.ModuleType(name)
        module.scale = scale
        sys.modules[name] = module
        return module

    def f(x):
        import assay_module_of_a_test

        return x * assay_module_of_a_test.scale

    module = install(2)
    yield f
    yield call(data(3))
    module.scale = 3
    yield call(data(3))
    module = install(10)
    yield call(data(3))
    del sys.modules[name]
