"""The plug-in for stock PyTorch: ``torch.compile(..., backend="assay")``."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed

import assay

ROOT = Path(__file__).parents[2]
GROUP = "torch_dynamo_backends"


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 2))


def compiled(function: Any, **settings: Any) -> Any:
    return torch.compile(function, backend="assay", **settings)


def gradients(net: nn.Module, run: Any, x: torch.Tensor) -> list[torch.Tensor]:
    net.zero_grad()
    run(x).square().sum().backward()
    return [parameter.grad.clone() for parameter in net.parameters()]


def assert_close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-6, check_stride=True)


def test_it_is_in_stocks_list() -> None:
    assert "assay" in torch._dynamo.list_backends()


def test_a_model_is_trained() -> None:
    net, x = model(), torch.randn(3, 4)
    step = compiled(net, fullgraph=True)
    assert_close(step(x), net(x))
    assert_close(gradients(net, step, x), gradients(net, net, x))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    before = step(x).square().sum().item()
    for _ in range(3):
        gradients(net, step, x)
        optimizer.step()
    assert step(x).square().sum().item() < before
    assert_close(step(x), net(x))


@pytest.mark.parametrize(("limit", "warnings"), [(10, 0), (5, 1)])
def test_every_size_is_compiled_for_itself_up_to_the_limit(
    limit: int, warnings: int, capfd: pytest.CaptureFixture[str]
) -> None:
    net = model()
    step = compiled(net, dynamic=True)
    with assay.config.patch(cache_size_limit=2, accumulated_cache_size_limit=limit):
        for rows in range(2, 12):
            x = torch.randn(rows, 4)
            assert_close(step(x), net(x))
            assert_close(gradients(net, step, x), gradients(net, net, x))
    warning = "was compiled 5 times, which is its limit; further inputs run eagerly"
    assert capfd.readouterr().err.count(warning) == warnings


def test_sizes_that_a_graph_computes_with() -> None:
    def scaled(x: torch.Tensor) -> Any:
        return x * x.shape[0], x.shape[0] + 1, x.new_zeros(x.shape[0] * 2)

    run = compiled(scaled, dynamic=True)
    for rows in (2, 5, 9):
        x = torch.randn(rows, 3)
        assert_close(run(x), scaled(x))


def test_programs_beyond_plain_operators() -> None:
    table = torch.arange(6.0).view(2, 3)

    def mutates(x: torch.Tensor) -> Any:
        x.add_(1)
        return x * table, x.t()

    def in_regions(x: torch.Tensor) -> Any:
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return y + 1, x @ x.t()

    def breaks(x: torch.Tensor) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y.relu() if y.sum() > 0 else -y

    def maps(x: torch.Tensor) -> Any:
        return torch.func.vmap(lambda row: row.sin().sum())(x)

    for program in (mutates, in_regions, breaks, maps):
        eager, own = torch.randn(2, 3), None
        own = eager.clone()
        assert_close(compiled(program)(own), program(eager))
        assert_close(own, eager)


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 3


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: Tripled.apply(x) + 1, "custom autograd function"),
        (lambda x: (x * 1j).abs(), "complex tensor"),
        (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), "reads the value"),
    ],
    ids=["autograd.Function", "complex", "cond"],
)
def test_what_cannot_be_traced_runs_eagerly_with_a_warning(
    program: Any, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    x = torch.randn(3, 2, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    run = compiled(program)
    for _ in range(2):
        found, expected = run(x), program(y)
        assert_close(found, expected)
        assert_close(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), y))
    warnings = capfd.readouterr().err
    assert warnings.count("running 'GraphModule' eagerly") == 1
    assert reason in warnings


def test_options_are_the_backends() -> None:
    net, x = model(), torch.randn(3, 4)
    step = compiled(net, options={"lazy_backward": True})
    assert_close(gradients(net, step, x), gradients(net, net, x))
    with pytest.raises(BackendCompilerFailed, match="backend='assay' raised") as raised:
        compiled(net, options={"lazy_backwards": True})(x)
    assert "did you mean lazy_backward?" in str(raised.value)


def test_a_backend_that_fails_fails_as_stocks_do() -> None:
    net, x = model(), torch.randn(3, 4)
    with assay.config.patch(inject_fault="gelu:compile_error"):
        with pytest.raises(BackendCompilerFailed, match="injected compile error"):
            compiled(net)(x)
        with torch._dynamo.config.patch(suppress_errors=True):
            assert_close(compiled(net)(x), net(x))


def test_exceptions_of_eager_stay_what_they_are() -> None:
    def lookup(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(index, table)

    run = compiled(lookup)
    table, good, bad = torch.randn(5, 2), torch.tensor([1, 2]), torch.tensor([1, 9])
    assert_close(run(table, good), lookup(table, good))
    for function in (lookup, run):
        with pytest.raises(IndexError, match="index out of range in self"):
            function(table, bad)


def test_the_entry_point_is_the_backend(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][GROUP]
    assert importlib.metadata.EntryPoint("assay", points["assay"], GROUP).load() is not None
    # As pip leaves it, in a process that does not import the package itself.
    information = tmp_path / "assay-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: assay\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text(f"[{GROUP}]\nassay = {points['assay']}\n")
    program = (
        "import torch\n"
        "run = torch.compile(lambda x: x.relu() + 1, backend='assay')\n"
        "assert torch.equal(run(torch.ones(3)), torch.full((3,), 2.0))\n"
        "import sys; print('assay' in sys.modules)\n"
    )
    done = run_python(
        program, tmp_path, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    )
    assert done.stdout == "True\n", done.stderr


FAILING = """
import torch, assay
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
torch.compile(net, backend="assay")(torch.randn(3, 4)).sum().backward()
"""


def run_python(program: str, directory: Path, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("after", "level", "fault"),
    [("dynamo", "2", "gelu:runtime_error"), ("aot", "4", "gelu:accuracy")],
)
def test_failures_are_written_and_reduced(
    tmp_path: Path, after: str, level: str, fault: str
) -> None:
    done = run_python(
        FAILING,
        tmp_path,
        TORCHDYNAMO_REPRO_AFTER=after,
        TORCHDYNAMO_REPRO_LEVEL=level,
        ASSAY_INJECT_FAULT=fault,
    )
    assert done.returncode != 0
    assert "minifier_launcher.py" in done.stderr
    repro = assay.load(tmp_path / "repro.py")
    assert repro.stage == f"after_{after}"
    if after == "dynamo":
        assert "gelu" in repro.code
        assert len(repro) == 3  # its input, the call, the output
