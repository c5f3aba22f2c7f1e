"""``assay.CompileProfiler``: graph breaks and recompiles of a program, by place and reason.

>>> with assay.CompileProfiler() as prof:
...     compiled = assay.compile(my_model, backend=prof)
...     compiled(x)
...     print(prof.report())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from assay._observer import Observer, Record

__all__ = ["CompileProfiler"]


class CompileProfiler(Observer):
    """Compiles with a backend and without a limit of the cache, and counts."""

    cache_limit = 2**31 - 1

    def __init__(self, backend: str | Callable[..., Any] = "eager") -> None:
        super().__init__(backend)

    def __enter__(self) -> CompileProfiler:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @property
    def frame_count(self) -> int:
        """How many graphs were compiled."""
        return sum(record.graph is not None for record in self.records())

    @property
    def op_count(self) -> int:
        """How many operators they call."""
        return sum(len(record.ops) for record in self.records())

    def get_metrics(self) -> dict[str, Any]:
        """The guards that failed, by the place that was then compiled again."""
        failures: dict[str, list[str]] = {}
        for record in self.records():
            if record.recompile:
                failures.setdefault(_place(record), []).append(record.recompile)
        return {"guard_failures": failures}

    def report(self) -> str:
        """Breaks and recompiles as text; call it after as many iterations as gave you trouble."""
        records = self.records()
        breaks = Counter(
            (_break_place(record), record.reason.reason)
            for record in records
            if record.reason.graph_break
        )
        recompiles = Counter(
            (_place(record), record.recompile) for record in records if record.recompile
        )
        eager = Counter(
            (_place(record), record.eager_reason) for record in records if record.eager_reason
        )
        graphs = sum(record.graph is not None for record in records)
        ops = sum(len(record.ops) for record in records)
        return "\n".join(
            [
                "Assay Profiler Report",
                "=====================",
                f"{graphs} graphs with {ops} ops were compiled.",
                "",
                "Graph Breaks",
                "------------",
                *_table(breaks, "No graph breaks."),
                "",
                "Recompilation",
                "-------------",
                *_table(recompiles, "No recompiles."),
                *_advice(recompiles),
                *(
                    ["", "Run by Backend eager", "--------------------", *_table(eager, "")]
                    if eager
                    else []
                ),
                "",
            ]
        )


def _place(record: Record) -> str:
    return f"{record.function} ({record.file}:{record.line})"


def _break_place(record: Record) -> str:
    if not record.reason.user_stack:
        return _place(record)
    frame = record.reason.user_stack[-1]
    return f"{frame.name} ({frame.filename}:{frame.lineno})"


def _table(counts: Counter[tuple[str, str]], nothing: str) -> Iterable[str]:
    if not counts:
        return [nothing]
    rows = [("Times", "Place", "Reason")]
    rows += [(str(count), place, reason) for (place, reason), count in counts.most_common()]
    width = max(len(place) for _, place, _ in rows)
    return [f"{times:>5}  {place:<{width}}  {reason}" for times, place, reason in rows]


def _advice(recompiles: Counter[tuple[str, str]]) -> list[str]:
    by_place = Counter(place for place, _ in recompiles.elements())
    if not by_place:
        return []
    needed = 1 + max(by_place.values())
    return ["", f"Set config.cache_size_limit to {needed} to keep all of them compiled."]
