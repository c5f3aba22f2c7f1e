"""What the process of one trial does. It says before each step which one that is."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import logging
import operator
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch._dynamo
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.debug_utils import InputReader, cast_to_fp64, clone_inputs_retaining_gradness
from torch._dynamo.testing import collect_results, reduce_to_scalar_loss, requires_bwd_pass

from assay.stock import accuracy, check, failure, record, sent_backend, settings, text
from assay.stock.stage import Stage

Request = dict[str, Any]
HASH = re.compile(r"[0-9a-zA-Z]+")


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


def run(request: Request, fd: int) -> int:
    """Carry out one request; returns the process's exit code."""
    report = Report(fd, request.get("until") or "")
    loaded: text.ReproText | None = None
    try:
        report.stage(Stage.LOAD)
        with _invalid_if_it_fails():
            trial = _load(request, report)
        loaded = trial.text
        if request.get("task", "test") == "record":
            report.stage(Stage.EAGER)
            with _invalid_if_it_fails():
                report.add(values=trial.record())
        else:
            difference = trial.test()
            if difference is not None:
                report.add(
                    status="failed",
                    type="AccuracyError",
                    message=_sentence(difference),
                    accuracy=difference,
                )
                return 1
    except Enough:
        pass
    except Invalid as error:
        cause = error.__cause__ or error
        report.add(status="invalid", **failure.describe(cause, loaded))
        return 1
    except Exception as error:
        report.add(status="failed", **failure.describe(error, loaded))
        return 1
    report.add(status="passed")
    return 0


def _sentence(difference: accuracy.Difference) -> str:
    text = f"{difference['kind']} of {difference['where']} differ"
    return f"{text}: {difference['message']}" if "message" in difference else text


@contextlib.contextmanager
def _invalid_if_it_fails() -> Iterator[None]:
    try:
        yield
    except Invalid:
        raise
    except Exception as error:
        raise Invalid(str(error)) from error


# --- Load -----------------------------------------------------------------------------------------


def _threads(request: Request) -> int:
    return int(request.get("threads") or 1)


def _load(request: Request, report: Report) -> Trial:
    setup = request.get("setup") or ""
    if isinstance(setup, list):
        setup = "\n".join(setup)
    torch.set_num_threads(_threads(request))  # the server has started none, so this process may
    loaded = text.read(request["file"])
    if setup:
        settings.do_not_reuse_graphs()
    elif not sent_backend.is_live():  # then the graph is that process's own
        check.check(loaded)
    settings.apply(request.get("config") or [], is_trusted=bool(setup))
    names = text.execute(loaded, setup)
    if sent_backend.is_live():
        text.add_modules(loaded, names)
    return _kind_of(loaded)(request, report, loaded, names)


def _kind_of(loaded: text.ReproText) -> type[Trial]:
    if sent_backend.is_loaded():
        from assay.stock.python_trial import PythonTrial

        return PythonTrial
    return AfterDynamo if loaded.stage == "after_dynamo" else AfterAot


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

    def __init__(
        self, request: Request, report: Report, loaded: text.ReproText, names: dict[str, Any]
    ) -> None:
        self.request = request
        self.report = report
        self.text = loaded
        self.names = names
        self.seed_value = int(request.get("seed") or 0)
        self.checks_accuracy = bool(request.get("accuracy"))
        self.ignores_non_fp = bool(request.get("ignore_non_fp"))
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

    def record(self) -> dict[str, Any]:
        """The eager value of every node."""
        save_dir = self.request.get("save_dir")
        if not save_dir:
            raise Invalid("record needs a save_dir")
        inputs = self.inputs()
        self.seed()
        with self.mode():
            return record.record(self.text, self.names, self.module, inputs, save_dir)

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """The mode in which files of this stage run."""
        raise NotImplementedError

    def test(self) -> accuracy.Difference | None:
        """The steps of a trial; the difference, if accuracy was asked for and there is one."""
        raise NotImplementedError

    def run_eagerly(self) -> accuracy.Run:
        """What the program itself gives."""
        raise NotImplementedError

    def comparison(self, reference: accuracy.Run | None) -> Callable[..., Any]:
        """A function of two results: the difference between them, or None."""
        return functools.partial(
            accuracy.compare,
            reference=reference,
            tolerance=torch._dynamo.config.repro_tolerance,
            ignore_non_fp=self.ignores_non_fp,
        )

    def compare(
        self, expected: accuracy.Run, result: accuracy.Run, reference: accuracy.Run | None
    ) -> accuracy.Difference | None:
        self.report.stage(Stage.COMPARE)
        if self.ignores_non_fp and (left_out := accuracy.not_compared(expected)):
            self.report.add(not_compared=left_out)
        compare = self.comparison(reference)
        found = compare(expected, result)
        if found is not None:
            self.check_repeatable(expected, compare)
        return found

    def check_repeatable(self, expected: accuracy.Run, compare: Callable[..., Any]) -> None:
        """A program that gives other numbers each time proves nothing about a compiler."""
        with _invalid_if_it_fails(), self.mode():
            again = self.run_eagerly()
            itself = compare(expected, again) or compare(again, expected)
        if itself is not None:
            raise Invalid(f"not repeatable: two eager runs differ in {itself['where']}")


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


# --- After dynamo ---------------------------------------------------------------------------------


class AfterDynamo(Trial):
    """A graph from before autograd: any backend of Dynamo's, forward and backward."""

    def prepare(self) -> None:
        self.compiler = self.find_compiler()
        self.has_backward = self.request.get("backward", True)
        if self.checks_accuracy:
            self.module.eval()  # as stock does: no dropout

    def find_compiler(self) -> Callable[..., Any]:
        return lookup_backend(self.request.get("backend") or "inductor")

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        device = "cpu"
        with torch.amp.autocast(device, enabled=bool(self.request.get("autocast"))):
            yield

    def test(self) -> accuracy.Difference | None:
        expected = reference = None
        if self.checks_accuracy or self.request.get("eager", True):
            self.report.stage(Stage.EAGER)
            with _invalid_if_it_fails(), self.mode():
                expected = self.run_eagerly()
                if self.checks_accuracy:
                    reference = self.float64()
                    if self.request.get("repeat_eager"):
                        self.check_repeatable(expected, self.comparison(reference))
        self.report.stage(Stage.COMPILE)
        with self.mode():
            compiled = self.compile()
            if self.checks_accuracy:
                compiled.eval()
            result = self.run(compiled, self.report.stage)
        if not self.checks_accuracy:
            return None
        assert expected is not None
        return self.compare(expected, result, reference)

    def compile(self) -> torch.nn.Module:
        torch._dynamo.reset()
        # A graph with symbols was compiled for sizes that vary; so is the candidate.
        dynamic = True if "reader.symint(" in self.request["file"] else None
        optimize = torch._dynamo.optimize(self.staged_compiler(), dynamic=dynamic)
        return optimize(copy.deepcopy(self.module))

    def staged_compiler(self) -> Callable[..., Any]:
        """The backend, saying when it starts and ends: Dynamo calls it within the first run."""

        @functools.wraps(self.compiler)
        def compiler(*arguments: Any, **options: Any) -> Any:
            self.report.stage(Stage.COMPILE)
            compiled = self.compiler(*arguments, **options)
            self.report.stage(Stage.RUN)
            return compiled

        return compiler

    def run(
        self,
        module: torch.nn.Module,
        stage: Callable[[Stage], None] = lambda stage: None,
        inputs: list[Any] | None = None,
    ) -> accuracy.Run:
        """Forward and, if something requires grad, backward; outputs, gradients and inputs."""
        # collect_results looks at the gradients of all inputs, also of those that keep none.
        warnings.filterwarnings(
            "ignore", message="The .grad attribute of a Tensor that is not a leaf"
        )
        module = copy.deepcopy(module)
        module.zero_grad(True)
        inputs = self.inputs() if inputs is None else inputs
        self.seed()
        output = module(*inputs)
        if not self.has_backward:
            return accuracy.run_of(output, inputs)
        if requires_bwd_pass(output):
            stage(Stage.BACKWARD)
            reduce_to_scalar_loss(output).backward()
        return accuracy.run_of(collect_results(module, output, None, inputs), inputs)

    def float64(self) -> accuracy.Run | None:
        """Eager's results in float64, or None where that cannot be had (as stock does)."""
        if not torch._dynamo.config.same_two_models_use_fp64:
            return None
        is_grad_enabled = torch.is_grad_enabled()
        try:
            graph = self.as_graph()
            torch.set_grad_enabled(is_grad_enabled)
            inputs = clone_inputs_retaining_gradness(self.inputs())
            model, inputs = cast_to_fp64(copy.deepcopy(graph), inputs)
            return self.run(model, inputs=inputs)
        except Exception as error:
            print(f"no float64 reference: {error}")
            return None
        finally:
            torch.set_grad_enabled(is_grad_enabled)

    def as_graph(self) -> torch.fx.GraphModule:
        """The module as a graph, whose constants can be cast."""
        return torch.fx.symbolic_trace(self.module)

    def run_eagerly(self) -> accuracy.Run:
        return self.run(self.module)


# --- After aot ------------------------------------------------------------------------------------


class AfterAot(Trial):
    """A graph of ATen operators: inductor's own compiler, without gradients."""

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        return torch.no_grad()

    def test(self) -> accuracy.Difference | None:
        with self.mode():
            self.report.stage(Stage.EAGER)
            with _invalid_if_it_fails():
                expected = reference = None
                if self.checks_accuracy or self.request.get("eager", True):
                    expected = self.run_eagerly()
                graph = self.trace()
                if self.checks_accuracy and expected is not None:
                    reference = self.float64(graph)
                    if self.request.get("repeat_eager"):
                        self.check_repeatable(expected, self.comparison(reference))
            self.report.stage(Stage.COMPILE)
            compiled = self.compile(graph)
            inputs = self.inputs()
            self.seed()
            self.report.stage(Stage.RUN)
            boxed = getattr(compiled, "_boxed_call", False)
            # A boxed function empties the list that it is given.
            output = compiled(list(inputs)) if boxed else compiled(*inputs)
            if not self.checks_accuracy:
                return None
            assert expected is not None
            return self.compare(expected, accuracy.run_of(output, inputs), reference)

    def run_eagerly(self) -> accuracy.Run:
        inputs = self.inputs()
        self.seed()
        result = self.module(*inputs)
        if not isinstance(result, tuple | list):
            raise Invalid(f"the graph returns a {type(result).__name__}, not a tuple")
        if any(isinstance(item, tuple | list) for item in result):
            raise Invalid("the graph returns a tuple of tuples")
        return accuracy.run_of(result, inputs)

    def trace(self) -> torch.fx.GraphModule:
        """The graph with metadata, as inductor takes it."""
        from torch.fx.experimental.proxy_tensor import make_fx

        if any(True for _ in self.module.parameters()):
            raise Invalid("a graph from after aot has no parameters")
        inputs = self.inputs()
        self.seed()
        graph = make_fx(self.module, tracing_mode=self.text.tracing_mode)(*inputs)
        self.note_lines(graph)
        return graph

    def note_lines(self, graph: torch.fx.GraphModule) -> None:
        """Traced nodes have no lines. Unless tracing took calls apart, they are the file's."""
        traced = [
            node
            for node in graph.graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ]
        if [f"torch.ops.{node.target}" for node in traced] != list(self.text.calls.values()):
            return
        for node, name in zip(traced, self.text.calls, strict=True):
            if stack := self.text.stack_of(name):
                node.stack_trace = stack

    def compile(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
        from torch._dynamo.repro.after_aot import _get_compile_args

        backend = self.request.get("backend") or "inductor"
        graph = copy.deepcopy(graph)
        inputs = _get_compile_args(graph, self.inputs())
        if backend != "inductor":
            return lookup_backend(backend)(graph, inputs)
        from torch._inductor.compile_fx import compile_fx_inner

        return compile_fx_inner(graph, inputs)

    def float64(self, graph: torch.fx.GraphModule) -> accuracy.Run | None:
        """Eager's results in float64.

        Without them only what is close is the same. That is too strict for the candidates of a
        failure in floating point: a reduction could end at a difference that rounding made.
        """
        try:
            model, inputs = cast_to_fp64(copy.deepcopy(graph), self.inputs())
            self.seed()
            return accuracy.run_of(model(*inputs), inputs)
        except Exception as error:
            if self.ignores_non_fp:
                raise Invalid(f"no float64 reference: {error}") from error
            print(f"no float64 reference: {error}")
            return None
