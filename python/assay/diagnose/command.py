"""The command line of ``assay diagnose``."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

DESCRIPTION = """Find out why a script fails under torch.compile: the stage, the graph, the call.

The script runs unchanged, as `python SCRIPT ARGS` would, in processes of its own. The result is a
directory with report.md and, if the failure is in a graph, repro.py with the smallest program that
fails the same way."""
EPILOG = (
    "exit codes: 0 nothing fails, 1 the program fails, 2 bad usage, 3 a bug in Assay; "
    "130 interrupted. The same command resumes a diagnosis that was stopped."
)


@dataclass
class Options:
    """What the user asked for."""

    script: Path
    arguments: list[str]
    output: Path
    stack: str = "torch"
    budget: float | None = None
    timeout: float | None = None
    memory: int = 8 << 30
    threads: int = 0
    jobs: int = 0
    json: bool = False
    restart: bool = False
    reduces: bool = True


def parse(arguments: list[str]) -> Options:
    """Exits with code 2 for what cannot be understood."""
    parser = argparse.ArgumentParser(
        prog="assay diagnose",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its arguments")
    parser.add_argument("--output", type=Path, help="result directory (SCRIPT_diagnosis)")
    parser.add_argument(
        "--stack", choices=["torch", "assay"], default="torch", help="whose torch.compile"
    )
    parser.add_argument("--budget", type=_positive, metavar="SECONDS", help="stop after this time")
    parser.add_argument(
        "--timeout", type=_positive, metavar="SECONDS", help="time limit of one run of the script"
    )
    parser.add_argument("--memory", type=int, metavar="MB", help="memory limit of one run")
    parser.add_argument("--threads", type=int, default=0, help="threads inside operators")
    parser.add_argument("-j", "--jobs", type=int, default=0, help="parallel trials of a reduction")
    parser.add_argument("--no-reduce", action="store_true", help="stop when the stage is known")
    parser.add_argument("--restart", action="store_true", help="do not resume an earlier diagnosis")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    script = Path(given.script)
    if not script.is_file():
        parser.error(f"there is no file '{given.script}'")
    output = given.output or Path(f"{script.stem}_diagnosis")
    return Options(
        script=script.absolute(),
        arguments=given.arguments,
        output=output.absolute(),
        stack=given.stack,
        budget=given.budget,
        timeout=given.timeout,
        memory=given.memory << 20 if given.memory else _default_memory(),
        threads=given.threads,
        jobs=given.jobs,
        json=given.json,
        restart=given.restart,
        reduces=not given.no_reduce,
    )


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value


def _default_memory() -> int:
    """Half of the machine's, at most 8 GB: a program without end must not take the machine."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min(8 << 30, pages // 2))
