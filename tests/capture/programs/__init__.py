"""Small programs about what a frame can do; test_loop.py runs each in CPython and in our loop.

A program is a function that returns what it saw, so that two runs can be compared: values,
exceptions, lines.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from typing import Any

Program = Callable[[], Any]
programs: dict[str, Program] = {}


def program(function: Program) -> Program:
    programs[function.__name__] = function
    return function


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or its exception with everything that a user sees of it."""
    try:
        return function(*args)
    except BaseException as error:
        return "".join(traceback.format_exception(error))


for _module in ("calls", "contexts", "exceptions", "frames", "values"):
    importlib.import_module(f"capture.programs.{_module}")
