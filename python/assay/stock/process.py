"""Linux, where Python has no word for it: processes that die together, and what they use."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Ask to be killed when ``parent``, which has just forked us, ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they can be found."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> list[int]:
    """The children of a process, whichever of its threads started them; none if it has ended."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in thread.read_text().split()]
        except OSError:
            continue
    return found


def descendants(pid: int) -> Iterator[int]:
    """All processes below one."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def _cpu_seconds_of(pid: int) -> float:
    """What a running process and those it has waited for have used."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()  # after the name, which may hold anything
    return sum(int(field) for field in fields[11:15]) / CLOCK_TICKS


def cpu_seconds(pid: int) -> float:
    """What a running process and all below it have used: compilers count while they run."""
    return _cpu_seconds_of(pid) + sum(_cpu_seconds_of(child) for child in descendants(pid))


def virtual_bytes(pid: int) -> int:
    """The size of a process's address space; 0 if it has ended and was not waited for."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * PAGE


def kill_group(group: int) -> None:
    """Kill a process group, if there is one."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_children() -> float:
    """Kill and wait for everything below this process; what it had used, in seconds."""
    used = 0.0
    while left := list(descendants(os.getpid())):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        used += _wait_for_one()
    return used


def _wait_for_one() -> float:
    try:
        _, _, usage = os.wait4(-1, 0)
    except ChildProcessError:
        return 0.0
    return usage.ru_utime + usage.ru_stime
