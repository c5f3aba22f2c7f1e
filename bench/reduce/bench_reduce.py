"""Reductions by Assay and by stock PyTorch's minifier, of the same files with the same faults.

Each case is a program whose compilation fails; stock PyTorch writes its minifier_launcher.py. Then
the launcher minifies, and Assay reduces the same launcher: with its own stack and the same fault,
and, where the fault is inductor's, with stock PyTorch as the compiler under test. Of its own stack
the whole counts that a user waits for: the run that fails (stock's writes the launcher), and what
follows until the smallest repro exists. With stock's stack the failing run is the same one, so only
what follows counts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# Stock's minifier is stopped after this long; the ratio is then an upper bound.
LIMIT_S = float(os.environ.get("BENCH_REDUCE_LIMIT", "600"))
# A case is measured again until this much time has passed.
REPEAT_S = 40


@dataclass(frozen=True)
class Case:
    """``backend`` and ``fault`` as stock has them, ``own_options`` the same for Assay's stack."""

    model: str
    stage: str  # dynamo or aot
    kind: str  # compile_error or accuracy
    backend: str
    fault: str
    own_options: tuple[str, ...]

    @property
    def name(self) -> str:
        backend = "inductor" if self.backend == "inductor" else "faulty backend"
        return f"{self.model}, after {self.stage}, {backend}, {self.kind}"


def _faulty_backend(model: str, kind: str) -> Case:
    """After dynamo, with a backend that has the fault built in; Assay has one of the same name."""
    backend = f"relu_{kind}_TESTING_ONLY".replace("accuracy", "accuracy_error")
    return Case(model, "dynamo", kind, backend, "none", ("--backend", backend))


def _faulty_inductor(model: str, stage: str, kind: str) -> Case:
    """With inductor's own fault, which Assay's aot_eager is given too."""
    own = ("--backend", "aot_eager", "--inject", f"relu:{kind}")
    return Case(model, stage, kind, "inductor", kind, own)


MODELS = ("mlp_relu", "chain", "bert_relu", "gpt2_relu")
KINDS = ("compile_error", "accuracy")
CASES = [
    *(_faulty_backend(model, kind) for model in MODELS for kind in KINDS),
    # No accuracy here: stock's own check of inductor after dynamo raises (it calls a function of
    # one list with the list's items), takes that for a pass, and no launcher is written.
    *(_faulty_inductor(model, "dynamo", "compile_error") for model in MODELS),
    *(_faulty_inductor(model, "aot", kind) for kind in KINDS for model in MODELS),
]


@dataclass
class Outcome:
    seconds: float  # from the file to the repro
    nodes: int | None  # calls left; None if it did not finish
    trials: int | None = None
    failing_run: float = 0.0


def _environment(case: Case, directory: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TORCHDYNAMO_REPRO_AFTER": case.stage,
        "TORCHDYNAMO_REPRO_LEVEL": "4" if case.kind == "accuracy" else "2",
        "TORCHINDUCTOR_CACHE_DIR": str(directory / "cache"),
        "OMP_NUM_THREADS": "1",
    }


def make_launcher(case: Case, directory: Path) -> tuple[Path, float]:
    """Let stock PyTorch fail and write its launcher; how long that takes."""
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, HERE / "stock_failure.py", case.model, case.backend, case.fault],
        cwd=directory,
        env=_environment(case, directory),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    [launcher] = directory.glob("torch_compile_debug/*/minifier/minifier_launcher.py")
    return launcher, time.monotonic() - begin


def _calls(repro: Path) -> int:
    forward = (
        repro.read_text().split("def forward", 1)[1].split("def load_args")[0].split("mod =")[0]
    )
    return len(re.findall(r"^\s+\w+(?::.*?)? = .*\(", forward, re.MULTILINE))


def run_stock(case: Case, launcher: Path, directory: Path) -> Outcome:
    (directory / "repro.py").unlink(missing_ok=True)
    begin = time.monotonic()
    minifier = subprocess.Popen(
        [sys.executable, launcher, "minify"],
        cwd=directory,
        env=_environment(case, directory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        minifier.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(minifier.pid, signal.SIGKILL)  # with its queries, which are processes too
        minifier.wait()
        return Outcome(LIMIT_S, None)
    repro = directory / "repro.py"
    return Outcome(time.monotonic() - begin, _calls(repro) if repro.exists() else None)


def run_assay(binary: Path, launcher: Path, directory: Path, *options: str) -> Outcome:
    shutil.rmtree(directory, ignore_errors=True)
    begin = time.monotonic()
    done = subprocess.run(
        [binary, "reduce", launcher, "--json", "--output", directory, *options],
        capture_output=True,
        env={**os.environ, "ASSAY_PYTHON": sys.executable},
        check=False,
    )
    seconds = time.monotonic() - begin
    report = json.loads(done.stdout)
    calls = report["calls"] if report["status"] == "reduced" else None
    return Outcome(seconds, calls, report.get("trials"))


def trial_rate(binary: Path) -> dict[str, Any]:
    """Trials per second for a chain of 100 small calls under aot_eager; the best of five runs."""
    with tempfile.TemporaryDirectory() as name:
        launcher, _ = make_launcher(_faulty_backend("chain", "compile_error"), Path(name))
        command = [binary.parent / "trial_rate", launcher, "aot_eager", "2", "200"]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            for _ in range(5)
        ]
    return dict(max(runs, key=lambda found: found["per_second"]))


def run_own(case: Case, binary: Path, launcher: Path, directory: Path) -> Outcome:
    """The same fault in Assay's own stack: a run that fails, then the reduction."""
    begin = time.monotonic()
    command = [binary, "run", launcher, *case.own_options]
    subprocess.run(command, capture_output=True, check=False)
    failing_run = time.monotonic() - begin
    found = run_assay(binary, launcher, directory / "own", *case.own_options)
    found.failing_run = failing_run
    return found


def measure(case: Case, binary: Path, directory: Path) -> dict[str, Any]:
    """All sides of one case, short ones several times and in turn; of each the best run."""
    outcomes: dict[str, list[Outcome]] = {"stock": [], "own": [], "on_stock": []}
    begin = time.monotonic()
    while not outcomes["stock"] or time.monotonic() - begin < REPEAT_S:
        place = directory / str(len(outcomes["stock"]))
        place.mkdir()
        launcher, failing_run = make_launcher(case, place)
        outcomes["own"] += [run_own(case, binary, launcher, place) for _ in range(2)]
        if case.backend == "inductor":
            options = ("--stack", "torch", "--backend", case.backend)
            outcomes["on_stock"].append(run_assay(binary, launcher, place / "on_stock", *options))
        outcomes["stock"].append(run_stock(case, launcher, place))
        outcomes["stock"][-1].failing_run = failing_run
    best = {name: min(found, key=whole) for name, found in outcomes.items() if found}
    stock = best["stock"]
    found = {name: vars(outcome) for name, outcome in best.items()}
    found |= {"case": case.name, "stage": case.stage}
    found["own_ratio"] = whole(best["own"]) / whole(stock)
    if "on_stock" in best:
        found["on_stock_ratio"] = best["on_stock"].seconds / stock.seconds
    return found


def whole(outcome: Outcome) -> float:
    """What a user waits for."""
    return outcome.seconds + outcome.failing_run


def run(binary: Path, only: str = "") -> Iterator[dict[str, Any]]:
    """What was measured of each case whose name contains ``only``."""
    for case in CASES:
        if only in case.name:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
                yield measure(case, binary, Path(name))


if __name__ == "__main__":
    for row in run(Path(os.environ["ASSAY_BINARY"]), *sys.argv[1:]):
        print(json.dumps(row), flush=True)
