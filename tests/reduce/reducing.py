"""Runs `assay reduce` for tests, and reads what it left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stock.make_files import ensure_files
from support.command import Result, assay


@dataclass(frozen=True)
class Reduced:
    """What `assay reduce --json` said, and the directory it wrote."""

    report: dict[str, Any]
    directory: Path
    result: Result

    @property
    def text(self) -> str:
        """The reduced file."""
        return (self.directory / "repro.py").read_text()

    @property
    def graph(self) -> list[str]:
        """The lines of its `forward`, without annotations and comments."""
        lines = self.text.split("def forward", 1)[1].split("def load_args", 1)[0].splitlines()[1:]
        return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def reduce(
    file: Path,
    directory: Path,
    *options: str | Path,
    env: dict[str, str] | None = None,
    timeout: float = 120,
) -> Reduced:
    result = assay(
        "reduce", file, "--json", "--output", directory, *options, env=env, timeout=timeout
    )
    try:
        report = json.loads(result.out)
    except json.JSONDecodeError as error:
        raise AssertionError(f"{result.code}: {result.out}\n{result.err}") from error
    return Reduced(report, directory, result)


def stock_file(model: str, stage: str, root: Path) -> Path:
    """The file that stock PyTorch writes with the data of the model's inputs."""
    for file in ensure_files(model, root):
        if file.kind == stage and file.direction in ("forward", "inference") and file.save_dir:
            return root / model / file.file
    raise AssertionError(f"no {stage} file for {model}")
