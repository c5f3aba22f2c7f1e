"""A graph as Python holds one; :class:`assay.Graph`."""

from __future__ import annotations

from typing import Any

from assay import _C

__all__ = ["Graph"]


class Graph:
    """A graph parsed from its text form, ready to run many times.

    >>> graph = assay.parse(open("graph.py").read())
    >>> graph(torch.randn(4, 4))

    :func:`assay.fx.from_graph_module` makes one from a ``torch.fx.GraphModule``.
    """

    def __init__(self, text: str, name: str = "<text>") -> None:
        self._graph = _C.Graph(text, name)

    @classmethod
    def _of(cls, handle: _C.Graph) -> Graph:
        made = cls.__new__(cls)
        made._graph = handle
        return made

    @property
    def code(self) -> str:
        """The graph as a Python program that stock PyTorch runs."""
        return self._graph.code

    def __len__(self) -> int:
        return len(self._graph)

    def __call__(self, *inputs: Any) -> Any:
        """Run with one value per placeholder."""
        return self._graph(*inputs)
