"""Generators and generator expressions, consumed whole, in part, or from outside."""

# ruff: noqa: B905, UP028 (the programs are written as users write them)
from __future__ import annotations

import itertools

import torch

from capture.harness import call, data, program


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_genexpr_in_sum(x, n):
    return sum(x * i for i in range(n))


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), [0, 0]))
def test_genexpr_in_any_and_all(x, numbers):
    if any(n > 1 for n in numbers) and all(n >= 0 for n in numbers):
        return x * 2
    return x, all(n for n in ()), any(n for n in ())


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_genexpr_in_constructors(x, n):
    return (
        tuple(x + i for i in range(n)),
        list(i * i for i in range(n)),  # noqa: C400
        dict((i, x) for i in range(n)),  # noqa: C402
        {i % 2 for i in range(n)},
        max(i for i in range(n)),
    )


@program(call(data(2), 3), call(data(2), 3), call(data(2), 5))
def test_generator_in_for_loop(x, n):
    def numbers(k):
        for i in range(k):
            yield i * 2

    for value in numbers(n):
        x = x + value
    return x


@program(call(data(4, 2)), call(data(4, 2)), call(data(3, 2)))
def test_generator_of_tensors(x):
    def rows(t):
        for i in range(t.shape[0]):
            yield t[i] * i

    return torch.stack(list(rows(x)))


@program(call(data(2), 3), call(data(2), 3), call(data(2), 1))
def test_yield_from(x, n):
    def inner(k):
        for i in range(k):
            yield x * i
        return k * 10

    def outer():
        total = yield from inner(n)
        yield x + total

    return list(outer())


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_send(x, n):
    def accumulate():
        total = 0
        while True:
            received = yield total
            if received is None:
                return
            total = total + received

    generator = accumulate()
    next(generator)
    for i in range(n):
        total = generator.send(x * i)
    return total


@program(call(data(2), 3), call(data(2), 3), call(data(2), 1))
def test_partially_consumed(x, n):
    def count():
        i = 0
        while True:
            yield i
            i += 1

    numbers = count()
    taken = [next(numbers) for _ in range(n)]
    x = x + next(numbers)
    return x, taken, next(numbers)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_generator_in_zip(x, n):
    def squares():
        for i in range(10):
            yield i * i

    return [x * a + b for a, b in zip(squares(), range(n))]


@program
def test_generator_passed_in():
    def f(x, numbers):
        for n in numbers:
            x = x + n
        return x

    def make(n):
        for i in range(n):
            yield i

    yield f
    yield call(data(2), make(3))
    yield call(data(2), make(3))
    half = make(5)
    next(half)
    next(half)
    yield call(data(2), half)


@program
def test_generator_passed_in_and_partly_used():
    def f(x, numbers):
        return x * next(numbers) + next(numbers)

    def make():
        i = 1
        while True:
            yield i
            i *= 2

    numbers = make()
    yield f
    yield call(data(2), numbers)
    yield call(data(2), numbers)
    yield call(data(2), numbers)


@program
def test_generator_returned():
    def f(x, n):
        y = x * 2
        return (y + i for i in range(n))

    yield f
    lazy = yield call(data(2), 2)
    values = list(lazy)
    lazy = yield call(data(2), 3)
    values += list(lazy)
    yield call(data(2), 1)


@program
def test_generator_function_is_the_program():
    def f(x, n):
        for i in range(n):
            x = x + i
            yield x

    yield f
    first = yield call(data(2), 2)
    values = list(first)
    second = yield call(data(2), 3)
    values.append(next(second))
    yield call(data(2), 2)
    values.append(next(second))
    yield call(data(2), 1)


@program(call(data(2), 2), call(data(2), 2), call(data(2), 0))
def test_finally_in_generator(x, n):
    log = []

    def guarded():
        try:
            for i in range(5):
                yield i
        finally:
            log.append("closed")

    generator = guarded()
    for value in generator:
        x = x + value
        if value == n:
            break
    generator.close()
    return x, log


@program(call(data(2), 2), call(data(2), 2), call(data(2), 1))
def test_throw_into_generator(x, n):
    def resilient():
        for i in range(5):
            try:
                yield i
            except ValueError as error:
                yield error.args[0] * 100

    generator = resilient()
    next(generator)
    thrown = generator.throw(ValueError(n))
    return x * thrown, next(generator)


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0))
def test_exception_from_generator(x, n):
    def risky():
        yield 1
        yield 1 // n
        yield 3

    return [x * k for k in risky()]


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_return_value_of_generator(x, n):
    def short():
        yield 1
        return n * 5

    generator = short()
    next(generator)
    try:
        next(generator)
    except StopIteration as stop:
        return x * stop.value


@program
def test_generator_with_effects():
    log = []

    def numbers(n):
        for i in range(n):
            log.append(("before", i))
            yield i
            log.append(("after", i))

    def f(x, n):
        for i in numbers(n):
            log.append(i)
            x = x + i
        return x

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program
def test_abandoned_generator_keeps_effects():
    log = []

    def numbers():
        for i in range(10):
            log.append(i)
            yield i

    def f(x, stop):
        for i in numbers():
            if i == stop:
                return x * i
        return x

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 4)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_chained_generators(x, n):
    def naturals():
        i = 0
        while True:
            yield i
            i += 1

    even = (i for i in naturals() if i % 2 == 0)
    squares = (i * i for i in even)
    first = list(itertools.islice(squares, n))
    return x * sum(first), first, next(squares)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 1))
def test_genexpr_reads_late(x, n):
    scale = 1
    lazy = (x * scale + i for i in range(n))
    scale = 10
    return list(lazy)


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_recursive_generator(x, depth):
    def tree(n):
        if n:
            yield from tree(n - 1)
            yield n
            yield from tree(n - 1)

    order = list(tree(depth))
    for k in order:
        x = x * 0.5 + k
    return x, order


@program
def test_iter_method_as_generator():
    class Layers:
        def __init__(self):
            self.scales = [1.0, 2.0]

        def __iter__(self):
            for scale in self.scales:
                yield lambda x: x * scale

    layers = Layers()

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    yield f
    yield call(data(2))
    yield call(data(2))
    layers.scales.append(5.0)
    yield call(data(2))


@program(call(data(2), "ab"), call(data(2), "ab"), call(data(2), ""))
def test_join_of_generator(x, text):
    return "-".join(c.upper() for c in text), x + len(text), sorted(c for c in text)


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_nested_genexprs(x, n):
    return sum(sum(x * i * j for j in range(i)) for i in range(1, n + 1))


@program(call(data(2), [3, 1, 2]), call(data(2), [3, 1, 2]), call(data(2), []))
def test_next_with_default(x, numbers):
    found = next((n for n in numbers if n < 3), None)
    return x if found is None else x * found


@program(call(data(2), 3), call(data(2), 3), call(data(2), 2))
def test_unpacked_generator(x, n):
    first, *rest = (x + i for i in range(n))
    return first, rest, [*(i for i in range(n)), 9], max(*(i for i in range(n + 1)), -1)


@program(call(data(2, grad=True), 2), call(data(2, grad=True), 2), call(data(2, grad=True), 3))
def test_generator_with_no_grad_inside(x, n):
    def steps():
        for i in range(n):
            with torch.no_grad():
                scale = x.abs().sum() + i
            yield x * scale

    return list(steps())
