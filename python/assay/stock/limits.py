"""What a trial may use, and when its time is over."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from assay.stock import process

POLL_SECONDS = 0.1  # how often the CPU time of a running trial is looked at

# Who takes this part of the memory limit in half of the time limit is on the way to exhaust it...
PART_TAKEN = 16
# ... and may take this many times as long, or a busy machine would turn it into a hang.
MOST_TIME = 4.0


# Address space of a thread: glibc reserves a stack of 8 MB and a heap of 64 MB (twice that, to
# align it).
BYTES_PER_THREAD = 144 << 20


@dataclass(frozen=True)
class Limits:
    """What one trial may use; None means no limit."""

    wall: float | None = 300.0
    cpu: float | None = None
    memory: int | None = None
    output: int = 1 << 16

    @staticmethod
    def of(request: dict[str, Any]) -> Limits:
        """Those of a request; raises ``TypeError`` or ``ValueError`` for what is not a limit.

        CPU time and memory are given for one thread: each further one needs its own.
        """
        kinds = {"wall": float, "cpu": float, "memory": int, "output": int}
        given = request.get("limits") or {}
        found = {name: given.get(name) for name in kinds}
        limits = Limits(**{name: kinds[name](v) for name, v in found.items() if v is not None})
        threads = int(request.get("threads") or 1)
        return replace(
            limits,
            cpu=None if limits.cpu is None else limits.cpu * threads,
            memory=None
            if limits.memory is None
            else limits.memory + (threads - 1) * BYTES_PER_THREAD,
        )


class Timer:
    """Looks at the time that a process takes, and at the memory if it takes long."""

    def __init__(self, pid: int, limits: Limits, start: float) -> None:
        self.pid = pid
        self.limits = limits
        self.start = start
        self.allowed = 1.0  # in time limits
        self.memory_before: int | None = None  # when half a limit was left of it

    def wait(self) -> float:
        """How many seconds it may go on unseen."""
        if self.limits.wall is None:
            return POLL_SECONDS
        part = self.allowed if self.memory_before is not None else self.allowed - 0.5
        left = self.start + part * self.limits.wall - time.monotonic()
        return min(POLL_SECONDS, max(0.0, left))

    def exceeded(self) -> str | None:
        """The limit at which the process is to be ended."""
        if self.memory_before is None and self._has_used(self.allowed - 0.5):
            self.memory_before = process.virtual_bytes(self.pid)
        limit = self._has_used(self.allowed)
        return None if limit is None or self._is_exhausting_memory() else limit

    def _has_used(self, part: float) -> str | None:
        """The limit of which it has used this part."""
        limits = self.limits
        if limits.wall is not None and time.monotonic() - self.start >= part * limits.wall:
            return "wall"
        if limits.cpu is not None and process.cpu_seconds(self.pid) >= part * limits.cpu:
            return "cpu"
        return None

    def _is_exhausting_memory(self) -> bool:
        """Whether it is; if so, it gets another half of its time."""
        before, memory = self.memory_before, process.virtual_bytes(self.pid)
        if self.limits.memory is None or before is None or self.allowed >= MOST_TIME:
            return False
        if memory < before + self.limits.memory // PART_TAKEN:
            return False
        self.allowed += 0.5
        self.memory_before = memory
        return True
