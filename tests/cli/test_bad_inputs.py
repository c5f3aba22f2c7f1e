"""Inputs that are not what the file says: storages lost, damaged or of another size."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.command import FIXTURES, assay

SOURCE = FIXTURES / "linear_layernorm_relu"
WEIGHT = "e6dbcaad26a6911e34d78d9ac56a769698a65de5"  # 400 bytes
BIAS = "7e4090786b9bc3a4132ed17eb2b5868208b9f3b1"  # 40 bytes


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """A copy of a launcher and of its storages, to be damaged."""
    shutil.copytree(SOURCE / "checkpoints", tmp_path / "checkpoints")
    return Path(shutil.copy(SOURCE / "dynamo_launcher.py", tmp_path / "launcher.py"))


def storage(launcher: Path, name: str) -> Path:
    return launcher.parent / "checkpoints" / "storages" / name


def test_a_lost_storage_is_made_up_and_this_is_said(launcher: Path) -> None:
    storage(launcher, WEIGHT).unlink()
    result = assay("run", launcher)
    assert result.code == 0
    assert "note: inputs are not the original ones: 1 of 5 storages were synthesized" in result.out
    assert f"because storage {WEIGHT} is not in {launcher.parent}" in result.out


def test_a_storage_of_another_size_is_refused(launcher: Path) -> None:
    shutil.copy(storage(launcher, BIAS), storage(launcher, WEIGHT))
    result = assay("run", launcher)
    assert (result.code, result.out) == (2, "")
    assert f"{WEIGHT}: the storage has 40 bytes, the graph file says 400" in result.err


@pytest.mark.parametrize("kept", [0, 5, 1000], ids=["empty", "no archive", "cut off"])
def test_a_damaged_storage_is_refused(launcher: Path, kept: int) -> None:
    damaged = storage(launcher, WEIGHT)
    damaged.write_bytes(damaged.read_bytes()[:kept])
    result = assay("run", launcher)
    assert (result.code, result.out) == (2, "")
    assert f"{WEIGHT}: not a storage saved by PyTorch" in result.err
    assert "hint: save it again, or remove the file" in result.err


EDITS = {
    "beyond its storage": ("(10, 10), req", "(10, 11), req", "an input reaches beyond its storage"),
    "out of the store": (f"'{WEIGHT}'", f"'../{WEIGHT}'", "not a storage's hash"),
    "unknown storage": ("tensor(buf0,", "tensor(buf9,", "this storage is not defined"),
    "unknown method": ("reader.tensor(buf0", "reader.load(buf0", "unknown reader method"),
    "strides": ("(10, 10), req", "(10, 10), (1,), req", "expected as many strides as sizes"),
    "unknown dtype": ("is_leaf=True)", "dtype=torch.float33)", "expected a dtype"),
    "lost input": ("    reader.tensor(buf4", "    #", "takes 5 inputs, the file gives 4"),
}


@pytest.mark.parametrize("name", EDITS)
def test_load_args_that_makes_no_sense_is_refused(launcher: Path, name: str) -> None:
    old, new, message = EDITS[name]
    text = launcher.read_text()
    assert old in text
    launcher.write_text(text.replace(old, new, 1))
    result = assay("run", launcher)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {launcher}")
    assert message in result.err
