"""Backends written in Python: what they get, what is done with what they return, their errors."""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter, EagerAndRecordGraphs

import assay

Module = torch.fx.GraphModule


def run_graph(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
    return gm.forward


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def test_a_backend_gets_the_graph_and_the_inputs_and_runs_it() -> None:
    seen: list[tuple[Module, list[Any]]] = []

    def backend(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        seen.append((gm, example_inputs))
        return gm.forward

    net, x = model(), torch.randn(3, 4)
    compiled = assay.aot.compile(net, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(x), net(x))
    assert len(seen) == 1
    gm, inputs = seen[0]
    assert isinstance(gm, Module)
    assert isinstance(inputs, list)
    assert any(value is x for value in inputs)
    assert any(value is net[0].weight for value in inputs)
    targets = [node.target for node in gm.graph.nodes]
    assert torch.ops.aten.relu.default in targets
    compiled(x).sum().backward()
    reference = net[0].weight.grad
    assert reference is not None
    net[0].weight.grad = None
    net(x).sum().backward()
    assert torch.equal(reference, net[0].weight.grad)


def test_nested_results_are_put_back() -> None:
    compiled = assay.aot.compile(
        lambda x: {"a": [x + 1, 3], "b": (x.relu(), None)}, backend=run_graph
    )
    result = compiled(torch.ones(2))
    assert torch.equal(result["a"][0], torch.full((2,), 2.0))
    assert result["a"][1] == 3
    assert result["b"][1] is None


def test_the_graph_returns_a_tuple() -> None:
    outputs = []

    def backend(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        outputs.append(gm.graph.output_node().args[0])
        return gm.forward

    assay.aot.compile(lambda x: x.relu(), backend=backend)(torch.ones(2))
    assay.aot.compile(lambda x: {"a": x + 1, "b": [x * 2]}, backend=backend)(torch.ones(2))
    assert [(type(output), len(output)) for output in outputs] == [(tuple, 1), (tuple, 2)]


class Stateful:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        self.calls += 1
        return gm


def test_any_callable_is_a_backend() -> None:
    net, x = model(), torch.randn(3, 4)
    stateful, counter, recorder = Stateful(), CompileCounter(), EagerAndRecordGraphs()
    for backend in (stateful, counter, recorder, lambda gm, _: gm.forward, stateful.__call__):
        assert torch.equal(assay.aot.compile(net, backend=backend)(x), net(x))
    assert (stateful.calls, counter.frame_count, counter.op_count) == (2, 1, 3)
    assert len(recorder.graphs) == 1


def test_options_are_passed_as_torch_compile_passes_them() -> None:
    seen: list[Any] = []

    def backend(gm: Module, _: list[Any], *, level: int, options: Any = None) -> Any:
        seen.append((level, options))
        return gm

    partial = functools.partial(backend, level=2)
    assay.aot.compile(lambda x: x + 1, backend=partial, options={"fast": True})(torch.ones(2))
    assay.aot.compile(lambda x: x + 1, backend=partial)(torch.ones(2))
    assert seen == [(2, {"fast": True}), (2, None)]


@pytest.mark.slow
def test_inductor_is_a_backend() -> None:
    from torch._inductor.compile_fx import compile_fx

    net, x = model(), torch.randn(3, 4)
    torch.testing.assert_close(assay.aot.compile(net, backend=compile_fx)(x), net(x))
    with torch.no_grad():
        compiled = assay.aot.compile(net, backend=torch._inductor.compile)
        torch.testing.assert_close(compiled(x), net(x))


_numbers = itertools.count()


def test_registered_backends() -> None:
    name = f"fx_test_{next(_numbers)}"

    @assay.register_backend(name=name, tags=("debug",))
    def backend(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        return gm.forward

    assert callable(backend)
    assert name in assay.list_backends()
    x = torch.randn(3)
    assert torch.equal(assay.aot.compile(torch.relu, backend=name)(x), torch.relu(x))
    with pytest.raises(assay.UserError, match="already registered"):
        assay.register_backend(backend, name=name)


def test_registered_by_its_own_name() -> None:
    def fx_test_own_name(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        return gm.forward

    assert assay.register_backend(fx_test_own_name) is fx_test_own_name
    assert "fx_test_own_name" in assay.list_backends()


# --- Errors ---------------------------------------------------------------------------------------


def toy_compiler(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if node.target == torch.ops.aten.relu.default:
            raise AssertionError("relu is not supported")
    return gm


def test_a_backend_that_raises() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + 1)

    with pytest.raises(assay.BackendCompilerFailed) as caught:
        assay.aot.compile(program, backend=toy_compiler)(torch.ones(2))
    error = caught.value
    text = str(error)
    assert text.startswith("backend 'toy_compiler' raised:\nAssertionError: relu is not supported")
    assert "from user code:" in text
    assert "test_backends.py" in text and "in program\n    return torch.relu(x + 1)\n" in text
    assert isinstance(error.__cause__, AssertionError)
    assert error.inner_exception is error.__cause__
    assert error.backend_name == "toy_compiler"
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert frames[-1].name == "toy_compiler"


@pytest.mark.parametrize("name", ["<lambda>", "Stateful", "backend"])
def test_messages_name_the_backend(name: str) -> None:
    class Failing(Stateful):
        def __call__(self, gm: Module, example_inputs: list[Any]) -> Any:
            raise ValueError("no")

    def backend(gm: Module, example_inputs: list[Any]) -> Any:
        raise ValueError("no")

    Failing.__name__ = "Stateful"
    backends: dict[str, Any] = {
        "<lambda>": lambda gm, _: [][1],
        "Stateful": Failing(),
        "backend": functools.partial(backend),
    }
    with pytest.raises(assay.BackendCompilerFailed, match=f"backend '{name}' raised"):
        assay.aot.compile(torch.relu, backend=backends[name])(torch.ones(2))


def test_what_is_raised_at_run_time_is_the_same_object() -> None:
    class Mine(Exception):
        pass

    error = Mine("boom")

    def backend(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            raise error

        return run

    compiled = assay.aot.compile(torch.relu, backend=backend)
    for _ in range(2):  # the slow path and the fast one
        with pytest.raises(Mine) as caught:
            compiled(torch.ones(2))
        assert caught.value is error
        assert traceback.extract_tb(error.__traceback__)[-1].name == "run"
        error.__traceback__ = None


def test_interrupts_are_not_the_backends_failures() -> None:
    def backend(gm: Module, example_inputs: list[Any]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assay.aot.compile(torch.relu, backend=backend)(torch.ones(2))


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (lambda gm, _: 3, "it returned a 'int', which cannot be called"),
        (lambda gm, _: lambda x: x, "returned a 'Tensor', not a tuple or list of results"),
        (lambda gm, _: lambda x: (x, x), "returned 2 results; the graph has 1"),
    ],
)
def test_wrong_results(backend: Any, message: str) -> None:
    with pytest.raises(assay.BackendCompilerFailed, match=message):
        assay.aot.compile(torch.relu, backend=backend)(torch.ones(2))


def test_what_is_not_a_backend() -> None:
    with pytest.raises(assay.UserError, match="must be a name or a callable, found a 'int'"):
        assay.aot.compile(torch.relu, backend=3)  # type: ignore[arg-type]
    with pytest.raises(assay.UserError, match="unknown backend 'aot_eger'"):
        assay.aot.compile(torch.relu, backend="aot_eger")


# --- What stands around every backend -------------------------------------------------------------


def test_faults_are_injected_into_python_backends() -> None:
    x = torch.ones(3)
    with assay.config.patch(inject_fault="relu:accuracy"):
        compiled = assay.aot.compile(torch.relu, backend=run_graph)
        assert not torch.equal(compiled(x), torch.relu(x))


def test_the_debug_wrapper_checks_python_backends(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(gm: Module, example_inputs: list[Any]) -> Callable[..., Any]:
        return lambda x: (gm(x)[0] + 1,)

    monkeypatch.chdir(tmp_path)
    with assay.config.patch(repro_after="dynamo", repro_level=4, debug_dir_root=str(tmp_path)):
        with pytest.raises(assay.AccuracyError):
            assay.aot.compile(torch.relu, backend=wrong)(torch.randn(3))
    assert list(tmp_path.rglob("*.py"))


# --- Memory ---------------------------------------------------------------------------------------


def test_ten_thousand_calls_leave_nothing_behind() -> None:
    compiled = assay.aot.compile(lambda x, y: (x.relu() + y, 3), backend=run_graph)
    x, y = torch.randn(4), torch.randn(4)
    compiled(x, y)
    gc.collect()
    before = (sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(3), len(gc.get_objects()))
    for _ in range(10_000):
        compiled(x, y)
    gc.collect()
    after = (sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(3), len(gc.get_objects()))
    assert before[:2] == after[:2]
    assert abs(after[2] - before[2]) < 100
    assert abs(after[3] - before[3]) < 100


def test_a_dropped_function_lets_go_of_its_backend() -> None:
    class Backend(Stateful):
        pass

    backend = Backend()
    before = sys.getrefcount(backend)
    compiled = assay.aot.compile(lambda x: x + 1, backend=backend)
    compiled(torch.ones(2))
    assert sys.getrefcount(backend) > before
    del compiled
    gc.collect()
    assert sys.getrefcount(backend) == before
