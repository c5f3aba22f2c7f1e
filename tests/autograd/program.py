"""A list of small programs: each a named function with a recipe for its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograd.compare import Make


@dataclass(frozen=True)
class Program:
    """``build`` gives the function or module to compile, ``make`` fresh inputs for a call."""

    build: Callable[[], Callable[..., Any]]
    make: Make
    tolerance: float = 0.0


Programs = dict[str, Program]


def program(
    programs: Programs, make: Make, tolerance: float = 0.0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function in ``programs``."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in programs
        programs[function.__name__] = Program(lambda: function, make, tolerance)
        return function

    return enter


def module(
    programs: Programs, make: Make, tolerance: float = 0.0
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Enters the module that the decorated function builds in ``programs``."""

    def enter(build: Callable[[], Any]) -> Callable[[], Any]:
        assert build.__name__ not in programs
        programs[build.__name__] = Program(build, make, tolerance)
        return build

    return enter
