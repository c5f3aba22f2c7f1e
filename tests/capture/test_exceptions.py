"""Exceptions raised, caught, chained, and what they leave behind.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import contextlib
import unittest

import pytest
import torch

import assay
from capture.harness import call, data, program


@program(call(data(2), 1), call(data(2), 1), call(data(2), 5), call(data(2), 5))
def test_raised_to_the_user(x, n):
    y = x * 2
    if n > 3:
        raise ValueError("too large", n)
    return y


@program(call(data(2), 1), call(data(2), 0), call(data(2), 1), call(data(2), 0))
def test_caught_division(x, n):
    try:
        y = x * (1 // n)
    except ZeroDivisionError:
        y = x - 1
    return y


@program(call(data(2), "a"), call(data(2), "b"), call(data(2), "c"), call(data(2), "a"))
def test_several_handlers(x, key):
    table = {"a": 1, "b": [1]}
    try:
        y = x * (table[key] + 1)
    except KeyError as error:
        return x, error.args
    except (TypeError, IndexError):
        y = x + 1
    else:
        y = y + 100
    return y


@program
def test_finally_always_runs():
    log = []

    def f(x, n):
        try:
            log.append("try")
            if n == 1:
                return x + 1
            if n == 2:
                raise RuntimeError("two")
            y = x * 2
        except RuntimeError:
            log.append("except")
            raise
        else:
            log.append("else")
        finally:
            log.append("finally")
        return y

    yield f
    yield call(data(2), 0)
    yield call(data(2), 1)
    yield call(data(2), 2)
    yield call(data(2), 0)


@program(call(data(2), 0), call(data(2), 0), call(data(2), 1))
def test_return_in_finally_wins(x, n):
    try:
        if n:
            raise ValueError
        return x
    finally:
        return x * 10  # noqa: B012


@program(call(data(2), 4), call(data(2), 4), call(data(2), 6))
def test_try_in_loop_with_continue_and_break(x, n):
    seen = []
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 5:
                break
            x = x + 6 // (i - 2)
        except ZeroDivisionError:
            seen.append(i)
        finally:
            seen.append(-i)
    return x, seen


@program
def test_custom_exception():
    class TooDeep(Exception):
        def __init__(self, depth, where):
            super().__init__(f"depth {depth}")
            self.depth = depth
            self.where = where

    def dig(x, depth):
        if depth > 2:
            raise TooDeep(depth, x.shape)
        return dig(x + 1, depth + 1)

    def f(x, depth):
        try:
            return dig(x, depth)
        except TooDeep as error:
            if depth == 0:
                raise
            return x * error.depth, error.where, str(error)

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 0)
    yield call(data(2), 3)


@program(call(data(2), 0), call(data(2), 1), call(data(2), 0), call(data(2), 1))
def test_chained_cause(x, n):
    y = x + 1
    try:
        return y / (1 // n)
    except ZeroDivisionError as error:
        raise RuntimeError("no ratio") from error


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0))
def test_context_of_second_exception(x, n):
    y = x + 1
    try:
        return y * (1 // n)
    except ZeroDivisionError:
        return {}["missing"]


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0))
def test_raise_from_none(x, n):
    try:
        return x * (1 // n)
    except ZeroDivisionError:
        raise KeyError("hidden") from None


@program(call(data(2), 0), call(data(2), 0), call(data(2), 1), call(data(2), 2))
def test_raised_in_callee_at_depth_three(x, n):
    def first(v):
        return second(v) + 1

    def second(v):
        w = v * 2
        return third(w)

    def third(v):
        if n == 1:
            raise IndexError("deep")
        if n == 2:
            return v[100]
        return v

    return first(x)


@program(
    call(data(2), data(2)), call(data(2), data(2)), call(data(2), data(3)), call(data(2), data(2))
)
def test_torch_error_reaches_the_user(x, y):
    z = x * 2
    return z + y


@program(call(data(2, 3), data(3, 2)), call(data(2, 3), data(3, 2)), call(data(2, 3), data(2, 3)))
def test_torch_error_caught(x, y):
    try:
        return x @ y
    except RuntimeError as error:
        return x * y, str(error)[:20]


@program(call(data(4), 2), call(data(4), 2), call(data(4), 7))
def test_index_error_from_tensor(x, i):
    y = x.relu()
    return y[i]


@program(call(data(4), (2, 2)), call(data(4), (2, 2)), call(data(4), (3, 2)))
def test_invalid_view(x, shape):
    return (x + 1).view(shape)


@program(call(data(4)), call(data(4)), call(data(4, dtype=torch.int64)))
def test_unsupported_dtype(x):
    y = x * 1
    return y.mean()


@program(call(data(2), 1), call(data(2), 1), call(data(2), -1), call(data(2), 1))
def test_assertion_with_message(x, n):
    y = x + n
    assert n > 0, ("n must be positive", n)
    return y


@program(call(data(2)), call(data(2)), call(data(3)))
def test_assertion_on_shape(x):
    assert x.shape == (2,)
    return x * 2


@program(call(data(2), 3), call(data(2), 3), call(data(2), "3"))
def test_type_error_from_builtin(x, n):
    return x * 2, n + 1


@program(call(data(2), 3), call(data(2), 3), call(data(2), 4))
def test_name_error(x, n):
    if n == 4:
        return undefined_name  # noqa: F821
    return x * n


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_unpacking_error(x, n):
    a, b = range(n)
    return x * a + b


@program(call(data(2), 1), call(data(2), 1), call(data(2), 0))
def test_bare_reraise_in_helper(x, n):
    def again():
        raise

    try:
        return x * (1 // n)
    except ZeroDivisionError:
        again()


@program(call(data(2), 1), call(data(2), 0), call(data(2), 1))
def test_exception_variable_is_deleted(x, n):
    error = "before"
    try:
        x = x * (1 // n)
    except ZeroDivisionError as error:
        kept = error
        return x, type(kept).__name__
    return x, error


@program(call(data(2), 1), call(data(2), 0), call(data(2), 0))
def test_exception_returned_as_value(x, n):
    try:
        return x / (1 // n)
    except ZeroDivisionError as error:
        return error


@program(call(data(2), 0), call(data(2), 1), call(data(2), 2), call(data(2), 0))
def test_nested_try(x, n):
    log = []
    try:
        try:
            if n == 1:
                raise KeyError("inner")
            if n == 2:
                raise ValueError("outer")
            x = x + 1
        except KeyError:
            log.append("key")
            x = x * 2
        finally:
            log.append("inner finally")
    except ValueError:
        log.append("value")
        x = -x
    return x, log


@program(call(data(2), 0), call(data(2), 0), call(data(2), 1))
def test_exception_from_property_and_init(x, n):
    class Fussy:
        def __init__(self, k):
            if k:
                raise ValueError("init")
            self.k = k

        @property
        def value(self):
            raise AttributeError("no value")

    return x + Fussy(n).k, getattr(Fussy(0), "value", "default")


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), []))
def test_stop_iteration_is_caught(x, numbers):
    iterator = iter(numbers)
    try:
        first = next(iterator)
    except StopIteration:
        return x
    return x * first, next(iterator, None), next(iterator, "end")


@program(call(data(2), 0), call(data(2), 1), call(data(2), 2), call(data(2), 3))
def test_exception_groups(x, n):
    errors = [ValueError(1), TypeError(2), KeyError(3)][:n]
    try:
        if errors:
            raise ExceptionGroup("several", errors)
    except* ValueError as group:
        x = x + len(group.exceptions)
    except* TypeError:
        x = x * 2
    return x


@program(call(data(2), 0), call(data(2), 0), call(data(2), 1))
def test_notes_and_with_traceback(x, n):
    try:
        return x * (1 // (1 - n))
    except ZeroDivisionError as error:
        error.add_note(f"n was {n}")
        raise error.with_traceback(None)  # noqa: B904


@program(call(data(2), 1), call(data(2), 0), call(data(2), 1))
def test_suppress(x, n):
    result = [x]
    with contextlib.suppress(ZeroDivisionError):
        result.append(x * (1 // n))
        result.append("after")
    return result


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2), call(data(2), 3))
def test_handler_expression_is_evaluated_late(x, n):
    kinds = {1: ZeroDivisionError, 2: KeyError}
    try:
        if n != 1:
            raise KeyError(n)
    except kinds.get(n, ValueError):
        return x * n
    return x


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_raise_class_without_call(x, n):
    if n == 2:
        raise NotImplementedError
    return x


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_raise_something_else(x, n):
    if n == 2:
        raise "text"  # noqa: B016
    return x + n


@program(call(data(2), 1), call(data(2), 1), call(data(2), 2))
def test_system_exit_passes(x, n):
    try:
        if n == 2:
            raise SystemExit(3)
    except Exception:
        return x * 100
    return x


@program
def test_error_in_module_forward():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.linear(x)

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    yield call(data(2, 4))
    yield call(data(2, 3))


@program
def test_lookup_before_you_leap():
    cache = {}

    def f(x, key):
        try:
            return x * cache[key]
        except KeyError:
            cache[key] = len(cache) + 2
            return x

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(2), "b")
    yield call(data(2), "a")


@program(call(data(2), data(2)), call(data(2), data(3)), call(data(2), data(2)))
def test_effects_before_and_after_a_caught_torch_error(x, y):
    log = ["start"]
    x.add_(1)
    try:
        log.append("try")
        z = x + y
        log.append("sum")
    except RuntimeError:
        log.append("failed")
        z = x
    finally:
        x.mul_(2)
    return z, log


@program
def test_a_graph_raises_before_it_mutates_its_input():
    """Nothing was mutated, so the frame is executed again for eager's traceback."""

    def f(x, index):
        picked = torch.index_select(x, 0, index)
        x.mul_(2)
        return picked + 1

    yield f
    yield call(data(3), torch.tensor([0, 1]))
    yield call(data(3), torch.tensor([0, 1]))
    yield call(data(3), torch.tensor([0, 7]))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_a_graph_raises_after_it_has_mutated_its_input(backend):
    def f(x, index):
        x.mul_(2)
        return torch.index_select(x, 0, index) + 1

    compiled = assay.compile(f, backend=backend)
    for _ in range(2):
        compiled(torch.ones(3), torch.tensor([0, 1]))
    x = torch.ones(3)
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(x, torch.tensor([0, 7]))
    assert x.tolist() == [2, 2, 2]


@program
def test_assertions_of_unittest():
    case = unittest.TestCase()

    def checks(x):
        with case.assertRaises(KeyError) as caught:
            {}["missing"]
        case.assertRaises(ValueError, int, "x")
        case.assertEqual(caught.exception.args, ("missing",))
        return x + 1

    yield checks
    for _ in range(3):
        yield call(data(3))


def test_assertions_of_unittest_are_no_break() -> None:
    case = unittest.TestCase()

    def checks(x: torch.Tensor) -> torch.Tensor:
        with case.assertRaises(ValueError):
            int("x")
        return x + 1

    compiled = assay.compile(checks, backend="eager", fullgraph=True)
    for _ in range(2):
        assert compiled(torch.zeros(1)).item() == 1
