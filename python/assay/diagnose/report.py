"""The bug report: report.md, for people; history.json, for programs."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from assay.diagnose.directory import Directory
from assay.diagnose.ladder import WHAT
from assay.diagnose.reduction import assay_command
from assay.diagnose.runs import Runs
from assay.diagnose.verdict import Verdict

LONGEST_FILE = 30_000  # characters, beyond which the report does not repeat repro.py

TITLES = {
    "fine": "Nothing fails",
    "fails_in_eager": "The script fails in eager too",
    "killed": "No verdict",
    "unfinished": "Unfinished",
    "fails": "The compiled program fails",
}


def write(runs: Runs, verdict: Verdict) -> None:
    """All files of the report."""
    directory = runs.directory
    _copy_repro(directory, verdict)
    history = {
        "verdict": verdict.as_json(),
        "command": _command(runs),
        "versions": versions(runs),
        "seconds": runs.elapsed(),
        "steps": directory.steps,
    }
    directory.write("history.json", json.dumps(history, indent=2, default=str))
    directory.write("report.md", text(runs, verdict))


def _copy_repro(directory: Directory, verdict: Verdict) -> None:
    """The result of the reduction, with its data, at the top of the directory."""
    if not verdict.repro or Path(verdict.repro).parent == directory.path:
        return
    source = Path(verdict.repro)
    for name in ("repro.py", "passing.py"):
        if (source.parent / name).exists():
            shutil.copy(source.parent / name, directory.path / name)
    if (source.parent / "storages").exists():
        shutil.copytree(source.parent / "storages", directory.path / "storages", dirs_exist_ok=True)
    verdict.repro = str(directory.path / "repro.py")
    if verdict.passing:
        verdict.passing = str(directory.path / "passing.py")


def versions(runs: Runs) -> dict[str, str]:
    """What the failure was seen with."""
    return {
        "torch": runs.server.torch,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    name = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return f"{name}, {os.cpu_count()} cores"


def _command(runs: Runs) -> str:
    return " ".join(["assay diagnose", str(runs.options.script), *runs.options.arguments])


def text(runs: Runs, verdict: Verdict) -> str:
    """report.md."""
    parts = [f"# {TITLES.get(verdict.status, verdict.status)}", "", verdict.summary, ""]
    if verdict.status == "fails":
        parts += _facts(verdict)
    if verdict.code:
        parts += ["## The smallest program", ""]
        parts += ["```python", verdict.code.strip(), "```", ""]
        parts += _how_to_run(runs, verdict)
    parts += _complete_file(verdict)
    if verdict.workaround:
        checked = (
            "the script runs with it"
            if verdict.workaround_checked
            else ("the repro runs with it; the script as a whole was not seen to")
        )
        parts += ["## Workaround", "", f"`{verdict.workaround}` ({checked}).", ""]
    elif verdict.status == "fails" and verdict.stage:
        parts += ["## Workaround", "", _usual_workaround(verdict), ""]
    if verdict.traceback:
        parts += ["## Error", "", "```text", _shortened(verdict.traceback), "```", ""]
    if verdict.notes:
        parts += ["## Notes", "", *[f"- {note}" for note in verdict.notes], ""]
    parts += ["## How it was found", "", *_history(runs, verdict), ""]
    parts += ["## Versions", ""]
    parts += [f"- {name}: {value}" for name, value in versions(runs).items()]
    variables = sorted(name for name in os.environ if name.startswith(("TORCH", "ASSAY_REPRO")))
    parts += [f"- environment: {name}={os.environ[name]}" for name in variables]
    return "\n".join(parts) + "\n"


def _shortened(traceback: str) -> str:
    """The start and the end of a long text; of a C++ compiler's output only the errors."""
    lines = [
        line
        for line in traceback.strip().splitlines()
        if not re.search(r": (warning|note): |^\s*\d* \|", line)
    ]
    if len(lines) > 80:
        lines = [*lines[:50], f"... {len(lines) - 80} lines ...", *lines[-30:]]
    return "\n".join(line[:400] for line in lines)


def _facts(verdict: Verdict) -> list[str]:
    rows = [
        ("failure", verdict.failure),
        ("stage", verdict.stage),
        ("step", verdict.step),
        ("graph", verdict.graph),
        ("operator", verdict.operator),
    ]
    if verdict.guilty_pass:
        part = verdict.guilty_pass
        rows.append(
            (
                "pass",
                f"{part['subsystem']}, application {part['application']} {part['what']}".strip(),
            )
        )
    if verdict.frame:
        frame = verdict.frame
        rows.append(
            (
                "user's line",
                f"{frame['file']}:{frame['line']} in {frame['function']}: `{frame['text']}`",
            )
        )
    facts = ["| | |", "|---|---|"]
    facts += [f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows if value]
    return [*facts, ""]


def _how_to_run(runs: Runs, verdict: Verdict) -> list[str]:
    if not verdict.reduction:
        return ["It is `repro.py`; run it as you run the script.", ""]
    stack = " --stack torch" if runs.options.stack == "torch" else ""
    lines = [
        f"It is `repro.py`, with its inputs in `storages/`: `assay run repro.py{stack} "
        "--accuracy` shows the failure."
    ]
    if verdict.passing:
        lines.append("`passing.py` is the nearest program that passes.")
    reduction = verdict.reduction
    lines.append(
        f"It has {reduction.get('calls')} of {reduction.get('calls_before')} calls, and fails in "
        f"{reduction.get('reproduced')} of {reduction.get('runs')} runs."
    )
    return ["\n".join(lines), ""]


def _complete_file(verdict: Verdict) -> list[str]:
    """The repro with the data of its inputs in it, to be copied from the report and run."""
    command = assay_command()
    if not verdict.reduction or command is None:
        return []
    done = subprocess.run(
        [command, "bundle", verdict.repro], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or len(done.stdout) > LONGEST_FILE:
        return []
    return [
        "<details><summary>The whole file, with its inputs</summary>", "",
        "```python", done.stdout.strip(), "```", "", "</details>", "",
    ]  # fmt: skip


def _usual_workaround(verdict: Verdict) -> str:
    if verdict.stage == "dynamo":
        frame = verdict.frame.get("function")
        name = f"`{frame}`" if frame else "the function"
        return f"No setting is known. `@torch.compiler.disable` on {name} keeps Dynamo out of it."
    if verdict.stage.startswith("backend"):
        return "The backend is the program's own; another one, such as `inductor`, is not affected."
    passing = [rung for rung, how in verdict.rungs.items() if how == "passes"]
    if passing:
        return (
            f'No setting was found. With `backend="{passing[-1]}"` it passes: {WHAT[passing[-1]]}.'
        )
    return "None was found."


def _history(runs: Runs, verdict: Verdict) -> list[str]:
    lines = [f"`{_command(runs)}`", ""]
    for step in runs.directory.steps:
        seconds = step["result"].get("seconds") if isinstance(step["result"], dict) else None
        took = f" ({seconds:.1f} s)" if isinstance(seconds, int | float) else ""
        lines.append(f"1. {step['name']}: {step['text']}{took}")
    if verdict.rungs:
        lines += ["", "| backend | |", "|---|---|"]
        lines += [f"| {rung} | {result} |" for rung, result in verdict.rungs.items()]
    return lines
