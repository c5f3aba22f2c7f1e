"""Programs that enter and leave autocast regions, compiled against eager, forward and backward."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import assay

BACKENDS = sorted(name for name in assay.list_backends() if name.startswith("aot"))
BACKENDS = [name for name in BACKENDS if "TESTING_ONLY" not in name]


class Layers(nn.Module):
    """Calls of operators, some in regions; ``plan`` is a list of names and of (region, plan)."""

    def __init__(self, plan: list[Any]) -> None:
        super().__init__()
        self.plan = plan
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)

    def step(self, name: str, x: Tensor) -> Tensor:
        calls: dict[str, Callable[[Tensor], Tensor]] = {
            "first": self.first,
            "second": self.second,
            "matmul": lambda x: x @ self.first.weight,
            "product": lambda x: x.mm(x.t()).mm(x),
            "softmax": lambda x: F.softmax(x, -1),
            "norm": lambda x: self.norm(x.float()),
            "relu": lambda x: torch.relu(x),
            "widen": lambda x: x.float(),
        }
        return calls[name](x)

    def run(self, plan: list[Any], x: Tensor) -> Tensor:
        for entry in plan:
            if isinstance(entry, str):
                x = self.step(entry, x)
                continue
            region, inner = entry
            with region_of(region):
                if region.get("enabled") is False:
                    x = x.float()
                x = self.run(inner, x)
        return x.float() if x.dtype != torch.float32 and plan is not self.plan else x

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self.plan, x)


def region_of(options: dict[str, Any]) -> Any:
    if options.get("no_grad"):
        return torch.no_grad()
    return torch.autocast("cpu", **options)


def random_plan(choose: random.Random, depth: int = 0) -> list[Any]:
    plan: list[Any] = []
    for _ in range(choose.randint(2, 4)):
        if depth < 3 and choose.random() < 0.5:
            region: dict[str, Any] = choose.choice(
                [
                    {"enabled": False},
                    {"dtype": torch.bfloat16},
                    {"dtype": torch.float16},
                    {"dtype": torch.bfloat16, "cache_enabled": False},
                    {"no_grad": True},
                ]
            )
            plan.append((region, random_plan(choose, depth + 1)))
        names = ["first", "second", "matmul", "product", "softmax", "norm", "relu"]
        plan.append("widen")
        plan.append(choose.choice(names))
    return plan


@contextlib.contextmanager
def outside(options: dict[str, Any] | None) -> Iterator[None]:
    if options is None:
        yield
        return
    with torch.autocast("cpu", **options):
        yield


def trained(plan: list[Any], backend: str | None, outer: dict[str, Any] | None) -> Any:
    """Result and gradients of two steps, or the type of the exception."""
    torch.manual_seed(5)
    model = Layers(plan)
    x = torch.randn(4, 6, requires_grad=True)
    step: Callable[..., Any] = (
        model if backend is None else assay.aot.compile(model, backend=backend)
    )
    found = []
    for _ in range(2):
        with outside(outer):
            y = step(x)
        found.append(y.detach())
        if y.requires_grad:
            y.float().square().sum().backward()
    found += [None if p.grad is None else p.grad for p in [x, *model.parameters()]]
    return found


def check(plan: list[Any], backend: str, outer: dict[str, Any] | None = None) -> None:
    try:
        expected = trained(plan, None, outer)
    except RuntimeError as error:  # dtypes that eager refuses as well
        with pytest.raises(type(error)):
            trained(plan, backend, outer)
        return
    found = trained(plan, backend, outer)
    for left, right in zip(found, expected, strict=True):
        assert (left is None) == (right is None), f"a gradient is missing for {plan}"
        if left is None:
            continue
        # Others fuse casts away and round elsewhere: several times 2**-8 in a chain of calls.
        scale = 0 if backend == "aot_eager" else float(right.nan_to_num().abs().max()) + 1
        torch.testing.assert_close(left, right, equal_nan=True, rtol=0, atol=0.05 * scale)


OFF = {"enabled": False}
LOW = {"dtype": torch.bfloat16}


@pytest.mark.parametrize("backend", BACKENDS)
def test_disabled_inside_of_enabled(backend: str) -> None:
    check([(LOW, ["first", (OFF, ["first", "softmax"]), "first"])], backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_disabled_in_a_program_called_under_autocast(backend: str) -> None:
    check(["first", (OFF, ["first", "softmax"]), "first"], backend, LOW)


@pytest.mark.parametrize("backend", BACKENDS)
def test_enabled_in_disabled_in_enabled(backend: str) -> None:
    check([(LOW, ["matmul", (OFF, ["matmul", (LOW, ["matmul"])]), "matmul"])], backend)


def test_one_region_after_another_casts_weights_again() -> None:
    check([(LOW, ["first", "first"]), (LOW, ["first"])], "aot_eager")
    check([(OFF, [(LOW, ["first"]), (LOW, ["first"])])], "aot_eager")


def test_without_gradient_inside() -> None:
    check([(LOW, [({"no_grad": True}, ["first"]), "first", "second"])], "aot_eager")


@pytest.mark.parametrize("outer", [None, LOW, OFF, {"dtype": torch.float16}], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_nesting(backend: str, outer: dict[str, Any] | None) -> None:
    choose = random.Random(f"{outer}")
    for _ in range(12):
        check(random_plan(choose), backend, outer)


def test_backward_inside_of_the_region() -> None:
    def grads(step: Callable[..., Any]) -> Tensor:
        torch.manual_seed(5)
        x = torch.randn(4, 6, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            step(x).float().sum().backward()
        assert x.grad is not None
        return x.grad

    model = Layers(["first", (OFF, ["first"]), "first"])
    found = grads(assay.aot.compile(model, backend="aot_eager"))
    torch.testing.assert_close(found, grads(model), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("nested", [False, True])
def test_regions_are_nested_in_the_graph_as_in_the_program(nested: bool) -> None:
    plan = [(LOW, ["first", (OFF, ["first"]), "first"])] if nested else [(LOW, ["first"])] * 2
    captured = assay.aot.trace(Layers(plan), (torch.randn(4, 6),)).captured
    order = [
        line.split("(")[0].split("_")[-2] for line in captured.splitlines() if "mode._e" in line
    ]
    expected = ["enter", "enter", "exit", "exit"] if nested else ["enter", "exit"] * 2
    assert order == expected
