"""Generators and exceptions that are still in use where a graph ends: a replay makes others that
stand where these stood."""

from __future__ import annotations

import contextlib

import torch

import assay
from capture.harness import call, data, program


def waves(t):
    yield t.sin()
    yield t.cos()
    yield t.tan()


@program(*[call(data(2)) for _ in range(3)])
def test_generators_across_a_break(x):
    new, advanced, ended = waves(x), waves(x + 1), (i for i in (1,))
    first = next(advanced)
    list(ended)
    assay.graph_break()
    return first, list(advanced), list(new), list(ended)


@program(*[call(data(2)) for _ in range(3)])
def test_a_generator_with_state(x):
    def count(t, step=2, *more, scale=1):
        total = 0
        for extra in more:
            total += extra
            yield t * total * scale
        total = yield total
        yield t + total + step

    numbers = count(x, 3, 1, 2, scale=5)
    next(numbers)
    assay.graph_break()
    rest = [next(numbers), next(numbers)]
    return rest, numbers.send(7)


@program
def test_a_generator_that_changes_what_is_outside():
    seen = []

    def f(x):
        def visit():
            seen.append("start")
            yield x * 2
            seen.append("on")
            yield x * 3

        visits = visit()
        first = next(visits)
        assay.graph_break()
        return first + next(visits)

    yield f
    for _ in range(3):
        yield call(data(2))
        yield call(data(2))


@program(*[call(data(2)) for _ in range(3)])
def test_generators_of_generators(x):
    def outer():
        yield from waves(x)
        yield from (x * i for i in range(3))

    values = outer()
    pairs = zip(range(9), values, strict=False)
    next(values)
    assay.graph_break()
    a = next(pairs)
    assay.graph_break()
    return a, list(pairs)


@program(*[call(data(2)) for _ in range(3)])
def test_a_break_inside_of_a_generator(x):
    """The recording is rolled back to where the generator had not gone on."""

    def halves():
        y = x / 2
        yield y
        assay.graph_break()
        yield y / 2

    values = halves()
    first = next(values)
    return first + next(values), list(values)


@program(*[call(data(2)) for _ in range(3)])
def test_a_generator_that_handles_an_exception(x):
    def careful():
        try:
            raise KeyError
        except KeyError:
            yield x + 1
        yield x + 2

    values = careful()
    first = next(values)
    assay.graph_break()
    return first, list(values)


def test_generators_are_results() -> None:
    def f(x):
        advanced = waves(x)
        next(advanced)
        shifted = (y + 1 for y in waves(x))
        return waves(x), advanced, shifted, x * 2

    compiled = assay.compile(f, backend="eager", fullgraph=True)
    x = torch.ones(2)
    for _ in range(3):
        for made, expected in zip(compiled(x)[:3], f(x)[:3], strict=True):
            for one, other in zip(made, expected, strict=True):
                torch.testing.assert_close(one, other)


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_in_and_unpacking_consume_a_generator(x):
    numbers = (i for i in (1, 2, 3))
    found = 1 in numbers
    return x + 1, found, list(numbers), {*(i for i in (1, 2))}, len([waves(x)] * 2)


class Failure(Exception):
    pass


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_exceptions_are_values(x):
    error = Failure("text", 2)
    error.tensor = x + 1
    return x * 2, error, ValueError(1)


@program(*[call(data(2)) for _ in range(3)])
def test_an_exception_passes_a_context_manager_of_a_generator(x):
    log = []

    @contextlib.contextmanager
    def logged(swallows):
        log.append("in")
        try:
            yield 3
        except ValueError:
            log.append("error")
            if not swallows:
                raise
        finally:
            log.append("out")

    with logged(True) as number:
        raise ValueError
    try:
        with logged(False):
            raise ValueError
    except ValueError as error:
        log.append(error.args)
    return x * number, log
