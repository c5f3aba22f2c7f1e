"""The process that has PyTorch loaded and forks the runs of a script, and the trials of graphs.

    python server.py --socket PATH [--stack torch|assay]

It listens on a Unix socket and speaks the protocol of docs/toolbox.md. A request with ``script``
runs a script (see ``assay.diagnose.script``); any other is a trial, as ``assay reduce`` asks for.
Run by its path, so that the environment is settled before PyTorch is imported.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
import types
from pathlib import Path

_PACKAGE = str(Path(__file__).absolute().parents[1])
if "assay" not in sys.modules:  # a bare package, so that its __init__ does not import PyTorch yet
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).parent]
    _bare = types.ModuleType("assay")
    _bare.__path__ = [_PACKAGE]
    sys.modules["assay"] = _bare


def main() -> None:
    """The command line: see the top of this file."""
    start = time.monotonic()
    gc.disable()  # while everything is new, nothing is garbage
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True)
    parser.add_argument("--stack", choices=["torch", "assay"], default="torch")
    options = parser.parse_args()

    from assay import stock_server
    from assay.stock import cache, process, warm_up

    process.die_with(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends us by ending
    user_environment = dict(os.environ)
    os.environ.update(stock_server.ENVIRONMENT)
    for name in stock_server.NOT_INHERITED:
        os.environ.pop(name, None)
    warm_up.warm_up("inductor" if options.stack == "torch" else "eager")
    warm_up.load_whole_package()
    import assay.diagnose.script
    import assay.stock.python_trial  # noqa: F401

    warm_up.check_fit_for_forking()
    cache.remove_half_built(Path(os.environ[cache.DIRECTORY]))
    gc.freeze()
    gc.enable()
    from assay.diagnose import worker

    listener = worker.listen(options.socket)
    worker.accept(listener, user_environment, time.monotonic() - start)


if __name__ == "__main__":
    main()
