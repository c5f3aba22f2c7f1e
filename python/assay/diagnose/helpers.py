"""Functions in Dynamo's graphs that have no name, so that no file can call them."""

from __future__ import annotations

import torch

from assay import _targets

# What Dynamo itself defines inside of its functions and puts into a graph, by qualified name. They
# return their first argument; what they do besides matters to no later call.
_RETURN_THEIR_ARGUMENT = ("_lower_version_count_by_1",)  # of ``x.data = y``


def without_dynamos(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph, or if it calls a helper that Dynamo made, a copy that does not."""
    if not any(_is_dynamos(node) for node in gm.graph.nodes):
        return gm
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in list(graph.nodes):
        if _is_dynamos(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return torch.fx.GraphModule(gm, graph)


def unreachable(gm: torch.fx.GraphModule) -> str | None:
    """A function of the script's that the graph calls and that cannot be imported."""
    for node in gm.graph.nodes:
        if node.op == "call_function" and _targets.name_of(node.target).startswith(
            _OF_THIS_PROCESS
        ):
            return getattr(node.target, "__qualname__", None) or repr(node.target)
    return None


_OF_THIS_PROCESS = ("assay.fx.objects.", "__main__.")


def _is_dynamos(node: torch.fx.Node) -> bool:
    name = getattr(node.target, "__qualname__", "")
    return node.op == "call_function" and name.rpartition(".")[2] in _RETURN_THEIR_ARGUMENT
