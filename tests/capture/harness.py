"""Runs a small program eagerly and compiled, and compares everything a user could notice.

There are two ways to write one. A function, with the calls to make:

    @program(call(data(2, 3), 1), call(data(2, 3), 1), call(data(2, 3), 2))
    def test_scale(x, n):
        return x * n

Or, when there is state, a generator that builds a world: its first `yield` gives what is compiled
(and evaluates to the compiled version), each further one a call (and evaluates to its result, or to
the exception). What stands between two calls is the user changing things:

    @program
    def test_flag():
        module = Module()
        yield module
        yield call(data(2, 3))
        module.flag = True
        yield call(data(2, 3))

The generator runs twice, eagerly and compiled, each time with globals of its own, so that it may
declare `global` names. After every call these are compared: its result and those of all calls
before; arguments, locals and globals of the world and what hangs on them, with aliases and
gradients; the exception and its traceback; printed text; random states; modes of torch.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import io
import random
import re
import signal
import sys
import types
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import pytest
import torch

from capture import engine
from capture.describe import Description, first_difference

DATA = torch.Generator()


def data(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    """A tensor of new values, the same ones in every world."""
    if dtype == torch.bool:
        value = torch.rand(shape, generator=DATA) < 0.5
    elif dtype.is_floating_point or dtype.is_complex:
        value = torch.randn(shape, generator=DATA, dtype=torch.promote_types(dtype, torch.float32))
    else:
        value = torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, generator=DATA)
    return value.to(dtype).requires_grad_(grad)


@dataclass
class Call:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


World = Generator[Any, Any, None]


@dataclass(frozen=True)
class Program:
    """`function` is the program if there are `calls`, else a generator that makes its world.

    `graphs` and `breaks` state what the first call gives, where a user would expect just that.
    `tolerance` is for programs whose operators decompose into others ahead of time.
    `backward=False` keeps the harness from differentiating the results; `warns` compares Python
    warnings; `backends` leaves out one that cannot do it by design."""

    function: Callable[..., Any]
    calls: tuple[Call, ...] = ()
    graphs: int | None = None
    breaks: int | None = None
    tolerance: bool = False
    backward: bool = True
    warns: bool = False
    backends: tuple[str, ...] = ("eager", "aot_eager")

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename


@dataclass
class Run:
    """One run of a program: what is compiled, what it is compiled to, and what happened so far."""

    program: Program
    compile: Callable[[Any], Any]
    history: list[dict[str, Any]] = field(default_factory=list)
    compiled: Any = None

    def __post_init__(self) -> None:
        function = self.program.function
        self.module_globals = function.__globals__
        self.globals = dict(self.module_globals)
        self.function = types.FunctionType(
            function.__code__,
            self.globals,
            function.__name__,
            copy.deepcopy(function.__defaults__),
            function.__closure__,
        )
        self.function.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
        self.function.__qualname__ = function.__qualname__
        self.world = simple_world(self.function, self.program.calls)
        if not self.program.calls:
            self.world = self.function()

    def start(self) -> None:
        seed_everything()
        self.subject = next(self.world)
        self.compiled = self.compile(self.subject)

    def next_call(self, answer: Any) -> Call | None:
        """Lets the world change what it wants, up to the next call; None at its end."""
        try:
            request = self.world.send(answer)
        except StopIteration:
            return None
        if not isinstance(request, Call):
            raise TypeError(
                f"{self.program.function.__name__} yields {request!r}; wrap it in call()"
            )
        return request

    def make_call(self, request: Call) -> Any:
        """The result, or the exception."""
        record: dict[str, Any] = {"args": request.args, "kwargs": request.kwargs}
        self.history.append(record)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answer = self.compiled(*request.args, **request.kwargs)
                record["result"] = answer
            except (Exception, SystemExit) as error:
                answer = error
                record["raised"] = error
        record["printed"] = printed.getvalue()
        if self.program.warns:
            record["warnings"] = [
                (entry.category.__name__, str(entry.message), entry.lineno)
                for entry in caught
                if entry.filename == self.program.file
            ]
        if self.program.backward and "result" in record:
            record["backward"] = backward(answer)
        return answer

    def describe(self) -> Description:
        with torch._C.DisableTorchFunction():  # the program's own subclasses and modes rest
            return self.describe_all()

    def describe_all(self) -> Description:
        description = Description(self.program.file, self.compiled)
        for number, record in enumerate(self.history, 1):  # first: it explains what follows
            raised = record.get("raised")
            ended = "returned" if raised is None else f"raised {type(raised).__name__}: {raised}"
            description.leaves[f"end of call {number}"] = ended
        for number, record in enumerate(self.history, 1):
            for name, value in record.items():
                description.add(f"call {number}: {name}", value)
        description.add("the program", self.subject)
        if not self.program.calls:
            for name, value in inspect.getgeneratorlocals(self.world).items():
                description.add(f"local {name}", value)
        for name, value in self.globals.items():
            changed = name not in self.module_globals or self.module_globals[name] is not value
            if changed and not name.startswith("__"):
                description.add(f"global {name}", value)
        for name, value in global_state().items():
            description.add(name, value)
        return description


def simple_world(function: Callable[..., Any], calls: tuple[Call, ...]) -> World:
    yield function
    for request in copy.deepcopy(calls):  # noqa: UP028 (a tuple has no send())
        yield request


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in containers of containers, each once."""
    waiting, seen = [value], {}
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, tuple | list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            waiting += reversed(item.values())


def backward(result: Any) -> str:
    """Differentiates all tensors of a result; the gradients are found on the leaves."""
    outputs = [tensor for tensor in tensors_of(result) if tensor.requires_grad]
    if not outputs:
        return "nothing to differentiate"
    weights = [
        torch.linspace(0.5, 1.5, output.numel()).reshape(output.shape).to(output.dtype)
        for output in outputs
    ]
    try:
        torch.autograd.backward(outputs, weights)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return f"{len(outputs)} differentiated"


def seed_everything() -> None:
    DATA.manual_seed(7)
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)


def fingerprint(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def global_state() -> dict[str, Any]:
    return {
        "random state of torch": fingerprint(torch.get_rng_state().numpy().tobytes()),
        "random state of random": fingerprint(random.getstate()),
        "random state of numpy": fingerprint(numpy.random.get_state()[1].tolist()),  # type: ignore[index]
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "autocast cache": torch.is_autocast_cache_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "recursion limit": sys.getrecursionlimit(),
    }


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """What a program changes in torch's global state ends with its run."""
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    autocast = (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.use_deterministic_algorithms(deterministic)
        torch.set_autocast_enabled("cpu", autocast[0])
        torch.set_autocast_dtype("cpu", autocast[1])


def run(program: Program, compile: Callable[[Any], Any]) -> tuple[list[Description], Run]:
    """A description after each call of the program."""
    descriptions = []
    with own_state():
        this = Run(program, compile)
        this.start()
        answer = this.compiled
        while (request := this.next_call(answer)) is not None:
            answer = this.make_call(request)
            descriptions.append(this.describe())
        this.world.close()
    return descriptions, this


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Ends a program that hangs, where signals are handled, so that the others still run."""

    def stop(number: int, frame: types.FrameType | None) -> None:
        pytest.fail(f"no end after {seconds} s")  # not an Exception: no program catches it

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Difference(AssertionError):
    """The compiled program did something that the eager one does not, or left something out."""

    @property
    def where(self) -> str:
        """The kind of thing that differs, such as `result` or `global`."""
        found = re.search(r"after call \d+: (?:call \d+: )?(\w+)", str(self))
        assert found is not None
        return found[1]


def check(program: Program, backend: str) -> None:
    """Fails at the first thing that differs between the eager and the compiled run."""
    with time_limit(60):
        expected, _ = run(program, engine.Subject)
    assert len(expected) >= 3, "a program makes at least three calls"
    engine.reset()
    with time_limit(60):
        actual, compiled = run(program, engine.compile_with(backend))
    for number, (before, after) in enumerate(zip(expected, actual, strict=True), 1):
        difference = first_difference(before, after, program.tolerance and backend != "eager")
        if difference is not None:
            error = compiled.history[number - 1].get("raised")
            raise Difference(
                f"{program.function.__name__} ({program.file}:"
                f"{program.function.__code__.co_firstlineno}), after call {number}: {difference}"
            ) from error
    if backend == "eager":
        check_graphs(program)


def check_graphs(program: Program) -> None:
    """The stated numbers of graphs and breaks are those of the first call."""
    if program.graphs is None and program.breaks is None:
        return
    engine.reset()
    with own_state():
        this = Run(program, engine.Subject)
        this.start()
        request = this.next_call(this.compiled)
        assert request is not None
        with contextlib.redirect_stdout(io.StringIO()):
            explained = engine.explain(this.subject, request.args, request.kwargs)
    if explained is None:
        return
    if program.graphs is not None:
        assert explained.graph_count == program.graphs, str(explained)
    if program.breaks is not None:
        assert explained.graph_break_count == program.breaks, str(explained)


def program(*calls: Any, **options: Any) -> Any:
    """Makes a test of the function that follows, see above."""
    DATA.manual_seed(7)  # the data of a program do not depend on the programs before it
    if len(calls) == 1 and inspect.isfunction(calls[0]):
        return make_test(Program(calls[0], **options))
    assert all(isinstance(item, Call) for item in calls)
    return lambda function: make_test(Program(function, tuple(calls), **options))


def asserts_for_pytest(code: types.CodeType) -> bool:
    """Whether pytest rewrote assertions of the program, which is then no longer what it looks."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return "@pytest_ar" in code.co_names or any(map(asserts_for_pytest, inner))


def make_test(program: Program) -> Callable[[str], None]:
    generator = inspect.isgeneratorfunction(program.function)
    assert bool(program.calls) or generator, f"{program.function.__name__} has no calls"
    assert not asserts_for_pytest(program.function.__code__), "see PYTEST_DONT_REWRITE"

    def test(backend: str) -> None:
        check(program, backend)

    test.__name__ = program.function.__name__
    test.__qualname__ = program.function.__qualname__
    test.__doc__ = program.function.__doc__
    test.__module__ = program.function.__module__
    test.program = program  # type: ignore[attr-defined]
    backends = [name for name in engine.BACKENDS if name in program.backends]
    marked: Callable[[str], None] = pytest.mark.parametrize("backend", backends)(test)
    return marked
