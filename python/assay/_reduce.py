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
from assay.stock import live_server, sent_backend

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
    ones of ``assay reduce``. Raises :class:`assay.UserError` if there is no ``assay`` command, or
    it found nothing to reduce.
    """
    if isinstance(graph, torch.fx.GraphModule):
        graph = from_graph_module(graph)
    name = backend_name(backend)
    root = Path(directory).absolute() / _file_name(name)
    root.mkdir(parents=True, exist_ok=True)
    launcher = root / "minifier_launcher.py"
    _C.save_repro(graph._graph, inputs, str(launcher), name, "after_dynamo", accuracy, str(root))
    sent, environment = send(backend, name, str(root), graph._graph.function_names())
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
    backend: Callable[..., Any], name: str, directory: str, functions: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Make a backend known to the trials of ``assay reduce``, on a graph that calls ``functions``.

    Returns the arguments of the command, and variables of its environment. It is sent by value.
    What cannot be sent, or belongs to functions that no other process has, is tried in forks of
    this process.
    """
    if all(map(_is_elsewhere, functions)):
        file = Path(directory) / f"{_file_name(name)}.pkl"
        try:
            sent_backend.save(backend, file)
        except Exception as error:  # a pickler raises whatever the objects raise
            print(f"{name} is tried in this process's forks: {error}", file=sys.stderr)
        else:
            package = str(Path(__file__).parents[1])
            paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
            variables = {"ASSAY_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
            return ["--backend-file", str(file)], variables
    # The threads of a forked process are gone, so trials have one.
    return ["--backend-server", live_server.start(backend), "--threads", "1"], {}


def _is_elsewhere(function: str) -> bool:
    """Whether a process without the program has that function."""
    parts = function.split(".")
    if parts[:2] == ["torch", "ops"]:
        return parts[2] in ("aten", "prims", "higher_order")
    return len(parts) == 1 or parts[0] in ("torch", "operator", "math")


def _inherited() -> dict[str, str]:
    """The variables, but the command wraps no compiler itself."""
    watching = ("ASSAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER")
    return {name: value for name, value in os.environ.items() if name not in watching}


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "backend"
