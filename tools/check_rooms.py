"""Do the rooms of src/ depend on each other only in the direction that the design allows?

`STANDS_ON` is the one table: a room may include its own headers and those of every room it stands
on, directly or through another. Public headers (`assay/*.h`) count as headers of the room that
implements them. `make lint` runs this; it prints what points the wrong way and exits with 1 if
there is anything. It also checks that

- the table of docs/architecture.md says the same,
- only `base` calls getenv, and only `config` reads variables that are settings of Assay's.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

STANDS_ON: dict[str, list[str]] = {
    "base": [],
    "observe": ["base"],
    "config": ["observe"],
    "graph": ["config"],
    "aten": ["graph"],
    "autograd": ["aten"],
    "kernels": ["aten"],
    "compare": ["aten"],
    "guards": ["aten"],
    "backends": ["autograd", "kernels", "compare"],
    "repro": ["backends"],
    "frontend": ["repro", "guards"],
    "capture": ["frontend"],
    "sandbox": ["repro"],
    "reduce": ["sandbox"],
    "cli": ["reduce", "frontend"],
    "binding": ["reduce", "capture"],
}
# The rooms that do not lie in src/.
FOLDERS = {"binding": "python/binding"}
# Which room implements a header of include/assay/; the build generates version.h.
PUBLIC_HEADERS = {
    "error.h": "base",
    "stage.h": "base",
    "version.h": "base",
    "compiler.h": "aten",
    "backend.h": "backends",
    "compile.h": "frontend",
}
MAY_INCLUDE_PYTHON = ["capture", "binding"]

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
GETENV = re.compile(r"(?<!os\.)\b(secure_)?getenv\s*\(")  # not Python's, which parsers mention
OWN_VARIABLE = re.compile(r'\benvironment_variable\(\s*"((?:ASSAY|TORCH\w*?)_\w*)"')
# | `src/graph/` | what it holds | base, observe, config |
ROW = re.compile(r"^\| `(src|python)/(\w+)/`.*\|([^|]*)\|$", re.MULTILINE)


def below(room: str) -> set[str]:
    """Every room that `room` stands on."""
    found: set[str] = set()
    for lower in STANDS_ON[room]:
        found |= {lower} | below(lower)
    return found


def folder(root: pathlib.Path, room: str) -> pathlib.Path:
    return root / FOLDERS.get(room, f"src/{room}")


def sources(root: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Every source file with the room it belongs to."""
    folders = [(path.name, path) for path in sorted((root / "src").iterdir()) if path.is_dir()]
    folders += [(room, root / path) for room, path in FOLDERS.items()]
    for room, path in folders:
        for file in sorted(path.rglob("*")):
            if file.suffix in {".h", ".cpp", ".c"}:
                yield room, file
    for file in sorted((root / "include" / "assay").glob("*.h")):
        yield PUBLIC_HEADERS.get(file.name, ""), file


def wrong_include(room: str, header: str) -> str | None:
    """What is wrong with that room's including that header."""
    if header == "Python.h" or header.startswith(("torch/csrc/python", "pybind11/")):
        allowed = " and ".join(MAY_INCLUDE_PYTHON)
        return None if room in MAY_INCLUDE_PYTHON else f"only {allowed} include CPython's headers"
    target, _, name = header.partition("/")
    if target == "assay":
        if name not in PUBLIC_HEADERS:
            return "tools/check_rooms.py does not say which room implements it"
        target = PUBLIC_HEADERS[name]
    if target not in STANDS_ON or target == room or target in below(room):
        return None
    return f"{room} must not depend on {target}"


def wrong_sources(root: pathlib.Path) -> Iterator[str]:
    for room, file in sources(root):
        where = file.relative_to(root)
        if room not in STANDS_ON:
            yield f"{where}: tools/check_rooms.py does not know which room it belongs to"
            continue
        text = file.read_text(encoding="utf-8")
        for header in INCLUDE.findall(text):
            if what := wrong_include(room, header):
                yield f'{where}: #include "{header}": {what}'
        if room != "base" and GETENV.search(text):
            yield f"{where}: getenv: settings come from config, other variables through base"
        if room not in ("base", "config"):
            for name in OWN_VARIABLE.findall(text):
                yield f"{where}: {name} is a setting: it belongs in src/config/settings.h"


def documented(cell: str, above: list[str]) -> set[str]:
    """The rooms that the last column of the documentation's table names."""
    text = cell.strip()
    if text == "nothing of ours":
        return set()
    if text.startswith("all of the above"):
        names = text.removeprefix("all of the above").removeprefix(" but ")
        return set(above) - {name.strip() for name in names.split(",")}
    return {name.strip() for name in text.split(",")}


def wrong_documentation(root: pathlib.Path) -> Iterator[str]:
    page = root / "docs" / "architecture.md"
    rows = ROW.findall(page.read_text(encoding="utf-8"))
    above: list[str] = []
    for _, room, cell in rows:
        if room not in STANDS_ON:
            yield f"docs/architecture.md: there is no room {room}"
            continue
        if {room} | below(room) != {room} | documented(cell, above) | missing_below(root, room):
            allowed = ", ".join(name for name in STANDS_ON if name in below(room))
            yield f"docs/architecture.md: {room} may include {allowed or 'nothing of ours'}"
        above.append(room)
    for room in STANDS_ON:
        if folder(root, room).is_dir() and room not in above:
            yield f"docs/architecture.md: the table of rooms has no row for {room}"


def missing_below(root: pathlib.Path, room: str) -> set[str]:
    """Rooms of the plan that nobody has built yet; the documentation need not name them."""
    return {lower for lower in below(room) if not folder(root, lower).is_dir()}


def main(root: pathlib.Path) -> int:
    found = [*wrong_sources(root), *wrong_documentation(root)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
