"""What is raised, handled, and shown of it."""

# Half of this is wrong on purpose.
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import sys
from typing import Any

from capture.programs import outcome, program


@program
def traceback_lines() -> Any:
    def fails(x: int) -> float:
        y = x - 1
        return (
            1 / y  # this line
        )

    def calls() -> float:
        return fails(1)

    return outcome(calls)


@program
def reraise_keeps_the_line() -> Any:
    def inner() -> None:
        try:
            raise ValueError("first")
        except ValueError:
            [].append(1)
            raise

    def outer() -> None:
        try:
            inner()
        finally:
            [].append(1)

    return outcome(outer)


@program
def causes_and_contexts() -> Any:
    def chained() -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("chained") from error

    def during() -> None:
        try:
            {}["missing"]
        except KeyError:
            raise ValueError("during")

    def suppressed() -> None:
        try:
            {}["missing"]
        except KeyError:
            raise ValueError("suppressed") from None

    def bad_cause() -> None:
        raise ValueError from 3

    def class_cause() -> None:
        raise ValueError from KeyError

    return [outcome(f) for f in (chained, during, suppressed, bad_cause, class_cause)]


@program
def bad_raises() -> Any:
    def nothing_active() -> None:
        raise

    def not_an_exception() -> None:
        raise 3

    class Strange(Exception):
        def __new__(cls) -> Any:
            return 3

    def makes_no_exception() -> None:
        raise Strange

    def catches_no_exception() -> None:
        try:
            raise ValueError
        except 3:
            pass

    def catches_tuple() -> str:
        try:
            raise ValueError
        except (KeyError, ValueError):
            return "caught"

    functions = (nothing_active, not_an_exception, makes_no_exception, catches_no_exception)
    return [outcome(f) for f in functions] + [catches_tuple()]


@program
def finally_and_return() -> Any:
    events: list[Any] = []

    def returns(kind: int) -> Any:
        for i in range(5):
            try:
                if kind == 0:
                    return "try"
                if kind == 1:
                    raise ValueError(i)
                if kind == 2 and i < 3:
                    continue
                if kind == 2:
                    break
            except ValueError as error:
                events.append(str(error))
                return "except"
            finally:
                events.append((kind, i))
                if kind == 3:
                    return "finally"
        else:
            return "else"
        return "end"

    return [returns(kind) for kind in range(5)], events


@program
def handled_exception_is_visible() -> Any:
    seen = []

    def current() -> Any:
        return sys.exc_info()[0]

    try:
        raise ValueError
    except ValueError:
        seen.append(current())
        try:
            raise KeyError
        except KeyError:
            seen.append(current())
        seen.append(current())
    seen.append(current())
    return seen


@program
def exception_name_is_deleted() -> Any:
    def function() -> Any:
        try:
            raise ValueError("x")
        except ValueError as error:
            pass
        return error

    return outcome(function)


@program
def except_star() -> Any:
    events = []

    def function(errors: list[Exception]) -> str:
        try:
            raise ExceptionGroup("group", errors)
        except* ValueError as group:
            events.append([str(e) for e in group.exceptions])
        except* (KeyError, OSError) as group:
            events.append([repr(e) for e in group.exceptions])
        return "end"

    return [
        outcome(function, [ValueError("a"), KeyError("b"), ValueError("c")]),
        outcome(function, [ValueError("a"), TypeError("d")]),
    ], events


@program
def unbound_variables() -> Any:
    def local() -> Any:
        if not local:
            x = 1
        return x

    def deleted() -> Any:
        x = 1
        del x
        return x

    def delete_twice() -> None:
        x = 1
        del x
        del x

    def free() -> Any:
        def inner() -> Any:
            return x

        if not free:
            x = 1
        return inner()

    def cell() -> Any:
        def inner() -> Any:
            return x

        if not inner:
            x = 1
        return x

    def delete_cell() -> None:
        def inner() -> Any:
            return x

        x = 1
        del x
        del x

    def global_() -> Any:
        return no_such_name

    def delete_global() -> None:
        global no_such_name
        del no_such_name

    functions = (local, deleted, delete_twice, free, cell, delete_cell, global_, delete_global)
    return [outcome(f) for f in functions]


@program
def name_errors_suggest() -> Any:
    def misspelled() -> Any:
        receiver = 1
        return reciever + receiver

    try:
        misspelled()
    except NameError as error:
        return error.name, outcome(misspelled)


@program
def many_exception_handlers() -> Any:
    lines = ["def function(which):", "    seen = []"]
    for i in range(200):
        lines += ["    try:", f"        if which == {i}: raise ValueError({i})"]
        lines += ["    except ValueError as error:", f"        seen.append(({i}, error.args))"]
    lines += ["    if which < 0: raise KeyError", "    return seen"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    return [outcome(namespace["function"], i) for i in (0, 1, 57, 100, 198, 199, 200, -1)]
