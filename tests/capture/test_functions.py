"""How functions are called: defaults, starred and keyword arguments, recursion."""

from __future__ import annotations

import functools
import inspect
import operator

import torch

import assay
from capture.harness import call, data, program


@program(call(data(2)), call(data(2), 3), call(data(2), bias=1), call(data(2)))
def test_defaults(x, scale=2, *, bias=0):
    return x * scale + bias


@program(call(data(2), 1, 2), call(data(2), 1, 2), call(data(2), 1, 2, 3), call(data(2)), graphs=1)
def test_star_args(x, *numbers):
    return x * len(numbers) + sum(numbers), numbers


@program(
    call(data(2), a=1),
    call(data(2), a=1),
    call(data(2), b=2, a=1),
    call(data(2), a=1, b=2),
    graphs=1,
)
def test_star_kwargs(x, **named):
    for name, value in named.items():
        x = x * 2 + value + len(name)
    return x, named


@program(
    call(data(2), [1, 2], {"c": 3}),
    call(data(2), [1, 2], {"c": 3}),
    call(data(2), [5], {"b": 2, "c": 1}),
)
def test_call_with_unpacking(x, args, kwargs):
    def g(a, b=10, *, c):
        return x * a + b - c

    return g(*args, **kwargs), g(1, *args[:1], **kwargs)


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_positional_only(x, n, /, m=1):
    def g(a, /, b, *, c):
        return a * b + c

    return g(x, n, c=m), g(x, b=n, c=2)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 5), call(data(2), 0))
def test_recursion(x, n):
    def power(v, k):
        return torch.ones_like(v) if k == 0 else v * power(v, k - 1)

    return power(x, n)


@program
def test_mutual_recursion():
    def even(x, n):
        return x if n == 0 else odd(x + 1, n - 1)

    def odd(x, n):
        return -x if n == 0 else even(x * 2, n - 1)

    yield even
    yield call(data(2), 4)
    yield call(data(2), 4)
    yield call(data(2), 5)


@program
def test_mutable_default_is_shared():
    def g(value, seen=[]):  # noqa: B006
        seen.append(value)
        return len(seen)

    def f(x, n):
        return x * g(n)

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_default_tensor_mutated():
    def f(x, total=torch.zeros(2)):  # noqa: B008
        total += x
        return total * 2

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(2))


@program
def test_defaults_replaced():
    def g(x, n=2):
        return x * n

    def f(x):
        return g(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    g.__defaults__ = (5,)
    yield call(data(2))


@program
def test_code_replaced():
    def g(x):
        return x * 2

    def h(x):
        return x + 100

    def f(x):
        return g(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    g.__code__ = h.__code__
    yield call(data(2))


@program
def test_keyword_defaults_replaced():
    def g(x, *, n=2):
        return x * n

    def f(x):
        return g(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    g.__kwdefaults__["n"] = 7
    yield call(data(2))


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_missing_argument(x, n):
    def g(a, b, *, c):
        return a

    y = x * 2
    return g(y, n, c=1) if n == 1 else g(y)


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2), call(data(2), 3))
def test_wrong_arguments(x, n):
    def g(a):
        return a

    y = x * 2
    if n == 2:
        return g(y, y)
    if n == 3:
        return g(a=y, b=1)
    return g(y)


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0))
def test_order_of_evaluation(x, n):
    order = []

    def note(tag, value):
        order.append(tag)
        return value

    def g(a, b, c=0, d=0):
        return a + b * c - d

    result = g(note("a", x), note("b", n), d=note("d", 1), c=note("c", 2))
    table = {note("k1", 1): note("v1", x), note("k2", 2): note("v2", x)}
    return result, order, table


@program(call(data(2), 4), call(data(2), 4), call(data(2), 2))
def test_function_as_argument(x, n):
    def twice(function, value):
        return function(function(value))

    return twice(lambda v: v * n, x), twice(torch.sin, x), twice(abs, n)


@program(call(data(2), 1), call(data(2), 1), call(data(2), 9))
def test_functions_returned(x, n):
    def pick(k):
        if k > 5:
            return torch.exp, {"scale": k}
        return torch.neg, {}

    function, options = pick(n)
    return function(x), options


@program(call(data(2), 2), call(data(2), 2), call(data(2), 1))
def test_no_return_value(x, n):
    def nothing(v):
        v * n

    return nothing(x), x + n


@program(call(data(2)), call(data(2)), call(data(3)))
def test_returns_none(x):
    x + 1


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_multiple_return_values(x, n):
    def split(v):
        return v[:1], v[1:], n

    a, b, k = split(x)
    first, *others = split(x * k)
    return a, b, first, others


@program
def test_method_called_through_class():
    class Box:
        def __init__(self, n):
            self.n = n

        def run(self, x):
            return x * self.n

    def f(x, n):
        box = Box(n)
        unbound = Box.run
        return Box.run(box, x), unbound(box, x), box.run.__func__ is unbound

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program(call(data(2), "add"), call(data(2), "add"), call(data(2), "mul"))
def test_operator_by_name(x, name):
    function = getattr(operator, name)
    return (
        function(x, 3),
        operator.itemgetter(0)([x, 1]),
        operator.attrgetter("ndim")(x),
        operator.methodcaller("abs")(x),
    )


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_global_function_is_called(x, n):
    return helper(x, n) + helper(x, n=1)


def helper(x, n):
    return x**n if n > 1 else x


@program
def test_global_function_replaced():
    global step

    def step(x):
        return x + 1

    def f(x):
        return step(x)

    yield f
    yield call(data(2))
    yield call(data(2))

    def step(x):  # noqa: F811
        return x * 50

    yield call(data(2))


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_introspection(x, n):
    def g(a, b=1, *c, d):
        return a

    return x, g.__name__, g.__code__.co_argcount, list(inspect.signature(g).parameters), callable(g)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 30))
def test_deep_recursion(x, depth):
    def down(n):
        return x if n == 0 else down(n - 1) + 1

    return down(depth)


@program(call(data(2), 1), call(data(2), 2), call(data(2), 1))
def test_endless_recursion_is_caught(x, n):
    def forever(k):
        return forever(k + 1)

    y = x * n
    if n == 2:
        try:
            forever(0)
        except RecursionError as error:
            return y, type(error).__name__
    return y


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_arguments_rebound(x, n):
    original = x
    x = x + 1
    n *= 10
    x, n = n * x, n
    return x, n, original


@program(call(data(4, 4), data(4)), call(data(4, 4), data(4)), call(data(4, 4), y=data(4, 4)))
def test_tensor_keyword_argument(x, y):
    return torch.add(input=x, other=y, alpha=2), torch.sum(x, dim=0, keepdim=True)


@program(call(data(2), x2=data(2)), call(data(2), x2=data(2)), call(data(2), x3=data(2)))
def test_tensors_in_kwargs(x, **others):
    total = x
    for name in sorted(others):
        total = total + others[name]
    return total, others


@program
def test_program_is_a_bound_method():
    class Model:
        def __init__(self):
            self.w = data(2)

        def run(self, x, *, twice=False):
            y = x * self.w
            return y * 2 if twice else y

    model = Model()
    yield model.run
    yield call(data(2))
    yield call(data(2), twice=True)
    model.w = data(3, 2)
    yield call(data(2))


@program
def test_program_is_a_lambda():
    yield lambda x, n=2: x.view(-1)[:n] * n
    yield call(data(2, 2))
    yield call(data(2, 2))
    yield call(data(2, 2), 3)


@program
def test_program_is_a_torch_function():
    yield torch.sigmoid
    yield call(data(2, 2))
    yield call(data(2, 2))
    yield call(data(3, dtype=torch.float64))


@program
def test_compiled_function_calls_compiled_function():
    def inner(x, n):
        return x * n

    compiled = yield inner

    def outer(x, n):
        return compiled(x, n) + 1

    first = outer(data(2), 2)
    yield call(first, 3)
    second = outer(first, 4)
    yield call(second, 3)
    yield call(second, 5)


TABLE = {1: 10}


@functools.lru_cache
def looked_up(key):
    return TABLE[key] + 1


@program
def test_a_function_that_is_cached():
    looked_up.cache_clear()
    TABLE[1] = 10

    def compute(x):
        return x * looked_up(1)

    yield compute
    yield call(data(3))
    TABLE[1] = 20
    yield call(data(3))
    looked_up.cache_clear()
    yield call(data(3))
    looked_up.cache_clear()
    del TABLE[1]
    yield call(data(3))


def test_a_cached_function_is_no_break() -> None:
    looked_up.cache_clear()
    TABLE[1] = 10
    compiled = assay.compile(lambda x: x * looked_up(1), backend="eager", fullgraph=True)
    assert [compiled(torch.ones(1)).item() for _ in range(2)] == [11, 11]
    TABLE[1] = 20
    assert compiled(torch.ones(1)).item() == 11
    looked_up.cache_clear()
    assert compiled(torch.ones(1)).item() == 21


@functools.lru_cache
def kept_list(length):
    return [0] * length


@program
def test_a_cached_function_that_returns_an_object():
    kept_list.cache_clear()

    def compute(x):
        kept_list(2)[0] += 1
        return x * kept_list(2)[0], kept_list(2)

    yield compute
    for _ in range(3):
        yield call(data(3))
