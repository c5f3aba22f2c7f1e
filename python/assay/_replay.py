"""Record and replay: a frame whose capture failed, written down so that it can be run again.

With ``assay.config.replay_record_enabled`` each failure while capturing leaves a file, which its
message names:

>>> assay.replay("torch_compile_debug/run_.../error_recordings/f_Unsupported_3.rec", trusted=True)

A file begins with two lines that anybody can read, what it is and a description in JSON. Then come
two pickles: the frame as it was when it started, and the backend.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pickle
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay import _C, _backends, config
from assay._compile import compile
from assay.errors import UserError
from assay.stock import sent_backend

__all__ = ["replay"]

_MAGIC = b"assay frame record 1\n"

# The settings that decide what is compiled.
_SETTINGS = ("cache_size_limit", "disable_passes", "inject_fault", "pass_limit")


@dataclass
class _Taken:
    """A frame that has started, by value, or why it cannot be written."""

    code: types.CodeType
    frame: bytes
    problem: str = ""


def _dumps(value: Any) -> bytes:
    # torch.save keeps tensors that share memory sharing it.
    buffer = io.BytesIO()
    module = types.SimpleNamespace(__name__="cloudpickle", Pickler=sent_backend.pickler())
    torch.save(value, buffer, pickle_module=module)
    return buffer.getvalue()


def _copy_of(function: types.FunctionType) -> types.FunctionType:
    """The function as another object, so that it is pickled by value wherever it comes from."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    return copy


def _take(function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> _Taken:
    """Called when a frame starts that is captured: what it does later cannot change the record."""
    content = {
        "function": _copy_of(function),
        "args": args,
        "kwargs": kwargs,
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "random": torch.get_rng_state(),
    }
    try:
        return _Taken(function.__code__, _dumps(content))
    except Exception as error:  # a pickler raises whatever the objects raise
        return _Taken(function.__code__, b"", _problem(content, error))


def _problem(content: dict[str, Any], error: Exception) -> str:
    """Which part of a frame cannot be written, and why."""
    function = content["function"]
    names = function.__code__.co_varnames
    parts = {f"argument '{names[i]}'" if i < len(names) else f"argument {i}": value
             for i, value in enumerate(content["args"])}  # fmt: skip
    parts |= {f"argument '{name}'": value for name, value in content["kwargs"].items()}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # an empty cell
            parts[f"the variable '{name}' of an enclosing function"] = cell.cell_contents
    for name in function.__code__.co_names:
        if name in function.__globals__:
            parts[f"the global '{name}'"] = function.__globals__[name]
    for name, value in parts.items():
        try:
            _dumps(value)
        except Exception as reason:  # as above
            return f"{name} cannot be pickled ({type(reason).__name__}: {reason})"
    return f"{type(error).__name__}: {error}"


def _keep(
    taken: _Taken, error: Exception, backend: Any, options: dict[str, Any], fullgraph: bool
) -> None:
    """Called when the capture of a frame failed: writes the record, and notes where it is."""
    if taken.problem:
        error.add_note(f"The frame was not recorded: {taken.problem}")
        return
    code = taken.code
    name = backend if isinstance(backend, str) else _backends.backend_name(backend)
    header = {
        "function": code.co_name,
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "error": type(error).__name__,
        "message": str(error),
        "backend": name,
        "options": options,
        "fullgraph": fullgraph,
        "settings": {setting: getattr(config, setting) for setting in _SETTINGS},
        "path": [str(Path(path).absolute()) for path in sys.path],
        "frame_bytes": len(taken.frame),
        "backend_problem": "",
    }
    # A name that the program has registered is not known elsewhere.
    function = _backends.registered(backend) if isinstance(backend, str) else backend
    sent = b""
    if function is not None:
        try:
            sent = sent_backend.dumps(function)
        except Exception as problem:  # as above
            header["backend_problem"] = f"{type(problem).__name__}: {problem}"
    file_name = re.sub(r"\W+", "_", f"{code.co_name}_{type(error).__name__}").strip("_")
    content = _MAGIC + json.dumps(header).encode() + b"\n" + taken.frame + sent
    try:
        path = _write(f"{file_name}_{code.co_firstlineno}.rec", content)
    except OSError as problem:
        error.add_note(f"The frame was not recorded: {problem}")
        return
    error.record_filename = path  # type: ignore[attr-defined]
    note = (
        f"Last frame execution written to {path}. To run only this frame while debugging, run "
        f"assay.replay({path!r}, trusted=True) or python -m assay --replay {path} --trusted."
    )
    error.add_note(note)
    _C.log_warning(note)


def _write(name: str, content: bytes) -> str:
    """Write it below the debug directory, or among temporary files where that cannot be made."""
    directory = Path(_C.debug_directory())
    try:
        return _write_into(directory / "error_recordings", name, content)
    except OSError:
        elsewhere = Path(tempfile.gettempdir()) / "torch_compile_debug" / directory.name
        return _write_into(elsewhere / "error_recordings", name, content)


def _write_into(directory: Path, name: str, content: bytes) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    # As in PyTorch, the first failure of its kind is the one that is kept.
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_bytes(content)
        part.replace(file)
    return str(file)


_C.capture_set_frame_recorder(_take, _keep)


def replay(file: str | os.PathLike[str], *, trusted: bool = False, backend: Any = None) -> Any:
    """Run the frame of a record again, captured and compiled as it was when it failed.

    Raises what the frame raised then. If it does not fail now, returns what the frame returns.
    ``backend`` compiles with another backend than the recorded one.

    A record is a pickle, and loading a pickle runs code that it names. So ``trusted=True`` has to
    say that the file is as trusted as a program: one that you or somebody you trust has recorded.
    """
    path = Path(file)
    header, frame, sent = _read(path)
    if not trusted:
        raise UserError(
            f"{path} is a record of {header['function']} ({header['file']}:{header['line']}), "
            f"which failed with {header['error']}. It is a pickle: loading it can run any code "
            "that whoever wrote the file put there.\n  hint: if you trust where it comes from, use "
            "assay.replay(file, trusted=True)"
        )
    with _search_path(header["path"]):
        content = torch.load(io.BytesIO(frame), weights_only=False, pickle_module=pickle)
        chosen = _recorded_backend(header, sent) if backend is None else backend
        settings = {**header["settings"], "replay_record_enabled": False}
        with config.patch(settings), _torch_state(content):
            compiled = compile(
                content["function"],
                backend=chosen,
                fullgraph=header["fullgraph"],
                options=header["options"] if backend is None else None,
            )
            return compiled(*content["args"], **content["kwargs"])


def _read(path: Path) -> tuple[dict[str, Any], bytes, bytes]:
    """The description of a record and its two pickles, which are not loaded."""
    if not path.is_file():
        raise UserError(f"there is no file '{path}'")
    content = path.read_bytes()
    if not content.startswith(_MAGIC):
        raise UserError(f"{path} is not a record of a frame that this version of Assay can read")
    line, _, pickles = content[len(_MAGIC) :].partition(b"\n")
    try:
        header = json.loads(line)
        size = header["frame_bytes"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error}") from error
    if len(pickles) < size:
        raise UserError(f"{path} is damaged: {len(pickles)} of {size} bytes of the frame are there")
    return header, pickles[:size], pickles[size:]


def _recorded_backend(header: dict[str, Any], sent: bytes) -> Any:
    if header["backend_problem"]:
        raise UserError(
            f"backend '{header['backend']}' is not in the record: {header['backend_problem']}"
            "\n  hint: name one, assay.replay(file, trusted=True, backend=...)"
        )
    if not sent:
        return header["backend"]
    function = pickle.loads(sent)
    if _backends.backend_name(function) == header["backend"]:
        return function

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    renamed.compiler_name = header["backend"]  # type: ignore[attr-defined]
    return renamed


@contextlib.contextmanager
def _search_path(paths: list[str]) -> Iterator[None]:
    """Modules are also found where the recorded program found them."""
    added = [path for path in paths if path not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for path in added:
            sys.path.remove(path)


@contextlib.contextmanager
def _torch_state(content: dict[str, Any]) -> Iterator[None]:
    """What the frame found in torch's global state."""
    dtype, random = torch.get_default_dtype(), torch.get_rng_state()
    enabled, autocast_dtype = content["autocast"]
    torch.set_default_dtype(content["dtype"])
    torch.set_rng_state(content["random"])
    try:
        with torch.set_grad_enabled(content["grad"]), contextlib.ExitStack() as stack:
            if enabled:
                stack.enter_context(torch.autocast("cpu", dtype=autocast_dtype))
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(random)
