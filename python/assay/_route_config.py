"""``torch._dynamo.config`` in a routed process: Assay's settings where there are such."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from assay import _C, config

__all__ = ["RoutedConfig"]

# Older names of settings, and their names here.
_RENAMED = {
    "base_dir": "debug_dir_root",
    "recompile_limit": "cache_size_limit",
    "accumulated_recompile_limit": "accumulated_cache_size_limit",
}


class RoutedConfig(ModuleType):
    """Reads and writes Assay's settings. Other names are PyTorch's, and have no effect, except the
    sets of functions that log."""

    def __init__(self, stock: ModuleType) -> None:
        super().__init__(stock.__name__, stock.__doc__)
        self.__dict__["_stock"] = stock
        self.__dict__["_ignored"] = {}
        self._set_logging_functions()

    def __getattr__(self, name: str) -> Any:
        ours = _setting(name)
        if ours is not None:
            return getattr(config, ours)
        if _alias(name) in self._ignored:
            return self._ignored[_alias(name)]
        return getattr(self._stock, name)

    def __setattr__(self, name: str, value: Any) -> None:
        ours = _setting(name)
        if name.startswith("__"):
            super().__setattr__(name, value)
        elif ours is not None:
            for to, given in _assigned({ours: value}).items():
                setattr(config, to, given)
        else:
            self._ignored[_alias(name)] = value
            self._set_logging_functions()

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._stock), *config.to_dict()})

    @contextlib.contextmanager
    def patch(
        self, changes: str | dict[str, Any] | None = None, value: Any = None, /, **named: Any
    ) -> Iterator[None]:
        """As PyTorch's ``config.patch``: a context manager and a decorator."""
        all_changes = {changes: value} if isinstance(changes, str) else {**(changes or {})}
        all_changes |= named
        ours = {name: _setting(name) for name in all_changes}
        before = dict(self._ignored)
        settings = {to: all_changes[name] for name, to in ours.items() if to is not None}
        with config.patch(_assigned(settings)):
            self._ignored.update(
                {_alias(name): all_changes[name] for name, to in ours.items() if to is None}
            )
            self._set_logging_functions()
            try:
                yield
            finally:
                self._ignored.clear()
                self._ignored.update(before)
                self._set_logging_functions()

    def _set_logging_functions(self) -> None:
        _C.capture_set_logging_functions(
            self.reorderable_logging_functions, self.ignore_logging_functions
        )


def _alias(name: str) -> str:
    return "ignore_logging_functions" if name == "ignore_logger_methods" else name


def _assigned(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with what follows from them: PyTorch's limit counts other sizes, too."""
    if "cache_size_limit" not in settings:
        return settings
    return {"accumulated_cache_size_limit": settings["cache_size_limit"], **settings}


def _setting(name: str) -> str | None:
    name = _RENAMED.get(name, name)
    return name if name in config.to_dict() else None
