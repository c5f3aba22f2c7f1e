"""A backend of the user's in the process of a trial server.

It is named, ``module:attribute``, or comes in a file that :func:`save` has written: a function that
is defined in a script, or a class's instance, exists nowhere else. Such a file is a pickle, and so
is as trusted as a program.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CannotLoad",
    "dumps",
    "is_live",
    "is_loaded",
    "keep_live",
    "load_file",
    "load_named",
    "loaded",
    "pickler",
    "save",
]

_loaded: list[Callable[..., Any]] = []
_is_live = False


def save(backend: Callable[..., Any], file: Path) -> None:
    """Write a backend by value. Raises what the pickler raises for one that cannot be sent."""
    # What it imports must be found there too: the script's own directory, and what was added.
    here = [str(Path(path).absolute()) for path in sys.path]
    file.write_bytes(pickle.dumps({"path": here, "backend": dumps(backend)}))


@functools.cache
def pickler() -> Any:
    """A class of picklers: by value what a script defines, by name what PyTorch and modules do."""
    import cloudpickle  # type: ignore[import-untyped]

    from assay import _targets

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, types.ModuleType) and obj.__name__.startswith("torch.ops"):
                return _targets.find, (obj.__name__,)
            if isinstance(obj, _targets.OPERATORS):
                return _targets.find, (_targets.name_of(obj),)
            return super().reducer_override(obj)

    return Pickler


def dumps(backend: Callable[..., Any]) -> bytes:
    """A backend by value. Raises what the pickler raises."""
    buffer = io.BytesIO()
    pickler()(buffer).dump(backend)
    return buffer.getvalue()


def load_file(file: Path) -> None:
    """Load what :func:`save` wrote."""
    with _cannot_load(str(file)):
        content = pickle.loads(file.read_bytes())
        sys.path.extend(path for path in content["path"] if path not in sys.path)
        _keep(pickle.loads(content["backend"]))


def load_named(name: str) -> None:
    """Import ``package.module:attribute``, also from the current directory."""
    module, _, attributes = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    with _cannot_load(name):
        found: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
        _keep(found)


def _keep(backend: Any) -> None:
    if not callable(backend):
        raise TypeError(f"a {type(backend).__name__} cannot be called")
    _loaded[:] = [backend]


def keep_live(backend: Callable[..., Any]) -> None:
    """Trials are forks of the process that has the backend, and may call what it has defined."""
    global _is_live
    _keep(backend)
    _is_live = True


def is_live() -> bool:
    """Whether the program under test is in this process."""
    return _is_live


class CannotLoad(Exception):
    """There is no such backend, or what defines it raises."""


@contextlib.contextmanager
def _cannot_load(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the user's modules raise what they like
        raise CannotLoad(
            f"the backend {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def is_loaded() -> bool:
    """Whether trials test a backend of the user's."""
    return bool(_loaded)


def loaded() -> Callable[..., Any]:
    """The backend."""
    return _loaded[0]
