"""Failures of a compiler reach Python as classes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import assay


def program(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.sin())


def test_a_compiler_that_fails() -> None:
    compiled = assay.aot.compile(program, backend="relu_compile_error_TESTING_ONLY")
    with pytest.raises(assay.BackendCompilerFailed, match="injected compile error") as raised:
        compiled(torch.ones(3))
    assert isinstance(raised.value, assay.Error)
    assert isinstance(raised.value, RuntimeError)


def test_wrong_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    compiled = assay.aot.compile(program, backend="relu_accuracy_error_TESTING_ONLY")
    settings = {"repro_after": "dynamo", "repro_level": 4, "debug_dir_root": str(tmp_path)}
    with (
        assay.config.patch(settings, reduce="launcher"),
        pytest.raises(assay.AccuracyError, match="Bad accuracy detected"),
    ):
        compiled(torch.ones(3))


def test_every_exception_is_an_error() -> None:
    kinds = [
        assay.UserError,
        assay.TraceError,
        assay.SettingsError,
        assay.InternalError,
        assay.OperatorError,
        assay.BackendCompilerFailed,
        assay.AccuracyError,
    ]
    assert all(issubclass(kind, assay.Error) for kind in kinds)
    for kind in (assay.Error, ValueError):
        with pytest.raises(kind):
            assay.parse("class Repro:")
