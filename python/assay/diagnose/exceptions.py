"""Exceptions of the program's own: eager raises, and the compiled script must raise the same.

A compiler that loses a check of eager's turns an error into numbers, or into another error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.diagnose import accuracy, graphs
from assay.diagnose.graphs import Graph
from assay.diagnose.outcome import Outcome, short_type
from assay.stock.wrappers import quotes

if TYPE_CHECKING:
    from assay.diagnose.procedure import Procedure

IN_COMPILED_CODE = "/torch/_dynamo/eval_frame.py"  # on the stack below ``torch.compile``'s result


def is_alike(eager: Outcome, other: Outcome) -> bool:
    """Whether another run ended with the exception that eager raises, or with a wrapper of it."""
    if other.kind != eager.kind:
        return False
    kind, message = eager.raised["type"], other.raised["message"]
    is_quoted = quotes(message, kind) or _first_line(eager) in message
    return other.raised["type"] == kind or is_quoted


def is_lost(eager: Outcome, compiled: Outcome) -> bool:
    """Whether compiled code goes on, or fails differently, where eager raises."""
    if eager.kind != "exception" or compiled.kind in ("killed", "timeout", "memory"):
        return False
    # The script's own assertion about compiled code says nothing about eager.
    is_assertion = eager.raised["type"] == "AssertionError"
    if is_assertion and IN_COMPILED_CODE not in eager.raised.get("stack", ""):
        return False
    return not is_alike(eager, compiled)


def is_the_programs_own(
    procedure: Procedure, eager: Outcome, compiled: Outcome, found: list[Graph]
) -> bool:
    """Whether a failure that the script catches is what eager raises there too."""
    if compiled.kind != "passed" or eager.kind != "passed":
        return False
    files = [graph for graph in graphs.at(found, compiled.failure) if graph.is_usable]
    for graph in files[:1]:
        answer = accuracy.trial(procedure.runs, graph, extras=["exception"])
        return (answer.get("report") or {}).get("status") == "invalid"
    return False


def diagnose(procedure: Procedure, eager: Outcome, compiled: Outcome, found: list[Graph]) -> None:
    """From the first runs to the verdict."""
    verdict = procedure.verdict
    procedure.eager = eager
    verdict.status, verdict.kind, verdict.step = "fails", "exception", "compare"
    instead = "passes" if compiled.kind == "passed" else f"ends with {compiled.text()}"
    verdict.failure = f"eager raises {eager.text()}; the compiled script {instead}"
    verdict.traceback = eager.raised.get("stack", "")
    verdict.frame = eager.raised.get("frame") or {}
    procedure.progress.say("the script's verdict", verdict.failure[:150])
    if compiled.kind != "signal":
        wrong = procedure.find_wrong(graphs.of_dynamo(found), extras=["exception"])
        if wrong is not None:
            procedure.wrong_graph(*wrong, compiled)
            return
    procedure.without_graphs(compiled)


def _first_line(outcome: Outcome) -> str:
    lines = outcome.raised["message"].strip().splitlines()
    return lines[0] if lines else short_type(outcome.raised["type"])
