"""The passes of a compilation: switched off, and bisected by the number of rewrites."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import assay

# Two calls that nobody uses, two that are equal to others, one view that changes nothing: that many
# rewrites before the graph is split.
GRAPH = """\
import torch

class Repro(torch.nn.Module):
    def forward(self, x: "f32[4, 4]"):
        unused = torch.sin(x)
        also_unused = torch.cos(unused)
        a = torch.exp(x)
        b = torch.exp(x)
        c = a.view(4, 4)
        d = torch.nn.functional.gelu(c) * b
        return (d,)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "repro.py"
    path.write_text(GRAPH)
    return path


def rewrites(file: Path, tmp_path: Path, backend: str, **environment: str) -> dict[str, int]:
    """How often each pass applied while the file was compiled and run."""
    trace = tmp_path / "trace.json"
    result = assay(
        "run", file, "--backend", backend, env={"ASSAY_TRACE": str(trace), **environment}
    )
    assert result.code == 0, result.err
    found: dict[str, int] = {}
    for event in json.loads(trace.read_text())["traceEvents"]:
        applied = event.get("args", {}).get("applications")
        if applied is not None:
            found[event["name"]] = found.get(event["name"], 0) + int(applied)
    return found


OPTIONAL = ("dead_code", "common_subexpressions", "noops", "decompositions")


def count(found: dict[str, int]) -> int:
    return sum(found.get(name, 0) for name in OPTIONAL)


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_the_limit_stops_at_the_nth_rewrite(file: Path, tmp_path: Path, backend: str) -> None:
    total = count(rewrites(file, tmp_path, backend))
    assert total >= 4
    for limit in range(total + 2):
        found = rewrites(file, tmp_path, backend, ASSAY_PASS_LIMIT=str(limit))
        assert count(found) == min(limit, total)


def test_the_big_steps_go_through_the_same_wrapper(file: Path, tmp_path: Path) -> None:
    assert rewrites(file, tmp_path, "pre_dispatch_eager")["lower"] == 1
    assert rewrites(file, tmp_path, "aot_eager_decomp_partition")["decompositions"] >= 1


def test_a_pass_is_switched_off(file: Path, tmp_path: Path) -> None:
    everything = rewrites(file, tmp_path, "aot_eager_decomp_partition")
    found = rewrites(
        file,
        tmp_path,
        "aot_eager_decomp_partition",
        ASSAY_DISABLE_PASSES="decompositions,common_subexpressions",
    )
    assert everything["decompositions"] > 0
    assert everything["common_subexpressions"] > 0
    assert "decompositions" not in found
    assert "common_subexpressions" not in found
    assert found["dead_code"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lower", "the pass 'lower' is required"),
        ("fp64", "the pass 'fp64' is required"),
        ("dead_cod", "there is no pass 'dead_cod'"),
    ],
)
def test_what_cannot_be_switched_off(file: Path, name: str, message: str) -> None:
    result = assay("run", file, "--backend", "aot_eager", env={"ASSAY_DISABLE_PASSES": name})
    assert result.code == 2
    assert message in result.err
    assert "the passes that can be disabled are" in result.err
