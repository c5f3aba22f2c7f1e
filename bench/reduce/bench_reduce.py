"""Reductions by Assay and by stock PyTorch's minifier, of the same files with the same faults.

Each case is a program whose compilation fails; stock PyTorch writes its minifier_launcher.py. Then
the launcher minifies, and Assay reduces the same launcher: with its own stack and the same fault,
and with stock PyTorch as the compiler under test. Times are those that a user waits: the run that
fails and writes the launcher (for Assay's own stack a run of the file that fails), and what follows
until the smallest repro exists. ``from_file`` is the ratio without the failing runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# Stock's minifier is stopped after this long; the ratio is then an upper bound.
LIMIT_S = float(os.environ.get("BENCH_REDUCE_LIMIT", "600"))


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
    try:
        subprocess.run(
            [sys.executable, launcher, "minify"],
            cwd=directory,
            env=_environment(case, directory),
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
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


def run(binary: Path, only: str = "") -> list[dict[str, Any]]:
    """One row for each case whose name contains ``only``."""
    rows = []
    for case in CASES:
        if only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            launcher, failing_run = make_launcher(case, directory)
            begin = time.monotonic()
            subprocess.run(
                [binary, "run", launcher, *case.own_options], capture_output=True, check=False
            )
            own_failing_run = time.monotonic() - begin
            own = run_assay(binary, launcher, directory / "own", *case.own_options)
            own.failing_run = own_failing_run
            on_stock = run_assay(
                binary,
                launcher,
                directory / "on_stock",
                "--stack",
                "torch",
                "--backend",
                case.backend,
            )
            stock = run_stock(case, launcher, directory)
            stock.failing_run = on_stock.failing_run = failing_run
        found = {"case": case.name, "stage": case.stage, "stock": vars(stock), "own": vars(own)}
        found |= {"on_stock": vars(on_stock)}
        for name, ours in (("own", own), ("on_stock", on_stock)):
            whole = stock.seconds + stock.failing_run
            found[f"{name}_ratio"] = (ours.seconds + ours.failing_run) / whole
            found[f"{name}_ratio_from_file"] = ours.seconds / stock.seconds
        print(json.dumps(found), file=sys.stderr, flush=True)
        rows.append(found)
    return rows


if __name__ == "__main__":
    BINARY = Path(os.environ["ASSAY_BINARY"])
    run(BINARY, *sys.argv[1:])
