"""Write what is generated from the table of settings: docs/config.md and python/assay/config.pyi.

    tools/config_pages.py            write them, from what the built `assay config --json` says
    tools/config_pages.py --check    only say whether they are up to date (exit code 1: not)

Run it after a change to src/config/settings.h and a build. `ASSAY_BINARY` names the command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, Any]

PAGE = """\
# Settings

<!-- Written by tools/config_pages.py from src/config/settings.h; do not edit. -->

`assay config` lists every setting with its value and where the value comes from. In the order of
what wins, that is: a patch, an assignment, the environment, the default.

```python
assay.config.repro_after = "dynamo"
with assay.config.patch(repro_level=4, repro_tolerance=1e-2):
    step(x)
```

- **Environment.** Of several variables the first one wins, even when it is set to nothing, which
  means the default. Each setting reads its variables once, when it is first used. A bad value is
  an error that names the variable and what is allowed, wherever the setting is used.
- **Python.** `assay.config` has an attribute for each setting. `assay.config.patch(...)` takes
  names or a dict and is a context manager and a decorator; `assay.config.unset(name)` takes an
  assignment back. Unknown names raise `AttributeError`, values of another type `TypeError`, both
  with what would be right. A name with a dot is an attribute of a group,
  `assay.config.trace.output_code`; in a patch it is the key of a dict.
- **C++.** `config::get<"repro_level">()`, `config::set`, `config::unset`,
  `config::PatchScope` (`src/config/config.h`); a wrong name or type does not compile.
- **Threads.** Values belong to the process: every thread sees a change at once. A patch that ends
  takes back only what it said itself, in whatever order patches of several threads end.

"reserved" settings are PyTorch's and have no effect yet; setting one is a warning.

| setting | values | default | environment | |
|---|---|---|---|---|
"""

STUB = '''\
# Written by tools/config_pages.py from src/config/settings.h; do not edit.
"""Every setting of Assay's, as attributes; see docs/config.md."""

from collections.abc import Mapping
from typing import Any, Literal

from assay._settings import Patch

'''

STUB_END = '''
def patch(values: Mapping[str, Any] | None = None, /, **named: Any) -> Patch:
    """Settings for the length of a ``with`` block, or of the calls of a decorated function.

    >>> with assay.config.patch(repro_after="aot", repro_level=4): ...
    """

def unset(name: str) -> None:
    """Take back an assignment: the environment's value or the default holds again."""

def to_dict() -> dict[str, Any]:
    """The value of every setting."""

def reload_environment() -> None:
    """Read the environment again, for settings that were not set otherwise.

    Logs and the trace stay as they are.
    """
'''


def settings() -> list[Row]:
    """The table, as the command shows it to somebody who has set nothing."""
    binary = os.environ.get("ASSAY_BINARY", str(ROOT / "build" / "release" / "bin" / "assay"))
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ASSAY_", "TORCH"))
    }
    done = subprocess.run([binary, "config", "--json"], capture_output=True, env=kept, check=True)
    return json.loads(done.stdout)


def code(text: str) -> str:
    return f"`{text}`"


def shown(value: object) -> str:
    """A default as one would write it in the environment; empty for nothing."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def page(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        default = shown(row["default"])
        cells = [
            code(row["name"]),
            row["allowed"],
            code(default) if default else "",
            ", ".join(code(name) for name in row["environment"]),
            row["doc"],
        ]
        lines.append("| " + " | ".join(cells) + " |\n")
    return PAGE + "".join(lines)


def annotation(row: Row) -> str:
    if row["type"] == "choice":
        words = row["allowed"].replace(" or ", ", ").split(", ")
        literals = ", ".join(f'"{word}"' for word in words if word != "nothing")
        return f"Literal[{literals}]" + (" | None" if "nothing" in words else "")
    return {"boolean": "bool", "integer": "int", "number": "float", "text": "str"}[row["type"]]


def stub(rows: list[Row]) -> str:
    plain = "".join(f"{row['name']}: {annotation(row)}\n" for row in rows if "." not in row["name"])
    groups: dict[str, str] = {}
    for row in rows:
        group, dot, name = row["name"].partition(".")
        if dot:
            groups[group] = groups.get(group, "") + f"    {name}: {annotation(row)}\n"
    classes = "".join(f"class _{name.title()}:\n{body}\n" for name, body in groups.items())
    members = "".join(f"{name}: _{name.title()}\n" for name in groups)
    return STUB + classes + plain + members + STUB_END


def main(arguments: list[str]) -> int:
    rows = settings()
    stale = 0
    for name, text in {"docs/config.md": page(rows), "python/assay/config.pyi": stub(rows)}.items():
        file = ROOT / name
        if file.exists() and file.read_text() == text:
            continue
        stale += 1
        if arguments == ["--check"]:
            print(f"{name} is out of date: run tools/config_pages.py")
        else:
            file.write_text(text)
            print(f"wrote {name}")
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
