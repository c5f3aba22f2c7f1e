"""The files of a watched backend's failure: their names and places are PyTorch's."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from assay import _C, config

__all__ = ["Site"]


@functools.cache
def _directory() -> Path:
    """This process's directory, made at its first failure."""
    now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
    root = Path(config.debug_dir_root or "torch_compile_debug").absolute()
    path = root / f"run_{now}-pid_{os.getpid()}" / "minifier"
    (path / "checkpoints").mkdir(parents=True, exist_ok=True)
    return path


class Site:
    """One graph that is being watched."""

    def __init__(
        self,
        level: int,
        reduces_now: bool,
        backend: Any,
        gm: torch.fx.GraphModule,
        inputs: Sequence[Any],
        stage: str,
    ) -> None:
        from assay.diagnose import captured

        self.level = level
        self.reduces_now = reduces_now
        self.backend = backend
        self.name = backend if isinstance(backend, str) else captured.backend_name(backend)
        self.example_inputs = list(inputs)
        self.is_accuracy = False
        self.writer = captured.Writer(str(_directory()), before=_settings_at_start())
        settings = {} if isinstance(backend, str) else captured.backend_settings(backend)
        self.saved = self.writer.prepare(
            "minifier_launcher", gm, inputs, self.name, stage, settings
        )

    @contextlib.contextmanager
    def reporting(self, inputs: Sequence[Any] | None) -> Iterator[None]:
        """Within it the backend compiles or runs with those inputs."""
        values = list(self.example_inputs if inputs is None else inputs)
        if self.level == 3:
            self._write(values)
        before = (
            [
                value.detach().clone() if isinstance(value, torch.Tensor) else value
                for value in values
            ]
            if self.level != 3 and inputs is not None
            else values
        )
        try:
            yield
        except Exception as error:
            try:
                self._report(error, _with_gradness(before, values))
            except Exception as problem:  # the user's failure comes first
                print(f"[repro] no repro was written: {problem}", file=sys.stderr)
            raise

    def _write(self, values: Sequence[Any]) -> Path:
        self.saved.is_accuracy = self.is_accuracy
        self.writer.write(self.saved, values)
        if self.saved.problem:
            raise RuntimeError(self.saved.problem)
        return self.saved.file

    def _report(self, error: Exception, values: Sequence[Any]) -> None:
        from assay.diagnose import captured

        what = "accuracy" if self.is_accuracy else "error"
        _say(f"Compiled Fx GraphModule failed. Creating script to minify the {what}.")
        file = self._write(values)
        directory = _directory()
        if self.level == 1:
            checkpoint = directory / "checkpoints" / f"{self.saved.calls()}.py"
            shutil.move(file, checkpoint)
            _copy(checkpoint, "repro.py")
            return
        _say("Writing minified repro to:")
        _say(str(file))
        is_stock = isinstance(self.backend, str) or captured.is_stock(self.backend)
        if not is_stock:
            self.writer.save_backend(self.name, self.backend)
        command = self._command(file, is_stock)
        if command is None:
            _say("the assay command was not found, so nothing is reduced")
        elif self.reduces_now:
            _say(f"Reducing: {' '.join(command)}")
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(),
                           env=_environment(), check=False)  # fmt: skip
            if (directory / "reduced" / "repro.py").exists():
                _say("Copying reduced repro to repro.py")
                _copy(directory / "reduced" / "repro.py", "repro.py")
        else:
            _say(f"To reduce it: {' '.join(command)}")

    def _command(self, file: Path, is_stock: bool) -> list[str] | None:
        from assay.diagnose.captured import file_name

        found = _C.assay_command()
        if found is None:
            return None
        command = [found, "reduce", str(file), "--output", str(file.parent / "reduced")]
        if is_stock:
            return [*command, "--stack", "torch", "--backend", self.name, "--trust"]
        return [*command, "--backend-file", str(file.parent / f"{file_name(self.name)}.pkl")]


@functools.cache
def _settings_at_start() -> dict[str, Any]:
    """PyTorch's defaults, with which a trial starts."""
    from assay.diagnose import captured

    return captured.default_settings()


def _with_gradness(copies: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    return [
        copied.requires_grad_(value.requires_grad)
        if isinstance(copied, torch.Tensor) and copied is not value
        else copied
        for copied, value in zip(copies, values, strict=True)
    ]


def _environment() -> dict[str, str]:
    """The variables, but the command wraps no compiler itself."""
    watching = ("ASSAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER")
    kept = {name: value for name, value in os.environ.items() if name not in watching}
    return {**kept, "ASSAY_PYTHON": sys.executable}


def _copy(source: Path, name: str) -> None:
    """A repro in the current directory, whose storages are found where they are."""
    text = source.read_text()
    here = "os.path.dirname(os.path.abspath(__file__))"
    directory = source.parent
    Path(name).write_text(text.replace(here, repr(str(directory))))


def _say(text: str) -> None:
    print(f"[repro] {text}", file=sys.stderr)
