"""Runs of the script and trials of its graphs, each remembered in the result directory."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from assay.diagnose.client import Server
from assay.diagnose.command import Options
from assay.diagnose.directory import Directory
from assay.diagnose.outcome import Outcome
from assay.diagnose.progress import Progress

Json = dict[str, Any]

PAUSES = (0.2, 0.5, 1.0, 2.0)  # before a run that was killed from outside is repeated
SETTING = re.compile(r"^(torch\.[\w.]*config\.[\w.]+) = (.+)$", re.MULTILINE)
OWN_OPERATORS = "# The script's own operators."  # as custom_operators writes it
SAFE_TYPES = (bool, int, float, type(None))


class OutOfTime(Exception):
    """The budget is used up."""


class Runs:
    """Asks the server; knows the limits and the budget."""

    def __init__(
        self, options: Options, directory: Directory, server: Server, progress: Progress
    ) -> None:
        self.options = options
        self.directory = directory
        self.server = server
        self.progress = progress
        self.start_time = time.monotonic()
        self.killed = 0
        self.eager_seconds: float | None = None
        self.counter = 0

    # --- Time ---------------------------------------------------------------------------------

    def left(self) -> float | None:
        """Seconds of the budget; None without one."""
        if self.options.budget is None:
            return None
        return self.options.budget - (time.monotonic() - self.start_time)

    def check_budget(self) -> None:
        left = self.left()
        if left is not None and left <= 0:
            raise OutOfTime

    def elapsed(self) -> float:
        return time.monotonic() - self.start_time

    def limits(self) -> Json:
        """What one run may use."""
        eager = self.eager_seconds or 0.0
        wall = self.options.timeout or 300 + 10 * eager
        left = self.left()
        if left is not None:
            wall = max(1.0, min(wall, left))
        step = self.options.timeout or max(8.0, 20 * eager)
        return {"wall": wall, "step": step, "memory": self.options.memory, "output": 1 << 16}

    # --- Scripts ------------------------------------------------------------------------------

    def script(self, name: str, **wanted: Any) -> Outcome:
        """Run the script to its end."""
        return self.start_script(name, **wanted)()

    def start_script(self, name: str, **wanted: Any) -> Callable[[], Outcome]:
        """Start a run; the result waits for it. Killed runs are repeated."""
        self.check_budget()
        request = {
            "script": str(self.options.script),
            "arguments": self.options.arguments,
            "directory": str(Path.cwd()),
            "stack": self.options.stack,
            "threads": self.options.threads,
            "backend": None,
            "graphs": None,
            **wanted,
        }
        stdout = self.directory.path / "logs" / f"{name}.stdout"
        stderr = self.directory.path / "logs" / f"{name}.stderr"
        known = self.directory.find(name, request)
        if known is not None and stdout.exists():
            done = Outcome(known, stdout, stderr)
            return lambda: done
        sent = {**request, "stdout": str(stdout), "stderr": str(stderr), "limits": self.limits()}
        future = self.server.start(sent)

        def wait() -> Outcome:
            outcome = Outcome(self._repeat_if_killed(sent, future), stdout, stderr)
            if outcome.kind != "killed":
                self.directory.add(name, request, outcome.answer, outcome.text())
            return outcome

        return wait

    def _repeat_if_killed(self, request: Json, future: Future[Json]) -> Json:
        answer = future.result()
        for pause in PAUSES:
            if Outcome(answer, Path(), Path()).kind != "killed":
                return answer
            self.killed += 1
            time.sleep(pause)
            self.check_budget()
            answer = self.server.ask(request)
        return answer

    def candidate(self, text: str, backend: str | None) -> Outcome:
        """Run a changed text in the script's place; not remembered."""
        self.check_budget()
        self.counter += 1
        logs = self.directory.path / "logs"
        stdout, stderr = logs / f"candidate_{backend}.stdout", logs / f"candidate_{backend}.stderr"
        request = {
            "script": str(self.options.script),
            "text": text,
            "arguments": self.options.arguments,
            "directory": str(Path.cwd()),
            "stack": self.options.stack,
            "threads": self.options.threads,
            "backend": backend,
            "stdout": str(stdout),
            "stderr": str(stderr),
            "limits": self.limits(),
        }
        answer = self._repeat_if_killed(request, self.server.start(request))
        return Outcome(answer, stdout, stderr)

    # --- Graphs -------------------------------------------------------------------------------

    def trial(
        self,
        file: Path,
        backend: str,
        *,
        accuracy: bool,
        extras: Sequence[str] = (),
        settings: Json | None = None,
        bisect: tuple[str, int] | None = None,
        threads: int = 0,
        dynamic: bool | None = None,
        backend_file: Path | None = None,
    ) -> Json:
        """One trial of a graph file: the answer of docs/toolbox.md."""
        self.check_budget()
        text = file.read_text()
        config, setup = file_settings(text)
        request: Json = {
            "file": text,
            "save_dir": str(file.parent),
            "backend": backend,
            "accuracy": accuracy,
            "extras": list(extras),
            "threads": self.options.threads or threads or len(os.sched_getaffinity(0)),
            "config": [*config, *(settings or {}).items()],
            "setup": setup,
            "autocast": "autocast=True" in text,
            "limits": self.limits(),
            "bisect": bisect,
            "dynamic": dynamic,
        }
        socket = self.server.serve_backend(backend_file) if backend_file is not None else None
        answer = self.server.ask(request, socket)
        if (answer.get("report") or {}).get("type") == "UntrustedFile":
            request["setup"] = text[: text.find("\nclass ")]
            answer = self.server.ask(request, socket)
        for pause in PAUSES:
            if Outcome(answer, Path(), Path()).kind != "killed":
                break
            self.killed += 1
            time.sleep(pause)
            answer = self.server.ask(request, socket)
        return answer


def file_settings(text: str) -> tuple[list[tuple[str, Any]], str]:
    """The settings in a file that we wrote; those that are not numbers as lines to execute."""
    header = text[: text.find("\nclass ")]
    plain, has_text = [], OWN_OPERATORS in header
    for name, value in SETTING.findall(header):
        literal = ast.literal_eval(value)
        plain.append((name, literal))
        has_text = has_text or not isinstance(literal, SAFE_TYPES)
    return (plain, "") if not has_text else ([], header)


def is_failure(answer: Json) -> bool:
    """Whether a trial shows a failure of the compiler."""
    outcome = Outcome(answer, Path(), Path())
    status = (answer.get("report") or {}).get("status")
    stage = (answer.get("report") or {}).get("stage")
    if outcome.kind in ("signal", "timeout", "memory"):
        return stage not in (None, "load", "eager")
    return status == "failed"
