"""The artifacts that `assay logs` lists are emitted, or marked as not yet emitted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

from support.command import BINARY, assay, environment

# Between them, these calls go through every part that exists.
PROGRAM = """
import sys
import torch
import assay

assay.set_logs(sys.argv[1])

def program(x):
    return torch.sin(x) * torch.sin(x)  # the two calls are the same, which is work for a pass

for backend in ["aot_eager", "invoke_subgraph", "pre_dispatch_eager", "native"]:
    step = assay.aot.compile(program, backend=backend)
    for rows in [2, 3]:
        step(torch.ones(rows, 4, requires_grad=True)).sum().backward()

assay.aot.compile(lambda x: x.exp().logcumsumexp(0), backend="native")(torch.ones(3))  # has a hint

def broken(x, log):
    y = x + 1
    log.append(y)
    print(end="")
    return y * 2

compiled = assay.compile(broken, backend="eager")
for rows in [2, 3]:
    compiled(torch.ones(rows), [])
"""


def artifacts() -> dict[str, bool]:
    """Every artifact, and whether it is marked as not yet emitted."""
    rows = assay("logs", "--json").json()
    return {row["name"]: row["not_yet"] for row in rows if row["kind"] == "artifact"}


def stderr_with(logs: str) -> str:
    python_path = os.pathsep.join(
        [str(BINARY.parents[1] / "python"), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), logs],
        env=environment(PYTHONPATH=python_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stderr


def test_what_is_not_marked_is_emitted_and_what_is_marked_is_not() -> None:
    marked = artifacts()
    emitted = set(re.findall(r"\] \[__(\w+)\]", stderr_with(",".join(marked))))
    assert emitted == {name for name, not_yet in marked.items() if not not_yet}


def test_switching_on_what_is_not_emitted_warns() -> None:
    found = stderr_with("verbose_guards,graph_code,-trace_call")
    assert re.findall(r'the log artifact "(\w+)" is not emitted yet', found) == ["verbose_guards"]


def test_the_list_says_so() -> None:
    marked = artifacts()
    for line in assay("logs").out.splitlines():
        name = line.split()[0]
        if name in marked:
            assert line.endswith(" (not yet)") == marked[name], line
