"""The procedure for ``--stack assay``: the debug wrapper has written the graph that failed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from assay.diagnose import output
from assay.diagnose.graphs import Graph
from assay.diagnose.outcome import Outcome

if TYPE_CHECKING:
    from assay.diagnose.procedure import Procedure

STEPS = {"compile": "compile", "run": "run", "backward": "backward", "compare": "compare"}


def diagnose(procedure: Procedure, eager: Outcome, compiled: Outcome) -> None:
    """From the first runs to the verdict."""
    verdict, runs = procedure.verdict, procedure.runs
    if compiled.kind == "passed":
        difference = output.difference(eager.stdout.read_text(), compiled.stdout.read_text())
        directory = runs.directory.path / "compared"
        checked = runs.script("compared", graphs=str(directory), repro_level=4)
        procedure.progress.say("graphs against eager", checked.text(), checked.seconds)
        if checked.kind == "passed" and difference is None:
            verdict.status = "fine"
            verdict.summary = (
                "Nothing fails: the compiled script ends as in eager and prints the same, and its "
                "graphs compute what eager computes."
            )
            return
        verdict.kind = "accuracy" if checked.kind != "passed" else "output"
        verdict.failure = (
            checked.text()
            if difference is None
            else f"line {difference[0]} of its output is {difference[2]!r}, in eager "
            f"{difference[1]!r}"
        )
        failed = checked
    else:
        directory = runs.directory.path / "graphs"
        verdict.kind, verdict.failure, failed = compiled.kind, compiled.text(), compiled
    verdict.status, verdict.stage = "fails", "assay"
    verdict.traceback = failed.raised.get("stack") or failed.tail(failed.stderr, 4000)
    verdict.frame = failed.raised.get("frame") or {}
    for graph in _launchers(directory):
        if not procedure.options.reduces:
            break
        timeout = procedure.options.timeout
        if procedure.reduce_graph(graph, is_accuracy=verdict.kind == "accuracy", timeout=timeout):
            verdict.step = STEPS.get(verdict.signature.get("stage", ""), "run")
            verdict.stage = f"assay, backend {graph.backend}"
            verdict.graph = str(graph.file)
            procedure.finish()
            return
    verdict.step = "capture"
    procedure.make_smaller(failed)


def _launchers(directory: Path) -> list[Graph]:
    """What the debug wrapper has left, the newest first."""
    files = sorted(directory.glob("**/minifier_launcher.py"), key=lambda file: file.stat().st_mtime)
    found = []
    for file in reversed(files):
        backend = re.search(r"backend='(\w+)'", file.read_text())
        found.append(Graph(0, "dynamo", file, backend[1] if backend else "aot_eager"))
    return found
