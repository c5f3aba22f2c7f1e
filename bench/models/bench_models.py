"""Eight models, forward and a training step: eager, inductor, the plug-in and ``assay.compile``.

Each model has processes of its own, with empty caches and one thread. Steady state: all of them in
turns, the fastest of many rounds. The compile part is the time of the first call without what
capture and one eager run take; of the second process, which finds Assay's kernels in its cache, the
same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 4.0  # of measuring, per model and mode
MODES = ("forward", "training")
WAYS = ("eager", "inductor", "plugin", "assay")


def _seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _step(program: Any, inputs: dict[str, Any], mode: str) -> Any:
    import torch
    from torch.utils import _pytree

    if mode == "forward":
        with torch.no_grad():
            return program(**inputs)
    outputs = program(**inputs)
    floats = [
        leaf.square().sum()
        for leaf in _pytree.tree_leaves(outputs)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    sum(floats[1:], floats[0]).backward()
    return outputs


def measure(name: str, mode: str, ways: list[str]) -> dict[str, float]:
    import torch

    import assay
    from models.baseline import MODELS

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.train(mode == "training")
    makers = {
        "eager": lambda: model,
        "inductor": lambda: torch.compile(model),
        "plugin": lambda: torch.compile(model, backend="assay"),
        "assay": lambda: assay.compile(model, backend="native"),
        "stock capture": lambda: torch.compile(model, backend="eager"),
        "assay capture": lambda: assay.compile(model, backend="eager"),
    }
    if "inductor" in ways:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(8))  # starts its workers
    torch.compile(lambda x: x.cos() + 1, backend="assay")(torch.ones(8))
    assay.compile(lambda x: x.cos() + 2, backend="native")(torch.ones(8))
    _step(model, inputs, mode)
    found: dict[str, float] = {}
    programs: dict[str, Any] = {}
    for way in ["stock capture", "assay capture", *ways]:
        assay.config.cache_dir = f"{os.environ['ASSAY_CACHE_DIR']}/{way}"  # nobody's but its own
        made = makers[way]()
        # Two calls: capture runs the first one eagerly and may compile at the second.
        calls = [_seconds(lambda made=made: _step(made, inputs, mode)) for _ in range(2)]
        found[f"{way} first calls s"] = sum(calls)
        if "capture" not in way:
            programs[way] = made
    best = dict.fromkeys(programs, float("inf"))
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for way, program in programs.items():
            model.zero_grad()
            seconds = _seconds(lambda program=program: _step(program, inputs, mode))
            best[way] = min(best[way], seconds)
    for way, seconds in best.items():
        found[f"{way} ms"] = 1e3 * seconds
    for way, capture in (("inductor", "stock"), ("plugin", "stock"), ("assay", "assay")):
        if way in programs:
            both = [found[f"{one} first calls s"] for one in (way, f"{capture} capture")]
            found[f"{way} compile s"] = both[0] - both[1]
    return found


def _in_process(name: str, mode: str, caches: str, ways: list[str]) -> dict[str, float]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'bench'}:{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "ASSAY_CACHE_DIR": f"{caches}/assay",
    }
    done = subprocess.run(
        [sys.executable, __file__, name, mode, *ways],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}, {mode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(only: str = "") -> Any:
    """One measurement at a time, as they come."""
    from models.baseline import MODELS

    for name in MODELS:
        if only and name not in only.split():
            continue
        for mode in MODES:
            with tempfile.TemporaryDirectory() as caches:
                found = _in_process(name, mode, caches, list(WAYS))
                again = _in_process(name, mode, caches, ["eager", "plugin", "assay"])
                for way in ("plugin", "assay"):
                    found[f"{way} warm compile s"] = again[f"{way} compile s"]
                yield name, mode, found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], sys.argv[3:])))
