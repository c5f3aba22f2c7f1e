"""A Python program in a process of its own, for tests of what must be true from its start."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from support.command import environment


def run_python(text: str, cwd: Path | None = None, timeout: float = 120, **settings: str) -> str:
    """What it prints; a failure shows both its streams."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        cwd=cwd, env=environment(**settings), capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
