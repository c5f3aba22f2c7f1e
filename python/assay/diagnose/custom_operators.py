"""The operators that a script registers itself: the lines that a file of its graphs needs for them.

An operator of a module is registered by importing that. One of the script's own is registered by
its source, since importing the script would run it.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS

MARK = "# The script's own operators."  # the lines below it run only in a file that is trusted


def lines(gm: torch.fx.GraphModule) -> list[str]:
    """The lines for all operators of a graph; none if it has only PyTorch's."""
    found: list[str] = []
    for name in sorted(set(_names(gm))):
        definition = OPDEFS.get(name)
        if definition is None:
            continue
        module = definition._init_fn.__module__
        added = _source(definition) if module == "__main__" else _import(module)
        found += [line for line in added if module == "__main__" or line not in found]
    return [MARK, *found] if found else []


def _names(gm: torch.fx.GraphModule) -> Iterator[str]:
    for module in gm.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if isinstance(node.target, torch._ops.OpOverload):
                    yield node.target._schema.name
                elif isinstance(node.target, torch._ops.OpOverloadPacket):
                    yield node.target._qualified_op_name


def _import(module: str) -> list[str]:
    """As the script does it; its own directory is on the path there."""
    file = getattr(sys.modules.get(module), "__file__", None)
    made = [f"import {module}"]
    if file is not None and "site-packages" not in file:
        levels = module.count(".") + (Path(file).name == "__init__.py")
        root = str(Path(file).resolve().parents[levels])
        made = ["import sys", f"sys.path.append({root!r})", *made]
    return made


def _source(definition: Any) -> list[str]:
    functions = [definition._init_fn, definition._abstract_fn]
    made = ["from torch import Tensor"]
    for function in functions:
        if function is not None and function.__module__ == "__main__":
            made += textwrap.dedent(inspect.getsource(function)).splitlines()
    return made
