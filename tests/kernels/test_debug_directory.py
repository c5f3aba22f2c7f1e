"""TORCH_COMPILE_DEBUG=1: the directory of the guide's example, its switches, `assay rerun`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import assay
from kernels.against_eager import BACKEND
from support.command import Result, environment
from support.command import assay as command
from support.python import run_python

EXAMPLE = f"""
import torch, assay

model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.LayerNorm(10), torch.nn.ReLU())

@assay.compile(backend={BACKEND!r})
def test_model(x):
    return model(x)

y = test_model(torch.ones(10, 10))
y.sum().backward()
"""

HALF_FILES = {
    "debug.log",
    "fx_graph_readable.py",
    "fx_graph_runnable.py",
    "fx_graph_transformed.py",
    "ir_post_fusion.txt",
    "ir_pre_fusion.txt",
    "output_code.cpp",
}


def files(directory: Path) -> dict[str, Path]:
    """Every file below the only run's directory but the inputs' data; none is empty."""
    [run] = (directory / "torch_compile_debug").iterdir()
    assert re.fullmatch(r"run_\d{4}(_\d\d){5}_\d{6}-pid_\d+", run.name)
    found = {str(path.relative_to(run)): path for path in run.rglob("*") if path.is_file()}
    assert all(path.stat().st_size > 0 for path in found.values())
    return {name: path for name, path in found.items() if "/storages/" not in name}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("example")
    run_python(EXAMPLE, directory, TORCH_COMPILE_DEBUG="1")
    return directory


def test_layout_of_the_guide(example: Path) -> None:
    found = set(files(example))
    halves = {"model__0_forward_1.0", "model__0_backward_3.1"}
    expected = {f"torchinductor/{half}/{name}" for half in halves for name in HALF_FILES}
    logs = {"torchdynamo/debug.log", "torchinductor/aot_model___0_debug.log"}
    assert found == expected | logs


def test_what_the_files_say(example: Path) -> None:
    found = {name: path.read_text() for name, path in files(example).items()}
    assert "torchdynamo start tracing test_model" in found["torchdynamo/debug.log"]
    assert "aot_joint_graph" in found["torchinductor/aot_model___0_debug.log"]
    forward = "torchinductor/model__0_forward_1.0/"
    assert "torch.ops.aten." in found[forward + "fx_graph_readable.py"]
    assert "torch.ops.aten." in found[forward + "fx_graph_transformed.py"]
    assert "model__0_forward_1.0" in found[forward + "debug.log"]
    before, after = (found[f"{forward}ir_{when}_fusion.txt"] for when in ("pre", "post"))
    assert before != after
    assert 'extern "C"' in found[forward + "output_code.cpp"]
    assert "#include" not in found[forward + "output_code.cpp"]


def test_the_runnable_file_runs(example: Path) -> None:
    for name, path in files(example).items():
        if name.endswith("fx_graph_runnable.py"):
            result = command("run", path, "--json")
            assert result.code == 0, result.err
            assert "model__0_backward" in name or result.json()["inputs"]["original"]


@pytest.mark.slow
def test_stock_runs_the_runnable_file(example: Path) -> None:
    path = files(example)["torchinductor/model__0_forward_1.0/fx_graph_runnable.py"]
    done = subprocess.run(
        [sys.executable, path], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("switch", "missing"),
    [
        ("debug_log", {"debug.log"}),
        ("fx_graph", {"fx_graph_readable.py", "fx_graph_runnable.py"}),
        ("fx_graph_transformed", {"fx_graph_transformed.py"}),
        ("ir_pre_fusion", {"ir_pre_fusion.txt"}),
        ("ir_post_fusion", {"ir_post_fusion.txt"}),
        ("output_code", {"output_code.cpp"}),
    ],
)
def test_each_file_has_a_switch(tmp_path: Path, switch: str, missing: set[str]) -> None:
    program = EXAMPLE.replace(
        "import torch, assay", f"import torch, assay; assay.config.trace.{switch} = False"
    )
    run_python(program, tmp_path, TORCH_COMPILE_DEBUG="1")
    halves = {Path(name).name for name in files(tmp_path) if "/model__" in name}
    assert halves == HALF_FILES - missing


def test_inputs_can_be_left_out(tmp_path: Path) -> None:
    program = EXAMPLE.replace(
        "import torch, assay", "import torch, assay; assay.config.trace.inputs = False"
    )
    run_python(program, tmp_path, TORCH_COMPILE_DEBUG="1")
    assert not list(tmp_path.rglob("storages"))


def test_the_directory_can_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    run_python(EXAMPLE, tmp_path / "here", TORCH_COMPILE_DEBUG="1", TORCH_COMPILE_DEBUG_DIR="..")
    assert files(tmp_path)
    assert not list((tmp_path / "here").iterdir())


def test_it_is_off_by_default(tmp_path: Path) -> None:
    run_python(EXAMPLE, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_decomp_partition"])
def test_other_backends_leave_what_they_have(tmp_path: Path, backend: str) -> None:
    program = EXAMPLE.replace(repr(BACKEND), repr(backend))
    run_python(program, tmp_path, TORCH_COMPILE_DEBUG="1")
    found = files(tmp_path)
    folders = {name.split("/")[1] for name in found if "/model__" in name}
    if backend == "eager":
        assert folders == {"model__0_captured_0.0"}
    else:
        assert folders == {"model__0_forward_1.0", "model__0_backward_3.1"}
    for folder in folders:
        names = {Path(name).name for name in found if f"/{folder}/" in name}
        assert names == {"debug.log", "fx_graph_readable.py", "fx_graph_runnable.py"}


def test_the_command_writes_one_too(tmp_path: Path) -> None:
    path = tmp_path / "graph.py"
    path.write_text(
        "import torch\n\nclass Repro(torch.nn.Module):\n"
        '    def forward(self, x: "f32[8, 8][8, 1]cpu"):\n'
        "        relu = torch.relu(x)\n        return (relu + 1,)\n"
    )
    env = {"TORCH_COMPILE_DEBUG": "1"}
    result = command("run", path, "--backend", BACKEND, env=env, cwd=tmp_path)
    assert result.code == 0, result.err
    assert any("/model__0_inference_0.0/" in name for name in files(tmp_path))


# ---- rerun ----


def forward_directory(example: Path) -> Path:
    return files(example)["torchinductor/model__0_forward_1.0/output_code.cpp"].parent


def edited(example: Path, tmp_path: Path, old: str, new: str) -> Result:
    directory = tmp_path / "model__0_forward_1.0"
    directory.mkdir()
    for path in forward_directory(example).rglob("*"):
        if path.is_file():
            target = directory / path.relative_to(forward_directory(example))
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    code = directory / "output_code.cpp"
    text = code.read_text()
    assert old in text
    code.write_text(text.replace(old, new))
    return command("rerun", directory, "--json")


def test_rerun_of_what_was_generated(example: Path) -> None:
    report = command("rerun", forward_directory(example), "--json").json()
    assert report["same"] is True
    assert report["inputs"]["original"] is True
    assert 0 < report["seconds"] < 10
    text = command("rerun", forward_directory(example)).out
    assert "matches eager" in text
    assert "eager in" in text


def test_rerun_of_a_comment(example: Path, tmp_path: Path) -> None:
    result = edited(example, tmp_path, 'extern "C"', '/* mine */ extern "C"')
    assert (result.code, result.json()["same"]) == (0, True)


def test_rerun_of_a_mistake(example: Path, tmp_path: Path) -> None:
    result = edited(example, tmp_path, "return 0;", "this is not C++;")
    assert result.code != 0
    assert "this is not C++" in result.err


def test_rerun_of_no_directory(tmp_path: Path) -> None:
    result = command("rerun", tmp_path)
    assert result.code == 2
    assert "output_code.cpp cannot be read" in result.err
    assert "TORCH_COMPILE_DEBUG=1" in result.err


def test_settings_of_the_group() -> None:
    assert assay.config.trace.enabled is False
    assert "output_code" in dir(assay.config.trace)
    with assay.config.patch({"trace.output_code": False}):
        assert assay.config.trace.output_code is False
    assert assay.config.trace.output_code is True
    with pytest.raises(AttributeError, match=r"trace\.output_cod"):
        _ = assay.config.trace.output_cod
