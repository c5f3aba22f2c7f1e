"""What the user sees while the diagnosis runs: a line per step, on stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator


class Progress:
    """Prints steps as they end; on a terminal also the one that is running, with its time."""

    def __init__(self, is_quiet: bool) -> None:
        self.is_quiet = is_quiet
        self.is_terminal = sys.stderr.isatty()
        self.lock = threading.Lock()
        self.running: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Something that takes a while."""
        self.running[name] = time.monotonic()
        ticking = threading.Event()
        thread = threading.Thread(target=self._tick, args=(ticking,), daemon=True)
        if self.is_terminal and not self.is_quiet:
            thread.start()
        try:
            yield
        finally:
            ticking.set()
            self.running.pop(name, None)

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(0.2):
            with self.lock:
                now = time.monotonic()
                text = "; ".join(f"{n} {now - start:.0f} s" for n, start in self.running.items())
                sys.stderr.write(f"\r\033[K{text[:100]}")
                sys.stderr.flush()

    def say(self, name: str, result: str, seconds: float | None = None) -> None:
        """A step has ended."""
        if self.is_quiet:
            return
        took = f"{seconds:6.1f} s" if seconds is not None else " " * 8
        with self.lock:
            start = "\r\033[K" if self.is_terminal else ""
            sys.stderr.write(f"{start}{name:<28} {took}  {result}\n")
            sys.stderr.flush()
