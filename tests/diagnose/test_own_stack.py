"""`assay diagnose --stack assay`: the same for programs that Assay compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose

SCRIPT = """
import torch
torch.manual_seed(0)
layers = [torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Tanh()] * 3
model = torch.compile(torch.nn.Sequential(*layers))
for _ in range(2):
    print(model(torch.ones(2, 8)).sum())
"""


def test_nothing_fails(tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT, options=("--stack", "assay"))
    assert found.code == 0 and found.verdict["status"] == "fine"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("relu:runtime_error", "exception"),
        ("tanh:accuracy", "accuracy"),
        ("relu:segfault", "signal"),
    ],
)
def test_injected_faults(fault: str, kind: str, tmp_path: Path) -> None:
    found = diagnose(tmp_path, SCRIPT, options=("--stack", "assay"), ASSAY_INJECT_FAULT=fault)
    assert found.code == 1
    assert found.verdict["kind"] == kind
    [call] = found.verdict["calls"]
    assert fault.partition(":")[0] in call
