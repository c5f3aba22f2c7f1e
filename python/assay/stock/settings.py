"""PyTorch's configuration, as a request gives it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from assay.stock.check import UntrustedFile

MODULES = (
    "torch._dynamo.config",
    "torch._inductor.config",
    "torch._functorch.config",
    "torch.fx.experimental._config",
)
PLAIN = (bool, int, float, type(None))

# Strings are rejected unless listed: there are settings that name compilers, flags and directories.
SAFE_TEXT = re.compile(
    r"torch\._inductor\.config\.((cpp|triton)\.inject_\w+_bug_TESTING_ONLY|cpu_backend"
    r"|emulate_precision_casts|layout_opt_default|scatter_combine_\w+)"
    r"|torch\._functorch\.config\.(activation_memory_budget_\w+_estimator|remat_using_tags\w*)"
)

# What would send a trial into debugging its own compiler, or hide what it is looking for.
NEVER = {
    "torch._dynamo.config.repro_after",
    "torch._dynamo.config.repro_level",
    "torch._dynamo.config.suppress_errors",
}


def apply(settings: Iterable[tuple[str, Any]], *, is_trusted: bool) -> None:
    """Set each; raises ``AttributeError`` for one that this PyTorch does not have."""
    for name, value in settings:
        if name in NEVER:
            continue
        module = next((known for known in MODULES if name.startswith(f"{known}.")), None)
        if module is None:
            raise AttributeError(f"{name} is not a setting of torch.compile's stack")
        *inner, last = name[len(module) + 1 :].split(".")
        owner: Any = importlib.import_module(module)
        for part in inner:
            owner = getattr(owner, part)
        current = getattr(owner, last)
        if not is_trusted:
            _check(name, value, current)
        if isinstance(value, list) and isinstance(current, tuple | set | frozenset):
            value = type(current)(value)
        setattr(owner, last, value)


def do_not_reuse_graphs() -> None:
    """Compile every graph anew: the keys of the caches know nothing of what setup lines change."""
    import torch._functorch.config
    import torch._inductor.config

    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False


def _check(name: str, value: Any, current: Any) -> None:
    if any(part.startswith("_") for part in name.split(".")[-2:] if part != "_config"):
        raise UntrustedFile(f"{name}: not a public setting; if you trust the file, use --trust")
    if isinstance(value, PLAIN) and isinstance(current, PLAIN):
        return
    if SAFE_TEXT.fullmatch(name) or value == current:
        return
    raise UntrustedFile(
        f"{name} = {value!r}: a setting that is not a number can name programs and files, and the "
        "file may come from a stranger; if you trust it, say so with --trust"
    )
