"""Trials in forks of the process that has the backend, for one that cannot be sent to another.

The server is itself a fork, made when the failure has happened: it has whatever the program had
then (objects that cannot be pickled, operators and functions of the script), and one thread.
OpenMP's threads do not survive a fork, so trials must not ask for more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.stock import cache, process, sent_backend

__all__ = ["start"]

SECONDS_ALONE = 60  # without a connection, after which the server ends
_started: list[int] = []


def start(backend: Callable[..., Any]) -> str:
    """Fork a server of trials of ``backend``; returns the path of the socket it listens on."""
    for pid in list(_started):  # those that have ended meanwhile
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _started.remove(pid)
    directory = tempfile.mkdtemp(prefix="assay_live_")
    path = str(Path(directory, "socket"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            process.die_with(parent)
            _serve(listener, backend, directory)
            status = 0
        except BaseException:  # there is nobody to raise it to
            traceback.print_exc()
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            os._exit(status)
    listener.close()
    _started.append(pid)
    return path


def _serve(listener: socket.socket, backend: Callable[..., Any], directory: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[cache.DIRECTORY] = str(Path(directory, "cache"))
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    torch.set_num_threads(1)
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    sent_backend.keep_live(backend)
    with torch.inference_mode(False), _disable_current_modes():
        from assay.stock.warm_up import load_for_python_trials

        load_for_python_trials()
        _accept(listener)


def _accept(listener: socket.socket) -> None:
    """A worker per connection, until there has been none for a while."""
    from assay.stock.worker import Worker

    server = os.getpid()
    listener.settimeout(1)
    workers: set[int] = set()
    last = time.monotonic()
    while workers or time.monotonic() - last < SECONDS_ALONE:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                workers.discard(ended)
                last = time.monotonic()
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        pid = os.fork()
        if pid == 0:
            process.die_with(server)
            listener.close()
            try:
                Worker(connection, 0.0).run()
            except BaseException:  # a bug of ours: the connection ends, and this is why
                traceback.print_exc()
            os._exit(0)
        connection.close()
        workers.add(pid)
