"""What ``torch.compile(module)`` returns in a routed process."""

from __future__ import annotations

import copy
from typing import Any

import torch

from assay._compile import CompiledModule

__all__ = ["OptimizedModule"]


class OptimizedModule(torch.nn.Module):
    """A module around another one, as PyTorch's of that name: state_dict() has ``_orig_mod.``.

    Attributes are those of the module inside; hooks that are registered on it are its own.
    """

    _orig_mod: torch.nn.Module
    _compiled: CompiledModule

    def __init__(self, compiled: CompiledModule) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled
        self._modules["_orig_mod"] = compiled._orig_mod
        del self.__dict__["training"]  # it is the module's

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"]["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            self.__dict__[name] = value
        elif "_orig_mod" in self._modules:
            setattr(self._orig_mod, name, value)
        else:  # while it is made
            super().__setattr__(name, value)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._compiled,)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._compiled, memo))
