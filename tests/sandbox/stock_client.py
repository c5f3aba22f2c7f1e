"""A client of the trial server, for tests and measurements."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

DEADLINE = 300.0  # for an answer, in seconds
SERVER = Path(__file__).parents[2] / "python" / "assay" / "stock_server.py"


class Connection:
    """One end of a worker's socket."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(DEADLINE)
        self.socket = end
        self.stream = end.makefile("r")
        self.numbers = itertools.count(1)

    def read(self) -> dict[str, Any]:
        line = self.stream.readline()
        if not line:
            raise EOFError("the server has ended")
        return json.loads(line)

    def send(self, file: str, **request: Any) -> int:
        """Ask for a trial; returns its number."""
        number = next(self.numbers)
        self.socket.sendall(json.dumps({"id": number, "file": file, **request}).encode() + b"\n")
        return number

    def ask(self, file: str, **request: Any) -> dict[str, Any]:
        number = self.send(file, **request)
        answer = self.read()
        assert answer["id"] == number
        return answer

    def ask_anything(self, **request: Any) -> dict[str, Any]:
        """Send what may be no request at all."""
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return self.read()

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


class Server:
    """A server process with its connections."""

    def __init__(self, cache: Path, workers: int = 1, command: Sequence[str] | None = None) -> None:
        self.cache = cache
        command = command or [sys.executable, str(SERVER)]
        pairs = [socket.socketpair() for _ in range(workers)]
        fds = [theirs.fileno() for _, theirs in pairs]
        options = [option for fd in fds for option in ("--connection", str(fd))]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
        self.process = subprocess.Popen([*command, *options], pass_fds=fds, env=environment)
        for _, theirs in pairs:
            theirs.close()
        self.connections = [Connection(ours) for ours, _ in pairs]
        self.ready = [connection.read() for connection in self.connections]

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self.connections:
            connection.close()
        self.process.wait(timeout=60)
