"""The loop on one connection: a process per trial, its limits, and what was seen of it.

A worker judges nothing and never runs an operator: it must stay fit for forking.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.stock import cache, process
from assay.stock.limits import Limits, Timer

Json = dict[str, Any]

CHUNK = 1 << 16


class Abandoned(Exception):
    """The connection ended during a trial."""


class Pipe:
    """One direction out of a trial; the worker reads it without ever waiting for it."""

    def __init__(self) -> None:
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self.is_open = True
        self.has_sink = True

    def read(self) -> bytes:
        """What has arrived; at the end of the stream the pipe is closed."""
        data = b""
        try:
            while part := os.read(self.source, CHUNK):
                data += part
        except BlockingIOError:
            return data
        self.close()
        return data

    def close_sink(self) -> None:
        """The trial's end, once it has its own copy of it."""
        if self.has_sink:
            os.close(self.sink)
            self.has_sink = False

    def close(self) -> None:
        """The worker's end."""
        if self.is_open:
            os.close(self.source)
            self.is_open = False


class Report:
    """What the trial's process says of itself: JSON lines, of which later ones add to earlier."""

    def __init__(self) -> None:
        self.fields: Json = {}
        self.rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # a process gone mad may write here too
                self.fields.update(json.loads(line))


class Worker:
    """Serves one connection until its end."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self.connection = connection
        self.seconds = seconds
        self.cache = Path(os.environ[cache.DIRECTORY])
        self.cache.mkdir(parents=True, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix="trials_", dir=self.cache)
        self.own_cache = Path(self.directory, "cache")

    def run(self) -> None:
        """Say that we are ready, then answer one request after the other."""
        import torch

        process.adopt_orphans()
        try:
            self._send({"ready": True, "torch": torch.__version__, "seconds": self.seconds})
            for line in self._lines():
                answer = self._answer(line)
                if answer is not None:
                    self._send(answer)
        except (Abandoned, BrokenPipeError, ConnectionResetError):
            pass  # whoever asked is gone
        finally:
            process.kill_children()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while data := self.connection.recv(CHUNK):
            if b"\n" not in data:
                rest += data
                continue
            first, *others = data.split(b"\n")
            *lines, rest = [rest + first, *others]
            yield from lines

    def _send(self, message: Json) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def _answer(self, line: bytes) -> Json | None:
        try:
            request = json.loads(line)
            if "cancel" in request:  # its trial has been answered
                return None
            limits = Limits.of(request)
        except (ValueError, AttributeError, TypeError) as error:
            return {"id": None, "error": f"not a request: {error}"}
        try:
            return {"id": request.get("id"), **self._trial(request, limits)}
        except OSError as error:
            process.kill_children()
            return {"id": request.get("id"), "error": f"cannot start a process: {error}"}

    def _trial(self, request: Json, limits: Limits) -> Json:
        temporary = Path(tempfile.mkdtemp(dir=self.directory))
        output, report = Pipe(), Pipe()
        start = time.monotonic()
        try:
            pid = os.fork()
            if pid == 0:
                self._be_the_trial(request, limits, output, report, temporary)
            output.close_sink()
            report.close_sink()
            answer = self._watch(pid, limits, output, report, start)
            if answer["exit"] != 0:
                cache.remove_half_built(self._cache(request))
            return answer
        finally:
            for pipe in (output, report):
                pipe.close_sink()
                pipe.close()
            shutil.rmtree(temporary, ignore_errors=True)

    def _cache(self, request: Json) -> Path:
        """Where the trial keeps its kernels."""
        return self.own_cache if request.get("private_cache") else self.cache

    def _be_the_trial(
        self, request: Json, limits: Limits, output: Pipe, report: Pipe, temporary: Path
    ) -> None:
        """The child's side; does not return."""
        status = 70
        try:
            process.die_with(os.getppid())
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.connection.close()
            null = os.open(os.devnull, os.O_RDONLY)
            for number, fd in enumerate((null, output.sink, output.sink)):
                os.dup2(fd, number)
            faulthandler.enable(2)
            tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
            os.environ[cache.DIRECTORY] = str(self._cache(request))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limits.memory is not None:
                space = process.virtual_bytes(os.getpid()) + limits.memory
                resource.setrlimit(resource.RLIMIT_AS, (space, space))
            status = self.execute(request, report.sink)
        except BaseException:  # ours, not the candidate's: the answer shows it
            traceback.print_exc()
        finally:
            _flush()
            os._exit(status)

    def execute(self, request: Json, fd: int) -> int:
        """What the process of a request does; its exit code."""
        from assay.stock import trial

        return trial.run(request, fd)

    def timer(self, pid: int, limits: Limits, start: float, said: Report) -> Timer:
        """Says when the process of a request is to be ended."""
        return Timer(pid, limits, start)

    def _watch(self, pid: int, limits: Limits, output: Pipe, report: Pipe, start: float) -> Json:
        """Follow a trial to its end, or end it at a limit or when nobody listens any more."""
        tail = bytearray()
        said = Report()
        limit = None
        timer = self.timer(pid, limits, start, said)
        is_abandoned = False
        pidfd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self.connection, select.POLLIN | select.POLLRDHUP)
        for pipe in (output, report):
            poll.register(pipe.source, select.POLLIN)

        def drain() -> None:
            for pipe in (output, report):
                if not pipe.is_open:
                    continue
                data = pipe.read()
                if not pipe.is_open:
                    poll.unregister(pipe.source)
                if pipe is report:
                    said.feed(data)
                else:
                    tail.extend(data)
                    del tail[: max(0, len(tail) - limits.output)]

        try:
            while True:
                ready = dict(poll.poll(timer.wait() * 1000 + 1))
                drain()
                if pidfd in ready:
                    break
                heard = ready.get(self.connection.fileno(), 0)
                is_abandoned = bool(heard & select.POLLRDHUP)
                if heard:  # a message during a trial asks for its end
                    break
                limit = timer.exceeded()
                if limit is not None:
                    break
        finally:
            os.close(pidfd)
            # Before it is waited for: until then nobody else can have its number.
            process.kill_group(pid)
        # When it is killed within the fork, it has no group yet.
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - start
        orphans = process.kill_children()
        drain()
        if is_abandoned:
            raise Abandoned
        code = os.waitstatus_to_exitcode(status)
        return {
            "exit": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "limit": limit,
            "seconds": seconds,
            "cpu_seconds": usage.ru_utime + usage.ru_stime + orphans,
            "peak_bytes": usage.ru_maxrss * 1024,
            "output": tail.decode(errors="replace"),
            "report": said.fields,
        }


def _flush() -> None:
    """What Python and C still hold of the output: the exit that follows writes nothing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)
