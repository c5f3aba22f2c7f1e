"""Runs ``assay diagnose`` on a script for tests."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.command import ROOT, assay

Json = dict[str, Any]


@dataclass(frozen=True)
class Diagnosis:
    """The verdict, and the directory that has the report."""

    code: int
    verdict: Json
    directory: Path

    @property
    def report(self) -> str:
        return (self.directory / "report.md").read_text()


def environment() -> dict[str, str]:
    """The script imports this repository's models."""
    paths = [str(ROOT / "tests"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {"ASSAY_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}


def diagnose(
    tmp_path: Path, text: str, *arguments: str, options: tuple[str, ...] = (), **env: str
) -> Diagnosis:
    """Diagnose a script with that text."""
    script = tmp_path / "script.py"
    script.write_text(text)
    done = assay(
        "diagnose", "--json", *options, script, *arguments,
        cwd=tmp_path, env={**environment(), **env}, timeout=900,
    )  # fmt: skip
    assert done.out, done.err
    return Diagnosis(done.code, json.loads(done.out), tmp_path / "script_diagnosis")
