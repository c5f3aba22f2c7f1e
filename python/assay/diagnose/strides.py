"""Strides that eager does not promise, where the script prints these very ones.

Those of a dimension with one element, or of an expanded result, are of no importance to most
programs, and compilers choose them freely. So no graph is at fault because of them alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.diagnose import accuracy, graphs, ladder
from assay.diagnose.graphs import Graph

if TYPE_CHECKING:
    from assay.diagnose.procedure import Procedure

BOTH = re.compile(r"eager's strides are \(([^)]*)\), the result's \(([^)]*)\)")


def diagnose(procedure: Procedure, difference: tuple[int, str, str], found: list[Graph]) -> bool:
    """Reduce the graph whose strides the script prints, if there is one; whether there is."""
    _, expected, printed = difference
    reducible = [graph for graph in graphs.of_dynamo(found) if graph.is_reducible]
    wrong = accuracy.find_wrong(procedure.runs, reducible, [accuracy.ALL_STRIDES])
    if wrong is None:
        return False
    graph, answer = wrong
    report = answer.get("report") or {}
    both = BOTH.search(str(report.get("message")))
    if both is None or both[1] not in expected or both[2] not in printed:
        return False
    verdict = procedure.verdict
    shown = (verdict.kind, verdict.failure)
    verdict.kind, verdict.step, verdict.graph = "accuracy", "compare", f"graph {graph.number}"
    verdict.stage = ladder.last_stage(graph.backend)
    if not procedure.reduce_graph(graph, is_accuracy=True, all_strides=True):
        verdict.kind, verdict.failure = shown
        return False
    verdict.failure = verdict.signature.get("text", "")
    verdict.note(f"the script itself shows it as: {shown[1]}")
    procedure.finish()
    return True
