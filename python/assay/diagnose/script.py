"""What the process of one run does: the user's script, unchanged, with hooks in PyTorch below it.

The request (``client`` makes it) has

    script, arguments, directory    what to run, and where
    text                            run this in the script's place
    stdout, stderr                  files for what it prints
    backend                         ``none`` (eager), a backend's name, or null: the script's own
    graphs                          a directory for the graphs and their inputs, or null
    save_call                       ``[graph, call]``: save the inputs of that call, not the first
    settings                        ``[["torch._inductor.config.fallback_random", true], ...]``
    bisect                          ``[subsystem, applications]`` of inductor, or null
    stack                           ``torch`` or ``assay``
    threads                         inside operators; 0: PyTorch's default
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import linecache
import multiprocessing
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch._dynamo
import torch._functorch.config

from assay.diagnose import frames, hooks
from assay.stock import failure, settings

Request = dict[str, Any]
# A new process has these; numbers drawn before must not matter.
DEFAULT_SEED = 67280421310721


class RunReport:
    """Says to the worker where the script is: JSON lines on a pipe, later ones add to earlier."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.process = os.getpid()

    def add(self, **fields: Any) -> None:
        if os.getpid() != self.process:  # a process that the script has forked
            return
        data = json.dumps(fields, default=str).encode() + b"\n"
        while data:
            data = data[os.write(self.fd, data) :]

    def at(self, stage: str, **where: Any) -> None:
        """What happens from now on."""
        self.add(at={"stage": stage, "since": time.monotonic(), **where})


def run(request: Request, fd: int) -> int:
    """Carry out a request; returns the process's exit code."""
    report = RunReport(fd)
    report.at("start")
    _redirect(request)
    _settle(request)
    hooks.install(request, report)
    report.at("script")
    code = _exit_code(request, report)
    report.at("end")
    code = _leave(code)
    report.add(status="passed" if code == 0 else "failed", code=code)
    return code


def _redirect(request: Request) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(file, number)
        os.close(file)


def _settle(request: Request) -> None:
    """As in a new process that runs this script."""
    os.chdir(request["directory"])
    threads = int(request.get("threads") or 0)
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    torch.manual_seed(DEFAULT_SEED)
    random.seed(0)
    # What was imported before has chosen one; the script may choose its own, once.
    multiprocessing.set_start_method(None, force=True)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(0)
    from torch._inductor import config

    config.compile_threads = len(os.sched_getaffinity(0))
    # A graph from this cache would be neither seen nor compiled by inductor's own compiler.
    torch._functorch.config.enable_autograd_cache = False
    settings.apply(request.get("settings") or [], is_trusted=True)


def _exit_code(request: Request, report: RunReport) -> int:
    """Run the script to its end; what it raises is printed as Python does."""
    try:
        with _stack(request):
            _execute(request["script"], request["arguments"], request.get("text"))
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        shown = error.with_traceback(_without_us(error.__traceback__))
        traceback.print_exception(shown)
        described = failure.describe(error)
        described["kind"] = type(error).__name__
        frame = frames.users_frame(error)
        report.add(raised={**described, "frame": frame})
        return 1
    return 0


@contextlib.contextmanager
def _stack(request: Request) -> Iterator[None]:
    """Whose compiler the script's ``torch.compile`` is."""
    if request.get("stack", "torch") == "assay":
        from assay.diagnose import own_stack

        own_stack.route(request)
        yield
    elif request.get("backend") == "none":
        _let_operators_compile()
        os.environ["TORCH_COMPILE_DISABLE"] = "1"  # for processes that the script starts
        with torch.compiler.set_stance("force_eager"):
            yield
    else:
        yield


def _let_operators_compile() -> None:
    """Eager's own cond, scan and while_loop compile their bodies, and cannot do without it."""
    from torch._higher_order_ops import utils

    original = utils._hop_compile_and_call

    @functools.wraps(original)
    def call(*arguments: Any, **keywords: Any) -> Any:
        with torch.compiler.set_stance("default"):
            return original(*arguments, **keywords)

    utils._hop_compile_and_call = call


def _execute(path: str, arguments: list[str], text: str | None) -> None:
    module = ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    source: str | bytes = Path(path).read_bytes() if text is None else text
    if text is not None:  # what Python and Dynamo show of a line comes from here
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    code = compile(source, path, "exec")
    exec(code, module.__dict__)


def _without_us(trace: Any) -> Any:
    """A traceback that begins with the script."""
    entry = trace
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == __file__:
            trace = entry.tb_next
        entry = entry.tb_next
    return trace


def _leave(code: int) -> int:
    """What an interpreter does at its end, which this one does not reach."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the script's threads
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        return code or 1
    return code


@functools.cache
def package_directory() -> Path:
    """Where PyTorch's own files are."""
    return Path(torch.__file__).parent
