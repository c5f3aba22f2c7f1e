"""The guide's procedure, from the first run to the verdict.

eager and the compiled script run at the same time. What failed there says where to look: in a
graph (reduce it), in Dynamo (make the script smaller), or in numbers (compare graph by graph).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.diagnose import (
    accuracy,
    exceptions,
    graphs,
    ladder,
    output,
    own_procedure,
    reduction,
    strictness,
    strides,
    whole_script,
)
from assay.diagnose.follow_up import FollowUp
from assay.diagnose.graphs import Graph
from assay.diagnose.outcome import Outcome, short_type
from assay.diagnose.progress import Progress
from assay.diagnose.runs import OutOfTime, Runs
from assay.diagnose.verdict import Verdict

Json = dict[str, Any]

FALLBACK_RANDOM = [["torch._inductor.config.fallback_random", True]]


class Procedure:
    """One diagnosis."""

    def __init__(self, runs: Runs, progress: Progress) -> None:
        self.runs = runs
        self.progress = progress
        self.verdict = Verdict()
        self.options = runs.options
        self.prints_differently = False
        self.eager: Outcome | None = None  # if that raises, and the compiled script does not
        self.eager_run: Outcome | None = None

    def run(self) -> Verdict:
        """The whole procedure; what is known when the budget ends is the result."""
        try:
            self._diagnose()
        except OutOfTime:
            if self.verdict.status == "fails":
                self.finish()
            else:
                self.verdict.summary = "Unfinished: there was no time to find out."
            self.verdict.note(
                f"the budget of {self.options.budget:g} s is used up; run the same command with a "
                "larger one to go on"
            )
        if self.runs.killed:
            self.verdict.note(f"{self.runs.killed} runs were killed from outside and repeated")
        return self.verdict

    def _diagnose(self) -> None:
        eager, compiled = self._first_runs()
        if self._is_killed(eager) or self._is_killed(compiled):
            return
        found = graphs.of(compiled)
        if eager.kind != "passed":
            if self.options.stack == "torch" and exceptions.is_lost(eager, compiled):
                exceptions.diagnose(self, eager, compiled, found)
            else:
                self._fails_in_eager(eager, compiled)
            return
        if self.options.stack == "assay":
            own_procedure.diagnose(self, eager, compiled)
            return
        if compiled.kind in ("signal", "timeout") or (
            compiled.kind == "memory" and not compiled.failure
        ):
            self._crash(compiled, found)
        elif compiled.failure and not exceptions.is_the_programs_own(self, eager, compiled, found):
            self._failure_in_graph(compiled, found)
        elif compiled.kind == "exception" and _is_compilers(compiled):
            self._failure_outside_graphs(compiled)
        else:
            self._silent(eager, compiled, found)

    # --- The first runs -----------------------------------------------------------------------

    def _first_runs(self) -> tuple[Outcome, Outcome]:
        """eager and the script as it is, at the same time."""
        with self.progress.step("starting PyTorch"):
            self.runs.server.wait()
        directory = str(self.runs.directory.path / "graphs")
        with self.progress.step("eager, compiled"):
            start_eager = self.runs.start_script("eager", backend="none")
            start_compiled = self.runs.start_script("compiled", graphs=directory)
            self.eager_run = eager = start_eager()
            self.runs.eager_seconds = eager.seconds
            self.progress.say("eager", eager.text(), eager.seconds)
            compiled = start_compiled()
        step = self.runs.limits()["step"]
        if compiled.kind == "timeout" and compiled.seconds < step and not self.options.timeout:
            # It was stopped before it was known how long the script takes.
            compiled = self.runs.script("compiled", graphs=directory, again=True)
        self.progress.say("compiled", compiled.text(), compiled.seconds)
        return eager, compiled

    def _is_killed(self, outcome: Outcome) -> bool:
        if outcome.kind != "killed":
            return False
        self.verdict.status = "killed"
        self.verdict.summary = (
            "No verdict: every run of the script was killed from outside (by the out-of-memory "
            "killer, another process or a user), which says nothing about the program."
        )
        return True

    def _fails_in_eager(self, eager: Outcome, compiled: Outcome) -> None:
        verdict = self.verdict
        verdict.status = "fails_in_eager"
        verdict.kind, verdict.failure = eager.kind, eager.text()
        verdict.traceback = eager.tail(eager.stderr, 4000)
        verdict.frame = eager.raised.get("frame") or {}
        same = compiled.signature == eager.signature
        also = "" if same else f" Compiled, it {_verb(compiled)}, which is another question."
        if eager.kind == "timeout":
            also += " If it only needs more time, use --timeout."
        verdict.summary = (
            f"The script fails without any compiler too: {eager.text()}. torch.compile is not at "
            f"fault.{also}"
        )

    # --- A failure in a graph -----------------------------------------------------------------

    def _failure_in_graph(self, compiled: Outcome, found: list[Graph]) -> None:
        failure = compiled.failure
        verdict = self.verdict
        verdict.status = "fails"
        verdict.kind = "memory" if compiled.kind == "memory" else "exception"
        message = failure["message"].strip().splitlines() or [""]
        verdict.failure = f"{short_type(failure['type'])}: {message[0][:300]}"
        verdict.traceback = failure.get("stack", "")
        verdict.operator = failure.get("operator", "")
        verdict.frame = compiled.raised.get("frame") or {}
        if compiled.kind == "passed":
            verdict.note("the script caught the failure and went on without compiled code")
        self._at(failure, found)
        self._reduce_or_shrink(graphs.at(found, failure), compiled, is_accuracy=False)

    def _crash(self, compiled: Outcome, found: list[Graph]) -> None:
        verdict = self.verdict
        verdict.status, verdict.kind, verdict.failure = "fails", compiled.kind, compiled.text()
        verdict.traceback = compiled.tail(compiled.stderr, 4000)
        at = compiled.at
        if at.get("graph") is None:  # while Dynamo traces, or in the script's own code
            verdict.stage, verdict.step = "dynamo", "capture"
            self.without_graphs(compiled)
            return
        call = at.get("call") or 0
        if call > 1:  # its inputs are not those of the first call
            saved = self.runs.script(
                "compiled_again",
                graphs=str(self.runs.directory.path / "graphs"),
                save_call=[at["graph"], call],
            )
            found = graphs.of(saved) or found
        self._at(at, found)
        timeout = None
        if compiled.kind == "timeout":
            # Until it hung it had compiled; a trial does that too.
            before = max(0.0, compiled.seconds - self.runs.limits()["step"])
            eager = self.runs.eager_seconds or 0.0
            timeout = self.options.timeout or 4.0 + 2 * before + 10 * eager
        self._reduce_or_shrink(graphs.at(found, at), compiled, is_accuracy=False, timeout=timeout)

    def _at(self, where: Json, found: list[Graph]) -> None:
        """Stage, step and graph, as the hooks saw them."""
        verdict = self.verdict
        candidates = graphs.at(found, where)
        backend = candidates[0].backend if candidates else "inductor"
        verdict.step = where.get("stage", "")
        is_inner = where.get("half") is not None
        verdict.graph = f"graph {where.get('graph')}" + (
            f", {where['half']} half" if is_inner else ""
        )
        if is_inner or backend != "inductor" or verdict.step == "run":
            verdict.stage = ladder.last_stage(backend)
        else:  # in the backend, but not in inductor's own compiler
            verdict.stage = "aot_autograd"

    def _reduce_or_shrink(
        self,
        files: list[Graph],
        compiled: Outcome,
        *,
        is_accuracy: bool,
        timeout: float | None = None,
    ) -> None:
        """Reduce the first file that shows the failure by itself; else the script."""
        for graph in files:
            for note in graph.notes:
                self.verdict.note(note)
            if graph.problem:
                self.verdict.note(f"the graph could not be saved: {graph.problem}")
        if not self.options.reduces:
            whole_script.climb(self, compiled)
            self.finish()
            return
        for graph in [graph for graph in files if graph.is_reducible]:
            if self.reduce_graph(graph, is_accuracy=is_accuracy, timeout=timeout):
                self.finish()
                return
        self.without_graphs(compiled)

    def reduce_graph(
        self,
        graph: Graph,
        *,
        is_accuracy: bool,
        timeout: float | None = None,
        all_strides: bool = False,
    ) -> bool:
        """Reduce a file; whether it shows the failure by itself."""
        verdict = self.verdict
        name = f"reduce {graph.file.stem}"
        with self.progress.step(name):
            before = self.runs.elapsed()
            result = reduction.reduce(
                self.runs, graph, accuracy=is_accuracy, timeout=timeout, all_strides=all_strides
            )
            seconds = self.runs.elapsed() - before
        status = result.get("status")
        self.runs.directory.add(name, {"file": str(graph.file)}, result, str(status))
        if status == "killed":
            verdict.note(f"the reduction is inconclusive: {result.get('message')}")
        if status not in ("reduced", "unfinished") or "file" not in result:
            self.progress.say(name, f"{status}: {str(result.get('message'))[:200]}", seconds)
            return False
        signature = result.get("signature") or {}
        kind = signature.get("kind", "")
        if verdict.kind == "exception" and signature.get("type") == "exception":
            verdict.kind = "accuracy"  # eager raises as well, but something else
        if status == "reduced" and kind != verdict.kind:
            self.progress.say(name, f"another failure: {result['signature']['text']}", seconds)
            verdict.note(
                f"{graph.file.stem} by itself fails differently: {result['signature']['text']}"
            )
            return False
        file = Path(result["file"])
        verdict.reduction, verdict.signature = result, result.get("signature") or {}
        verdict.calls, verdict.code = reduction.calls_of(file), reduction.code_of(file)
        verdict.repro = str(file)
        verdict.passing = result.get("passing", "")
        self.progress.say(
            name, f"{result.get('calls', '?')} of {result.get('calls_before', '?')} calls", seconds
        )
        if self.options.stack == "torch" and status == "reduced":
            self._follow_up(file, graph)
        return True

    def _follow_up(self, file: Path, graph: Graph) -> None:
        verdict = self.verdict
        asks = FollowUp(
            self.runs,
            file,
            graph.backend,
            verdict.signature,
            threads=int(verdict.reduction.get("threads") or 0),
            backend_file=graph.backend_file,
        )
        if graph.half == "dynamo":
            with self.progress.step("the ladder on the repro"):
                verdict.stage, failing = asks.rungs()
            verdict.rungs = {
                rung: "fails" if fails else "passes" for rung, fails in failing.items()
            }
            verdict.rungs[graph.backend] = "fails"
            self.progress.say("stage", verdict.stage)
        if graph.backend != "inductor" or verdict.stage != "inductor":
            return
        if verdict.kind in ("timeout", "memory"):
            return  # every further trial would take the whole limit
        with self.progress.step("which pass or lowering"):
            verdict.guilty_pass = asks.guilty_pass()
        with self.progress.step("a setting that avoids it"):
            for text, settings in asks.settings():
                verdict.workaround = text
                outcome = self.runs.script("with_workaround", settings=list(settings.items()))
                if self._is_as_eager(outcome):
                    verdict.workaround_checked = True
                    break
        if verdict.workaround:
            self.progress.say("avoided by", verdict.workaround)

    def _is_as_eager(self, outcome: Outcome) -> bool:
        if self.eager is not None:
            return exceptions.is_alike(self.eager, outcome)
        is_same = not self.prints_differently or self.differs(outcome) is None
        return outcome.kind == "passed" and not outcome.failure and is_same

    # --- Failures that no graph has -----------------------------------------------------------

    def _failure_outside_graphs(self, compiled: Outcome) -> None:
        verdict = self.verdict
        verdict.status, verdict.kind, verdict.failure = "fails", "exception", compiled.text()
        verdict.stage, verdict.step = "dynamo", "capture"
        verdict.frame = compiled.raised.get("frame") or {}
        verdict.traceback = compiled.raised.get("message", "")
        self.without_graphs(compiled)

    def without_graphs(self, compiled: Outcome) -> None:
        """No graph shows it: the stage from runs of the script, which is then made smaller."""
        self.make_smaller(whole_script.climb(self, compiled))

    def make_smaller(self, compiled: Outcome) -> None:
        whole_script.make_smaller(self, compiled)
        self.finish()

    # --- Nothing raised in the compiler -------------------------------------------------------

    def _silent(self, eager: Outcome, compiled: Outcome, found: list[Graph]) -> None:
        """The script's own verdict, and then the graphs' numbers."""
        verdict = self.verdict
        difference = None
        if compiled.kind == "passed":
            difference = self.difference(eager, compiled)
            if difference is not None:
                verdict.kind, verdict.step = "output", "compare"
                self.prints_differently = True
                verdict.failure = output.sentence(difference)
        else:
            verdict.kind, verdict.failure = compiled.kind, compiled.text()
            verdict.step = "run" if _raises_by_itself(compiled) else "compare"
            verdict.traceback = compiled.tail(compiled.stderr, 4000)
            verdict.frame = compiled.raised.get("frame") or {}
        if verdict.kind:
            verdict.status = "fails"
            self.progress.say("the script's verdict", verdict.failure[:150])
        ours = [graph for graph in graphs.of_dynamo(found) if graph.is_usable]
        # If only one graph can be wrong, the reduction compares it first.
        is_only_one = bool(verdict.kind) and len(ours) == 1 and self.options.reduces
        is_only_one = is_only_one and not ours[0].is_random and ours[0].is_reducible
        if is_only_one and self.wrong_graph(ours[0], {}, compiled, is_certain=False):
            return
        # What a script may rely on, if it shows a difference; alone it is no failure of the script.
        extras = accuracy.EXTRAS if verdict.kind else ("exception",)
        wrong = self.find_wrong(graphs.of_dynamo(found), extras=extras)
        halves = [graph for graph in found if graph.half != "dynamo"]
        if wrong is None and verdict.kind:
            wrong = self.find_wrong(halves)
        elif wrong is not None and not wrong[0].is_reducible:
            of_it = [graph for graph in halves if graph.number == wrong[0].number]
            wrong = self.find_wrong(of_it) or wrong
        for problem in accuracy.unusable(found):
            verdict.note(f"a graph could not be compared: {problem}")
        if wrong is not None:
            self.wrong_graph(*wrong, compiled)
        elif verdict.kind:
            if difference is not None and strides.diagnose(self, difference, found):
                return
            if not strictness.diagnose(self, difference, found):
                self.without_graphs(compiled)
        else:
            verdict.status = "fine"
            count = len(graphs.of_dynamo(found))
            verdict.summary = (
                "Nothing fails: the compiled script ends as in eager and prints the same, and "
                f"{'its only graph computes' if count == 1 else f'all {count} graphs compute'} "
                "what eager computes."
                if count
                else "Nothing fails, and nothing was compiled: the script has no graph."
            )

    def find_wrong(
        self, candidates: list[Graph], *, extras: Sequence[str] = ()
    ) -> tuple[Graph, Json] | None:
        """The first of these graphs that differs from eager."""
        with self.progress.step("comparing graph by graph"):
            before = self.runs.elapsed()
            wrong = accuracy.find_wrong(self.runs, candidates, extras)
        self.progress.say(
            "graphs against eager",
            "no difference" if wrong is None else f"{wrong[0].file.stem} differs",
            self.runs.elapsed() - before,
        )
        return wrong

    def difference(self, eager: Outcome, compiled: Outcome) -> tuple[int, str, str] | None:
        """Where the printed output differs, if that is not the script's own doing."""
        expected, found = eager.stdout.read_text(), compiled.stdout.read_text()
        if output.difference(expected, found) is None:
            return None
        again = self.runs.script("eager_again", backend="none")
        text = again.stdout.read_text()
        if not output.repeats(expected, text):
            self.verdict.note(
                "two eager runs print different things; only what repeats was compared"
            )
        difference = output.difference(expected, found, text)
        if difference is None:
            return None
        plain = self.runs.script("fallback_random", settings=FALLBACK_RANDOM)
        are_numbers = output.is_numeric(difference[1], difference[2])
        if plain.kind == "passed" and self.differs(plain) is None and are_numbers:
            self.verdict.note(
                "with torch._inductor.config.fallback_random = True the output is eager's: the "
                "difference is in random numbers only, which inductor draws differently"
            )
            return None
        return difference

    def differs(self, outcome: Outcome) -> tuple[int, str, str] | None:
        logs = self.runs.directory.path / "logs"
        expected, again = logs / "eager.stdout", logs / "eager_again.stdout"
        return output.difference(
            expected.read_text(),
            outcome.stdout.read_text(),
            again.read_text() if again.exists() else None,
        )

    def wrong_graph(
        self, graph: Graph, answer: Json, compiled: Outcome, *, is_certain: bool = True
    ) -> bool:
        """Reduce a graph that differs from eager; whether it does, if that was not certain."""
        verdict = self.verdict
        before = (verdict.kind, verdict.failure)
        report = answer.get("report") or {}
        verdict.kind = "accuracy" if report.get("accuracy") or not is_certain else "exception"
        verdict.step = report.get("stage", "compare")
        verdict.graph = f"graph {graph.number}"
        verdict.stage = ladder.last_stage(graph.backend)
        if not is_certain:
            if not self.reduce_graph(graph, is_accuracy=True):
                verdict.kind, verdict.failure = before
                return False
            verdict.failure = verdict.signature.get("text", "")
        verdict.status = "fails"
        verdict.note(
            f"the script itself shows it as: {before[1]}"
            if before[0]
            else "the script itself does not notice"
        )
        if is_certain:
            text = report.get("message", "")
            verdict.failure = text.splitlines()[0] if text else "the results differ from eager's"
            self._reduce_or_shrink([graph], compiled, is_accuracy=verdict.kind == "accuracy")
        else:
            self.finish()
        return True

    # --- The verdict --------------------------------------------------------------------------

    def finish(self) -> None:
        verdict = self.verdict
        where = ladder.describe(verdict.stage, None, verdict.step)
        what = f" {', '.join(verdict.calls[:4])}" if verdict.calls else ""
        count = len(verdict.calls)
        plural = "" if count == 1 else "s"
        smallest = f" The smallest program that fails the same way is {count} call{plural}:{what}."
        text = (verdict.signature.get("text") or verdict.failure).rstrip(".")
        verdict.summary = f"The fault is in {where}: {text}." + (smallest if count else "")
        if not count and verdict.repro:
            verdict.summary += " The script was made smaller; see repro.py."


def _verb(outcome: Outcome) -> str:
    return (
        outcome.text()
        if outcome.kind in ("passed", "timeout", "memory")
        else (f"fails with {outcome.text()}")
    )


def _raises_by_itself(outcome: Outcome) -> bool:
    """Whether the script raises something else than what its own checks raise."""
    return outcome.kind == "exception" and outcome.raised["type"] not in _OF_CHECKS


_OF_CHECKS = ("AssertionError", "SystemExit")


def _is_compilers(outcome: Outcome) -> bool:
    """Whether PyTorch's compiler raised it, not the script."""
    kind = outcome.raised.get("type", "")
    # Behind it Dynamo says which line of the script it was tracing.
    stack = outcome.raised.get("stack", "").partition("\nfrom user code:")[0]
    last = [line for line in stack.splitlines() if line.strip().startswith("File ")]
    return kind.startswith(("torch._dynamo.", "torch._inductor.", "torch._functorch.")) or (
        bool(last) and "/torch/_dynamo/" in last[-1]
    )
