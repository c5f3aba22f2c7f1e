"""Prints the names that PyTorch implements in Python although an operator has the same name.

A graph that calls one of them must not be given the operator. The table in
src/aten/functions/python_implemented.cpp is this output; `--check` compares the two.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

import torch

TABLE = Path(__file__).parents[1] / "src" / "aten" / "functions" / "python_implemented.cpp"


def operator_names() -> set[str]:
    qualified = torch._C._dispatch_get_all_op_names()
    return {name.removeprefix("aten::").split(".")[0] for name in qualified if "aten::" in name}


def python_names(owner: object) -> list[str]:
    """Python functions of a module or class that are named like an operator."""
    named_alike = operator_names().intersection(dir(owner))
    return sorted(
        name for name in named_alike if isinstance(getattr(owner, name), types.FunctionType)
    )


def names_in_source(table: str) -> list[str]:
    text = TABLE.read_text()
    start = text.index(f"constexpr auto {table} = ")
    body = text[start : text.index("});", start)]
    return [part.split('"')[1] for part in body.split(",") if '"' in part]


def main() -> int:
    wanted = {
        "kPythonFunctions": sorted({*python_names(torch), *python_names(torch.functional)}),
        "kPythonMethods": python_names(torch.Tensor),
    }
    for table, names in wanted.items():
        print(table, *names)
    if "--check" not in sys.argv:
        return 0
    return int(any(names_in_source(table) != names for table, names in wanted.items()))


if __name__ == "__main__":
    sys.exit(main())
