"""What is asked of the whole script where no graph shows the failure: its stage, and less of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.diagnose import exceptions, graphs, ladder, output, shrink
from assay.diagnose.outcome import Outcome

if TYPE_CHECKING:
    from assay.diagnose.procedure import Procedure


def climb(procedure: Procedure, compiled: Outcome) -> Outcome:
    """The ladder with the whole script: the first rung that is wrong names the stage.

    It fails as the script does, or prints something else than eager: then that is the failure, and
    what the later stages make of it is not. Returns the run that shows the failure.
    """
    verdict = procedure.verdict
    if procedure.options.stack != "torch":
        return compiled
    for rung, stage in ladder.RUNGS.items():
        outcome = procedure.runs.script(f"rung_{rung}", backend=rung)
        fails = _fails_alike(procedure, outcome, compiled)
        verdict.rungs[rung] = _in_words(procedure, outcome, fails)
        procedure.progress.say(rung, verdict.rungs[rung], outcome.seconds)
        if fails:
            verdict.stage = stage
            return compiled
        difference = _prints_otherwise(procedure, outcome)
        if difference is not None:
            verdict.note(f"with the script's own backend it fails differently: {verdict.failure}")
            verdict.kind, verdict.step = "output", "compare"
            verdict.failure = output.sentence(difference)
            verdict.traceback, verdict.frame = "", {}
            verdict.operator, verdict.graph = "", ""  # of the failure that it is not about
            verdict.rungs[rung] = "prints something else"
            verdict.stage = stage
            procedure.prints_differently = True
            return outcome
    if not verdict.stage:
        backends = [graph.backend for graph in graphs.of_dynamo(graphs.of(compiled))]
        verdict.stage = ladder.last_stage(backends[0] if backends else "inductor")
    return compiled


def _prints_otherwise(procedure: Procedure, outcome: Outcome) -> tuple[int, str, str] | None:
    """Where a rung that ends well prints something else than eager, if the script itself raises."""
    eager = procedure.eager_run
    is_question = procedure.eager is None and procedure.verdict.kind != "output"
    if not is_question or outcome.kind != "passed" or eager is None:
        return None
    return procedure.difference(eager, outcome)


def _in_words(procedure: Procedure, outcome: Outcome, fails: bool) -> str:
    if procedure.eager is not None:
        return f"fails: {outcome.text()}" if fails else "raises what eager does"
    if outcome.kind != "passed":
        return outcome.text()
    return "prints something else" if fails else "passes"


def _fails_alike(procedure: Procedure, outcome: Outcome, compiled: Outcome) -> bool:
    if procedure.eager is not None:
        return not exceptions.is_alike(procedure.eager, outcome)
    if procedure.verdict.kind == "output":
        return outcome.kind == "passed" and procedure.differs(outcome) is not None
    return outcome.signature == compiled.signature != shrink.PASSED


def make_smaller(procedure: Procedure, compiled: Outcome) -> None:
    """The script with fewer statements, while it fails the same way."""
    verdict, runs, options = procedure.verdict, procedure.runs, procedure.options
    if not options.reduces:
        return
    if compiled.kind == "timeout" and not options.timeout:
        verdict.note(
            "the hang is in no graph; with --timeout SECONDS the script itself is made smaller"
        )
        return
    failing = next((rung for rung, stage in ladder.RUNGS.items() if stage == verdict.stage), None)
    with procedure.progress.step("shrinking the script"):
        before = runs.elapsed()
        is_output = verdict.kind == "output"
        result = shrink.shrink(runs, compiled, failing, is_output=is_output, eager=procedure.eager)
    procedure.progress.say(
        "shrink the script",
        f"{result.lines} of {result.lines_before} lines, {result.trials} trials",
        runs.elapsed() - before,
    )
    if result.text is not None:
        verdict.code = result.text
        verdict.repro = str(runs.directory.write("repro.py", result.text))
    else:
        verdict.note("the failure did not repeat, so nothing could be reduced")
    if result.frame:
        verdict.frame = result.frame
