"""Real bugs of PyTorch 2.13.0: diagnosed to the right stage, reduced to the calls concerned."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose
from diagnose.public_bugs import BUGS, alone, inside


def lines_of_code(text: str) -> int:
    """What is written from a syntax tree has blank lines of its own."""
    return sum(bool(line.strip()) for line in text.splitlines())


def check(name: str, text: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    found = diagnose(tmp_path, text)
    verdict = found.verdict
    assert found.code == 1
    assert verdict["status"] == "fails"
    assert verdict["stage"] == bug.stage, verdict
    assert verdict["kind"] == bug.kind, verdict
    if bug.calls:
        assert any(bug.calls[0] in call for call in verdict["calls"]), verdict["calls"]
        assert len(verdict["calls"]) <= max(2, len(bug.calls)) or name == "half_reductions"
        assert (found.directory / "repro.py").exists()
        assert verdict["code"].strip() in found.report
    else:
        # There is no graph that shows it; the script was made smaller.
        small = (found.directory / "repro.py").read_text()
        assert lines_of_code(small) < lines_of_code(text)
        assert "torch.compile" in small


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_alone(name: str, tmp_path: Path) -> None:
    check(name, alone(BUGS[name]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.is_inside])
def test_inside_a_model(name: str, tmp_path: Path) -> None:
    check(name, inside(BUGS[name]), tmp_path)
