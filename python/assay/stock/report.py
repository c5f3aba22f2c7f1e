"""What the process of a trial tells the worker, and how a trial ends before its end."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from assay.stock.stage import Stage


class Invalid(Exception):
    """The candidate does not work by itself, so it says nothing about a compiler."""


class Enough(BaseException):
    """The step that was asked about went well. No Exception: Dynamo would take it for its own."""


class Report:
    """Says to the worker what happens, until the step that was asked about is over."""

    def __init__(self, fd: int, until: str = "") -> None:
        self.fd = fd
        self.until = Stage(until) if until else None

    def add(self, **fields: Any) -> None:
        data = json.dumps(fields).encode() + b"\n"
        while data:
            data = data[os.write(self.fd, data) :]

    def stage(self, stage: Stage) -> None:
        if self.until is not None and stage.is_after(self.until):
            raise Enough
        self.add(stage=stage.value)


@contextlib.contextmanager
def invalid_if_it_fails() -> Iterator[None]:
    try:
        yield
    except Invalid:
        raise
    except Exception as error:
        raise Invalid(str(error)) from error
