"""The reducer is started at once, or not, and what it finds comes to the current directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from debug.program import Run, run_program

# Stands for `assay reduce FILE --output DIR --backend B`: "finds" the file itself.
REDUCER = """#!/bin/sh
echo "called with $*"
echo "repro after: [$TORCHDYNAMO_REPRO_AFTER], fault: [$ASSAY_INJECT_FAULT]"
mkdir -p "$4"
sed 's/dirname(os.path.abspath(__file__))/&/; s/checkpoints/..\\/checkpoints/' "$2" > "$4/repro.py"
"""


def run_reduced(
    build_directory: Path,
    directory: Path,
    script: str,
    after: str = "dynamo",
    level: int = 2,
    **settings: str,
) -> Run:
    """Run a program that fails, with `script` in the place of the assay command."""
    command = directory / "bin" / "assay"
    command.parent.mkdir()
    command.write_text(script)
    command.chmod(0o755)
    current = directory / "current"
    current.mkdir()
    fault = "relu:accuracy" if level == 4 else "relu:runtime_error"
    return run_program(
        build_directory,
        current,
        "infer",
        after=after,
        level=level,
        fault=fault,
        ASSAY_REDUCE="",
        ASSAY_BINARY=str(command),
        **settings,
    )


def test_after_dynamo_it_runs_by_itself(build_directory: Path, tmp_path: Path) -> None:
    run = run_reduced(build_directory, tmp_path, REDUCER)
    output = run.minifier / "reduced"
    assert f"called with reduce {run.launcher} --output {output} --backend native\n" in run.err
    assert "repro after: [], fault: [relu:runtime_error]" in run.err, "it watches nothing itself"
    assert f"Copying reduced repro to {run.repro}" in run.err
    assert "injected runtime error" in run.out, "the program's failure goes on"
    text = run.repro.read_text()
    assert f"'{output.parent.relative_to(run.directory)}/checkpoints'" in text


@pytest.mark.parametrize(
    ("after", "level", "kind"), [("dynamo", 2, "runtime_error"), ("aot", 4, "accuracy")]
)
def test_the_real_reducer_finds_the_one_operator(
    build_directory: Path, tmp_path: Path, after: str, level: int, kind: str
) -> None:
    run = run_program(
        build_directory,
        tmp_path,
        "train",
        after=after,
        level=level,
        fault=f"relu:{kind}",
        ASSAY_REDUCE="now",
    )
    text = run.repro.read_text()
    assert text.count("torch.ops.") == 1, text
    assert "torch.ops.aten.relu.default(" in text


def test_after_aot_it_does_not(build_directory: Path, tmp_path: Path) -> None:
    run = run_reduced(build_directory, tmp_path, REDUCER, after="aot")
    assert "called with" not in run.err
    assert run.launcher.exists()
    assert not run.repro.exists()


def test_wrong_results_are_reduced_as_such(build_directory: Path, tmp_path: Path) -> None:
    run = run_reduced(
        build_directory,
        tmp_path,
        REDUCER,
        level=4,
        TORCHDYNAMO_REPRO_FORWARD_ONLY="1",
        TORCHDYNAMO_REPRO_IGNORE_NON_FP="1",
    )
    assert "--backend native --accuracy --only-forward --ignore-non-fp\n" in run.err


def test_a_reducer_that_fails_is_a_note(build_directory: Path, tmp_path: Path) -> None:
    run = run_reduced(build_directory, tmp_path, "#!/bin/sh\nkill -9 $$\n")
    assert "the reducer exited with code -9 and wrote no repro" in run.err
    assert "injected runtime error" in run.out
    assert run.launcher.exists()


def test_without_the_command_the_launcher_stays(build_directory: Path, tmp_path: Path) -> None:
    run = run_program(
        build_directory,
        tmp_path,
        "infer",
        after="dynamo",
        fault="relu:runtime_error",
        ASSAY_REDUCE="now",
        ASSAY_BINARY="/no/such/assay",
    )
    assert "the assay command was not found" in run.err
    assert f"assay reduce {run.launcher} --output " in run.err
    assert "injected runtime error" in run.out
