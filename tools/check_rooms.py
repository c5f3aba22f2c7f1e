"""Do the rooms of src/ depend on each other only in the direction that the design allows?

Each room may include headers of the rooms listed for it here, and its own. `make lint` runs this;
it prints every include that points the wrong way and exits with 1 if there is one.
"""

import pathlib
import re
import sys

CORE = ["observe", "graph", "aten"]
STAGES = ["autograd", "kernels", "compare"]
MAY_INCLUDE: dict[str, list[str]] = {
    "observe": [],
    "graph": ["observe"],
    "aten": ["observe", "graph"],
    "autograd": CORE,
    "kernels": CORE,
    "compare": CORE,
    "capture": CORE,
    "backends": [*CORE, *STAGES],
    "repro": [*CORE, *STAGES, "backends"],
    "frontend": [*CORE, *STAGES, "backends", "repro"],
    "sandbox": [*CORE, *STAGES, "backends", "repro"],
    "reduce": [*CORE, *STAGES, "backends", "repro", "sandbox"],
}
ANY_ROOM = ["cli"]  # on top of everything
MAY_INCLUDE_PYTHON = ["capture"]

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def complaint(room: str, header: str) -> str | None:
    if header == "Python.h" or header.startswith(("torch/csrc/python", "pybind11/")):
        return None if room in MAY_INCLUDE_PYTHON else "only capture includes CPython's headers"
    target = header.split("/")[0]
    if target == room or target not in MAY_INCLUDE or room in ANY_ROOM:
        return None
    if target in MAY_INCLUDE.get(room, []):
        return None
    return f"{room} must not depend on {target}"


def main() -> int:
    found = 0
    for file in sorted(pathlib.Path("src").rglob("*")):
        if file.suffix not in {".h", ".cpp", ".c"}:
            continue
        room = file.parts[1]
        for header in INCLUDE.findall(file.read_text(encoding="utf-8")):
            what = complaint(room, header)
            if what:
                print(f'{file}: #include "{header}": {what}')
                found += 1
    return 1 if found else 0


sys.exit(main())
