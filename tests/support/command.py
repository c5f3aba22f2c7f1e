"""Runs the `assay` command for tests, and writes the small graph files they run it on.

>>> result = assay("run", graph_file(tmp_path, "relu = torch.relu(x)"))
>>> result.code, result.out, result.err
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "stock"
BINARY = Path(os.environ.get("ASSAY_BINARY", ROOT / "build" / "release" / "bin" / "assay"))

# What the caller's shell may have set and a test must not see.
_SETTINGS = re.compile(r"(TORCH_|TORCHDYNAMO_|ASSAY_|NO_COLOR$|OMP_|MKL_)")


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def environment(**settings: str) -> dict[str, str]:
    """The caller's environment without its settings for torch and Assay, plus the given ones."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not _SETTINGS.match(name) or name == "ASSAY_CACHE_DIR"
    }
    return {**kept, **settings}


def assay(
    *arguments: str | Path,
    env: dict[str, str] | None = None,
    cwd: Path = ROOT,
    timeout: float = 60,
) -> Result:
    """Run the command to its end. A crash shows as a negative code, a hang raises."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)],
        capture_output=True,
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )
    return Result(
        done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


def assay_on_terminal(*arguments: str | Path, env: dict[str, str] | None = None) -> Result:
    """Run the command with a pseudo-terminal as its output; `err` is empty, all is in `out`."""
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [BINARY, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            cwd=ROOT,
            env=environment(TERM="xterm", **(env or {})),
        )
        os.close(terminal)
        text = _read_all(controller, time.monotonic() + 60)
        return Result(process.wait(timeout=60), text.replace("\r\n", "\n"), "")
    finally:
        os.close(controller)


def _read_all(descriptor: int, deadline: float) -> str:
    data = b""
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            block = os.read(descriptor, 65536)
        except OSError:  # Linux: the other side has closed
            break
        if not block:
            break
        data += block
    return data.decode(errors="replace")


def graph_text(body: str, inputs: str = 'x: "f32[4, 4][4, 1]cpu"', constructor: str = "") -> str:
    """A graph file in the readable form: inputs by annotation, `body` the lines of forward()."""
    lines = [f"        {line}" for line in body.strip().splitlines()]
    made = [f"        {line}" for line in constructor.strip().splitlines()]
    return "\n".join(
        [
            "import torch",
            "",
            "class Repro(torch.nn.Module):",
            "    def __init__(self) -> None:",
            "        super().__init__()",
            *made,
            "",
            f"    def forward(self, {inputs}):",
            *lines,
            "",
        ]
    )


def graph_file(directory: Path, body: str, name: str = "graph.py", **parts: str) -> Path:
    """Write `graph_text(body, ...)` to a file and return its path."""
    path = directory / name
    path.write_text(graph_text(body, **parts))
    return path
