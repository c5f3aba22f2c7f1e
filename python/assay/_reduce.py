"""Reducing the failure of a backend that exists only in this process.

>>> assay._reduce.reduce(gm, inputs, toy_compiler)
PosixPath('torch_compile_debug/toy_compiler_reduced/repro.py')

The reducer is the ``assay`` command. Its trials get the backend by value (``stock.sent_backend``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch.fx

from assay import _C
from assay._backends import backend_name
from assay._graph import Graph
from assay.errors import UserError
from assay.fx import from_graph_module
from assay.stock import sent_backend

__all__ = ["reduce", "send"]


def reduce(
    graph: Graph | torch.fx.GraphModule,
    inputs: Iterable[Any],
    backend: Callable[..., Any],
    *,
    directory: str | os.PathLike[str] = "torch_compile_debug",
    accuracy: bool = False,
    arguments: Iterable[str] = (),
) -> Path:
    """Find the smallest graph that fails the same way; returns the path of its ``repro.py``.

    Writes a launcher, the inputs and the backend below ``directory``. ``arguments`` are further
    ones of ``assay reduce``. Raises :class:`assay.UserError` if the backend cannot be sent to
    another process, if there is no ``assay`` command, or if it found nothing to reduce.
    """
    if isinstance(graph, torch.fx.GraphModule):
        graph = from_graph_module(graph)
    name = backend_name(backend)
    root = Path(directory).absolute() / _file_name(name)
    root.mkdir(parents=True, exist_ok=True)
    launcher = root / "minifier_launcher.py"
    _C.save_repro(graph._graph, inputs, str(launcher), name, "after_dynamo", accuracy, str(root))
    sent, environment = send(backend, name, str(root))
    command = _C.assay_command()
    if command is None:
        raise UserError("the assay command was not found (ASSAY_BINARY, PATH)")
    output = root / "reduced"
    done = subprocess.run(
        [command, "reduce", str(launcher), "--output", str(output), *sent, *arguments],
        env={**_inherited(), **environment},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        check=False,
    )
    repro = output / "repro.py"
    if done.returncode != 0 or not repro.exists():
        raise UserError(f"assay reduce ended with exit code {done.returncode} and wrote no repro")
    return repro


def send(
    backend: Callable[..., Any], name: str, directory: str
) -> tuple[list[str], dict[str, str]]:
    """Write a backend for the trials of ``assay reduce``.

    Returns the arguments that name it, and the variables that make the command find this Python
    and this package. Raises :class:`assay.UserError` for what cannot be pickled.
    """
    file = Path(directory) / f"{_file_name(name)}.pkl"
    try:
        sent_backend.save(backend, file)
    except Exception as error:  # a pickler raises whatever the objects raise
        raise UserError(
            f"the backend '{name}' cannot be sent to another process: {error}\n"
            "  hint: define it in a module, and use assay reduce --backend module:name"
        ) from error
    package = str(Path(__file__).parents[1])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {"ASSAY_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    return ["--backend-file", str(file)], environment


def _inherited() -> dict[str, str]:
    """The variables, but the command wraps no compiler itself."""
    watching = ("ASSAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER")
    return {name: value for name, value in os.environ.items() if name not in watching}


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "backend"
