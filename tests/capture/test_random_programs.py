"""Random programs, eagerly and compiled, through the same harness as the written ones."""

from __future__ import annotations

import linecache
import sys
import types
from contextlib import nullcontext
from pathlib import Path

import pytest

from capture import engine
from capture.harness import Difference, Program, check
from capture.random_programs import Generated, generate
from capture.shrink import shrink

QUICK = range(60)
SLOW = range(60, 2060)
SHRINKING_SECONDS = 60.0


def check_source(source: str, backward: bool, backend: str, path: Path) -> None:
    """From a file, so that tracebacks have lines."""
    path.write_text(source)
    linecache.checkcache(str(path))
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
        check(Program(module.world, tolerance=True, backward=backward), backend)
    finally:
        del sys.modules[path.stem]


def check_seed(seed: int, directory: Path) -> None:
    backend = engine.BACKENDS[seed % len(engine.BACKENDS)]
    generated = generate(seed)
    path = directory / f"random_program_{seed}.py"
    # Every other pair of seeds, so that each backend gets its half.
    with engine.paranoid() if seed // 2 % 2 else nullcontext():
        try:
            check_source(generated.source, generated.backward, backend, path)
        except Difference as error:
            smaller, found = shrunk(generated, error, backend, path)
            raise AssertionError(f"seed {seed}, backend {backend}:\n{smaller}\n{found}") from error


def shrunk(generated: Generated, first: Difference, backend: str, path: Path) -> tuple[str, str]:
    """A smaller program in which the same kind of thing differs, and what differs in it."""
    found = first

    def fails(source: str) -> bool:
        nonlocal found
        try:
            check_source(source, generated.backward, backend, path)
        except Difference as error:
            if error.where != first.where:
                return False
            found = error
            return True
        except (Exception, pytest.fail.Exception):
            return False  # a deletion broke the world itself, or its loop no longer ends
        return False

    return shrink(generated.source, fails, SHRINKING_SECONDS), str(found)


@pytest.mark.parametrize("seed", QUICK)
def test_quick(seed: int, tmp_path: Path) -> None:
    check_seed(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_slow(seed: int, tmp_path: Path) -> None:
    check_seed(seed, tmp_path)


def test_generation_depends_on_the_seed_alone() -> None:
    assert generate(3) == generate(3)
    assert generate(3).source != generate(4).source


def test_shrinking_keeps_the_failure() -> None:
    source = "def f(x):\n    a = 1\n    if x:\n        b = 2\n    bad = 3\n    return a\n"
    assert shrink(source, lambda text: "bad" in text, 10.0) == "def f(x):\n    bad = 3\n"
