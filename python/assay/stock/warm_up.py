"""Load and compile once, so that no trial has to, and keep the process fit for forking.

What depends on the machine only (which vector instructions work, the kernels of the warm-up) is
kept in ``~/.cache/assay/stock``, so that the second start is quick.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def warm_up(backend: str, backend_file: Path | None = None) -> None:
    """Afterwards a trial of ``backend`` imports nothing and checks nothing about the machine."""
    import torch

    torch.set_num_threads(1)
    import torch._dynamo

    _forbid_progress_threads()
    import assay.stock.trial  # noqa: F401  (loads what trials use)
    from assay.stock import kernels

    _find(backend, backend_file)
    if backend == "inductor":
        kernels.listen()
        with _quiet(), _cache_directory(_machine_directory()) as directory:
            _settle_vector_instructions(directory)
            _compile_something()
            _load_what_the_cache_uses()
    _load_tables()
    torch._dynamo.reset()
    torch.manual_seed(0)
    check_fit_for_forking()


def _find(backend: str, file: Path | None) -> None:
    """A backend of stock's is looked up by each trial, one of the user's is loaded now."""
    from torch._dynamo.backends.registry import lookup_backend

    from assay.stock import sent_backend

    if file is None and ":" not in backend:
        lookup_backend(backend)
        return
    load_whole_package()
    if file is not None:
        sent_backend.load_file(file)
    else:
        sent_backend.load_named(backend)
    load_for_python_trials()


def load_for_python_trials() -> None:
    """What trials of a backend written in Python import."""
    import assay.stock.python_trial  # noqa: F401

    _load_tables()


def load_whole_package() -> None:
    """The server has begun with a package without content; a user's backend may use all of it."""
    bare = sys.modules.pop("assay")
    whole = importlib.import_module("assay")
    whole.stock = bare.stock  # type: ignore[attr-defined]


def check_fit_for_forking() -> None:
    """A second thread may hold a lock at the moment of a fork, and then every child hangs."""
    threads = list(Path("/proc/self/task").iterdir())
    if len(threads) > 1:
        names = [thread.name for thread in threading.enumerate()]
        raise RuntimeError(f"{len(threads)} threads are running: {names}; cannot fork trials")


def _forbid_progress_threads() -> None:
    with contextlib.suppress(ImportError):
        import tqdm  # type: ignore[import-untyped]

        tqdm.tqdm.monitor_interval = 0  # its thread watches progress bars


def _machine_directory() -> Path:
    import torch

    compiler = shutil.which(os.environ.get("CXX", "g++")) or "none"
    stat = Path(compiler).resolve().stat() if compiler != "none" else None
    version = (
        f"{torch.__version__}_{stat.st_size}_{int(stat.st_mtime)}" if stat else torch.__version__
    )
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = root / "assay" / "stock" / version
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What ``TORCH_LOGS`` asks for is not about our own graph."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextlib.contextmanager
def _cache_directory(directory: Path) -> Iterator[Path]:
    """Inductor's cache is elsewhere for a while."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    trials = os.environ[variable]
    os.environ[variable] = str(directory)
    try:
        yield directory
    finally:
        os.environ[variable] = trials


def _settle_vector_instructions(directory: Path) -> None:
    """Inductor tries each set of vector instructions by starting a process; once is enough."""
    from torch._inductor import config, cpu_vec_isa

    known = directory / "vector_instructions.json"
    claimed = sorted(_claimed_instructions())
    if known.exists() and json.loads(known.read_text()) == claimed:
        config.cpp.vec_isa_ok = True
        return
    if sorted(str(isa) for isa in cpu_vec_isa.valid_vec_isa_list()) == claimed:
        part = known.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(claimed))
        part.rename(known)
        config.cpp.vec_isa_ok = True


def _claimed_instructions() -> list[str]:
    """What the processor says it has, of what inductor has a use for."""
    from torch._inductor import config, cpu_vec_isa

    with config.patch({"cpp.vec_isa_ok": True}):
        claimed = [str(isa) for isa in cpu_vec_isa.valid_vec_isa_list()]
    cpu_vec_isa.valid_vec_isa_list.cache_clear()
    return claimed


def _compile_something() -> None:
    """Once through Dynamo and inductor; only machine code comes from a cache.

    A backward would not add to what is loaded, and costs half a second.
    """
    import torch
    import torch._functorch.config
    from torch._inductor import config

    def small(x: Any) -> Any:
        return torch.softmax((x @ x).sin(), -1) + 1

    with (
        config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch.no_grad(),
    ):
        torch._dynamo.optimize("inductor")(small)(torch.ones(4, 4))


def _load_what_the_cache_uses() -> None:
    from torch._inductor.codecache import torch_key

    torch_key()  # a hash of PyTorch's sources, part of every key


def _load_tables() -> None:
    """Computed on first use: let that be before the fork."""
    from assay.stock import targets

    targets.torch_functions()
    targets.functional_functions()
