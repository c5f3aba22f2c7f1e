"""Conversion between ``torch.fx.GraphModule`` and Assay's graphs.

>>> graph = assay.fx.from_graph_module(gm)
>>> print(graph.code)                       # the graph as a Python program
>>> gm = assay.fx.to_graph_module(graph)    # and back: gm.graph, gm.code, gm(x)

Nothing that Dynamo and AOTAutograd produce is lost: kinds of nodes, names, nested arguments,
targets (``node.target is torch.relu`` holds), the user's stack, subgraphs, and the tensors and
modules that are attributes. The text form has the same except for the contents of large tensors,
which it describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.fx

from assay import _C
from assay._graph import Graph
from assay._targets import objects

__all__ = ["from_graph_module", "objects", "to_graph_module"]


def from_graph_module(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any] | None = None
) -> Graph:
    """The graph of a GraphModule; it keeps the module's tensors and submodules.

    ``example_inputs`` describe placeholders that have neither ``val`` nor ``example_value`` in
    their ``meta``. Raises :class:`assay.UserError` for what a graph cannot hold.
    """
    return Graph._of(_C.graph_from_module(gm, example_inputs))


def to_graph_module(graph: Graph | str) -> torch.fx.GraphModule:
    """The GraphModule of a graph or of a graph's text.

    Whatever a text names is imported, so convert only texts that you would run.
    """
    handle = _C.Graph.parse(graph) if isinstance(graph, str) else graph._graph
    return _C.module_from_graph(handle)
