"""How a run of the script ended."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MEMORY = re.compile(
    r"bad_alloc|MemoryError|OutOfMemoryError|not enough memory|can't allocate memory"
    r"|Cannot allocate memory|out of memory|Unable to allocate"
)
NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?")
PATH = re.compile(r"(?<!\w)/[^\s'\",;()]+")


@dataclass
class Outcome:
    """What was seen of one run."""

    answer: Json
    stdout: Path
    stderr: Path

    @property
    def report(self) -> Json:
        return self.answer.get("report") or {}

    @property
    def at(self) -> Json:
        """Where the script was when it ended."""
        return self.report.get("at") or {}

    @property
    def seconds(self) -> float:
        return float(self.answer.get("seconds") or 0)

    @property
    def kind(self) -> str:
        """passed, exception, exit, signal, timeout, memory or killed."""
        answer, report = self.answer, self.report
        if answer.get("error"):
            return "killed"
        if answer.get("limit"):
            return "timeout"
        number = answer.get("signal")
        if number is not None:
            if number in FROM_OUTSIDE:
                return "killed"
            return "memory" if self._is_about_memory() else "signal"
        if report.get("status") == "passed":
            return "passed"
        if self._is_about_memory():
            return "memory"
        return "exception" if self.raised else "exit"

    @property
    def raised(self) -> Json:
        """What the script raised."""
        return self.report.get("raised") or {}

    @property
    def failure(self) -> Json:
        """The first failure in compiling or calling a graph, caught by the script or not."""
        return self.report.get("failure") or {}

    def _is_about_memory(self) -> bool:
        told = [self.raised.get("message", ""), self.raised.get("type", "")]
        if self.answer.get("signal") is not None:
            told.append(self.tail(self.stderr, 4000))
        return any(MEMORY.search(text) for text in told)

    @property
    def signature(self) -> tuple[str, str, str]:
        """Two failures with the same one are the same."""
        if self.kind == "exception":
            return (self.kind, self.raised["type"], normalized(self.raised["message"]))
        if self.kind == "exit":
            return (self.kind, str(self.report.get("code", self.answer.get("exit"))), "")
        if self.kind == "signal":
            return (self.kind, signal.Signals(self.answer["signal"]).name, "")
        if self.kind == "passed" and self.failure:
            failure = self.failure
            return ("caught", str(failure.get("type")), normalized(str(failure.get("message"))))
        return (self.kind, "", "")

    def text(self) -> str:
        """In words."""
        if self.kind == "exception":
            message = self.raised["message"].strip().splitlines() or [""]
            return f"{short_type(self.raised['type'])}: {message[0][:200]}"
        if self.kind == "exit":
            return f"exit code {self.signature[1]}"
        if self.kind == "signal":
            return self.signature[1]
        return {
            "passed": "passes",
            "timeout": "hangs",
            "memory": "exhausts its memory",
            "killed": "was killed from outside",
        }[self.kind]

    @staticmethod
    def tail(file: Path, characters: int) -> str:
        """The end of a file that may not exist."""
        try:
            with file.open("rb") as stream:
                stream.seek(0, 2)
                stream.seek(max(0, stream.tell() - characters))
                return stream.read().decode(errors="replace")
        except OSError:
            return ""


def normalized(message: str) -> str:
    """The first line of a message, without what varies between programs with the same fault."""
    first = (message.strip().splitlines() or [""])[0]
    return NUMBER.sub("N", PATH.sub("<path>", first))[:200]


def short_type(name: str) -> str:
    """An exception's class, without PyTorch's modules."""
    return name.rpartition(".")[2] if name.startswith("torch.") else name
