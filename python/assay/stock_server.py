"""The trial server with stock PyTorch, or any backend in Python, as the compiler under test.

    python -m assay.stock_server --connection FD [--connection FD ...] [--backend inductor]
    python -m assay.stock_server --connection FD --backend package.module:function
    python -m assay.stock_server --connection FD --backend-file backend.pkl

Each FD is an inherited, connected socket; docs/toolbox.md has the protocol. Run by its path instead
of with ``-m``, the server does not load Assay's extension first and is ready a second earlier.
Trials keep their kernels in ``TORCHINDUCTOR_CACHE_DIR``: a directory of the reduction, or else a
temporary one.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path

if not __package__:  # run by path: make `assay` a bare package, so that its __init__ is not run
    _here = str(Path(__file__).absolute().parent)
    _added = str(Path(__file__).resolve().parent)  # by Python: where the link leads to, in a build
    sys.path[:] = [path for path in sys.path if path != _added]
    _bare = types.ModuleType("assay")
    _bare.__path__ = [_here]
    sys.modules["assay"] = _bare

# Read when PyTorch's modules are imported: one thread everywhere, and no debugging of the debugger.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
NOT_INHERITED = (
    "TORCHDYNAMO_REPRO_AFTER",
    "TORCHDYNAMO_REPRO_LEVEL",
    "TORCH_COMPILE_DEBUG",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
)


def serve(connections: list[socket.socket], seconds: float) -> None:
    """Fork one worker per connection, and wait until their connections have ended."""
    from assay.stock import process
    from assay.stock.worker import Worker

    server = os.getpid()
    while connections:
        pid = os.fork()
        if pid == 0:
            process.die_with(server)
            for other in connections[1:]:
                other.close()
            try:
                Worker(connections[0], seconds).run()
            except BaseException:  # a bug of ours: the connection ends, and this is why
                traceback.print_exc()
            os._exit(0)
        connections.pop(0).close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def main(arguments: list[str] | None = None) -> None:
    """The command line: see the top of this file."""
    start = time.monotonic()
    gc.disable()  # while everything is new, nothing is garbage
    parser = argparse.ArgumentParser(prog="assay.stock_server", description=__doc__.splitlines()[0])
    parser.add_argument("--connection", type=int, action="append", required=True, metavar="FD")
    parser.add_argument("--backend", default="inductor", help="what to warm up (%(default)s)")
    parser.add_argument("--backend-file", type=Path, help="a backend that was sent by value")
    options = parser.parse_args(arguments)

    connections = [socket.socket(fileno=fd) for fd in options.connection]
    for connection in connections:
        connection.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reducer ends us by ending the stream
    os.environ.update(ENVIRONMENT)
    for name in NOT_INHERITED:
        os.environ.pop(name, None)
    own_cache = None
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        own_cache = tempfile.mkdtemp(prefix="assay_inductor_")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = own_cache

    from assay.stock import cache, sent_backend
    from assay.stock.warm_up import warm_up

    try:
        warm_up("" if options.backend_file else options.backend, options.backend_file)
    except sent_backend.CannotLoad as error:
        for connection in connections:
            connection.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    # An earlier server may have been killed.
    cache.remove_half_built(Path(os.environ[cache.DIRECTORY]))
    gc.freeze()  # what exists now is not looked at again, so its pages stay shared
    gc.enable()
    try:
        serve(connections, time.monotonic() - start)
    finally:
        if own_cache is not None:
            shutil.rmtree(own_cache, ignore_errors=True)


if __name__ == "__main__":
    if __package__:
        # With -m the package has loaded PyTorch before the environment was ours, and it may have
        # threads by now. Start again, by path.
        os.environ.update(ENVIRONMENT)
        os.execv(sys.executable, [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]])
    main()
