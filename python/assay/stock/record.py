"""The eager value of every node of a graph, by its name in the text."""

from __future__ import annotations

import ast
import hashlib
import math
import os
from pathlib import Path
from typing import Any

import torch

from assay.stock.text import FILE, ReproText

Description = dict[str, Any]


class Recorder:
    """Writes storages as PyTorch's content store has them, each once."""

    def __init__(self, save_dir: str) -> None:
        self.directory = Path(save_dir, "storages")
        self.directory.mkdir(parents=True, exist_ok=True)

    def describe(self, value: Any) -> Description:
        """A value as the report says it; a tensor's contents are saved on the way."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, list | tuple):
            return {"items": [self.describe(item) for item in value]}
        if value is None or isinstance(value, bool | int | str):
            return {"constant": value}
        if isinstance(value, float) and math.isfinite(value):
            return {"constant": value}
        return {"unknown": type(value).__name__}

    def _tensor(self, tensor: torch.Tensor) -> Description:
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            return {"unknown": f"Tensor of {tensor.layout} on {tensor.device}"}
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return {"unknown": type(tensor).__name__}
        plain = _compact(tensor.detach())
        storage = plain.untyped_storage()
        return {
            "storage": self._save(storage),
            "bytes": storage.nbytes(),
            "dtype": str(plain.dtype).removeprefix("torch."),
            "size": list(plain.shape),
            "stride": list(plain.stride()),
            "offset": plain.storage_offset(),
            "requires_grad": tensor.requires_grad,
        }

    def _save(self, storage: torch.UntypedStorage) -> str:
        contents = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        digest = hashlib.sha1(contents, usedforsecurity=False).hexdigest()
        path = self.directory / digest
        if not path.exists():
            # Under another name first, so that a reader never sees half a file.
            part = path.with_name(f"{digest}.{os.getpid()}.part")
            torch.save(storage, part)
            part.rename(path)
        return digest


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a storage that holds nothing else; strides stay if they are dense."""
    tensor = tensor.resolve_conj().resolve_neg()
    is_whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    if is_whole and torch.ops.aten.is_non_overlapping_and_dense(tensor):
        return tensor
    return tensor.clone(memory_format=torch.preserve_format)


def record(
    text: ReproText,
    names: dict[str, Any],
    module: Any,
    inputs: list[Any],
    save_dir: str,
    described: dict[str, Description],
) -> None:
    """Execute the graph statement by statement; what each assigns is saved before the next."""
    recorder = Recorder(save_dir)
    forward = text.forward
    parameters = [argument.arg for argument in [*forward.args.posonlyargs, *forward.args.args]]
    values: dict[str, Any] = {parameters[0]: module}
    defaults = forward.args.defaults
    for parameter, default in zip(
        parameters[len(parameters) - len(defaults) :], defaults, strict=True
    ):
        values[parameter] = eval(compile(ast.Expression(default), FILE, "eval"), names)
    for parameter, value in zip(parameters[1:], inputs, strict=False):
        values[parameter] = value
    for parameter in parameters[1:]:
        described[parameter] = recorder.describe(values[parameter])

    for statement in forward.body:
        if isinstance(statement, ast.Return):
            break
        code = compile(ast.Module([statement], type_ignores=[]), FILE, "exec")
        exec(code, names, values)
        for name in _assigned(statement):
            described[name] = recorder.describe(values[name])


def _assigned(statement: ast.stmt) -> list[str]:
    """The nodes that a statement names; ``x = None``, which frees a value, names none."""
    if not isinstance(statement, ast.Assign):
        return []
    if isinstance(statement.value, ast.Constant) and statement.value.value is None:
        return []
    found = []
    for target in statement.targets:
        for item in ast.walk(target):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                found.append(item.id)
    return found
