"""Runs debug_program, whose compiler is made to fail, and finds what the debug wrapper wrote.

>>> run = run_program(build_directory, tmp_path, "train", after="aot", level=2, fault="relu:abort")
>>> run.code, run.out, run.launcher, run.repro
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from support.command import environment


@dataclass(frozen=True)
class Run:
    """How the program ended, and the directory it ran in."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def repro(self) -> Path:
        """The file for convenience in the current directory."""
        return self.directory / "repro.py"

    @property
    def minifier(self) -> Path:
        """The one directory for this process."""
        [found] = self.directory.glob("torch_compile_debug/run_*-pid_*/minifier")
        return found

    @property
    def launcher(self) -> Path:
        """What the reducer is started with."""
        return self.minifier / "minifier_launcher.py"

    @property
    def wrote_nothing(self) -> bool:
        """True if the directory is as it was."""
        return not any(self.directory.iterdir())


def run_program(
    build_directory: Path,
    directory: Path,
    name: str,
    *arguments: str,
    after: str = "",
    level: int = 2,
    fault: str = "",
    **settings: str,
) -> Run:
    """Run the program `name` in `directory`; by default nothing is reduced."""
    chosen = {"ASSAY_REDUCE": "launcher", **settings}
    if after:
        chosen.update(TORCHDYNAMO_REPRO_AFTER=after, TORCHDYNAMO_REPRO_LEVEL=str(level))
    if fault:
        chosen["ASSAY_INJECT_FAULT"] = fault
    done = subprocess.run(
        [build_directory / "bin" / "debug_program", name, *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        env=environment(**chosen),
        timeout=60,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, directory)
