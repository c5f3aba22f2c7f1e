"""Time to the first gradients under ``aot_eager``: ours and stock's.

Stock starts from the model in Python. We start from the text of the pre-dispatch graph that stock
exports for the model (capture of Python programs is another part of Assay): parsing, tracing,
partitioning, then running forward and backward. Taken in turns after a warm-up; the fastest counts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

import assay

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.stock import models

MODELS = ("mlp", "resnet_train", "gpt2", "bert_train", "llama", "t5_train", "vit_train", "whisper")
ROUNDS = 2


def _values(program: torch.export.ExportedProgram, inputs: Any) -> list[Any]:
    """What the exported graph's placeholders stand for, in order."""
    given = iter(_pytree.tree_leaves(((), inputs) if isinstance(inputs, dict) else inputs))
    values = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            values.append(next(given))
        elif spec.target in program.state_dict:
            values.append(program.state_dict[spec.target])
        else:
            values.append(program.constants[spec.target])
    return values


def _export(name: str) -> tuple[str, list[Any]]:
    net, inputs = models.build(name)
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    program = torch.export.export(net, args, kwargs, strict=False)
    text = program.graph_module.print_readable(
        print_output=False, include_stride=True, include_device=True
    )
    return text, _values(program, inputs)


def _backward(outputs: Any) -> None:
    floats = [
        leaf.sum()
        for leaf in _pytree.tree_leaves(outputs)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if floats:
        sum(floats[1:], floats[0]).backward()


def _assay(text: str, values: list[Any]) -> float:
    begin = time.perf_counter()
    _backward(assay.aot.compile(text, backend="aot_eager")(*values))
    return time.perf_counter() - begin


def _stock(name: str) -> float:
    torch._dynamo.reset()
    net, inputs = models.build(name)
    begin = time.perf_counter()
    _backward(models.call(torch.compile(net, backend="aot_eager"), inputs))
    return time.perf_counter() - begin


def run() -> dict[str, dict[str, float]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _stock("linear_layernorm_relu")
    _assay(*_export("linear_layernorm_relu"))
    found: dict[str, dict[str, float]] = {}
    for name in MODELS:
        text, values = _export(name)
        best = {"assay_s": float("inf"), "stock_s": float("inf")}
        for _ in range(ROUNDS):
            best["assay_s"] = min(best["assay_s"], _assay(text, values))
            best["stock_s"] = min(best["stock_s"], _stock(name))
        found[name] = {**best, "ratio": best["assay_s"] / best["stock_s"]}
    torch.set_num_threads(threads)
    return found


if __name__ == "__main__":
    for name, row in run().items():
        print(f"{name:14} {row['assay_s']:.3f} / {row['stock_s']:.3f} s = {row['ratio']:.3f}x")
