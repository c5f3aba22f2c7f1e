"""A loaded file, and the steps of a trial that files of all stages share."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch._dynamo
from torch._dynamo.debug_utils import InputReader

from assay.stock import accuracy, failure, memory, record, text
from assay.stock.report import Invalid, Report, invalid_if_it_fails
from assay.stock.stage import Stage

Request = dict[str, Any]
HASH = re.compile(r"[0-9a-zA-Z]+")


class _Reader(InputReader):
    """Stock's reader, but inputs with equal contents stay separate, and a hash is not a path."""

    made_up: ClassVar[set[str]] = set()  # those already reported

    def __init__(self, save_dir: str | None) -> None:
        super().__init__(save_dir)
        if self.store is not None:
            self.store.storage_cache = None

    def storage(self, storage_hash: str | None, nbytes: int, **options: Any) -> Any:
        if storage_hash is not None:
            if not HASH.fullmatch(storage_hash):
                raise ValueError(f"{storage_hash!r} is not the hash of a storage")
            self._tell_if_missing(storage_hash)
        return super().storage(storage_hash, nbytes, **options)

    def _tell_if_missing(self, storage_hash: str) -> None:
        is_there = self.store and Path(self.store.loc, "storages", storage_hash).exists()
        if not is_there and storage_hash not in self.made_up:
            print(f"storage {storage_hash} is missing: its values are synthesized")
            self.made_up.add(storage_hash)


class Trial:
    """A loaded file, and the steps that files of all stages share."""

    promises_memory = True
    """Strides and aliasing of results are as in eager."""

    def __init__(
        self, request: Request, report: Report, loaded: text.ReproText, names: dict[str, Any]
    ) -> None:
        self.request = request
        self.report = report
        self.text = loaded
        self.names = names
        self.seed_value = int(request.get("seed") or 0)
        self.locates = request.get("task") == "locate"
        self.checks_accuracy = bool(request.get("accuracy")) or self.locates
        self.ignores_non_fp = bool(request.get("ignore_non_fp"))
        self.extras = set(request.get("extras") or []) if self.checks_accuracy else set()
        if loaded.process_groups:
            from torch._dynamo.repro.after_aot import setup_fake_process_groups

            setup_fake_process_groups(loaded.process_groups)
        self.seed()
        self.module: torch.nn.Module = names[loaded.main_class]()
        self.prepare()

    def prepare(self) -> None:
        """What is still missing before the first step."""

    def seed(self) -> None:
        torch.manual_seed(self.seed_value)

    def inputs(self) -> list[Any]:
        """The inputs, made anew: a run may have changed the last ones."""
        self.seed()
        with _quiet():
            reader = _Reader(self.request.get("save_dir"))
            self.names["load_args"](reader)
        return reader.args

    def record(self) -> None:
        """Report the eager value of every node; of those before one that raises, if one does."""
        save_dir = self.request.get("save_dir")
        if not save_dir:
            raise Invalid("record needs a save_dir")
        inputs = self.inputs()
        self.seed()
        values: dict[str, record.Description] = {}
        try:
            with self.mode():
                record.record(self.text, self.names, self.module, inputs, save_dir, values)
        finally:
            self.report.add(values=values)

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """The mode in which files of this stage run."""
        raise NotImplementedError

    def test(self) -> accuracy.Difference | None:
        """The steps of a trial; the difference, if accuracy was asked for and there is one."""
        raise NotImplementedError

    def run_eagerly(self) -> accuracy.Run:
        """What the program itself gives."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        """By which rules results are compared."""
        return {
            "tolerance": torch._dynamo.config.repro_tolerance,
            "ignore_non_fp": self.ignores_non_fp,
        }

    def comparison(self, reference: accuracy.Run | None) -> Callable[..., Any]:
        """A function of two results: the difference between them, or None."""
        return functools.partial(accuracy.compare, reference=reference, **self.options())

    def compare(
        self, expected: accuracy.Run, result: accuracy.Run, reference: accuracy.Run | None
    ) -> accuracy.Difference | None:
        self.report.stage(Stage.COMPARE)
        if self.ignores_non_fp and (left_out := accuracy.not_compared(expected)):
            self.report.add(not_compared=left_out)
        if self.locates:
            return self.locate(expected, result, reference)
        compare = self.comparison(reference)
        found = compare(expected, result)
        if found is None and self.promises_memory:
            names = ("strides", "aliasing", "all_strides")
            checks = {name: name in self.extras for name in names}
            found = memory.compare(expected, result, **checks)
        if found is None:
            found = self.compare_second_call(expected, result, compare)
        if found is not None:
            self.check_repeatable(expected, compare)
        return found

    def compare_second_call(
        self, expected: accuracy.Run, result: accuracy.Run, compare: Callable[..., Any]
    ) -> accuracy.Difference | None:
        """What a second call gives must be right too; what it alone raises is a difference."""
        if expected.second is None:
            return None
        if result.second is None:
            error = result.second_error
            where, what = "", f"it raises {error and failure.type_name(error)}: {error}"
        else:
            found = compare(expected.second, result.second)
            if found is None:
                return None
            where, what = found["where"], sentence(found)
        message = f"on the second call: {what}"
        return {"kind": "second_call", "where": where, "message": message}

    def compare_exceptions(self, eager: Exception, run: Callable[[], Any]) -> accuracy.Difference:
        """The compiled program must raise what eager raises; then it is the program's own fault."""
        instead = "returns"
        try:
            run()
        except Exception as error:
            if failure.is_alike(error, eager):
                raise Invalid(str(eager)) from eager
            inner = failure.innermost(error)
            instead = f"raises {failure.type_name(inner)} ({inner})"
        self.report.stage(Stage.COMPARE)
        stack = "".join(traceback.format_exception(eager, chain=False))
        for node in self.text.nodes_in(stack)[-1:]:
            operator_name = self.text.calls.get(node, "")
            self.report.add(node=node, suspects=[node], operator=operator_name)
        raised = f"eager raises {failure.type_name(eager)} ({eager})"
        return {
            "kind": "exception",
            "where": "",
            "message": f"{raised}, the compiled program {instead}",
        }

    def exception_to_compare(self, error: Invalid) -> Exception:
        """What eager raised, if that is compared; otherwise ``error`` is raised again."""
        cause = error.__cause__
        # That nobody has registered an operator here is not what the program raises.
        is_missing = isinstance(cause, AttributeError) and "_OpNamespace" in str(cause)
        if "exception" in self.extras and isinstance(cause, Exception) and not is_missing:
            return cause
        raise error

    def locate(
        self, expected: accuracy.Run, result: accuracy.Run, reference: accuracy.Run | None
    ) -> accuracy.Difference | None:
        """Report every result that differs; returns the first."""
        with invalid_if_it_fails(), self.mode():
            again = self.run_eagerly()
        found = accuracy.all_differences(expected, again, result, reference, **self.options())
        if not found:
            return None
        named = [{"where": one["where"], "kind": one["kind"]} for one in found]
        self.report.add(differences=named)
        return found[0]

    def check_repeatable(self, expected: accuracy.Run, compare: Callable[..., Any]) -> None:
        """A program that gives other numbers each time proves nothing about a compiler."""
        with invalid_if_it_fails(), self.mode():
            again = self.run_eagerly()
            itself = compare(expected, again) or compare(again, expected)
        if itself is not None:
            raise Invalid(f"not repeatable: two eager runs differ in {itself['where']}")


def sentence(difference: accuracy.Difference) -> str:
    """What differs, for people."""
    if difference["kind"] in ("exception", "second_call"):
        return str(difference["message"])
    text = f"{difference['kind']} of {difference['where']} differ"
    return f"{text}: {difference['message']}" if "message" in difference else text


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The reader warns about synthesized inputs; a request may ask for exactly those."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
