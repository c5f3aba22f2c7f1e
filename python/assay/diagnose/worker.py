"""A worker of the trial server that also runs scripts, with a time limit for their steps."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from assay.stock import process
from assay.stock.limits import PART_TAKEN, Limits, Timer
from assay.stock.worker import Report, Worker

Json = dict[str, Any]


class StepTimer(Timer):
    """Ends a script whose compiled code runs far longer than the whole script does in eager."""

    def __init__(
        self, pid: int, limits: Limits, start: float, said: Report, step_seconds: float | None
    ) -> None:
        super().__init__(pid, limits, start)
        self.said = said
        self.step_seconds = step_seconds
        self.memory_in_step = (0.0, 0)  # of the step that began then, when half its time was over

    def exceeded(self) -> str | None:
        """The limit at which the process is to be ended."""
        at = self.said.fields.get("at") or {}
        if self.step_seconds is not None and at.get("stage") in ("run", "backward"):
            used = time.monotonic() - at["since"]
            if used >= 0.5 * self.step_seconds and self.memory_in_step[0] != at["since"]:
                self.memory_in_step = (at["since"], process.virtual_bytes(self.pid))
            if used >= self.step_seconds and not self._takes_memory():
                return "wall"
        return super().exceeded()

    def _takes_memory(self) -> bool:
        """Who takes memory all the time is not hanging; the memory limit will end it."""
        since, before = self.memory_in_step
        limit, now = self.limits.memory, process.virtual_bytes(self.pid)
        if limit is None or now < before + limit // PART_TAKEN:
            return False
        self.memory_in_step = (since, now)
        assert self.step_seconds is not None
        self.step_seconds *= 1.5
        return True


def listen(path: str) -> socket.socket:
    """A socket at that path; whoever sees it can connect."""
    listener = socket.socket(socket.AF_UNIX)
    part = f"{path}.part"
    listener.bind(part)
    listener.listen()
    Path(part).rename(path)
    return listener


def accept(listener: socket.socket, environment: dict[str, str], seconds: float) -> NoReturn:
    """A worker per connection, for ever: the driver's end is ours."""
    server = os.getpid()
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        connection, _ = listener.accept()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            process.die_with(server)
            listener.close()
            try:
                ScriptWorker(connection, seconds, environment).run()
            except BaseException:  # a bug of ours: the connection ends, and this is why
                traceback.print_exc()
            os._exit(0)
        connection.close()


def _reap(number: int, frame: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


class ScriptWorker(Worker):
    """Serves one connection until its end."""

    def __init__(
        self, connection: socket.socket, seconds: float, environment: dict[str, str]
    ) -> None:
        super().__init__(connection, seconds)
        self.environment = environment
        self.request: Json = {}

    def execute(self, request: Json, fd: int) -> int:
        if "script" not in request:
            return self._execute_trial(request, fd)
        from assay.diagnose import script

        keep = {name: os.environ[name] for name in ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR")}
        os.environ.clear()
        os.environ.update({**self.environment, **keep})
        return script.run(request, fd)

    def _execute_trial(self, request: Json, fd: int) -> int:
        if request.get("bisect"):
            from assay.stock import bisect

            bisect.limit(*request["bisect"])
            status = super().execute(request, fd)
            os.write(fd, json.dumps({"bisected": bisect.last()}).encode() + b"\n")
            return status
        return super().execute(request, fd)

    def _answer(self, line: bytes) -> Json | None:
        request = json.loads(line)
        if "serve" not in request:
            return super()._answer(line)
        return {"id": request["id"], **self._serve(request)}

    def _serve(self, request: Json) -> Json:
        """Become a server for the trials of a backend of the user's, until the driver ends."""
        from assay.stock import sent_backend

        try:
            sent_backend.load_file(Path(request["backend_file"]))
        except sent_backend.CannotLoad as error:
            return {"error": str(error)}
        listener = listen(request["serve"])
        self.connection.close()
        accept(listener, self.environment, self.seconds)

    def _trial(self, request: Json, limits: Limits) -> Json:
        self.request = request
        return super()._trial(request, limits)

    def timer(self, pid: int, limits: Limits, start: float, said: Report) -> Timer:
        if "script" not in self.request:
            return super().timer(pid, limits, start, said)
        step_seconds = (self.request.get("limits") or {}).get("step")
        return StepTimer(pid, limits, start, said, step_seconds)
