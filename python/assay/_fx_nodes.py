"""The parts of a ``torch.fx.GraphModule`` that the extension leaves to Python.

python/binding/fx_to_module.cpp makes the nodes. It does not use ``Graph.create_node``, which costs
ten times as much, so what that records about a node is recorded here, for all of them at once.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.passes.shape_prop import TensorMetadata
from torch.utils._python_dispatch import _disable_current_modes

from assay import _C

__all__ = ["Examples", "NodeMeta", "adopt", "graph_module"]


def adopt(graph: torch.fx.Graph, nodes: list[torch.fx.Node]) -> None:
    """Make the graph know nodes that were linked into it."""
    namespace: Any = graph._graph_namespace
    table = graph._find_nodes_lookup_table.table
    for node in nodes:
        name, op = node.name, node.op
        namespace._used_names.add(name)
        namespace._obj_to_name[node] = name
        numbered = _NUMBERED(name)
        if numbered is not None:
            base, number = numbered.groups()
            counts = namespace._base_count
            counts[base] = max(counts.get(base, 0), int(number))
        table[op, node.target if op == "call_function" else None][node] = None
    graph._len += len(nodes)


_NUMBERED = re.compile(r"(.*)_(\d+)").fullmatch


def graph_module(
    attributes: dict[str, Any], graph: torch.fx.Graph, name: str
) -> torch.fx.GraphModule:
    """A module whose code is generated when it is first called, as Dynamo's."""
    return _LazyGraphModule(attributes, graph, name)


class Examples:
    """The example values of one module's nodes: FakeTensors of one mode."""

    def __init__(self) -> None:
        self._mode: FakeTensorMode | None = None

    def make(self, annotation: str) -> Any:
        # Whoever asks may be tracing; this is not part of the trace.
        with _disable_current_modes(), torch.inference_mode(False):
            if self._mode is None:
                self._mode = FakeTensorMode()
            return _C.example_from_annotation(annotation, self._mode)


class NodeMeta(dict[str, Any]):
    """A node's ``meta`` whose example value is made when somebody asks for it.

    Making them takes ten times as long as everything else about a node, and few backends look.
    """

    def __init__(self, key: str, annotation: str, examples: Examples) -> None:
        super().__init__(assay_value=annotation)
        self._lazy: tuple[str, Examples] | None = (key, examples)

    def _fill(self) -> None:
        if self._lazy is None:
            return
        key, examples = self._lazy
        self._lazy = None
        value = examples.make(super().__getitem__("assay_value"))
        if value is None:
            return
        super().setdefault(key, value)
        if isinstance(value, torch.Tensor):
            metadata = TensorMetadata(
                value.shape, value.dtype, value.requires_grad, value.stride(), None, False, {}
            )
            super().setdefault("tensor_meta", metadata)

    def __missing__(self, key: str) -> Any:
        if self._lazy is None:
            raise KeyError(key)
        self._fill()
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        if not super().__contains__(key):
            self._fill()
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        self._fill()
        return super().__contains__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in _VALUE_KEYS:
            self._fill()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._fill()
        super().__delitem__(key)

    def pop(self, *args: Any) -> Any:
        self._fill()
        return super().pop(*args)

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return super().__iter__()

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        self._fill()
        return super().__len__()

    def keys(self) -> Any:
        self._fill()
        return super().keys()

    def values(self) -> Any:
        self._fill()
        return super().values()

    def items(self) -> Any:
        self._fill()
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._fill()
        return dict(self)

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> Any:
        return (dict, (self.copy(),))


_VALUE_KEYS = frozenset({"val", "example_value", "tensor_meta"})
