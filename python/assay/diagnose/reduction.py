"""``assay reduce`` on a captured graph, with its trials in our server."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from assay.diagnose.graphs import Graph
from assay.diagnose.runs import OWN_OPERATORS, Runs, file_settings

Json = dict[str, Any]


UNTRUSTED = "UntrustedFile"  # what a trial says of a graph that it would only run on request


class NoCommand(Exception):
    """The ``assay`` command was not found."""


def assay_command() -> str | None:
    """The command that started this, or the one on the path."""
    return os.environ.get("ASSAY_BINARY") or shutil.which("assay")


def reduce(
    runs: Runs, graph: Graph, *, accuracy: bool, timeout: float | None, all_strides: bool = False
) -> Json:
    """The report of ``assay reduce --json``; ``status`` is ``unfinished`` if time ran out."""
    comparison = ["--accuracy"] if accuracy else []
    if all_strides:
        comparison.append("--all-strides")
    result = _reduce(runs, graph, comparison, timeout, is_trusted=False)
    if UNTRUSTED in str(result.get("message")):  # it is the user's own program that runs
        result = _reduce(runs, graph, comparison, timeout, is_trusted=True)
    if "file" in result:
        keep_operators(graph.file, Path(result["file"]))
    return result


def keep_operators(original: Path, reduced: Path) -> None:
    """The lines that register the script's own operators, where one of them is left."""
    header = original.read_text().partition("\nclass ")[0]
    _, mark, rest = header.partition(OWN_OPERATORS)
    text = reduced.read_text()
    if mark and OWN_OPERATORS not in text and "torch.ops." in code_of(reduced):
        lines = rest.partition("\n# assay version")[0].strip("\n")
        added = f"\n{mark}\n{lines}\n\n# assay version"
        reduced.write_text(text.replace("\n\n# assay version", added, 1))


def _reduce(
    runs: Runs, graph: Graph, comparison: list[str], timeout: float | None, *, is_trusted: bool
) -> Json:
    command = assay_command()
    if command is None:
        raise NoCommand("the assay command was not found (ASSAY_BINARY, PATH)")
    name = graph.file.stem
    output = runs.directory.path / "reduced" / name
    output.parent.mkdir(exist_ok=True)
    arguments = [
        command, "reduce", str(graph.file), "--output", str(output), "--json", "--keep-passing",
    ]  # fmt: skip
    if runs.options.stack == "torch":
        arguments += _stock_arguments(runs, graph)
    else:
        arguments += ["--stack", "assay", "--backend", graph.backend]
    if is_trusted and "--trust" not in arguments:
        arguments.append("--trust")
    arguments += comparison
    if timeout is not None:
        arguments += ["--timeout", f"{timeout:.1f}"]
    if threads := runs.options.threads or graph.threads:
        arguments += ["--threads", str(threads)]
    if runs.options.jobs:
        arguments += ["--jobs", str(runs.options.jobs)]
    from assay.diagnose.client import Command

    started = Command(arguments, {}, runs.directory.path / "logs" / f"reduce_{name}.log")
    code = started.wait(runs.left())
    report = started.result()
    if code is None or not report:
        report = {
            "status": "unfinished" if code is None else "error",
            "message": Path(started.log).read_text().strip()[-1000:],
        }
        if (output / "repro.py").exists():
            report["file"] = str(output / "repro.py")
    return report


def _stock_arguments(runs: Runs, graph: Graph) -> list[str]:
    arguments: list[str] = []
    if graph.backend_file is not None:
        socket = runs.server.serve_backend(graph.backend_file)
        arguments += ["--stack", "python", "--backend-server", str(socket)]
    else:
        arguments += ["--stack", "torch", "--backend-server", str(runs.server.socket)]
        arguments += ["--backend", graph.backend]
        if file_settings(graph.file.read_text())[1]:
            arguments.append("--trust")
    return arguments


def code_of(file: Path) -> str:
    """The graph in a repro file: its classes."""
    text = file.read_text()
    found = re.search(r"^class .*?(?=^def load_args|^mod = )", text, re.MULTILINE | re.DOTALL)
    return found[0].strip() if found else text


def calls_of(file: Path) -> list[str]:
    """The calls of a graph, in words that a verdict can use: ``torch.relu``, ``view``."""
    names = []
    for line in code_of(file).splitlines():
        found = re.match(r"\s+\w+(?:: \"[^\"]*\")? = (.+)$", line)
        if found is None or "super().__init__" in line:
            continue
        call = re.match(r"([\w.]+)\(", found[1])
        if call:
            name = re.sub(r"^[a-z]\w*\.(?=\w+$)", ".", call[1]) if _is_method(call[1]) else call[1]
            names.append(name)
        elif re.match(r"[\w.\-()]+ (?:[-+*/@%&|^<>]|//|\*\*|<<|>>|[<>=!]=) ", found[1]):
            names.append(found[1].split(";")[0])
        elif "[" in found[1]:
            names.append("operator.getitem")
    return names


def _is_method(call: str) -> bool:
    root = call.partition(".")[0]
    return root not in ("torch", "operator", "math", "self") and "." in call
