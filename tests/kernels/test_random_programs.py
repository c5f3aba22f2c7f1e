"""Random programs, compiled to kernels, against eager: forward and backward.

A failure prints a reduced program. `python -m pytest tests/kernels -k 'random and [17]'` runs the
program of a seed again.
"""

from __future__ import annotations

import pytest

from kernels.against_eager import Program
from kernels.random_programs import RandomProgram, generate, reduce

QUICK = range(60)
SLOW = range(1000, 2000)


def problem(program: RandomProgram) -> str:
    try:
        made = Program(program.run, program.make, reference=program.run_in_float64)
        return made.difference(gradient_strides=False, idle_strides=False)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check(seed: int) -> None:
    program = generate(seed)
    text = problem(program)
    if text:
        reduced = reduce(program, lambda candidate: bool(problem(candidate)))
        pytest.fail(f"{text}\n\nreduced: {problem(reduced)}\n{reduced.text}", pytrace=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", QUICK)
def test_random_program(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SLOW)
def test_more_random_programs(seed: int) -> None:
    check(seed)


def test_programs_are_those_of_their_seeds() -> None:
    assert generate(5).text == generate(5).text
    assert generate(5).text != generate(6).text


def test_reducing_keeps_what_fails() -> None:
    program = next(p for p in map(generate, range(100)) if "torch.sin(" in p.text)
    reduced = reduce(program, lambda candidate: "torch.sin(" in candidate.text)
    assert len(reduced.lines) == 1
    assert "torch.sin(" in reduced.lines[0].call
    assert reduced.run(*reduced.make())
