"""Differences about which only the script is strict: an assertion of its own, a number it prints.

A comparison gives a compiled graph the room that eager's own rounding errors take, seen from
float64. A script that holds its results against eager's gives less: half precision that is kept in
float32, a singular matrix. So where the script shows a difference and no graph is wrong, they are
compared with eager alone, about as closely as the script does it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.diagnose import accuracy, graphs, ladder, output
from assay.diagnose.graphs import Graph

if TYPE_CHECKING:
    from assay.diagnose.procedure import Procedure

USUAL = 1e-3  # what graphs are allowed
OF_CHECKS = 1e-5  # for checks of the script's own: torch.testing.assert_close asks for 1.3e-6


def diagnose(
    procedure: Procedure, difference: tuple[int, str, str] | None, found: list[Graph]
) -> bool:
    """Reduce the graph that differs as closely as the script looks; whether there is one."""
    ours = graphs.of_dynamo(found)
    if difference is None and len(ours) != 1:
        return False  # which of several graphs an assertion is about is not known
    tolerance = OF_CHECKS if difference is None else _tolerance(difference)
    candidates = [graph for graph in ours if graph.is_reducible and not graph.is_random]
    wrong = accuracy.find_wrong(
        procedure.runs, [graph.held_to_eager(tolerance) for graph in candidates]
    )
    if wrong is None:
        return False
    graph, _ = wrong
    verdict = procedure.verdict
    shown = (verdict.kind, verdict.failure)
    verdict.kind, verdict.step, verdict.graph = "accuracy", "compare", f"graph {graph.number}"
    verdict.stage = ladder.last_stage(graph.backend)
    if not procedure.reduce_graph(graph, is_accuracy=True):
        verdict.kind, verdict.failure = shown
        return False
    verdict.failure = verdict.signature.get("text", "")
    verdict.note(f"the script itself shows it as: {shown[1]}")
    verdict.note(
        f"the graph was compared with eager alone, with a tolerance of {tolerance:.0e}: measured "
        "against float64, the compiled results are about as good as eager's"
    )
    procedure.finish()
    return True


def _tolerance(difference: tuple[int, str, str]) -> float:
    """A tenth of what the printed numbers differ by, at most the usual."""
    _, left, right = difference
    errors = []
    for a, b in zip(output.numbers(left), output.numbers(right), strict=False):
        largest = max(abs(a), abs(b))
        if a != b and math.isfinite(largest) and largest > 0:
            errors.append(abs(a - b) / largest)
    return min(USUAL, max(errors, default=1.0) / 10)
