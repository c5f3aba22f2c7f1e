"""What each level of each stage leaves behind for each kind of fault."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from debug.program import Run, run_program
from support.command import assay

STAGES = ["dynamo", "aot"]


def run_file(file: Path, fault: str, backend: str = "aot_eager") -> dict:
    """What `assay run` says about a file, with the same fault in the backend."""
    done = assay(
        "run",
        file,
        "--backend",
        backend,
        "--json",
        env={"ASSAY_INJECT_FAULT": fault},
        cwd=Path("/"),
    )
    assert done.code == 1, done.err
    return json.loads(done.out)


def assert_fails_alike(file: Path, fault: str, kind: str) -> None:
    """The file fails under `assay run` as the program did, with the original inputs."""
    report = run_file(file, fault)
    assert f"injected {kind.replace('_', ' ')}" in json.dumps(report)
    assert "not the original ones" not in json.dumps(report)


@pytest.mark.parametrize("after", STAGES)
@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_runtime_error_is_written(
    build_directory: Path, tmp_path: Path, after: str, level: int
) -> None:
    fault = "relu:runtime_error"
    run = run_program(build_directory, tmp_path, "train", after=after, level=level, fault=fault)
    assert run.code == 1
    assert "injected runtime error" in run.out, "the program sees its own failure"
    file = run.repro if level == 1 else run.launcher
    assert_fails_alike(file, fault, "runtime_error")
    text = file.read_text()
    assert f"command='{'run' if level == 1 else 'minify'}'" in text
    assert f"torch._dynamo.repro.after_{after} import run_repro" in text
    assert "# failure: injected runtime error" in text
    assert str(tmp_path) not in text, "only relative paths"
    if level == 1:
        assert "Writing checkpoint with " in run.err
        assert f"Copying repro file for convenience to {run.repro}" in run.err
        assert not run.launcher.exists()
        assert [path.name for path in run.minifier.glob("checkpoints/*.py")]
    else:
        assert "Writing minified repro to:" in run.err
        assert str(run.launcher) in run.err
        assert not run.repro.exists()


@pytest.mark.parametrize(("after", "level"), [("dynamo", 1), ("dynamo", 2), ("aot", 2)])
def test_a_compile_error_is_written(
    build_directory: Path, tmp_path: Path, after: str, level: int
) -> None:
    fault = "relu:compile_error"
    run = run_program(build_directory, tmp_path, "infer", after=after, level=level, fault=fault)
    assert run.code == 1
    assert "injected compile error at 'relu'" in run.out
    file = run.repro if level == 1 else run.launcher
    assert_fails_alike(file, fault, "compile_error")


@pytest.mark.parametrize("after", STAGES)
@pytest.mark.parametrize("kind", ["segfault", "abort"])
def test_a_crash_leaves_the_file_at_level_three(
    build_directory: Path, tmp_path: Path, after: str, kind: str
) -> None:
    fault = f"relu:{kind}"
    run = run_program(build_directory, tmp_path, "train", after=after, level=3, fault=fault)
    number = signal.SIGSEGV if kind == "segfault" else signal.SIGABRT
    assert run.code == -number
    done = assay("run", run.launcher, "--backend", "aot_eager", env={"ASSAY_INJECT_FAULT": fault})
    assert done.code == -number
    assert "reader.storage(None" not in run.launcher.read_text(), "the data is there"


@pytest.mark.parametrize("after", STAGES)
@pytest.mark.parametrize("kind", ["accuracy", "nan"])
def test_wrong_results_are_found_at_level_four(
    build_directory: Path, tmp_path: Path, after: str, kind: str
) -> None:
    run = run_program(
        build_directory, tmp_path, "infer", after=after, level=4, fault=f"relu:{kind}"
    )
    assert run.code == 1
    assert run.out.startswith("AccuracyError: Bad accuracy detected: "), run.out
    assert "Accuracy failed for the" in run.err
    for file in (run.repro, run.launcher):
        assert "accuracy=True" in file.read_text()


def test_an_exception_at_level_four_is_written_too(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(
        build_directory, tmp_path, "infer", after="aot", level=4, fault="relu:runtime_error"
    )
    assert "injected runtime error" in run.out
    assert "accuracy=False" in run.launcher.read_text()


@pytest.mark.parametrize("after", STAGES)
def test_nothing_is_written_when_all_is_well(
    build_directory: Path, tmp_path: Path, after: str
) -> None:
    run = run_program(build_directory, tmp_path, "train", after=after, level=4)
    assert (run.code, run.out, run.err) == (0, "done\n", "")
    assert run.wrote_nothing


def test_nothing_is_written_when_it_was_not_asked_for(
    build_directory: Path, tmp_path: Path
) -> None:
    run = run_program(build_directory, tmp_path, "train", fault="relu:runtime_error")
    assert run.code == 1
    assert run.wrote_nothing


def test_other_levels_do_not_look_at_numbers(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(build_directory, tmp_path, "infer", after="dynamo", fault="relu:accuracy")
    assert run.out == "done\n"
    assert run.wrote_nothing


def test_changed_inputs_are_written_as_they_were(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(
        build_directory, tmp_path, "mutate", "eager", after="dynamo", fault="relu:runtime_error"
    )
    done = assay("run", run.launcher, "--json")
    # relu(x + 100) + (x + 100) of x = -2, -1.5, ...; of the changed x it would be 200 more.
    assert done.json()["outputs"][0]["min"] == 196, done.out


def test_a_training_loop_does_not_fill_the_disk(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(build_directory, tmp_path, "steps", after="dynamo", level=3)
    assert run.code == 0
    assert len(list(run.minifier.glob("checkpoints/storages/*"))) == 1
    assert assay("run", run.launcher).code == 0
    assert run.err.count("Writing minified repro to:") == 1, "said once, not at every step"


def test_compiled_functions_inside_each_other_are_written_once(
    build_directory: Path, tmp_path: Path
) -> None:
    run = run_program(build_directory, tmp_path, "nest", after="dynamo", fault="relu:runtime_error")
    assert run.err.count("Writing minified repro to:") == 1
    assert "mul" in run.launcher.read_text(), "the outer one"


def test_a_current_directory_that_cannot_be_written_is_a_note(
    build_directory: Path, tmp_path: Path
) -> None:
    run = run_program(
        build_directory,
        Path("/proc"),
        "infer",
        after="dynamo",
        level=1,
        fault="relu:runtime_error",
        TORCH_COMPILE_DEBUG_DIR=str(tmp_path),
    )
    assert "injected runtime error" in run.out
    assert "No write permissions for /proc/repro.py" in run.err
    assert list(tmp_path.glob("torch_compile_debug/run_*/minifier/checkpoints/*.py"))


def test_inputs_can_be_left_out(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(
        build_directory,
        tmp_path,
        "infer",
        after="dynamo",
        fault="relu:runtime_error",
        ASSAY_REPRO_INPUTS="shapes",
    )
    assert ": f32[4, 3][3, 1]cpu, -2 to 3.5, mean 0.75\n" in run.launcher.read_text()
    assert not list(run.minifier.glob("checkpoints/storages/*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ASSAY_REPRO_AFTER": "inductor"}, "ASSAY_REPRO_AFTER is 'inductor'"),
        ({"TORCHDYNAMO_REPRO_AFTER": "aot", "ASSAY_REPRO_LEVEL": "7"}, "ASSAY_REPRO_LEVEL is '7'"),
    ],
)
def test_a_wrong_setting_is_an_error(
    build_directory: Path, tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    run: Run = run_program(build_directory, tmp_path, "infer", **settings)
    assert run.out.startswith(f"UserError: {message}"), run.out
