"""What a diagnosis has found: filled in by ``procedure``, printed by ``report``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Verdict:
    """``status`` is fine, fails, fails_in_eager, not_repeatable, killed or unfinished."""

    status: str = "unfinished"
    summary: str = ""
    kind: str = ""  # exception, signal, timeout, memory, exit, output, accuracy
    failure: str = ""
    stage: str = ""
    step: str = ""  # compile, run, backward, compare, capture
    graph: str = ""
    operator: str = ""
    calls: list[str] = field(default_factory=list)
    signature: Json = field(default_factory=dict)
    repro: str = ""
    code: str = ""
    passing: str = ""
    rungs: dict[str, str] = field(default_factory=dict)
    guilty_pass: Json | None = None
    workaround: str = ""
    workaround_checked: bool = False
    frame: Json = field(default_factory=dict)
    traceback: str = ""
    notes: list[str] = field(default_factory=list)
    reduction: Json = field(default_factory=dict)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def as_json(self) -> Json:
        return dataclasses.asdict(self)

    @property
    def exit_code(self) -> int:
        return 0 if self.status == "fine" else 1
