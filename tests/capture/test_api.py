"""explain, the profiler, and what custom backends are told about a graph."""

from __future__ import annotations

import operator
import sys
from typing import Any

import pytest
import torch

import assay

FILE = __file__


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    sys.stdout.write("")
    if b.sum() < 0:
        b = b * -1
    return x * b


LINE = toy_example.__code__.co_firstlineno


def test_explain_has_the_fields_of_pytorch() -> None:
    output = assay.explain(toy_example)(torch.randn(10), torch.ones(10))
    assert (output.graph_count, output.graph_break_count, output.op_count) == (3, 2, 6)
    assert all(isinstance(graph, torch.fx.GraphModule) for graph in output.graphs)
    assert output.ops_per_graph == [
        [torch.abs, operator.add, operator.truediv],
        ["sum", operator.lt],
        [operator.mul],
    ]
    assert [reason.user_stack[-1].lineno for reason in output.break_reasons] == [LINE + 2, LINE + 3]
    assert output.break_reasons[1].reason == "a branch depends on the value of a tensor"
    assert "check_tensor(a)" in output.out_guards


def test_explain_as_text() -> None:
    text = str(assay.explain(toy_example)(torch.randn(10), torch.ones(10))).splitlines()
    assert text[:4] == [
        "Graph Count: 3",
        "Graph Break Count: 2",
        "Op Count: 6",
        "Break Reasons:",
    ]
    start = text.index("  Break Reason 2:")
    assert text[start + 1 : start + 5] == [
        "    Reason: a branch depends on the value of a tensor",
        "    User Stack:",
        f'      File "{FILE}", line {LINE + 3}, in toy_example',
        "        if b.sum() < 0:",
    ]


def test_the_older_explain_gives_six_results() -> None:
    explanation, guards, graphs, ops, reasons, verbose = assay.explain(
        toy_example, torch.randn(10), torch.ones(10)
    )
    assert explanation == "Dynamo produced 3 graphs, with 2 graph breaks and 6 ops."
    assert len(guards) == len(graphs) == len(ops) == 3
    assert len(reasons) == 2
    assert verbose.startswith(explanation + "\nBreak reasons:\n1. ")


def test_explain_captures_afresh() -> None:
    compiled = assay.compile(toy_example, backend="eager")
    arguments = torch.randn(10), torch.ones(10)
    compiled(*arguments)
    for _ in range(2):
        assert assay.explain(compiled)(*arguments).graph_count == 3


def test_explain_of_a_module_with_keywords() -> None:
    class Scaled(torch.nn.Linear):
        def forward(self, x: torch.Tensor, *, by: float = 1.0) -> torch.Tensor:
            return super().forward(x) * by

    output = assay.explain(Scaled(2, 2))(torch.ones(1, 2), by=2.0)
    assert (output.graph_count, output.graph_break_count, output.op_count) == (1, 0, 2)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x + x.sum().item()


def outer(x: torch.Tensor) -> torch.Tensor:
    return helper(x * 2)


def test_the_stack_of_a_break_goes_through_all_calls() -> None:
    reason = assay.explain(outer)(torch.ones(2)).break_reasons[0]
    assert [frame.name for frame in reason.user_stack] == ["outer", "helper"]
    assert [frame.line for frame in reason.user_stack] == [
        "return helper(x * 2)",
        "return x + x.sum().item()",
    ]


def test_unsupported_names_all_lines() -> None:
    with pytest.raises(assay.Unsupported) as raised:
        assay.compile(outer, backend="eager", fullgraph=True)(torch.ones(2))
    assert "return helper(x * 2)" in str(raised.value)
    assert "return x + x.sum().item()" in str(raised.value)


def test_explain_with_backend() -> None:
    explained = assay.ExplainWithBackend("aot_eager")
    a, b = torch.randn(10), torch.ones(10)
    result = assay.compile(toy_example, backend=explained)(a, b)
    assert torch.equal(result, toy_example(a, b))
    assert explained.output().graph_count == 3


@pytest.mark.parametrize("is_registered", [False, True])
def test_a_custom_backend_knows_why_its_graph_ends(is_registered: bool) -> None:
    reasons: list[Any] = []

    def note_reasons(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        reasons.append(gm.compile_subgraph_reason)
        return gm

    backend: Any = note_reasons
    if is_registered:
        assay.register_backend(note_reasons, name="note_reasons")
        backend = "note_reasons"
    assay.compile(toy_example, backend=backend)(torch.randn(10), torch.ones(10))
    assert [reason.graph_break for reason in reasons] == [True, True, False]
    assert reasons[1].user_stack[0].lineno == LINE + 3


class Graphs:
    """A backend that counts what it is given."""

    count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.count += 1
        return graph.forward


def scale(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x * n
    sys.stdout.write("")
    return y + 1


def test_profiler_counts_breaks_and_recompiles() -> None:
    with assay.CompileProfiler() as prof:
        compiled = assay.compile(scale, backend=prof, dynamic=False)
        for n in range(12):  # beyond the cache_size_limit
            assert compiled(torch.ones(1), n).item() == n + 1
    line = scale.__code__.co_firstlineno
    assert len(prof.get_metrics()["guard_failures"][f"scale ({FILE}:{line})"]) == 11
    report = prof.report()
    assert f"scale ({FILE}:{line + 2})" in report
    assert "n is 1, was 0" in report
    assert "Set config.cache_size_limit to 12" in report


@pytest.mark.parametrize(("accumulated", "expected"), [(64, 30), (20, 20), (2, 8)])
def test_other_sizes_of_tensors_have_a_limit_of_their_own(accumulated: int, expected: int) -> None:
    graphs = Graphs()
    compiled = assay.compile(lambda x: (x * x.shape[0]).sum(), backend=graphs, dynamic=False)
    with assay.config.patch(accumulated_cache_size_limit=accumulated):
        for size in range(1, 31):
            assert compiled(torch.ones(size)).item() == size * size
    assert graphs.count == expected


def test_other_values_do_not_count_as_sizes() -> None:
    graphs = Graphs()
    compiled = assay.compile(lambda x, n: x * n, backend=graphs, dynamic=False)
    for n in range(12):
        for size in (1, 2):
            assert compiled(torch.ones(size), n).tolist() == [n] * size
    assert graphs.count == 16  # eight numbers


def test_profiler_without_trouble() -> None:
    prof = assay.CompileProfiler()
    assay.compile(lambda x: x + 1, backend=prof)(torch.ones(1))
    assert (prof.frame_count, prof.op_count) == (1, 1)
    assert "No graph breaks." in prof.report()
    assert "No recompiles." in prof.report()


def test_allow_in_graph_gives_the_function() -> None:
    assert assay.allow_in_graph(scale) is scale
    with pytest.raises(TypeError):
        assay.allow_in_graph(3)


def scale_and_shift(x: torch.Tensor, n: int = 0) -> torch.Tensor:
    return shift(x * 2) + n


def shift(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def compilations(calls: list[tuple[torch.Tensor, int]]) -> int:
    graphs = Graphs()
    compiled = assay.compile(scale_and_shift, backend=graphs, recompile_limit=3, dynamic=False)
    for x, n in calls:
        assert torch.equal(compiled(x, n), scale_and_shift(x, n))
    return graphs.count


def test_sizes_beyond_the_limit_are_not_compiled_in_what_the_function_calls() -> None:
    assert compilations([(torch.ones(size), 0) for size in range(1, 9)]) == 3


def test_numbers_beyond_the_limit_leave_the_called_functions_to_be_compiled() -> None:
    # `shift` does not read n: it is compiled once for itself.
    assert compilations([(torch.ones(2), n) for n in range(8)]) == 4
