"""Callables and their qualified names: each leads to the other."""

from __future__ import annotations

import enum
import functools
import math
import operator
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.nn.attention import SDPBackend

import assay
from assay import _targets

HOMES = [
    torch, F, torch.Tensor, torch._C._nn, torch.linalg, torch.fft, torch.special, operator, math,
]  # fmt: skip


def callables(home: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names are names too
        found = {name: getattr(home, name, None) for name in dir(home)}
    return {name: value for name, value in found.items() if callable(value)}


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__name__)
def test_every_function_is_found_again(home: Any) -> None:
    found = callables(home)
    assert len(found) > 10
    for where, function in found.items():
        name = _targets.name_of(function)
        assert not name.startswith("assay.fx.objects"), where
        again = _targets.find(name)
        assert again is function or again == function, (where, name)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.relu, "torch.relu"),
        (F.relu, "torch.nn.functional.relu"),
        (F.gelu, "torch._C._nn.gelu"),
        (F.linear, "torch._C._nn.linear"),
        (torch.conv2d, "torch.conv2d"),
        (torch.Tensor.add, "torch.Tensor.add"),
        (operator.add, "operator.add"),
        (operator.getitem, "operator.getitem"),
        (getattr, "getattr"),
        (max, "max"),
        (math.floor, "math.floor"),
        (torch.sym_max, "torch.sym_max"),
        (torch._C._set_grad_enabled, "torch._C._set_grad_enabled"),
        (torch.amp.autocast_mode._enter_autocast, "torch.amp.autocast_mode._enter_autocast"),
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (torch.ops.aten.relu.default, "torch.ops.aten.relu.default"),
        (torch.ops.aten.add, "torch.ops.aten.add"),
        (torch.ops.higher_order.cond, "torch.ops.higher_order.cond"),
        (torch.per_tensor_affine, "torch.per_tensor_affine"),
        (torch.autograd.function.FunctionCtx, "torch.autograd.function.FunctionCtx"),
        (SDPBackend.MATH, "torch.nn.attention.SDPBackend.MATH"),
    ],
)
def test_names_are_those_of_the_text_form(function: Any, name: str) -> None:
    assert _targets.name_of(function) == name
    assert _targets.find(name) == function


@pytest.mark.parametrize(
    ("alias", "function"),
    [
        ("_operator.add", operator.add),
        ("torch._C._VariableFunctions.relu", torch.relu),
        ("torch._VF.lstm", torch._VF.lstm),
        ("torch.functional.einsum", torch.einsum),
    ],
)
def test_aliases_are_found(alias: str, function: Any) -> None:
    assert _targets.find(alias) == function


def test_a_function_that_cannot_be_imported_is_the_same_object_again() -> None:
    def local(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    partial = functools.partial(torch.add, alpha=2)
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(local, (x,))
    graph.output((graph.create_node("call_function", partial, (first, x), name="second"),))
    converted = assay.fx.from_graph_module(_LazyGraphModule({}, graph))
    for module in map(assay.fx.to_graph_module, (converted, converted.code)):
        assert [node.target for node in module.graph.nodes][1:3] == [local, partial]
        result = torch.fx.Interpreter(module).run(torch.ones(2))
        assert torch.equal(result[0], 4 * torch.ones(2))


def test_a_function_that_was_replaced_is_not_mistaken_for_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = replaced
    monkeypatch.setitem(globals(), "replaced", lambda x: x)
    graph = torch.fx.Graph()
    graph.output((graph.call_function(first, (graph.placeholder("x"),)),))
    module = assay.fx.to_graph_module(assay.fx.from_graph_module(torch.fx.GraphModule({}, graph)))
    assert [node.target for node in module.graph.nodes][1] is first


def replaced(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Color(enum.Enum):
    RED = 1


class Module:
    class Inner:
        @classmethod
        def build(cls) -> int:
            return 3


def test_members_of_classes() -> None:
    assert _targets.find(_targets.name_of(Color.RED)) is Color.RED
    assert _targets.find(_targets.name_of(Module.Inner.build)) == Module.Inner.build


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch.no_such_function", "has no attribute 'no_such_function'"),
        ("no_such_package.f", "No module named 'no_such_package'"),
        ("torch.ops.mylib.foo.default", "import the module that registers this operator first"),
        ("nothing_at_all", "'nothing_at_all' does not exist"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(assay.UserError, match=message):
        _targets.find(name)


def test_objects_without_a_name_are_rejected_with_the_node() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    call = graph.call_function(torch.rand, (2,))
    graph.output((x, call))
    # FX itself refuses such an argument when a node is made, but not afterwards.
    call._update_args_kwargs((2,), {"generator": torch.Generator()})
    module = _LazyGraphModule({}, graph)  # whose code nobody needs
    with pytest.raises(assay.UserError, match=r"node 'rand': .*type 'Generator'"):
        assay.fx.from_graph_module(module)
