"""The states of random generators in graphs: run eagerly, refused by compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import assay

FILE = """\
import torch
from torch import device

class Repro(torch.nn.Module):
    def forward(self, state: "u8[16][1]cuda:0", x: "f32[4][1]cuda:0"):
        rand = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand.default, [4])
        add = torch.ops.aten.add.Tensor(rand, x);  rand = x = None
        return (add,)
"""


@pytest.mark.parametrize("backend", ["aot_eager", "native"])
def test_a_compiled_graph_cannot_set_a_state(tmp_path: Path, backend: str) -> None:
    """It draws from the default generator when it is called, so its numbers would be others."""
    path = tmp_path / "repro.py"
    path.write_text(FILE)
    assert assay("run", path).code == 0
    refused = assay("run", path, "--backend", backend)
    assert refused.code in (1, 2), refused
    assert "sets the state of a random generator" in refused.err
