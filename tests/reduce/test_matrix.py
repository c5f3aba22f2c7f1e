"""Every kind of fault, in each baseline model, after dynamo and after AOTAutograd, is reduced to
the one operator that has it. A reduction takes seconds, so `make test` does one of each kind and
`make test-slow` the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from reduce.reducing import reduce, stock_file
from support.command import assay

STAGES = ["after_dynamo", "after_aot"]
# The operator that is made faulty, at each stage.
MODELS = {
    "mlp": ("relu", "relu"),
    "chain": ("relu", "relu"),
    "gpt2_small": ("tanh", "tanh"),
    "bert": ("gelu", "tanh"),
}
# At full size these take minutes.
LARGE = {"gpt2": ("tanh", "tanh"), "bert_base": ("gelu", "tanh")}

# What the fault looks like, and what it costs to see it once.
KINDS = {
    "compile_error": ("exception", []),
    "runtime_error": ("exception", []),
    "accuracy": ("accuracy", []),
    "nan": ("accuracy", []),
    "segfault": ("signal", []),
    "abort": ("signal", []),
    "hang": ("timeout", ["--timeout", "1"]),
    "oom": ("memory", ["--memory", "400"]),
}

# The reductions that are not slow: one of each kind, and between them each model and stage.
QUICK = {
    "compile_error": ("mlp", "after_dynamo"),
    "runtime_error": ("bert", "after_aot"),
    "accuracy": ("gpt2_small", "after_dynamo"),
    "nan": ("chain", "after_aot"),
    "segfault": ("bert", "after_dynamo"),
    "abort": ("gpt2_small", "after_aot"),
    "hang": ("mlp", "after_aot"),
    "oom": ("chain", "after_dynamo"),
}
CASES = [
    pytest.param(
        *(model, stage, kind),
        marks=() if QUICK[kind] == (model, stage) else pytest.mark.slow,
    )
    for model in MODELS
    for stage in STAGES
    for kind in KINDS
]


def check_reduction(
    model: str, stage: str, kind: str, root: Path, tmp_path: Path, *options: str
) -> None:
    operator = {**MODELS, **LARGE}[model][STAGES.index(stage)]
    file = stock_file(model, stage, root)
    fault = f"{operator}:{kind}"
    reduced = reduce(file, tmp_path / "out", "--inject", fault, "--backend", "aot_eager", *options)
    report = reduced.report
    assert report["status"] == "reduced", report
    assert report["signature"]["kind"] == KINDS[kind][0]
    assert report["calls"] == 1
    call, result = reduced.graph
    assert operator in call
    assert result.startswith("return")
    assert (report["reproduced"], report["runs"]) == (5, 5)
    assert report["elements"] <= 16
    # It is a file like any other: `assay run` fails on it, eager does not.
    repro = reduced.directory / "repro.py"
    assert assay("run", repro).code == 0
    if kind in ("compile_error", "runtime_error", "segfault", "abort"):
        assert assay("run", repro, "--inject", fault, "--backend", "aot_eager").code != 0


@pytest.mark.parametrize(("model", "stage", "kind"), CASES)
def test_fault_is_reduced_to_its_operator(
    model: str, stage: str, kind: str, stock_root: Path, tmp_path: Path
) -> None:
    check_reduction(model, stage, kind, stock_root, tmp_path, *KINDS[kind][1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("model", LARGE)
def test_fault_in_a_large_model(
    model: str, stage: str, kind: str, stock_root: Path, tmp_path: Path
) -> None:
    check_reduction(model, stage, kind, stock_root, tmp_path)
