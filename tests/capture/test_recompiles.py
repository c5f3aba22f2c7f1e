"""Something read by the program changes between two calls."""

from __future__ import annotations

import math
import types

import torch

from capture.harness import call, data, program


@program(call(data(2), 1), call(data(2), 2), call(data(2), 1), call(data(2), -3))
def test_integer(x, n):
    return x * n, n + 1


@program(call(data(2), 0.5), call(data(2), 0.25), call(data(2), 0.5), call(data(2), 1e30))
def test_float(x, p):
    return x * p


@program(call(data(2), True), call(data(2), False), call(data(2), True))
def test_flag(x, flag):
    return x.sin() if flag else x.cos()


@program(call(data(2), "sum"), call(data(2), "mean"), call(data(2), "sum"))
def test_string(x, reduction):
    return getattr(x, reduction)()


@program(call(data(2, 3)), call(data(4, 3)), call(data(2, 3)), call(data(1, 3)), call(data(0, 3)))
def test_shape(x):
    return x.sum(0), x.shape[0]


@program(call(data(3)), call(data(2, 3)), call(data(1, 2, 3)), call(data(3)))
def test_rank(x):
    return x.flatten(), x.ndim


@program(
    call(data(3)),
    call(data(3, dtype=torch.float64)),
    call(data(3, dtype=torch.int64)),
    call(data(3, dtype=torch.bool)),
)
def test_dtype(x):
    return x * 2, (x + 1).dtype


@program
def test_strides():
    def f(x):
        return x.contiguous().view(-1), x.is_contiguous(), x.stride()

    yield f
    yield call(data(2, 3))
    yield call(data(3, 2).t())
    yield call(data(2, 6)[:, ::2])
    yield call(data(2, 3))


@program(call(data(2)), call(data(2, grad=True)), call(data(2)), call(data(2, grad=True)))
def test_requires_grad(x):
    return x * 2, x.requires_grad


@program
def test_global_number():
    global LIMIT
    LIMIT = 1

    def f(x):
        return x.clamp(max=LIMIT)

    yield f
    yield call(data(5))
    LIMIT = 0
    yield call(data(5))
    LIMIT = 0.5
    yield call(data(5))


@program
def test_global_function():
    global activate
    activate = torch.relu

    def f(x):
        return activate(x)

    yield f
    yield call(data(5))
    activate = torch.sigmoid
    yield call(data(5))
    activate = lambda x: x + 1
    yield call(data(5))


@program
def test_global_that_shadows_a_builtin():
    def f(x):
        return x * len([1, 2, 3]), abs(-2)  # noqa: F821

    yield f
    yield call(data(2))
    global len, abs
    len = lambda value: 10
    yield call(data(2))
    abs = lambda value: 77
    yield call(data(2))
    del len, abs
    yield call(data(2))


@program
def test_builtin_replaced():
    import builtins

    real = builtins.sum

    def f(x):
        return sum([x, x])

    yield f
    yield call(data(2))
    builtins.sum = lambda values: values[0] * 100
    try:
        yield call(data(2))
    finally:
        builtins.sum = real
    yield call(data(2))


@program
def test_function_of_library_module_replaced():
    tools = types.ModuleType("tools")
    tools.scale = lambda x: x * 2
    tools.constant = 3

    def f(x):
        return tools.scale(x) + tools.constant

    yield f
    yield call(data(2))
    tools.scale = lambda x: x * 5
    yield call(data(2))
    tools.constant = 30
    yield call(data(2))


@program
def test_math_function_replaced():
    real = math.sqrt

    def f(x):
        return x * math.sqrt(16.0)

    yield f
    yield call(data(2))
    math.sqrt = lambda value: value
    try:
        yield call(data(2))
    finally:
        math.sqrt = real
    yield call(data(2))


@program
def test_torch_function_replaced():
    real = torch.relu

    def f(x):
        return torch.relu(x)

    yield f
    yield call(data(3))
    torch.relu = lambda x: x * 9
    try:
        yield call(data(3))
    finally:
        torch.relu = real
    yield call(data(3))


@program
def test_closure_value():
    scale, offset = 2, data(2)

    def f(x):
        return x * scale + offset

    yield f
    yield call(data(2))
    scale = 2.5
    yield call(data(2))
    offset = 4
    yield call(data(2))


@program
def test_attribute_of_object():
    class Config:
        def __init__(self):
            self.width = 2
            self.inner = {"p": 0.5}

    config = Config()

    def f(x):
        return x[: config.width] * config.inner["p"]

    yield f
    yield call(data(4))
    config.width = 3
    yield call(data(4))
    config.inner["p"] = 2
    yield call(data(4))
    config.inner = {"p": data(3)}
    yield call(data(4))


@program
def test_attribute_appears():
    class Config: ...

    config = Config()

    def f(x):
        return x * getattr(config, "scale", 1), hasattr(config, "scale")

    yield f
    yield call(data(2))
    config.scale = 4
    yield call(data(2))
    Config.scale = 7
    del config.scale
    yield call(data(2))


@program(
    call([data(2)]), call([data(2), data(2)]), call([data(2), data(2), data(2)]), call([data(2)])
)
def test_length_of_list(values):
    return torch.stack(values).sum(0) / len(values)


@program
def test_element_of_list():
    numbers = [1, 2, 3]

    def f(x):
        return x * numbers[1]

    yield f
    yield call(data(2))
    numbers[1] = 20
    yield call(data(2))
    numbers[0] = 7
    yield call(data(2))
    numbers.insert(0, 100)
    yield call(data(2))


@program(
    call({"x": data(2)}),
    call({"x": data(2), "y": data(2)}),
    call({"y": data(2), "x": data(2)}),
    call({}),
)
def test_keys_of_dict(batch):
    total = torch.zeros(2)
    for name, value in batch.items():
        total = total * 2 + value + len(name)
    return total, list(batch)


@program
def test_missing_key_appears():
    options = {}

    def f(x):
        if "scale" in options:
            x = x * options["scale"]
        return x + options.get("shift", 0)

    yield f
    yield call(data(2))
    options["scale"] = 3
    yield call(data(2))
    options["shift"] = 1.5
    yield call(data(2))
    del options["scale"]
    yield call(data(2))


@program
def test_default_of_function():
    def g(x, n=2, *, m=3):
        return x * n + m

    def f(x):
        return g(x)

    yield f
    yield call(data(2))
    g.__defaults__ = (10,)
    yield call(data(2))
    g.__kwdefaults__ = {"m": 100}
    yield call(data(2))


@program
def test_method_replaced_on_class():
    class Scale:
        def run(self, x):
            return x * 2

    scale = Scale()

    def f(x):
        return scale.run(x)

    yield f
    yield call(data(2))
    Scale.run = lambda self, x: x * 20
    yield call(data(2))
    scale.run = lambda x: x * 200
    yield call(data(2))


@program
def test_method_replaced_on_base_class():
    class Base:
        def run(self, x):
            return x + 1

    class Middle(Base): ...

    class Leaf(Middle): ...

    leaf = Leaf()

    def f(x):
        return leaf.run(x)

    yield f
    yield call(data(2))
    Base.run = lambda self, x: x + 10
    yield call(data(2))
    Middle.run = lambda self, x: x + 100
    yield call(data(2))
    Leaf.__bases__ = (Base,)
    yield call(data(2))


@program
def test_special_method_replaced():
    class Number:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return self.value + other

    number = Number(3)

    def f(x):
        return number + x

    yield f
    yield call(data(2))
    Number.__add__ = lambda self, other: self.value * other
    yield call(data(2))
    number.value = 7
    yield call(data(2))


@program
def test_type_of_argument():
    class Celsius(float): ...

    def f(x, value):
        if isinstance(value, Celsius):
            return x + 273.15
        return x + value

    yield f
    yield call(data(2), 1.0)
    yield call(data(2), Celsius(1.0))
    yield call(data(2), 1)
    yield call(data(2), torch.tensor(1.0))


@program
def test_none_or_tensor():
    state = types.SimpleNamespace(bias=None)

    def f(x):
        return x if state.bias is None else x + state.bias

    yield f
    yield call(data(2))
    state.bias = data(2)
    yield call(data(2))
    state.bias = None
    yield call(data(2))


@program
def test_many_values_reach_the_limit():
    def f(x, n):
        return x * n + (n % 3)

    yield f
    for n in range(14):
        yield call(data(2), n)


@program
def test_many_closures_of_one_code():
    def make(k):
        return lambda x: x * k

    def f(g, x):
        return g(x)

    yield f
    for k in range(12):
        yield call(make(k), data(2))


@program
def test_default_dtype_and_grad_mode_together():
    weight = data(2, grad=True)

    def f(x):
        return (x * weight + torch.ones(2)).sum()

    yield f
    yield call(data(2))
    torch.set_default_dtype(torch.float64)
    yield call(data(2))
    torch.set_grad_enabled(False)
    yield call(data(2))
    torch.set_default_dtype(torch.float32)
    yield call(data(2))
    torch.set_grad_enabled(True)
    yield call(data(2))


@program
def test_deterministic_mode():
    def f(x):
        return x.cumsum(0), torch.are_deterministic_algorithms_enabled()

    yield f
    yield call(data(3))
    torch.use_deterministic_algorithms(True)
    yield call(data(3))
    torch.use_deterministic_algorithms(False)
    yield call(data(3))


@program
def test_slot_of_object():
    class Pair:
        __slots__ = ("a", "b")

    pair = Pair()
    pair.a, pair.b = 1, 2

    def f(x):
        return x * pair.a + pair.b

    yield f
    yield call(data(2))
    pair.a = 10
    yield call(data(2))
    pair.b = data(2)
    yield call(data(2))


@program
def test_global_tensor_replaced_by_equal_looking_one():
    global TABLE
    TABLE = data(3)

    def f(x):
        return x + TABLE

    yield f
    yield call(data(3))
    TABLE = data(3)
    yield call(data(3))
    TABLE.mul_(5)
    yield call(data(3))
    TABLE = data(3, dtype=torch.float64)
    yield call(data(3))


@program
def test_equal_but_different_keys():
    def f(x, key):
        return x * {1: 10, 2: 20}[key]

    yield f
    yield call(data(2), 1)
    yield call(data(2), True)
    yield call(data(2), 1.0)
    yield call(data(2), 2)
