"""Inductor's cache after a trial was killed: g++ writes in place, so half a result may stay.

The file is there, empty, from the start of a build, and inductor takes a file that exists for a
good one. A later trial would fail to load it, and that would look like a fault of its graph.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

DIRECTORY = "TORCHINDUCTOR_CACHE_DIR"  # the variable that names the cache
BUILDING = "_CxxBuild"  # inductor's directory beside a result, while it is built
SOURCES = {".cpp", ".h"}


def remove_half_built(cache: Path) -> list[Path]:
    """Remove the results of builds that nobody is at any more; returns them."""
    from torch._inductor.codecache import _HEADER_DIR

    headers = Path(_HEADER_DIR)
    removed = []
    for directory, locks in ((cache, cache / "locks"), (headers.parent, headers / "locks")):
        within = "*" if directory == cache else headers.name
        for building in directory.glob(f"{within}/*{BUILDING}"):
            name = building.name.removesuffix(BUILDING)
            with _lock(locks / f"{name.partition('.')[0]}.lock") as is_ours:
                if is_ours:
                    removed += _remove(building, name)
    return removed


def _remove(building: Path, name: str) -> list[Path]:
    shutil.rmtree(building, ignore_errors=True)
    results = [
        path
        for path in building.parent.glob(f"{name}*")
        if path.is_file() and path.suffix not in SOURCES
    ]
    for path in results:
        path.unlink(missing_ok=True)
    return results


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Inductor's own lock on a build: whether it could be had at once."""
    if not path.exists():
        yield True
        return
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
