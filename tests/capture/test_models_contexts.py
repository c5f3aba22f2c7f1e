"""with-blocks that are modelled: autocast, generators as context managers, modes of the caller."""

from __future__ import annotations

import contextlib

import torch

from capture.harness import call, data, program


@program(
    call(data(2, 3), data(3, 2)),
    call(data(2, 3), data(3, 2)),
    call(data(4, 3), data(3, 2)),
    graphs=1,
    breaks=0,
    tolerance=True,
)
def test_autocast_is_one_graph(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
    return z, z.dtype, torch.is_autocast_enabled("cpu"), x @ y


@program(
    call(data(2, 2, grad=True)),
    call(data(2, 2, grad=True)),
    call(data(2, 2)),
    graphs=1,
    breaks=0,
    tolerance=True,
)
def test_nested_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x
        with torch.autocast("cpu", enabled=False):
            b = x @ x
        c = x @ x
    return a.float() + b + c.float(), a.dtype, b.dtype, c.dtype


@program(call(data(2, 2)), call(data(2, 2)), call(data(3, 3)), tolerance=True)
def test_break_inside_autocast(x):
    a = x @ x
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = x @ x
        print(torch.is_autocast_enabled("cpu"))
        c = b @ x
    d = x @ x
    return a, b, c, d, torch.is_autocast_enabled("cpu")


@program(call(data(2, 2)), call(data(2, 2)), call(data(3, 3)), tolerance=True)
def test_break_in_a_function_called_inside_autocast(x):
    def show(value):
        with torch.autocast("cpu", enabled=False):
            print(value.dtype, torch.is_autocast_enabled("cpu"))
            return value @ value

    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = show(x @ x)
        c = x @ x
    return b, c, x @ x


@program(call(data(2, 2), 1), call(data(2, 2), 0), call(data(2, 2), 1), tolerance=True)
def test_exception_leaves_autocast(x, divisor):
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            1 / divisor
    except ZeroDivisionError:
        y = x @ x
    return y, torch.is_autocast_enabled("cpu"), x @ x


@program(call(data(2, 2)), call(data(2, 2)), call(data(3, 3)), tolerance=True)
def test_autocast_entered_and_not_left(x):
    region = torch.autocast("cpu", dtype=torch.bfloat16)
    region.__enter__()
    return x @ x


@program(tolerance=True)
def test_autocast_object_from_outside():
    region = torch.autocast("cpu", dtype=torch.bfloat16)

    def f(x):
        with region:
            y = x @ x
        return y, x @ x

    yield f
    yield call(data(2, 2))
    yield call(data(2, 2))
    region.fast_dtype = torch.float16
    yield call(data(2, 2))


@program(tolerance=True)
def test_autocast_as_decorator():
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def helper(x):
        return x @ x

    def f(x):
        return helper(x), x @ x

    yield f
    yield call(data(2, 2))
    yield call(data(2, 2))
    yield call(data(3, 3))


@program(graphs=1, breaks=0)
def test_generator_as_context_manager():
    log = []

    @contextlib.contextmanager
    def scaled(n):
        log.append("enter")
        try:
            yield n + 1
        finally:
            log.append("exit")

    def f(x):
        with scaled(2) as k:
            y = x * k
        return y + len(log)

    yield f
    yield call(data(2))
    log.clear()
    yield call(data(2))
    yield call(data(3))


@program
def test_generator_left_before_its_end():
    log = []

    def numbers(x):
        try:
            for i in range(5):
                yield x * i
        finally:
            log.append("closed")

    def f(x):
        total = x
        for value in numbers(x):
            log.append("item")
            total = total + value
            if len(log) % 4 == 3:
                break
        log.append("after")
        return total

    yield f
    yield call(data(2))
    log.clear()
    yield call(data(2))
    log.clear()
    yield call(data(3))


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3), graphs=1, breaks=0)
def test_generator_methods(x, n):
    def echo():
        value = None
        while True:
            value = yield x if value is None else x * value

    generator = echo()
    first = next(generator)
    second = generator.send(n)
    generator.close()
    return first + second, list(generator)


class Doubling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.relu else result


@program
def test_function_mode_of_the_caller():
    def f(x):
        return torch.relu(x) + 1

    yield f
    yield call(data(3))
    mode = Doubling()
    mode.__enter__()
    yield call(data(3))
    mode.__exit__(None, None, None)
    yield call(data(3))


@program(call(data(3)), call(data(3)), call(data(4)))
def test_function_mode_inside(x):
    a = torch.relu(x)
    with Doubling():
        b = torch.relu(x)
    return a, b, torch.relu(x)


class Base:
    def __init__(self):
        self.kind = "base"


class Derived(Base):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale


class Alone:
    def __init__(self, scale):
        super().__init__()
        self.scale = scale


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3), graphs=1, breaks=0)
def test_super_init(x, n):
    return x * Derived(n).scale + Alone(n).scale
