"""Which of a file's nodes went into the kernel that inductor failed with.

Inductor tells as it writes a kernel which nodes it is made of, for its own provenance files. We
listen; what it generates stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# In a generated module: where a kernel is compiled, and where it is called.
KERNEL = re.compile(r"\s*(\w+)(?: = async_compile\.|\()")

_stacks: dict[str, list[str]] = {}  # of the nodes of every kernel


def listen() -> None:
    """From now on, note what kernels are made of; nothing where this PyTorch does not tell."""
    from torch._inductor.codegen import cpp

    tell = getattr(cpp, "set_kernel_post_grad_provenance_tracing", None)
    if tell is None:
        return

    def note_and_tell(schedule: Any, kernel: str, *arguments: Any, **options: Any) -> Any:
        with contextlib.suppress(AttributeError, TypeError):  # it is not ours to rely on
            _stacks[kernel] = list(_stacks_of(schedule))
        return tell(schedule, kernel, *arguments, **options)

    cpp.set_kernel_post_grad_provenance_tracing = note_and_tell


def stacks(error: BaseException) -> list[str]:
    """The stacks of the nodes in the kernel that could not be compiled, or that raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_generated(frame.filename):
            found = KERNEL.match(frame.line or "")
            return _stacks.get(found[1], []) if found else []
    return []


def _stacks_of(schedule: Iterable[Any]) -> Iterable[str]:
    for scheduled in schedule:
        for origin in scheduled.node.origins:
            if origin.stack_trace:
                yield origin.stack_trace


def _is_generated(file: str) -> bool:
    return Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) in Path(file).parents
