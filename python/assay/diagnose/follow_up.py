"""What is asked about the smallest program: its stage, the pass, a setting that avoids it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from assay.diagnose import ladder
from assay.diagnose.accuracy import ALL_STRIDES, EXTRAS, NUMERIC
from assay.diagnose.runs import Runs, is_failure

Json = dict[str, Any]

SUBSYSTEMS = ("pre_grad_passes", "joint_graph_passes", "post_grad_passes", "lowerings")
MOST_APPLICATIONS = 1 << 20

INDUCTOR = "torch._inductor.config."
FUNCTORCH = "torch._functorch.config."
# From what costs least to what costs most.
SETTINGS: list[tuple[str, Json]] = [
    ("torch._inductor.config.pattern_matcher = False", {INDUCTOR + "pattern_matcher": False}),
    ("torch._inductor.config.cpp.simdlen = 1", {INDUCTOR + "cpp.simdlen": 1}),
    (
        "torch._inductor.config.emulate_precision_casts = True",
        {INDUCTOR + "emulate_precision_casts": True},
    ),
    (
        "torch._inductor.config.assert_indirect_indexing = False",
        {INDUCTOR + "assert_indirect_indexing": False},
    ),
    ("torch._inductor.config.fallback_random = True", {INDUCTOR + "fallback_random": True}),
    ("torch._inductor.config.cpp.threads = 1", {INDUCTOR + "cpp.threads": 1}),
    (
        "torch._inductor.config.layout_optimization = False",
        {INDUCTOR + "layout_optimization": False},
    ),
    (
        "torch._inductor.config.comprehensive_padding = False",
        {INDUCTOR + "comprehensive_padding": False},
    ),
    (
        "torch._inductor.config.cpp.enable_tiling_heuristics = False",
        {INDUCTOR + "cpp.enable_tiling_heuristics": False},
    ),
    ("torch._inductor.config.max_fusion_size = 1", {INDUCTOR + "max_fusion_size": 1}),
    ("torch._inductor.config.split_reductions = False", {INDUCTOR + "split_reductions": False}),
    ("torch._functorch.config.cse = False", {FUNCTORCH + "cse": False}),
]


class FollowUp:
    """Asks about one file."""

    def __init__(
        self,
        runs: Runs,
        file: Path,
        backend: str,
        signature: Json,
        *,
        threads: int,
        backend_file: Path | None,
    ) -> None:
        self.runs = runs
        self.file = file
        self.backend = backend
        self.accuracy = signature.get("kind") == "accuracy"
        self.difference = signature.get("type") if self.accuracy else None
        self.threads = threads
        self.backend_file = backend_file
        # Nobody waits longer for these answers than for the rest.
        self.end = time.monotonic() + max(8.0, 0.4 * runs.elapsed())

    def _fails(self, backend: str | None = None, **how: Any) -> bool:
        answer = self.runs.trial(
            self.file,
            backend or self.backend,
            accuracy=self.accuracy,
            extras=[self.difference] if self.difference in (*EXTRAS, ALL_STRIDES) else [],
            threads=self.threads,
            backend_file=self.backend_file if backend is None else None,
            **how,
        )
        return is_failure(answer) and self._is_this(answer)

    def _is_this(self, answer: Json) -> bool:
        """Another difference, or an error where a difference is asked about, is another failure."""
        found = ((answer.get("report") or {}).get("accuracy") or {}).get("kind")
        if found is None or self.difference is None:
            return True
        return found == self.difference or {found, self.difference} <= set(NUMERIC)

    def rungs(self) -> tuple[str, dict[str, bool]]:
        """The stage of the first rung that fails, and which rungs do."""
        with ThreadPoolExecutor(max_workers=2) as threads:
            failing = dict(zip(ladder.RUNGS, threads.map(self._fails, ladder.RUNGS), strict=True))
        for rung, stage in ladder.RUNGS.items():
            if failing[rung]:
                return stage, failing
        return ladder.last_stage(self.backend), failing

    def guilty_pass(self) -> Json | None:
        """The first of inductor's parts without which it passes, and its application."""
        for subsystem in SUBSYSTEMS:
            if time.monotonic() > self.end:
                return None
            if self._fails(bisect=(subsystem, 0)):
                continue
            low, high = 0, 1  # passes with low applications
            while not self._fails(bisect=(subsystem, high)):
                low, high = high, 4 * high
                if high > MOST_APPLICATIONS:
                    return None
            while high - low > 1:
                middle = (low + high) // 2
                if self._fails(bisect=(subsystem, middle)):
                    high = middle
                else:
                    low = middle
            return {
                "subsystem": subsystem,
                "application": high,
                "what": self._application(subsystem, high),
            }
        return None

    def _application(self, subsystem: str, number: int) -> str:
        answer = self.runs.trial(
            self.file,
            self.backend,
            accuracy=self.accuracy,
            threads=self.threads,
            bisect=(subsystem, number),
        )
        return str((answer.get("report") or {}).get("bisected") or "")

    def settings(self) -> Iterator[tuple[str, Json]]:
        """Settings with which it passes, cheapest first."""
        usable = [] if self.backend != "inductor" else SETTINGS
        with ThreadPoolExecutor(max_workers=2) as threads:
            for (text, settings), fails in zip(
                usable, threads.map(self._fails_with, usable), strict=True
            ):
                if fails is False:
                    yield text, settings

    def _fails_with(self, entry: tuple[str, Json]) -> bool | None:
        if time.monotonic() > self.end:
            return None
        return self._fails(settings=entry[1])
