"""What ``assay.config`` does; its module and its stub (:mod:`assay.config`) only show it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType, TracebackType
from typing import Any, ParamSpec, TypeVar

from assay import _C

P = ParamSpec("P")
R = TypeVar("R")


class Patch(AbstractContextManager[None]):
    """Settings for the length of a ``with`` block or of a function's calls."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._patch = _C.ConfigPatch(dict(values))

    def __enter__(self) -> None:
        self._patch.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._patch.exit()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: the settings hold while it runs."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            # Its call only makes an object; the body runs when the patch has ended.
            raise TypeError(
                "assay.config.patch cannot decorate a generator or coroutine function; "
                "use `with assay.config.patch(...)` inside it"
            )

        @functools.wraps(function)
        def patched(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return patched


class Group:
    """Settings with a common prefix: ``assay.config.trace.output_code``."""

    def __init__(self, prefix: str) -> None:
        object.__setattr__(self, "_prefix", prefix)

    def __getattr__(self, name: str) -> Any:
        return _C.config_get(self._prefix + name)

    def __setattr__(self, name: str, value: Any) -> None:
        _C.config_set(self._prefix + name, value)

    def __dir__(self) -> list[str]:
        names = (row["name"] for row in _C.config_describe())
        return [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]


_GROUPS = {"trace": Group("trace.")}


class Config(ModuleType):
    """The module ``assay.config``: each setting is an attribute."""

    def __getattr__(self, name: str) -> Any:
        return _GROUPS[name] if name in _GROUPS else _C.config_get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # what Python's import sets
            super().__setattr__(name, value)
        else:
            _C.config_set(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a setting cannot be deleted: '{name}'; see assay.config.unset")

    def __dir__(self) -> list[str]:
        plain = [name for name in self.to_dict() if "." not in name]
        return [*plain, *_GROUPS, "patch", "reload_environment", "to_dict", "unset"]

    def patch(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Patch:
        return Patch({**(values or {}), **named})

    def unset(self, name: str) -> None:
        _C.config_unset(name)

    def to_dict(self) -> dict[str, Any]:
        return {row["name"]: _C.config_get(row["name"]) for row in _C.config_describe()}

    def reload_environment(self) -> None:
        _C.config_reload_environment()
