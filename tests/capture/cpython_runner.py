"""Runs one file of CPython's test suite in this process, and writes what became of each test.

    python -P cpython_runner.py test_grammar results.jsonl

With ASSAY_TEST_ALL_FRAMES=1 every Python frame goes through Assay's interpreter loop. Without it
Assay is imported too, so that the loop is the only difference. `cpython_suite.py` starts both.
"""

from __future__ import annotations

import json
import os
import sys
import unittest
from types import TracebackType
from typing import Any, TextIO

from test import support  # type: ignore[import-not-found]

import assay

Failure = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Recorder(unittest.TestResult):
    """One line per event. A test that starts and never ends took the process with it."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self.file = file

    def note(self, test: unittest.TestCase, outcome: str, detail: str = "") -> None:
        record = {"test": test.id(), "outcome": outcome, "detail": detail}
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def failure(self, test: unittest.TestCase, outcome: str, error: Failure) -> None:
        self.note(test, outcome, self._exc_info_to_string(error, test)[-3000:])  # type: ignore[attr-defined]

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.note(test, "started")

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Failure) -> None:
        self.failure(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: Failure) -> None:
        self.failure(test, "failed", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Failure) -> None:
        self.note(test, "expected failure")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, "unexpected success")

    def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Failure | None) -> None:
        if err is not None:
            self.failure(test, "failed", err)


def main(name: str, results: str) -> None:
    support.use_resources = []  # no network, no windows, nothing that takes very long
    if os.environ.get("ASSAY_TEST_ALL_FRAMES") == "1":
        extension: Any = assay._C
        extension.capture_run_all_frames(True)
    tests = unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")
    with open(results, "w") as file:  # noqa: PTH123 (pathlib is itself under test here)
        tests.run(Recorder(file))
        file.write(json.dumps({"test": "", "outcome": "finished", "detail": ""}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
