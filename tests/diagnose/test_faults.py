"""Faults in stock inductor and in backends of the script's own, in small and large models."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.diagnosing import diagnose

MODELS = ["mlp", "chain", "bert_relu", "gpt2_relu"]

INDUCTOR = """
import sys, torch
from stock.models import build, call
name, kind = sys.argv[1:]
torch.set_num_threads(1)
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = kind
model, inputs = build(name)
with torch.no_grad():
    result = call(torch.compile(model), inputs)
print(torch.utils._pytree.tree_leaves(result)[0].float().mean())
"""

# A backend that exists only in the script, and that its fault takes down with the process.
OWN_BACKEND = """
import ctypes, sys, torch
from stock.models import build, call
name, kind = sys.argv[1:]

def fault():
    if kind == "segfault":
        ctypes.string_at(0)
    while kind == "hang":
        pass
    kept = []
    while kind == "oom":
        kept.append(torch.ones(1 << 24))

class Runner(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        if getattr(target, "__name__", "") == "relu":
            fault()
        return super().call_function(target, args, kwargs)

def own(gm, inputs):
    return Runner(gm).run

model, inputs = build(name)
with torch.no_grad():
    result = call(torch.compile(model, backend=own), inputs)
print(torch.utils._pytree.tree_leaves(result)[0].float().mean())
"""


def check_relu(verdict: dict[str, object], kind: str) -> None:
    assert verdict["status"] == "fails"
    calls = verdict["calls"]
    assert isinstance(calls, list) and len(calls) == 1 and "relu" in calls[0], verdict
    signature = verdict["signature"]
    assert isinstance(signature, dict)
    assert verdict["kind"] == signature["kind"] == kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["compile_error", "runtime_error", "accuracy"])
@pytest.mark.parametrize("model", MODELS)
def test_inductor(model: str, kind: str, tmp_path: Path) -> None:
    found = diagnose(tmp_path, INDUCTOR, model, kind)
    assert found.code == 1
    assert found.verdict["stage"] == "inductor"
    check_relu(found.verdict, "accuracy" if kind == "accuracy" else "exception")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["segfault", "hang", "oom"])
@pytest.mark.parametrize("model", MODELS)
def test_a_backend_of_the_script(model: str, kind: str, tmp_path: Path) -> None:
    options = ("--memory", "1500") if kind == "oom" else ()
    found = diagnose(tmp_path, OWN_BACKEND, model, kind, options=options)
    assert found.code == 1
    assert found.verdict["stage"] == "backend own"
    check_relu(found.verdict, {"segfault": "signal", "hang": "timeout", "oom": "memory"}[kind])
