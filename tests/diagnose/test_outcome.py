"""How a run ended, and which runs ended the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.diagnose.outcome import Outcome
from assay.diagnose.shrink import PASSED


def ended(**report: Any) -> Outcome:
    return Outcome({"report": report}, Path("stdout"), Path("stderr"))


def test_a_failure_that_was_caught_is_not_a_pass() -> None:
    """Otherwise every program that does nothing fails the same way."""
    failure = {"type": "RuntimeError", "message": "bad size 3\nmore"}
    caught = ended(status="passed", failure=failure)
    assert caught.kind == "passed"
    assert ended(status="passed").signature == PASSED
    assert caught.signature != PASSED
    other = ended(status="passed", failure={**failure, "message": "bad size 17"})
    assert other.signature == caught.signature
