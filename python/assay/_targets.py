"""What a node of a graph calls, as a Python object and by its qualified name.

The extension asks here for what it has not seen yet (python/binding/fx_targets.cpp keeps the
answers). A name that was found for an object always leads back to that very object.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import re
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.fx.node import _get_qualified_name

from assay.errors import UserError

__all__ = ["OPERATORS", "find", "name_of", "objects"]


class _Objects:
    """Functions that cannot be imported (lambdas, local functions), by the names graphs use.

    They live as long as the process: a graph that names one may be used at any time.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def add(self, target: Any) -> str:
        name = self._names.get(id(target))
        if name is None:
            wish = re.sub(r"\W", "_", getattr(target, "__name__", type(target).__name__)).strip("_")
            name = f"{wish or 'function'}_{len(self._names)}"
            self._names[id(target)] = name
            setattr(self, name, target)
        return f"{_OBJECTS}.{name}"


OPERATORS = (OpOverload, OpOverloadPacket, HigherOrderOperator)
_OBJECTS = "assay.fx.objects"
objects = _Objects()


def find(name: str) -> Any:
    """The object that a qualified name means; raises :class:`assay.UserError` if there is none."""
    first, *rest = name.split(".")
    if first == "_operator":
        first = "operator"
    if not rest and hasattr(builtins, first):
        return getattr(builtins, first)
    try:
        found: Any = importlib.import_module(first)
        path = first
        for part in rest:
            path += "." + part
            found = _member(found, part, path)
    except (AttributeError, ImportError) as error:
        raise UserError(_not_found(name, str(error))) from error
    return found


def _member(parent: Any, name: str, path: str) -> Any:
    try:
        return getattr(parent, name)
    except AttributeError:
        if path.startswith("torch.ops.higher_order."):
            importlib.import_module("torch._higher_order_ops")  # registers them
            return getattr(parent, name)
        if not isinstance(parent, types.ModuleType) or path.startswith("torch.ops."):
            raise
    try:  # a submodule that nobody has imported yet
        return importlib.import_module(path)
    except ModuleNotFoundError:
        raise AttributeError(f"module '{parent.__name__}' has no attribute '{name}'") from None


def _not_found(name: str, why: str) -> str:
    if name.startswith("torch.ops."):
        hint = "import the module that registers this operator first"
    else:
        hint = "the graph names a function that this process cannot import"
    return f"'{name}' does not exist: {why}\n  hint: {hint}"


def name_of(target: Any) -> str:
    """The qualified name by which :func:`find` finds the object again."""
    for name in _candidates(target):
        if leads_to(name, target):
            return name
    if not callable(target):
        raise UserError(
            f"a graph cannot hold a Python object of type '{type(target).__qualname__}'"
        )
    return objects.add(target)


def leads_to(name: str, target: Any) -> bool:
    """Whether the name means that object."""
    try:
        found = find(name)
    except UserError:
        return False
    # Some objects are made anew by every access: C.method where method is a classmethod.
    return found is target or (isinstance(target, _REMADE) and bool(found == target))


_REMADE = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


def _candidates(target: Any) -> Iterator[str]:
    """Names that the object may have, those that FX prints first."""
    if isinstance(target, OPERATORS[:2]):
        yield f"torch.ops.{target}"
        return
    if isinstance(target, HigherOrderOperator):
        yield f"torch.ops.higher_order.{target.name()}"
    kind = type(target)
    if hasattr(kind, "__members__"):  # an enum's value, Python's or pybind11's
        for name in (kind.__qualname__, kind.__qualname__.lstrip("_")):
            yield f"{kind.__module__}.{name}.{target.name}"
        return
    if getattr(target, "__module__", None) == "_operator":
        yield f"operator.{target.__name__}"
    if callable(target) and isinstance(getattr(target, "__name__", None), str):
        with contextlib.suppress(AttributeError, RuntimeError):  # FX has no name for it
            yield _get_qualified_name(target)
        resolved = torch.overrides.resolve_name(target) if _is_hashable(target) else None
        if resolved is not None:
            yield resolved
    module = getattr(target, "__module__", None)
    qualified = getattr(target, "__qualname__", None)
    if isinstance(qualified, str) and "<" not in qualified:
        if isinstance(module, str):
            yield f"{module}.{qualified}"
        for home in _HOMES:
            yield f"{home}.{qualified}"
            yield f"{home}.{qualified.rpartition('.')[2]}"
    text = repr(target)
    if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", text):  # torch.per_tensor_affine
        yield text


# Where C functions that know no module of their own are found.
_HOMES = ("torch", "torch.Tensor", "torch._C", "torch._C._nn", "torch.nn.functional", "math")


def _is_hashable(target: Any) -> bool:
    try:
        hash(target)
    except TypeError:
        return False
    return True
