"""`assay run`: what a user sees when a graph file runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from support.command import FIXTURES, assay, graph_file

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"
RUNNABLE = FIXTURES / "linear_layernorm_relu" / "forward_runnable.py"
DYNAMIC = FIXTURES / "dynamic_mlp" / "forward_symbolic_launcher.py"

# Every fixture that stock PyTorch can run: its nodes, inputs and stage, and how many outputs.
RUNNABLE_FIXTURES = [
    ("dynamic_mlp/forward_symbolic_launcher.py", "39 nodes, 7 inputs, after_aot", 9),
    ("linear_layernorm_relu/backward_runnable.py", "29 nodes, 7 inputs, after_aot", 5),
    ("linear_layernorm_relu/dynamo_launcher.py", "9 nodes, 5 inputs, after_dynamo", 1),
    ("linear_layernorm_relu/forward_runnable.py", "19 nodes, 5 inputs, after_aot", 7),
    ("old_form/after_aot.py", "5 nodes, 2 inputs, after_aot", 1),
    ("old_form/after_dynamo.py", "3 nodes, 1 input, after_dynamo", 1),
]


def expected_outputs(path: Path) -> list[Any]:
    """What stock PyTorch got from the file."""
    return torch.load(path.with_suffix(".expected.pt"))


def assert_same_outputs(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for ours, stock in zip(found, expected, strict=True):
        if isinstance(stock, torch.Tensor):
            torch.testing.assert_close(ours.detach(), stock, rtol=1e-5, atol=1e-5)
        else:
            assert ours == stock


@pytest.mark.parametrize(("file", "description", "outputs"), RUNNABLE_FIXTURES)
def test_results_are_a_table_and_equal_stocks(
    file: str, description: str, outputs: int, tmp_path: Path
) -> None:
    saved = tmp_path / "results.pt"
    result = assay("run", FIXTURES / file, "--output", saved)
    assert result.code == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0] == f"{FIXTURES / file}: {description}"
    header = next(i for i, line in enumerate(lines) if line.startswith("  output  type"))
    rows = lines[header + 1 :]
    assert [row.split()[0] for row in rows] == [str(i) for i in range(outputs)]
    assert_same_outputs(torch.load(saved), expected_outputs(FIXTURES / file))


def test_json_says_everything_about_a_run() -> None:
    report = assay("run", RUNNABLE, "--json", "--repeat", "3", "--threads", "1").json()
    assert report["status"] == "ok"
    assert report["file"] == str(RUNNABLE)
    assert report["taken"] == "after_aot"
    assert report["backend"] == "eager"
    assert report["nodes"] == 19
    assert report["runs"] == 3
    assert report["threads"] == 1
    assert 0 < report["seconds"]["min"] <= report["seconds"]["median"] < 60
    stock = expected_outputs(RUNNABLE)
    assert len(report["outputs"]) == len(stock)
    for i, (output, tensor) in enumerate(zip(report["outputs"], stock, strict=True)):
        assert output["name"] == str(i)
        assert output["elements"] == tensor.numel()
        assert output["nan"] == output["inf"] == 0
        assert output["mean"] == pytest.approx(tensor.double().mean().item(), rel=1e-4, abs=1e-6)
        assert output["min"] == pytest.approx(tensor.double().min().item(), rel=1e-4, abs=1e-6)
        assert output["max"] == pytest.approx(tensor.double().max().item(), rel=1e-4, abs=1e-6)
    assert report["outputs"][0]["type"] == "f32[10, 10][10, 1]cpu"
    assert report["outputs"][6]["type"] == "b8[10, 10][10, 1]cpu"


def test_json_says_that_inputs_were_made_up() -> None:
    inputs = assay("run", RUNNABLE, "--json").json()["inputs"]
    assert inputs["original"] is False
    assert inputs["count"] == 5
    assert (inputs["loaded_storages"], inputs["made_up_storages"]) == (0, 5)
    [note] = inputs["notes"]
    assert "not the original ones: 5 of 5 storages were synthesized" in note
    assert "only their shapes" in note


def test_json_says_that_inputs_are_the_original_ones() -> None:
    inputs = assay("run", LAUNCHER, "--json").json()["inputs"]
    assert inputs["original"] is True
    assert (inputs["loaded_storages"], inputs["made_up_storages"]) == (5, 0)
    assert inputs["notes"] == []


def test_numbers_none_nan_and_infinity_are_shown(tmp_path: Path) -> None:
    body = """\
zero = torch.ops.aten.mul.Tensor(x, 0)
nan = torch.ops.aten.div.Tensor(zero, zero)
inf = torch.ops.aten.exp.default(torch.ops.aten.add.Tensor(zero, 1000.0))
return (nan, inf, x, None, 7, 2.5, True)"""
    file = graph_file(tmp_path, body, inputs='x: "f32[4]"')
    lines = assay("run", file).out.splitlines()[-7:]
    assert lines[0].split()[-5:] == ["-", "-", "-", "4", "nan"]
    assert lines[1].split()[-5:] == ["-", "-", "-", "4", "inf"]
    assert [line.split()[1:] for line in lines[3:]] == [
        ["None"],
        ["int", "7"],
        ["float", "2.5"],
        ["bool", "True"],
    ]
    outputs = assay("run", file, "--json").json()["outputs"]
    assert (outputs[0]["nan"], outputs[0]["mean"]) == (4, None)
    assert (outputs[1]["inf"], outputs[1]["max"]) == (4, None)
    assert [output.get("value") for output in outputs[3:]] == [None, "7", "2.5", "True"]


def test_repeat_shows_fastest_and_median() -> None:
    out = assay("run", RUNNABLE, "--repeat", "5", "--threads", "1").out
    assert "(fastest of 5; median " in out
    assert ", 1 thread\n" in out


def test_seed_changes_made_up_inputs_and_nothing_else() -> None:
    def means(*options: str) -> list[float]:
        report = assay("run", RUNNABLE, "--json", *options).json()
        return [output["mean"] for output in report["outputs"]]

    assert means("--seed", "1") == means("--seed", "1")
    assert means("--seed", "1") != means("--seed", "2")
    assert means() == means("--seed", "0")


def test_each_repetition_starts_from_the_same_inputs(tmp_path: Path) -> None:
    body = "add_ = torch.ops.aten.add_.Tensor(x, 1)\nreturn (add_,)"
    file = graph_file(tmp_path, body)
    once = assay("run", file, "--json").json()["outputs"]
    often = assay("run", file, "--json", "--repeat", "4").json()["outputs"]
    assert once == often


def test_save_dir_is_looked_up_instead_of_the_files_own(tmp_path: Path) -> None:
    alone = tmp_path / "alone.py"
    shutil.copy(LAUNCHER, alone)
    inputs = assay("run", alone, "--json").json()["inputs"]
    assert inputs["original"] is False
    assert "e6dbcaad26a6911e34d78d9ac56a769698a65de5 is not in" in inputs["notes"][0]
    store = LAUNCHER.parent / "checkpoints"
    report = assay("run", alone, "--json", "--save-dir", store).json()
    assert report["inputs"]["original"] is True


def test_a_file_that_moved_with_its_checkpoints_finds_them(tmp_path: Path) -> None:
    text = LAUNCHER.read_text().replace("'checkpoints'", "'/gone/from/here/checkpoints'")
    (tmp_path / "repro.py").write_text(text)
    shutil.copytree(LAUNCHER.parent / "checkpoints", tmp_path / "checkpoints")
    assert assay("run", tmp_path / "repro.py", "--json").json()["inputs"]["original"] is True


def test_symbols_get_their_values_from_the_file() -> None:
    outputs = assay("run", DYNAMIC, "--json").json()["outputs"]
    assert outputs[0]["type"] == "f32[5, 7, 4][28, 4, 1]cpu"
    assert [output["value"] for output in outputs[5:]] == ["5", "7", "35", "3"]


def test_inputs_of_another_device_run_on_the_cpu_and_this_is_said(tmp_path: Path) -> None:
    file = graph_file(
        tmp_path, "relu = torch.relu(x)\nreturn (relu,)", inputs='x: "f32[4][1]cuda:0"'
    )
    result = assay("run", file)
    assert result.code == 0
    assert "note: the file is for the device 'cuda:0'; Assay runs it on the CPU\n" in result.out


def test_gradients_are_on_after_dynamo_and_off_after_aot() -> None:
    after_dynamo = assay("run", LAUNCHER, "--json").json()["outputs"][0]["type"]
    assert after_dynamo.endswith(" requires_grad")
    after_aot = assay("run", RUNNABLE, "--json").json()["outputs"][0]["type"]
    assert not after_aot.endswith(" requires_grad")
