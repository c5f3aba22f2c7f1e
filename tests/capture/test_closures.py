"""Closures, cells, lambdas, partials and decorators."""

from __future__ import annotations

import functools

import torch

from capture.harness import call, data, program


@program
def test_closure_reads_number():
    scale = 2

    def f(x):
        return x * scale

    yield f
    yield call(data(2))
    yield call(data(2))
    scale = 3
    yield call(data(2))


@program
def test_closure_reads_tensor():
    bias = data(3)

    def f(x):
        return x + bias

    yield f
    yield call(data(3))
    yield call(data(3))
    bias = data(2, 3)
    yield call(data(3))
    bias = 5.0
    yield call(data(3))


@program
def test_nonlocal_counter():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x * count

    yield f
    yield call(data(2))
    yield call(data(2))
    count = 10
    yield call(data(2))


@program
def test_nonlocal_tensor_state():
    hidden = torch.zeros(3)

    def f(x):
        nonlocal hidden
        hidden = hidden * 0.5 + x
        return hidden.sum()

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(3))


@program
def test_cell_shared_by_two_functions():
    state = 1

    def grow():
        nonlocal state
        state *= 2

    def f(x):
        before = state
        grow()
        return x * before + state

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(2))


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4), graphs=1)
def test_inner_function_changes_cell(x, n):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    for i in range(n):
        x = x + add(i)
    return x, total


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_returned_closure_is_called_later(x, n):
    def make(k):
        def inner(v):
            return v * k + n

        return inner

    first, second = make(2), make(x)
    return first(x), second(3)


@program
def test_closure_returned_to_the_user():
    def f(x, n):
        y = x * n

        def later(z):
            return y + z

        return later

    yield f
    first = yield call(data(2), 2)
    second = yield call(data(2), 3)
    total = first(data(2)) + second(data(2))
    third = yield call(total, 2)
    total = third(total)
    yield call(total, 1)


@program
def test_counter_factory():
    def make_counter():
        count = 0

        def step(x):
            nonlocal count
            count += 1
            return x + count

        return step

    left, right = make_counter(), make_counter()

    def f(x):
        return left(left(x)) * right(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    left = make_counter()
    yield call(data(2))


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_late_binding_in_loop(x, n):
    functions = []
    for i in range(n):
        functions.append(lambda v: v + i)
    i = 100
    return [g(x) for g in functions]


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_lambda_with_default(x, n):
    functions = [lambda v, k=i: v * k for i in range(n)]
    return [g(x) for g in functions], functions[0](x, 5), functions[0](x, k=6)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 0))
def test_immediately_called_lambda(x, n):
    return (lambda a, *b, **c: a * len(b) + len(c))(x, 1, n, d=4)


@program
def test_partial():
    def scale(x, factor, *, bias=0.0):
        return x * factor + bias

    double = functools.partial(scale, factor=2, bias=1.0)

    def f(x, n):
        triple = functools.partial(scale, x, bias=n)
        return double(x), double(x, bias=3), triple(3), double.keywords["factor"]

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    double.keywords["factor"] = 5
    yield call(data(2), 1)


@program
def test_partial_is_the_program():
    def scale(factor, x):
        return x * factor

    yield functools.partial(scale, 3)
    yield call(data(2))
    yield call(data(2))
    yield call(data(2, 2))


@program
def test_decorator_with_wraps():
    calls = []

    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            calls.append(function.__name__)
            return function(*args, **kwargs)

        return wrapper

    @logged
    def scale(x, n=2):
        return x * n

    def f(x, n):
        return scale(x) + scale(x, n=n), scale.__name__, scale.__wrapped__(x, 5)

    yield f
    yield call(data(2), 3)
    yield call(data(2), 3)
    yield call(data(2), 4)


@program
def test_decorator_with_arguments():
    def repeat(times):
        def decorate(function):
            def wrapper(x):
                for _ in range(times):
                    x = function(x)
                return x

            return wrapper

        return decorate

    @repeat(3)
    @repeat(2)
    def step(x):
        return x * 1.5

    yield step
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_lru_cache_hits_and_misses():
    computed = []

    @functools.lru_cache(maxsize=2)
    def square(n):
        computed.append(n)
        return n * n

    def f(x, n):
        return x * square(n) + square(2)

    yield f
    yield call(data(2), 3)
    yield call(data(2), 3)
    yield call(data(2), 4)
    square.cache_clear()
    yield call(data(2), 3)


@program
def test_cached_method_returns_same_tensor():
    @functools.cache
    def table(n):
        return torch.arange(n, dtype=torch.float32)

    def f(x):
        t = table(x.shape[0])
        return x + t, t

    yield f
    yield call(data(3))
    yield call(data(3))
    yield call(data(4))


@program
def test_singledispatch():
    @functools.singledispatch
    def describe(value, x):
        return x

    @describe.register
    def _(value: int, x):
        return x * value

    @describe.register
    def _(value: str, x):
        return x + len(value)

    def f(x, value):
        return describe(value, x)

    yield f
    yield call(data(2), 3)
    yield call(data(2), 3)
    yield call(data(2), "abcd")
    yield call(data(2), None)


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [5]), call(data(2), []))
def test_reduce(x, numbers):
    total = functools.reduce(lambda a, b: a * 2 + b, numbers, 0)
    return functools.reduce(torch.add, [x] * len(numbers), x) * total


@program
def test_cell_contents_replaced():
    scale = 2.0

    def f(x):
        return x * scale

    yield f
    yield call(data(2))
    yield call(data(2))
    f.__closure__[0].cell_contents = 9.0
    yield call(data(2))


@program
def test_empty_cell_raises():
    def make():
        def f(x, ready):
            if ready:
                return x + later
            return x - later

        yield f
        later = 3
        yield None

    steps = make()
    f = next(steps)
    yield f
    yield call(data(2), True)
    next(steps)
    yield call(data(2), True)
    yield call(data(2), False)


@program
def test_recursive_closure():
    limit = 3

    def f(x):
        def go(v, n):
            return v if n >= limit else go(v * 2 + n, n + 1)

        return go(x, 0)

    yield f
    yield call(data(2))
    yield call(data(2))
    limit = 5
    yield call(data(2))


@program
def test_closure_over_loop_of_modules():
    layers = [torch.nn.Linear(2, 2) for _ in range(2)]
    runs = [lambda x, layer=layer: layer(x).relu() for layer in layers]

    def f(x):
        for run in runs:
            x = run(x)
        return x

    yield f
    yield call(data(3, 2))
    yield call(data(3, 2))
    runs.reverse()
    yield call(data(3, 2))


@program
def test_function_attributes():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x * f.calls

    yield f
    yield call(data(2))
    yield call(data(2))
    f.calls = 10
    yield call(data(2))


@program
def test_compose():
    def compose(*functions):
        def composed(x):
            for function in functions:
                x = function(x)
            return x

        return composed

    pipeline = compose(torch.sin, lambda v: v * 2, functools.partial(torch.clamp, min=-1, max=1))
    yield pipeline
    yield call(data(3))
    yield call(data(3))
    yield call(data(2, 3))


@program
def test_bound_method_as_closure():
    class Scaler:
        def __init__(self):
            self.k = 2

        def run(self, x):
            self.k += 1
            return x * self.k

    scaler = Scaler()
    run = scaler.run

    def f(x):
        return run(x) + run(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    scaler.k = 0
    yield call(data(2))


@program
def test_locals_kept_by_inner_class():
    def f(x, n):
        scale = n + 1

        class Runner:
            def run(self, v):
                return v * scale

        return Runner().run(x)

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_two_closures_of_one_code():
    def make(k):
        def g(x):
            return x * k

        return g

    double, triple = make(2), make(3)

    def f(x, g):
        return g(x)

    yield f
    yield call(data(2), double)
    yield call(data(2), triple)
    yield call(data(2), double)
    yield call(data(2), make(7))
