"""The harness itself: a compiler that gets something wrong is found out."""

from __future__ import annotations

import copy
import random
import sys

import pytest
import torch

from capture import engine
from capture.harness import Difference, Program, call, check, data
from capture.random_programs import generate


def differ(world, wrong, monkeypatch):
    """What the harness says when `wrong` stands for the compiler."""
    monkeypatch.setattr(engine, "compile_with", lambda backend: wrong)
    monkeypatch.setattr(engine, "reset", lambda: None)
    with pytest.raises(Difference) as error:
        check(Program(world), "eager")
    return error.value


def simple():
    def f(x, values):
        values.append(1)
        return x * 2

    yield f
    for _ in range(3):
        yield call(data(3), [])


def agree(world, monkeypatch):
    monkeypatch.setattr(engine, "compile_with", lambda backend: lambda f: lambda *args: f(*args))
    monkeypatch.setattr(engine, "reset", lambda: None)
    check(Program(world), "eager")


def test_right_compiler_passes(monkeypatch):
    agree(simple, monkeypatch)


@pytest.mark.parametrize(
    ("where", "wrong"),
    [
        ("result", lambda x, values: values.append(1) or x * 3),
        ("result", lambda x, values: values.append(1) or (x * 2).double()),
        ("result", lambda x, values: values.append(1) or (x * 2).requires_grad_()),
        ("result", lambda x, values: values.append(1) or x.mul_(2)),
        ("result", lambda x, values: values.append(1) or torch.stack([x * 2, x], dim=1)[:, 0]),
        ("args", lambda x, values: x * 2),
        ("args", lambda x, values: values.append(True) or x * 2),
        ("end", lambda x, values: values[5]),
        ("printed", lambda x, values: values.append(1) or print("text") or x * 2),
        ("random", lambda x, values: values.append(1) or torch.rand(1) * 0 + x * 2),
        ("random", lambda x, values: values.append(1) or random.random() * 0 + x * 2),
        ("grad", lambda x, values: (values.append(1), torch.set_grad_enabled(False), x * 2)[-1]),
        ("recursion", lambda x, values: values.append(1) or sys.setrecursionlimit(1001) or x * 2),
    ],
)
def test_wrong_call_is_found(where, wrong, monkeypatch):
    limit = sys.getrecursionlimit()
    try:
        error = differ(simple, lambda f: wrong, monkeypatch)
    finally:
        sys.setrecursionlimit(limit)
    assert error.where == where or (where == "result" and error.where == "args"), str(error)


def test_stale_result_is_found(monkeypatch):
    def compile(f):
        cache = []
        return lambda *args: cache[0] if cache else cache.append(f(*args)) or cache[0]

    assert differ(simple, compile, monkeypatch).where == "args"


def test_stale_scalar_is_found(monkeypatch):
    def world():
        scale = 2

        def f(x):
            return x * scale

        yield f
        yield call(data(2))
        scale = 3
        yield call(data(2))
        yield call(data(2))

    error = differ(world, lambda f: lambda x: x * 2, monkeypatch)
    assert "after call 2" in str(error) and error.where == "result"


def test_lost_alias_is_found(monkeypatch):
    def world():
        def f(x):
            return x[1:], x

        yield f
        for _ in range(3):
            yield call(data(3))

    error = differ(world, lambda f: lambda x: (x[1:].clone(), x), monkeypatch)
    assert "in the storage of" in str(error)
    error = differ(world, lambda f: lambda x: (x[1:], x[:]), monkeypatch)
    assert "the same object as" in str(error)


def test_alias_between_calls_is_found(monkeypatch):
    def world():
        def f(x):
            return [x.shape[0]]

        yield f
        for _ in range(3):
            yield call(data(3))

    constant = [3]
    error = differ(world, lambda f: lambda x: constant, monkeypatch)
    assert "call 2: result" in str(error) and "the same object as call 1: result" in str(error)


def test_traceback_is_compared(monkeypatch):
    def world():
        def f(x):
            return inner(x)

        def inner(x):
            raise ValueError("no")

        def other(x):
            return inner(x)

        yield f
        for _ in range(3):
            yield call(other)

    error = differ(world, lambda f: lambda other: other(1), monkeypatch)
    assert error.where == "raised" and "__traceback__" in str(error)


def test_cause_and_attributes_of_exceptions_are_compared(monkeypatch):
    def world():
        def f(x):
            try:
                return {}[x]
            except KeyError as error:
                raise RuntimeError("outer") from error

        yield f
        for _ in range(3):
            yield call(1)

    def wrong(x):
        raise RuntimeError("outer")

    assert "__cause__" in str(differ(world, lambda f: wrong, monkeypatch))


def test_globals_and_attributes_are_compared(monkeypatch):
    def world():
        global COUNT
        COUNT = 0

        class Box:
            n = 0

        box = Box()

        def f(x):
            global COUNT
            COUNT += 1
            box.n += 1
            return x

        yield f
        for _ in range(3):
            yield call(data(2))

    def forgets(name):
        def compile(f):
            def compiled(x):
                result = f(x)
                if name == "global":
                    f.__globals__["COUNT"] -= 1
                else:
                    f.__closure__[0].cell_contents.n -= 1
                return result

            return compiled

        return compile

    assert differ(world, forgets("global"), monkeypatch).where == "global"
    assert ".n" in str(differ(world, forgets("attribute"), monkeypatch))
    assert "COUNT" not in globals()  # every run has globals of its own


def test_gradients_are_compared(monkeypatch):
    def world():
        weight = data(2, grad=True)

        def f(x):
            return x * weight

        yield f
        for _ in range(3):
            yield call(data(2))

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    assert ".grad" in str(differ(world, lambda f: lambda x: Tripled.apply(f(x)), monkeypatch))


def test_small_things_are_told_apart(monkeypatch):
    def world(value):
        def make():
            yield lambda: copy.deepcopy(value)
            for _ in range(3):
                yield call()

        return make

    pairs = [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], (1,)),
        ({1, 2}, {1, 3}),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (range(3), range(4)),
        (iter([1, 2]), iter([1])),
        (torch.float32, torch.float64),
        ("a", b"a"),
        (None, False),
    ]
    for right, wrong in pairs:
        differ(world(right), lambda f: lambda: copy.deepcopy(wrong), monkeypatch)


def test_nan_equals_nan(monkeypatch):
    def world():
        yield lambda: (float("nan"), torch.tensor(float("nan")), [float("nan")])
        for _ in range(3):
            yield call()

    agree(world, monkeypatch)


def test_too_few_calls_are_refused():
    def world():
        yield lambda x: x
        yield call(1)

    with pytest.raises(AssertionError, match="at least three calls"):
        check(Program(world), "eager")


def test_generated_programs_are_valid():
    for seed in range(0, 2060, 20):
        compile(generate(seed).source, f"<seed {seed}>", "exec")
