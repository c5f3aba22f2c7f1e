"""docs/kernels.md shows the code that is generated for the guide's example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.command import ROOT, environment
from support.pages import blocks

PAGE = ROOT / "docs" / "kernels.md"


def documented() -> tuple[str, list[str]]:
    """The program, and the code without the comments that explain it."""
    program = next(lines for _, lines in blocks(PAGE, "python") if "LayerNorm" in " ".join(lines))
    code = next(lines for _, lines in blocks(PAGE, "cpp"))
    return "\n".join(program), [line for line in code if not line.lstrip().startswith("//")]


@pytest.mark.skipif(
    "avx512bw" not in Path("/proc/cpuinfo").read_text(), reason="the page shows code for AVX-512"
)
def test_the_page_shows_what_is_generated() -> None:
    program, code = documented()
    run = subprocess.run(
        [sys.executable, "-c", f"import torch, assay\n{program}"],
        env=environment(TORCH_LOGS="output_code"),
        capture_output=True,
        text=True,
        check=True,
    )
    marker = "[__output_code] "
    lines = [line.partition(marker)[2] for line in run.stderr.splitlines() if marker in line]
    start = next(i for i, line in enumerate(lines) if line.startswith('extern "C" int'))
    generated = lines[start : start + lines[start:].index("}") + 1]
    assert code == generated, "docs/kernels.md should show:\n" + "\n".join(generated)
