"""The program behind ``assay diagnose``; run by its path, without PyTorch in this process."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

if __package__ != "assay.diagnose":  # by path: a bare package, whose __init__ is not run
    _here = Path(__file__).absolute().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != _here.resolve()]
    _bare = types.ModuleType("assay")
    _bare.__path__ = [str(_here.parent)]
    sys.modules["assay"] = _bare

from assay.diagnose import command, report
from assay.diagnose.client import Server, ServerError
from assay.diagnose.directory import Busy, Directory
from assay.diagnose.procedure import Procedure
from assay.diagnose.progress import Progress
from assay.diagnose.reduction import NoCommand
from assay.diagnose.runs import Runs

BAD_USAGE, INTERNAL, INTERRUPTED = 2, 3, 130


def main(arguments: list[str]) -> int:
    """Diagnose; returns the exit code."""
    options = command.parse(arguments)
    key = {
        "script": str(options.script),
        "text": hashlib.sha256(options.script.read_bytes()).hexdigest(),
        "arguments": options.arguments,
        "stack": options.stack,
        "timeout": options.timeout,
        "memory": options.memory,
        "threads": options.threads,
        "directory": str(Path.cwd()),
    }
    try:
        directory = Directory(options.output, key, options.restart)
        progress = Progress(options.json)
        with Server(
            directory.path, directory.path / "logs" / "server.log", options.stack
        ) as server:
            runs = Runs(options, directory, server, progress)
            verdict = Procedure(runs, progress).run()
            report.write(runs, verdict)
    except (Busy, NoCommand) as error:
        return _error(options.json, str(error), BAD_USAGE)
    except ServerError as error:
        return _error(options.json, str(error), BAD_USAGE)
    if options.json:
        print(json.dumps(verdict.as_json(), indent=2, default=str))
    else:
        print(f"\n{verdict.summary}")
        for note in verdict.notes:
            print(f"note: {note}")
        if verdict.code:
            print(f"\n{verdict.code.strip()}\n")
        if verdict.workaround:
            print(f"workaround: {verdict.workaround}")
        print(f"report: {_shown(directory.path / 'report.md')}")
    return verdict.exit_code


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)


def _error(as_json: bool, message: str, code: int) -> int:
    if as_json:
        print(json.dumps({"status": "error", "message": message}))
    print(f"error: {message}", file=sys.stderr)
    return code


def _interrupted(number: int, frame: Any) -> None:
    print("\nstopped; the same command resumes", file=sys.stderr)
    raise SystemExit(INTERRUPTED)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        code = main(sys.argv[1:])
    except Exception:
        traceback.print_exc()
        print("internal error: this is a bug in Assay; please report it", file=sys.stderr)
        code = INTERNAL
    sys.exit(code)
