"""What a user sees when something fails around a captured program."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import assay
from capture import engine
from support.command import environment

pytestmark = pytest.mark.skipif(engine.ENGINE != "assay", reason="about assay's own messages")


def refuses(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    raise NotImplementedError("refused")


# ---- fullgraph ----


def prints(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print("no")
    return y


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x
    return -x


def reads_item(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def reads_float(x: torch.Tensor) -> torch.Tensor:
    return x * float(x.sum())


def has_data_dependent_size(x: torch.Tensor) -> torch.Tensor:
    return x + len(x.nonzero())


def uses_numpy(x: torch.Tensor) -> Any:
    return numpy.trim_zeros(x.numpy())


def differentiates(x: torch.Tensor) -> None:
    x.sum().backward()


def measures(x: torch.Tensor) -> float:
    return time.time() + x.ndim


def warns(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("careful", stacklevel=1)
    return x


def breaks(x: torch.Tensor) -> torch.Tensor:
    assay.graph_break()
    return x


SEEN: set[int] = set()


def loops_over_a_set(x: torch.Tensor) -> torch.Tensor:
    SEEN.add(x.ndim)
    for k in SEEN:
        x = x + k
    return x


def sizes(x: torch.Tensor) -> int:
    return sys.getsizeof(x)


@pytest.mark.parametrize(
    ("function", "line", "hint"),
    [
        (prints, 'print("no")', "print after the compiled function has returned"),
        (branches, "if x.sum() > 0:", "torch.where"),
        (reads_item, "return x * x.sum().item()", "call .item() outside"),
        (reads_float, "return x * float(x.sum())", "read the value outside"),
        (has_data_dependent_size, "return x + len(x.nonzero())", "its size follows from the data"),
        (uses_numpy, "return numpy.trim_zeros(x.numpy())", "NumPy"),
        (differentiates, "x.sum().backward()", "call .backward() outside"),
        (measures, "return time.time() + x.ndim", "measure time outside"),
        (warns, 'warnings.warn("careful", stacklevel=1)', "warn outside"),
        (breaks, "assay.graph_break()", "remove the call of graph_break()"),
        (loops_over_a_set, "for k in SEEN:", "sorted("),
        (sizes, "return sys.getsizeof(x)", "call it outside of the compiled function"),
    ],
)
def test_unsupported_has_the_place_the_line_and_a_hint(function: Any, line: str, hint: str) -> None:
    x = torch.ones(2, requires_grad=function is differentiates)
    with pytest.raises(assay.Unsupported) as caught:
        assay.compile(function, fullgraph=True, backend="eager")(x)
    text = str(caught.value)
    assert f'File "{__file__}", line ' in text
    assert f"in {function.__name__}\n    {line}" in text
    assert hint in text.split("\n  hint: ")[1]
    assert "fullgraph=True does not allow graph breaks" in text


def test_verbose_shows_the_callers_too() -> None:
    def calls_it() -> str:
        with pytest.raises(assay.Unsupported) as caught:
            assay.compile(prints, fullgraph=True, backend="eager")(torch.ones(1))
        return str(caught.value)

    assert "in calls_it" not in calls_it()
    with assay.config.patch(verbose=True):
        assert "in calls_it" in calls_it()


# ---- suppress_errors ----


def adds(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@pytest.mark.parametrize("verbose", [False, True])
def test_suppressed_errors_are_reported(verbose: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with assay.config.patch(suppress_errors=True, verbose=verbose):
        compiled = assay.compile(adds, backend=refuses)
        results = [compiled(torch.ones(1)).item() for _ in range(20)]
    assert results == [2.0] * 20
    text = capfd.readouterr().err
    assert f"WON'T CONVERT adds {__file__} line " in text
    assert "BackendCompilerFailed: backend 'refuses' raised:" in text
    assert ("Traceback (most recent call last)" in text) == verbose
    assert text.count("WON'T CONVERT") == 3  # then it is no longer tried


def test_ctrl_c_in_a_backend_is_not_suppressed() -> None:
    def interrupted(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        raise KeyboardInterrupt

    with assay.config.patch(suppress_errors=True), pytest.raises(KeyboardInterrupt):
        assay.compile(adds, backend=interrupted)(torch.ones(1))


# ---- What was compiled fails ----


def fails_at_run_time(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    def run(*args: Any) -> Any:
        raise RuntimeError("a bug of the backend")

    return run


def test_a_compiled_graph_that_raises_is_not_hidden() -> None:
    seen: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return torch.relu(x) + 1

    compiled = assay.compile(f, backend=fails_at_run_time)
    compiled(torch.ones(1))
    for calls in (2, 3):
        with pytest.raises(RuntimeError, match="a bug of the backend") as caught:
            compiled(torch.ones(1))
        assert any("Eager does not raise it" in note for note in caught.value.__notes__)
        assert len(seen) == calls


def test_a_compiled_graph_that_raises_before_a_break() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x) + 1
        print("never reached by the second call")
        return y

    compiled = assay.compile(f, backend=fails_at_run_time)
    compiled(torch.ones(1))
    with pytest.raises(RuntimeError, match="a bug of the backend"):
        compiled(torch.ones(1))


def test_an_exception_that_eager_raises_too_is_eagers() -> None:
    def f(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        try:
            return x.index_select(0, i) * 2
        except IndexError:
            return x * 0

    for backend in ("eager", "aot_eager"):
        compiled = assay.compile(f, backend=backend)
        for index in (0, 0, 7, 0, 7):
            i = torch.tensor([index])
            assert torch.equal(compiled(torch.ones(3), i), f(torch.ones(3), i))


def test_runtime_failures_are_suppressed_with_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    with assay.config.patch(suppress_errors=True):
        compiled = assay.compile(adds, backend=fails_at_run_time)
        assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert "RuntimeError: a bug of the backend" in capfd.readouterr().err


# ---- Graphs that run by backend eager ----


def writes_to_shared(x: torch.Tensor, alias: torch.Tensor) -> torch.Tensor:
    y = x.mul_(2)
    return y + alias


def test_a_graph_that_runs_by_backend_eager_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    def arguments() -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.ones(2, requires_grad=True) * 1
        return x, x.view(-1)

    expected = writes_to_shared(*arguments())
    compiled = assay.compile(writes_to_shared, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*arguments()), expected)
    assert torch.equal(compiled(*arguments()), expected)
    log = capfd.readouterr().err
    line = writes_to_shared.__code__.co_firstlineno
    assert f"the graph of writes_to_shared ({__file__}:{line}) runs with backend eager" in log
    reason = "inputs 0 and 1 share memory that the program changes in place"
    found = assay.explain(compiled)(*arguments())
    place = f"Graph 1: writes_to_shared ({__file__}:{line})"
    assert len(found.eager_reasons) == 1
    assert found.eager_reasons[0].startswith(f"{place}: {reason}")
    assert f"Run by backend eager:\n  {place}" in str(found)
    with assay.CompileProfiler("aot_eager") as profiler:
        assay.compile(writes_to_shared, backend=profiler)(*arguments())
    assert "Run by Backend eager" in profiler.report()
    assert reason in profiler.report()


def test_other_graphs_are_not_listed() -> None:
    found = assay.explain(assay.compile(adds, backend="aot_eager"))(torch.ones(1))
    assert found.eager_reasons == []
    assert "backend eager" not in str(found)


# ---- Exceptions of the program ----


def test_chained_exceptions_and_notes_have_eagers_traceback() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        try:
            return x.view(7)
        except RuntimeError as error:
            error.add_note("a note")
            raise ValueError("bad view") from error

    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        try:
            return inner(y)
        except ValueError:
            raise KeyError("outer")  # noqa: B904 (the context is what is tested)

    def formatted(function: Any) -> list[str]:
        try:
            function(torch.ones(2))
        except KeyError as error:
            error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
            return traceback.format_exception(error)
        raise AssertionError

    expected = formatted(f)
    assert any("a note" in line for line in expected)
    for backend in ("eager", "aot_eager"):
        compiled = assay.compile(f, backend=backend)
        for _ in range(6):
            assert formatted(compiled) == expected


def test_a_function_that_always_raises_is_recorded_less_and_less_often() -> None:
    graphs = []

    def f(x: torch.Tensor) -> torch.Tensor:
        graphs.append(assay.is_compiling())
        y = x + 1
        raise ValueError(y.ndim)

    compiled = assay.compile(f, backend="eager")
    for _ in range(200):
        with pytest.raises(ValueError, match="1"):
            compiled(torch.ones(1))
    assert len(graphs) == 200
    assert sum(graphs) < 20


def test_a_function_that_no_longer_raises_is_compiled() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        y = x + 1
        if n == 0:
            raise ValueError
        return y

    compiled = assay.compile(f, backend="eager")
    for _ in range(30):
        with pytest.raises(ValueError):
            compiled(torch.ones(1), 0)
    for _ in range(100):
        compiled(torch.ones(1), 1)
    assert assay._C.capture_replays(compiled) > 0


def test_deep_recursion_ends_as_in_eager() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        return f(x + 1, n + 1)

    def message(function: Any) -> str:
        with pytest.raises(RecursionError) as caught:
            function(torch.ones(1), 0)
        return str(caught.value)

    compiled = assay.compile(f, backend="eager")
    expected = message(f)
    for _ in range(4):
        assert message(compiled) == expected
    assert assay.compile(adds, backend="eager")(torch.ones(1)).item() == 2


def test_a_bad_value_in_the_environment_is_an_error_of_compile(tmp_path: Path) -> None:
    program = "import assay\nassay.compile(lambda x: x + 1)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(ASSAY_CACHE_SIZE_LIMIT="many"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "UserError: ASSAY_CACHE_SIZE_LIMIT is 'many'" in done.stderr


INTERRUPTED = """
    import os, random, signal, sys, threading, time
    import torch, assay

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
            self.last = 0
        def forward(self, x, k):
            for layer in self.layers:
                x = torch.relu(layer(x)) + k
            self.last = x.ndim
            if x.sum() > 1e9:
                x = x - 1
            return x

    def slow(gm, inputs):
        time.sleep(0.002)
        return gm.forward

    torch.manual_seed(0)
    generator = random.Random(int(sys.argv[1]))
    net = Net()
    x = torch.randn(2, 4)
    expected = {k: net(x, k) for k in range(4)}
    # Imports that are interrupted stay unfinished, whoever makes them.
    import torch._dynamo
    for backend in ["eager", "aot_eager", slow]:
        compiled = assay.compile(net, backend=backend)
        for _ in range(3):
            compiled(x, 0)
    stop = threading.Event()

    def interrupt():
        while not stop.wait(generator.random() * 0.01):
            os.kill(os.getpid(), signal.SIGINT)

    interrupts = calls = 0
    armed = False

    def interrupted(number, frame):
        global armed
        if armed:  # once for each call, so that this script itself is left alone
            armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    end = time.time() + 8
    compiled = None
    while time.time() < end:
        if compiled is None or generator.random() < 0.1:
            backend = generator.choice(["eager", "aot_eager", slow])
            compiled = assay.compile(net, backend=backend)
        k = generator.randrange(4)
        try:
            armed = True
            result = compiled(x, k)
            armed = False
        except KeyboardInterrupt:
            interrupts += 1
            continue
        assert torch.equal(result, expected[k]), "wrong result"
        calls += 1
    stop.set()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert not assay.is_compiling()
    for k in range(4):
        assert torch.equal(assay.compile(net, backend="eager")(x, k), expected[k])
    import gc
    assert gc.isenabled(), "garbage collection was left off"
    print("interrupts", interrupts, "calls", calls)
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_at_any_time(seed: int, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    done = subprocess.run(
        [sys.executable, str(script), str(seed)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    _, interrupts, _, calls = done.stdout.split()
    assert int(interrupts) > 20
    assert int(calls) > 20


def test_a_break_that_the_program_catches_is_raised_all_the_same() -> None:
    def catches(x: torch.Tensor) -> torch.Tensor:
        try:
            factor = x.sum().item()
        except Exception:
            factor = 0
        return x * factor

    compiled = assay.compile(catches, backend="eager", fullgraph=True)
    for _ in range(2):
        with pytest.raises(assay.Unsupported, match="'item' depends on the values"):
            compiled(torch.ones(2))


def test_a_break_by_an_instruction_that_is_left_to_python() -> None:
    def groups(x: torch.Tensor) -> torch.Tensor:
        try:
            raise ExceptionGroup("two", [ValueError(1), KeyError(2)])
        except* (ValueError, KeyError):
            x = x + 1
        return x

    with pytest.raises(assay.Unsupported, match=r"except\*"):
        assay.compile(groups, backend="eager", fullgraph=True)(torch.ones(2))


def test_a_break_in_a_generator_of_the_standard_library() -> None:
    def chooses(x: torch.Tensor) -> torch.Tensor:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return x + x.sum().item()

    with pytest.raises(assay.Unsupported):
        assay.compile(chooses, backend="eager", fullgraph=True)(torch.ones(2))


def test_an_overload_that_is_met_for_the_first_time_is_no_break() -> None:
    compiled = assay.compile(
        lambda x: torch.ops.aten.digamma.default(x), backend="eager", fullgraph=True
    )
    assert compiled(torch.ones(1)).shape == (1,)
