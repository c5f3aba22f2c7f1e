"""What is saved of a script's graphs: whose backend it is, its options, the script's operators."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.backends.debugging import ExplainWithBackend
from torch._dynamo.output_graph import OutputGraph

from assay.diagnose import captured, custom_operators, reduction


def compiled_with(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    """The backend as Dynamo has it while it compiles, and the graph."""
    seen: list[tuple[Any, Any]] = []
    original = OutputGraph.call_user_compiler

    def call(output: Any, gm: Any, inputs: Any) -> Any:
        seen.append((output.compiler_fn, gm))
        return original(output, gm, inputs)

    monkeypatch.setattr(OutputGraph, "call_user_compiler", call)
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, **options)(torch.ones(2))
    return seen[0]


def test_stock_backends_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"cpp.simdlen": 1}
    backend, _ = compiled_with(monkeypatch, options=options)
    assert captured.is_stock(backend)
    assert captured.backend_name(backend) == "inductor"
    assert captured.backend_settings(backend)["cpp.simdlen"] == 1
    backend, _ = compiled_with(monkeypatch, backend="aot_eager")
    assert captured.is_stock(backend) and captured.backend_name(backend) == "aot_eager"
    backend, _ = compiled_with(monkeypatch, backend=ExplainWithBackend("eager"))
    assert not captured.is_stock(backend)


OPERATORS = """
import torch
@torch.library.custom_op("captured_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
@twice.register_fake
def _(x):
    return torch.empty_like(x)
"""


def test_a_module_with_operators_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_operators.py").write_text(OPERATORS)
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("own_operators")
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.ops.captured_test.twice.default, (x,)))
    lines = custom_operators.lines(torch.fx.GraphModule({}, graph))
    assert lines[0] == custom_operators.MARK
    assert lines[-1] == "import own_operators"
    assert f"sys.path.append({str(tmp_path)!r})" in lines
    del sys.modules["own_operators"]


def test_other_graphs_need_nothing() -> None:
    assert custom_operators.lines(torch.fx.symbolic_trace(torch.nn.ReLU())) == []


def test_a_result_keeps_the_operators_that_it_calls(tmp_path: Path) -> None:
    original, reduced = tmp_path / "0_dynamo.py", tmp_path / "repro.py"
    lines = f"{custom_operators.MARK}\nimport own_operators\n"
    original.write_text(f"import torch\n{lines}\n# assay version: 0\n\nclass Repro:\n    pass\n")
    head = "import torch\n\n# assay version: 0\n\n"
    call = "class Repro:\n    def forward(self, x):\n        y = {}(x)\n\nmod = Repro()\n"
    reduced.write_text(head + call.format("torch.ops.captured_test.twice"))
    reduction.keep_operators(original, reduced)
    assert lines in reduced.read_text()
    reduced.write_text(head + call.format("torch.relu"))
    reduction.keep_operators(original, reduced)
    assert custom_operators.MARK not in reduced.read_text()


def test_a_graph_that_assigns_to_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo puts a function of its own into the graph, which no file could call."""

    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        x.data = torch.ones(3)
        return y

    graphs: list[torch.fx.GraphModule] = []

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(gm)
        return gm

    torch._dynamo.reset()
    torch.compile(f, backend=backend)(torch.zeros(3))
    saved = captured.Writer(str(tmp_path)).save(
        "0_dynamo", graphs[0], [torch.zeros(3)], "eager", "after_dynamo", None
    )
    assert saved.problem is None
    assert "torch.Tensor.set_(" in saved.file.read_text()
    assert "assay.fx" not in saved.file.read_text()


def test_a_function_that_cannot_be_imported(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(lambda x: x + 1, (x,)),))
    gm = torch.fx.GraphModule({}, graph)
    saved = captured.Writer(str(tmp_path)).save(
        "0_dynamo", gm, [torch.zeros(3)], "eager", "after_dynamo", None
    )
    assert "<lambda>', which nothing can import" in (saved.problem or "")
