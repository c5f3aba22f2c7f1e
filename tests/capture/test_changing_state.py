"""Random changes of everything a program reads, between its calls: no answer is ever stale."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import assay

STEPS = 40
WORLDS = ("eager_world", "compiled_world")


def load_world(name: str) -> types.ModuleType:
    specification = importlib.util.spec_from_file_location(
        name, Path(__file__).with_name("stateful.py")
    )
    assert specification is not None and specification.loader is not None
    world = importlib.util.module_from_spec(specification)
    sys.modules[name] = world  # dataclasses look their module up
    specification.loader.exec_module(world)
    return world


def run(function: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
    torch.manual_seed(0)
    try:
        return function(x, y)
    except Exception as error:
        return type(error), str(error)


def check_seed(seed: int, backend: str) -> None:
    chosen = random.Random(seed)
    eager, compiled = map(load_world, WORLDS)
    compiled_program = assay.compile(compiled.program, backend=backend)
    history: list[int] = []
    for step in range(STEPS):
        for _ in range(chosen.choice([0, 1, 2])):
            history.append(chosen.randrange(len(eager.changes)))
            change_seed = chosen.random()
            for world in (eager, compiled):
                torch.manual_seed(step)
                world.changes[history[-1]](random.Random(change_seed))
        x = torch.randn(4, generator=torch.Generator().manual_seed(seed * STEPS + step))
        y = chosen.choice([x, x + 1])
        with torch.set_grad_enabled(chosen.random() < 0.7):
            expected, found = run(eager.program, x, y), run(compiled_program, x, y)
        place = f"seed {seed}, step {step}, after changes {history}"
        if isinstance(expected, torch.Tensor):
            assert isinstance(found, torch.Tensor), (place, found)
            torch.testing.assert_close(found, expected, msg=place)
            assert found.requires_grad == expected.requires_grad, place
        else:
            assert found == expected, place
        assert compiled.log == eager.log, place
        for name, value in eager.net.state_dict().items():
            torch.testing.assert_close(
                compiled.net.state_dict()[name], value, msg=f"{place}: {name}"
            )


@pytest.fixture(autouse=True)
def many_segments():
    with assay.config.patch(cache_size_limit=1000):
        yield
    assay.reset()
    for name in WORLDS:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("seed", range(4))
def test_changes(seed: int, backend: str) -> None:
    check_seed(seed, backend)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4, 84, 20))
def test_many_changes(first: int) -> None:
    for seed in range(first, first + 20):
        check_seed(seed, "eager" if seed % 2 else "aot_eager")
