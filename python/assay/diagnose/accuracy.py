"""Which of the captured graphs computes something else than eager, if nothing raises."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from assay.diagnose.graphs import Graph
from assay.diagnose.runs import Runs, is_failure

Json = dict[str, Any]


# Kinds of differences that other random numbers explain.
NUMERIC = ("values", "integers", "nan")


# Kinds of differences that a comparison looks for on request only.
EXTRAS = ("strides", "aliasing", "second_call", "exception")

# Strides that eager does not promise: a failure only where the script shows these very ones.
ALL_STRIDES = "all_strides"


def trial(runs: Runs, graph: Graph, extras: Sequence[str] = ()) -> Json:
    """A graph compared with eager."""
    return runs.trial(
        graph.file,
        graph.backend,
        accuracy=True,
        extras=extras,
        threads=graph.threads,
        backend_file=graph.backend_file,
    )


def find_wrong(
    runs: Runs, graphs: list[Graph], extras: Sequence[str] = ()
) -> tuple[Graph, Json] | None:
    """The first graph, in the order of compilation, that differs from eager; and the trial."""

    def test(graph: Graph) -> tuple[Graph, Json]:
        answer = trial(runs, graph, extras)
        difference = (answer.get("report") or {}).get("accuracy") or {}
        if difference.get("kind") in NUMERIC and graph.is_random:
            graph = graph.with_eager_random()
            answer = trial(runs, graph, extras)
        return graph, answer

    usable = [graph for graph in graphs if graph.is_usable]
    with ThreadPoolExecutor(max_workers=2) as threads:
        for graph, answer in threads.map(test, usable):
            if is_failure(answer):
                threads.shutdown(wait=False, cancel_futures=True)
                return graph, answer
    return None


def unusable(graphs: list[Graph]) -> list[str]:
    """Why some could not be compared."""
    return [f"{Path(graph.file).name}: {graph.problem}" for graph in graphs if graph.problem]
