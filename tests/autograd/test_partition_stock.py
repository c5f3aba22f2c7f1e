"""Our partitioners on stock's joint graphs: they save no more than stock's, and nothing is lost."""

from __future__ import annotations

from functools import cache

import pytest
import torch
import torch.utils._pytree as pytree

import assay
from autograd.printed import bytes_of, load, placeholders, random_input
from autograd.stock_joint import DIALECTS, YARDSTICKS, Joint, stock_joint
from stock.compare import assert_identical

MODELS = [*YARDSTICKS, pytest.param("gpt2", marks=pytest.mark.slow)]
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.parametrize("dialect", DIALECTS),
    pytest.mark.parametrize("model", MODELS),
]


@cache
def joint_graph(model: str, dialect: str) -> Joint:
    return stock_joint(model, dialect)


def test_min_cut_saves_no_more_than_stock(model: str, dialect: str) -> None:
    joint = joint_graph(model, dialect)
    found = assay.aot.partition(joint.text, joint.forward_outputs)
    assert found["saved_bytes"] <= joint.min_cut.bytes


def test_default_saves_no_more_than_stock_and_no_less_than_min_cut(
    model: str, dialect: str
) -> None:
    joint = joint_graph(model, dialect)
    default = assay.aot.partition(joint.text, joint.forward_outputs, partitioner="default")
    min_cut = assay.aot.partition(joint.text, joint.forward_outputs)
    assert min_cut["saved_bytes"] <= default["saved_bytes"] <= joint.default.bytes


@pytest.mark.parametrize("partitioner", ["default", "min_cut"])
def test_halves_do_what_the_joint_graph_does(model: str, dialect: str, partitioner: str) -> None:
    joint = joint_graph(model, dialect)
    found = assay.aot.partition(joint.text, joint.forward_outputs, partitioner=partitioner)
    torch.manual_seed(0)
    values = {name: random_input(text) for name, text in placeholders(joint.text).items()}

    def run(text: str) -> list[object]:
        arguments = [values[name] for name in placeholders(text)]
        module = load(text)
        torch.manual_seed(1)
        return list(pytree.tree_leaves(module(*arguments), is_leaf=lambda item: item is None))

    expected = run(joint.text)
    results = run(found["forward"])
    outputs, saved = results[: joint.forward_outputs], results[joint.forward_outputs :]
    names = list(placeholders(found["backward"]))
    assert names[: len(saved)] == found["saved"]
    # Only here do backward's inputs get their values, so that it has no others.
    values = {name: value for name, value in values.items() if name.startswith("tangents")}
    values |= dict(zip(found["saved"], saved, strict=True))
    gradients = run(found["backward"])
    assert_identical([*outputs, *gradients], expected, f"{model}, {dialect}")
    annotations = placeholders(found["backward"])
    assert found["saved_bytes"] == sum(bytes_of(annotations[name]) for name in found["saved"])
