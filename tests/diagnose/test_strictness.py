"""How closely a graph is compared where only the script shows a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.diagnose import strictness
from assay.diagnose.graphs import Graph
from support.command import assay


@pytest.mark.parametrize(
    ("eager", "compiled", "tolerance"),
    [
        ("loss 1.00", "loss 1.50", 1e-3),
        ("loss 1.000", "loss 1.004", 4e-4),
        ("tensor(37269600.)", "tensor(inf)", 1e-3),
    ],
)
def test_a_tenth_of_what_is_printed(eager: str, compiled: str, tolerance: float) -> None:
    found = strictness._tolerance((1, eager, compiled))
    assert found == pytest.approx(tolerance, rel=0.01)


def test_the_settings_are_in_the_file(tmp_path: Path) -> None:
    """So that the repro shows the difference by itself, under stock PyTorch's own tools too."""
    file = tmp_path / "0_dynamo.py"
    file.write_text("""\
import torch
import torch._dynamo.config

# assay version: 0.1.0

class Repro(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        return (x,)
""")
    held = Graph(0, "dynamo", file, "inductor").held_to_eager(1e-5)
    text = held.file.read_text()
    assert "torch._dynamo.config.same_two_models_use_fp64 = False\n" in text
    assert "torch._dynamo.config.repro_tolerance = 1e-05\n" in text
    shown = assay("show", held.file)
    assert shown.code == 0, shown.err
