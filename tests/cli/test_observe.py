"""Logs, traces and timings of the command."""

from __future__ import annotations

import json
from pathlib import Path

from support.command import FIXTURES, assay

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"


def test_graph_code_prints_the_graph_to_stderr() -> None:
    result = assay("run", LAUNCHER, env={"TORCH_LOGS": "graph_code"})
    assert result.code == 0
    assert "[__graph_code] class Repro(torch.nn.Module):" in result.err
    assert "torch.nn.functional.layer_norm(input_1, (10,)" in result.err
    assert "__graph_code" not in result.out


def test_assays_own_setting_wins() -> None:
    result = assay("run", LAUNCHER, env={"TORCH_LOGS": "graph_code", "ASSAY_LOGS": ""})
    assert (result.code, result.err) == (0, "")


def test_a_bad_name_is_refused_with_the_nearest() -> None:
    result = assay("run", LAUNCHER, env={"TORCH_LOGS": "grap_code"})
    assert result.code == 2
    assert result.out == ""
    assert 'unknown name "grap_code"; did you mean "graph_code"?' in result.err


def test_help_lists_the_names_and_runs_nothing() -> None:
    result = assay("run", "missing.py", env={"TORCH_LOGS": "help"})
    assert result.code == 0
    assert result.err == ""
    assert "graph_code" in result.out


def test_trace_is_json_with_the_phases(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert assay("--trace", trace, "run", LAUNCHER, "--repeat", "2").code == 0
    events = json.loads(trace.read_text())["traceEvents"]
    phases = [event["name"] for event in events if event["ph"] == "X"]
    assert phases.count("parse") == 1
    assert phases.count("run") == 2
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_a_trace_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    result = assay("run", LAUNCHER, "--trace", tmp_path / "missing" / "trace.json")
    assert result.code == 2
    assert result.out == ""
    assert "cannot write the trace file" in result.err


def test_timings_go_to_stderr() -> None:
    result = assay("run", LAUNCHER, "--timings", "--json")
    assert result.json()["status"] == "ok"
    rows = dict(line.split() for line in result.err.splitlines() if len(line.split()) == 2)
    assert float(rows["parse"]) >= 0
    assert float(rows["run"]) >= 0


def test_the_command_does_not_log_its_own_warm_up() -> None:
    logs = {"TORCH_LOGS": "aot_graphs,post_grad_graphs,pre_grad_graphs"}
    result = assay("run", LAUNCHER, "--isolated", "--backend", "aot_eager", env=logs)
    assert result.code == 0
    assert "[__aot_graphs]" in result.out + result.err
    assert "sigmoid" not in result.out + result.err
