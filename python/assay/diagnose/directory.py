"""The result directory: a bug report when all is done, and until then what is known so far.

Every step's result is written as soon as it is there. The same command started again, after a
kill -9 too, takes the steps that were finished from here; ``assay reduce`` resumes by itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Busy(Exception):
    """Another diagnosis is running in the directory."""


class Directory:
    """Where one diagnosis keeps what it finds."""

    def __init__(self, path: Path, key: Json, restart: bool) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.lock = (path / ".lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"another diagnosis is running in {path}") from error
        self.is_resumed = self._is_same(key) and not restart
        if not self.is_resumed:
            self._empty()
            _write(path / "diagnosis.json", json.dumps(key, indent=2))
        self.steps: list[Json] = []
        self.known = self._read_steps() if self.is_resumed else {}
        (path / "logs").mkdir(exist_ok=True)

    def _is_same(self, key: Json) -> bool:
        try:
            return bool(json.loads((self.path / "diagnosis.json").read_text()) == key)
        except (OSError, ValueError):
            return False

    def _empty(self) -> None:
        """Only what a diagnosis makes: the directory may have been the user's."""
        for name in ("logs", "graphs", "compared", "reduced", "inductor_cache", "storages"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in ("report.md", "repro.py", "passing.py", "history.json", "steps.jsonl"):
            (self.path / name).unlink(missing_ok=True)

    def _read_steps(self) -> dict[str, Json]:
        found = {}
        try:
            lines = (self.path / "steps.jsonl").read_text().splitlines()
        except OSError:
            return {}
        for line in lines:
            try:
                step = json.loads(line)
            except ValueError:
                continue  # it was being written when the process was killed
            found[step["key"]] = step
        return found

    def find(self, name: str, request: Json) -> Json | None:
        """The result of a step that an earlier start has finished."""
        step = self.known.get(_key(name, request))
        if step is not None:
            self.steps.append(step)
        return None if step is None else step["result"]

    def add(self, name: str, request: Json, result: Json, text: str) -> None:
        """A step is finished."""
        step = {
            "key": _key(name, request),
            "name": name,
            "text": text,
            "time": time.time(),
            "request": request,
            "result": result,
        }
        self.steps.append(step)
        with (self.path / "steps.jsonl").open("a") as file:
            file.write(json.dumps(step) + "\n")

    def write(self, name: str, text: str) -> Path:
        """A file of the report."""
        return _write(self.path / name, text)


def _key(name: str, request: Json) -> str:
    text = json.dumps([name, request], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(file: Path, text: str) -> Path:
    """Nobody ever reads half of it."""
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    part.rename(file)
    return file
