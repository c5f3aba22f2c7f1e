"""The driver's side of the server: start it, and ask it to run a script or a trial of a graph."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class ServerError(Exception):
    """The server did not start, or has ended."""


class Server:
    """The process that has PyTorch loaded. A context: it ends with it."""

    def __init__(self, directory: Path, log: Path, stack: str) -> None:
        # A socket's path is limited to 107 characters, a user's directory is not.
        self.sockets = Path(tempfile.mkdtemp(prefix="assay_diagnose_"))
        self.socket = self.sockets / "server"
        self.log = log
        self.numbers = itertools.count(1)
        program = Path(__file__).absolute().with_name("server.py")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor_cache")}
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(program), "--socket", str(self.socket), "--stack", stack],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.threads = ThreadPoolExecutor(max_workers=4)
        self.torch = ""
        self.seconds = 0.0
        self.kept = contextlib.ExitStack()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError):
            for file in self.sockets.iterdir():
                file.unlink()
            self.sockets.rmdir()

    def wait(self, path: Path | None = None, seconds: float = 300) -> None:
        """Until it listens."""
        path = path or self.socket
        end = time.monotonic() + seconds
        while not path.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise ServerError(f"stock PyTorch did not start; see {self.log}")
            time.sleep(0.01)

    def ask(self, request: Json, socket_path: Path | None = None) -> Json:
        """Send a request and wait for its answer; one that is lost with its worker is an error."""
        self.wait(socket_path)
        with _connect(socket_path or self.socket) as stream:
            ready = _read(stream)
            self.torch = ready.get("torch", self.torch)
            self.seconds = ready.get("seconds", self.seconds)
            number = next(self.numbers)
            stream.write(json.dumps({"id": number, **request}).encode() + b"\n")
            stream.flush()
            return _read(stream)

    def start(self, request: Json) -> Future[Json]:
        """The same, without waiting."""
        return self.threads.submit(self.ask, request)

    def serve_backend(self, file: Path) -> Path:
        """A server for the trials of a backend of the user's, which was saved by value."""
        path = self.sockets / f"backend_{file.stem[:20]}"
        if path.exists():
            return path
        stream = self.kept.enter_context(_connect(self.socket))
        _read(stream)
        request = {"id": next(self.numbers), "serve": str(path), "backend_file": str(file)}
        stream.write(json.dumps(request).encode() + b"\n")
        stream.flush()
        answer = _read(stream)  # it ends when the server listens
        if not path.exists():
            raise ServerError(answer.get("error", "the server of the backend has ended"))
        return path


@contextlib.contextmanager
def _connect(path: Path) -> Any:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    with connection, connection.makefile("rwb") as stream:
        yield stream


def _read(stream: Any) -> Json:
    line = stream.readline()
    if not line:
        return {"error": "the worker has ended"}
    message: Json = json.loads(line)
    return message


class Command:
    """A command of ours that can be ended early, by its id."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        self.output = log.with_suffix(".json")
        with self.output.open("w") as output, log.open("w") as errors:
            self.process = subprocess.Popen(
                arguments,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )

    def wait(self, seconds: float | None) -> int | None:
        """Its exit code; None if it had to be ended."""
        timer = None
        if seconds is not None:
            timer = threading.Timer(max(seconds, 0.1), self._end)
            timer.start()
        try:
            code = self.process.wait()
        finally:
            if timer is not None:
                timer.cancel()
            if self.process.poll() is None:
                self._end()
        return code if code >= 0 and code != 130 else None

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def result(self) -> Json:
        """What it has printed as JSON; empty if nothing."""
        try:
            found: Json = json.loads(self.output.read_text())
        except ValueError:
            return {}
        return found
