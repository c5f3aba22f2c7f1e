"""Functions made in a captured function, and what functools makes of functions."""

from __future__ import annotations

import functools

import torch

import assay
from capture.harness import call, data, program


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_wraps_in_the_function_itself(x):
    def double(t):
        """Doubles."""
        return t * 2

    @functools.wraps(double)
    def wrapper(*args):
        return double(*args)

    return wrapper(x), wrapper.__name__, wrapper.__doc__, wrapper


@program(*[call(data(2)) for _ in range(3)])
def test_a_name_that_is_set_before_a_break_in_a_callee(x):
    """The recording is rolled back to where the function had its first name."""

    def made(t):
        return t * 2

    def rename(name):
        made.__name__ = name
        assay.graph_break()

    rename("renamed")
    return made(x), made.__name__


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_functions_that_hold_themselves(x):
    def descend(n):
        return x if n == 0 else descend(n - 1) * 2

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    return descend(3), descend, even, even(4)


def test_a_recursive_function_is_one_object() -> None:
    def f(x):
        def itself():
            return itself

        return x + 1, itself

    compiled = assay.compile(f, backend="eager", fullgraph=True)
    for _ in range(3):
        _, made = compiled(torch.ones(1))
        assert made() is made


@functools.lru_cache
def cached(x, factor=2):
    """Scales."""
    return x * factor


@functools.lru_cache
def table(length):
    return torch.arange(length)


class Scaled:
    def __init__(self):
        self.total = 4

    @functools.lru_cache  # noqa: B019
    def add(self, number):
        self.total += number


def test_cached_functions_of_objects_under_fullgraph() -> None:
    def decorate(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)

        return inner

    def f(x):
        scaled = Scaled()
        scaled.add(3)
        return decorate(cached)(x) + scaled.total + table(2), decorate(cached).__name__

    compiled = assay.compile(f, backend="eager", fullgraph=True)
    for value in (1.0, 2.0, 3.0):
        x = torch.full((2,), value)
        assert torch.equal(compiled(x)[0], x * 2 + 7 + torch.arange(2))
    table.cache_clear()
    assert torch.equal(compiled(x)[0], x * 2 + 7 + torch.arange(2))


partial = functools.partial(lambda a, b: a + b, a=3)


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_the_identity_of_a_partial(x):
    known = {id(partial): 5}
    return partial(b=x) * known[id(partial)]
