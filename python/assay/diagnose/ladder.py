"""The guide's rungs: each backend adds one stage to the one before."""

from __future__ import annotations

# Backends in the order of the ladder, with the stage that each one adds.
RUNGS = {
    "eager": "dynamo",
    "aot_eager": "aot_autograd",
    "aot_eager_decomp_partition": "inductor (decompositions and partitioner)",
}
WHAT = {
    "eager": "Dynamo traces the program, and the graphs run as they are",
    "aot_eager": "AOTAutograd traces forward and backward, nothing is decomposed",
    "aot_eager_decomp_partition": "inductor's decompositions and partitioner, without inductor",
}


def last_stage(backend: str) -> str:
    """What only the script's own backend adds."""
    return "inductor" if backend == "inductor" else f"backend {backend}"


def describe(stage: str, half: str | None, step: str) -> str:
    """A stage in words, for a verdict."""
    part = {"backward": " of the backward graph", "forward": ""}.get(half or "", "")
    doing = {
        "compile": "while compiling" + (part or " a graph"),
        "run": "while running compiled code",
        "backward": "while running the compiled backward",
        "compare": "computing wrong results",
        "capture": "while tracing",
    }
    return f"{stage}, {doing.get(step, step)}"
