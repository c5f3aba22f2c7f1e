"""The graphs that a run has captured, as its report lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.diagnose.outcome import Outcome

# Operators whose results inductor draws in its own way.
RANDOM = re.compile(
    r"= .*(dropout|rand|normal|bernoulli|multinomial|exponential|poisson|uniform|cauchy|geometric)"
)
FALLBACK_RANDOM = "torch._inductor.config.fallback_random = True"
ONLY_EAGER = "torch._dynamo.config.same_two_models_use_fp64 = False"


@dataclass
class Graph:
    """A file that holds a graph of the script."""

    number: int
    half: str  # dynamo, forward or backward
    file: Path
    backend: str
    calls: int = 0
    problem: str | None = None
    notes: list[str] = field(default_factory=list)
    threads: int = 0  # inside operators, as the script has set it

    @property
    def is_usable(self) -> bool:
        return self.problem is None and self.file.exists()

    @property
    def backend_file(self) -> Path | None:
        """The backend by value, if it is not PyTorch's own."""
        name = re.sub(r"\W+", "_", self.backend).strip("_") or "backend"
        file = self.file.parent / f"{name}.pkl"
        return file if file.exists() else None

    @property
    def is_random(self) -> bool:
        """Whether the graph draws random numbers."""
        return RANDOM.search(self.file.read_text()) is not None

    @property
    def has_levels(self) -> bool:
        """Whether torch.func's levels are entered and left in the graph."""
        return self.is_usable and "_increment_nesting(" in self.file.read_text()

    @property
    def is_reducible(self) -> bool:
        """Whether calls can be taken out alone; values between levels exist only there."""
        return self.is_usable and not (self.half == "dynamo" and self.has_levels)

    def with_eager_random(self) -> Graph:
        """The same graph, with random numbers that are eager's."""
        return self._with_settings("eager_random", FALLBACK_RANDOM)

    def held_to_eager(self, tolerance: float) -> Graph:
        """The same graph, to be compared with eager itself and not with float64."""
        return self._with_settings(
            "held_to_eager", ONLY_EAGER, f"torch._dynamo.config.repro_tolerance = {tolerance!r}"
        )

    def _with_settings(self, suffix: str, *lines: str) -> Graph:
        file = self.file.with_name(f"{self.file.stem}_{suffix}.py")
        text = self.file.read_text()
        added = "\n".join(("", *lines, "", "# assay version"))
        file.write_text(text.replace("\n\n# assay version", added, 1))
        return replace(self, file=file)


def of(outcome: Outcome) -> list[Graph]:
    """All graphs of a run, in the order of compilation."""
    found = []
    for key, entry in outcome.report.items():
        match = re.fullmatch(r"graph_(\d+)_(dynamo|forward|backward)", key)
        if match:
            found.append(
                Graph(
                    int(match[1]),
                    match[2],
                    Path(entry["file"]),
                    entry["backend"],
                    entry["calls"],
                    entry["problem"],
                    entry["notes"],
                    entry["threads"],
                )
            )
    return found


def of_dynamo(graphs: list[Graph]) -> list[Graph]:
    """Those that a backend was given."""
    return [graph for graph in graphs if graph.half == "dynamo"]


def at(graphs: list[Graph], where: dict[str, Any]) -> list[Graph]:
    """Those of one place: Dynamo's graph first, which a user can read, then the half."""
    number, half = where.get("graph"), where.get("half")
    found = [graph for graph in graphs if graph.number == number]
    return [graph for graph in found if graph.half in ("dynamo", half)]
