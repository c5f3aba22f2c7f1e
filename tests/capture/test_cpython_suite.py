"""The interpreter loop runs CPython's own tests as CPython does."""

from __future__ import annotations

from pathlib import Path

import pytest

from capture import engine
from capture.cpython_suite import (
    EXPECTED_DIFFERENCES,
    QUICK,
    Outcome,
    TestFile,
    differences,
    files,
    run_file,
)

BY_NAME = {file.name: file for file in files()}


def check_file(name: str, directory: Path) -> None:
    if engine.ENGINE != "assay":
        pytest.skip(f"judges Assay's loop, not {engine.ENGINE}")
    plain = run_file(BY_NAME[name], False, directory / "plain")
    assert plain.end == "finished", plain.end
    loop = run_file(BY_NAME[name], True, directory / "loop")
    found = differences(plain, loop)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", QUICK)
def test_quick(name: str, tmp_path: Path) -> None:
    check_file(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in QUICK])
def test_slow(name: str, tmp_path: Path) -> None:
    check_file(name, tmp_path)


def test_differences_are_told_in_words() -> None:
    plain = Outcome({"a": "passed", "b": "skipped", "c": "failed"}, {}, "finished")
    same = Outcome({"a": "passed", "b": "skipped", "c": "failed"}, {"c": "other text"}, "finished")
    assert differences(plain, same) == []
    crashed = Outcome({"a": "passed", "b": "started"}, {}, "exit code -11")
    found = differences(plain, crashed)
    assert "did not finish, in ['b']: exit code -11" in found[0]
    assert found[1].startswith("b: skipped, but started in the loop")
    assert found[2].startswith("c: failed, but absent in the loop")


def test_the_list_is_sound(tmp_path: Path) -> None:
    assert len(BY_NAME) >= 60
    assert set(QUICK) <= set(BY_NAME)
    assert all(reason for reason in EXPECTED_DIFFERENCES.values())
    missing = run_file(TestFile("test_that_does_not_exist"), False, tmp_path)
    assert "failed" in missing.tests.values() or missing.end != "finished"
