"""`first_divergence` names the one call that was made faulty, wherever in a model it is."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from stock.make_files import ensure_files

# A call; not the renaming of a parameter, `l_x_ = L_x_`.
ASSIGNMENT = re.compile(r"^        (\w+)(: \"[^\"]*\")? = (?!\w+(;|$))[^;\n]+", re.MULTILINE)
GRAPHS = [
    ("gpt2_small", "dynamo_launcher.py"),
    ("gpt2_small", "forward_launcher.py"),
    ("gpt2_small", "backward_launcher.py"),
    ("bert", "dynamo_launcher.py"),
    ("bert", "inference_launcher.py"),
    ("bert_train", "forward_launcher.py"),
    ("bert_train", "backward_launcher.py"),
]


FAULT = "torch.ops.assay_testing.fault.default({}, 'accuracy')"  # wrong by half
SMALL_FAULT = "torch.ops.aten.mul.Scalar({}, 1.001)"
ROUNDING = "torch.ops.aten.mul.Scalar({}, 1.000001)"


def with_fault(code: str, node: str, fault: str) -> str:
    """The graph with a fault after one node, which is read in its place."""
    assignment = re.compile(rf"^        {node}(: \"[^\"]*\")? = [^;\n]+", re.MULTILINE)
    found = assignment.search(code)
    assert found is not None, node
    call = fault.format(node)
    # Its mentions, and neither operators nor keywords of the same name.
    rest = re.sub(rf"(?<![\w.]){node}\b(?!=)", f"{node}_fault", code[found.end() :])
    return f"{code[: found.end()]}\n        {node}_fault{found[1] or ''} = {call}{rest}"


def values_of(code: str, inputs: list[Any]) -> dict[str, Any]:
    """Every call's value."""
    names = [found[1] for found in ASSIGNMENT.finditer(code)]
    everything = re.sub(r"return .*", f"return ({', '.join(names)},)", code)
    torch.manual_seed(0)
    with torch.no_grad():
        return dict(zip(names, assay.parse(everything)(*inputs), strict=True))


def is_visible(value: Any, fault: str) -> bool:
    """Floating point that a fault changes."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() == 0:
        return False
    wrong = value * 1.5 + 0.5 if fault == FAULT else value * 1.001
    return not torch.allclose(value, wrong, rtol=1e-4, atol=0, equal_nan=True)


def named_by_search(code: str, suspect: str, inputs: list[Any]) -> str | None:
    torch.manual_seed(0)
    found = assay.compare.first_divergence(code, suspect, inputs)
    return None if found is None else found.node


def check_placements(model: str, file: str, fault: str, count: int, stock_root: Path) -> None:
    """Make single calls faulty, and see whether they are named."""
    ensure_files(model, stock_root)
    repro = assay.load(stock_root / model / file)
    inputs, _ = repro.inputs()
    values = values_of(repro.code, repro.inputs()[0])
    nodes = [node for node, value in values.items() if is_visible(value, fault)]
    assert len(nodes) > 40
    chosen = random.Random(file).sample(nodes, min(count, len(nodes)))
    named = {
        node: named_by_search(repro.code, with_fault(repro.code, node, fault), inputs)
        for node in chosen
    }
    missed = [node for node, found in named.items() if found is None]
    assert {node: found for node, found in named.items() if found not in (node, None)} == {}
    # In a sum that cancels to nothing but rounding, one part in a thousand is no error: the
    # gradient of the bias of BERT's keys is one.
    assert len(missed) <= (1 if fault == SMALL_FAULT else 0), missed


@pytest.mark.parametrize(("model", "file"), GRAPHS)
def test_the_faulty_call_is_named(model: str, file: str, stock_root: Path) -> None:
    """More than a hundred placements in all."""
    check_placements(model, file, FAULT, 15, stock_root)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "file"), GRAPHS)
@pytest.mark.parametrize("fault", [FAULT, SMALL_FAULT], ids=["large", "small"])
def test_a_hundred_placements_in_each(model: str, file: str, fault: str, stock_root: Path) -> None:
    check_placements(model, file, fault, 100, stock_root)


@pytest.mark.parametrize(("model", "file"), GRAPHS)
def test_rounding_is_not_blamed(model: str, file: str, stock_root: Path) -> None:
    """Neither a graph that is right, nor one in which every value is off by a little."""
    ensure_files(model, stock_root)
    repro = assay.load(stock_root / model / file)
    inputs, _ = repro.inputs()
    assert named_by_search(repro.code, repro.code, inputs) is None
    rounded = repro.code
    for node, value in values_of(repro.code, repro.inputs()[0]).items():
        # The lowest number there is, which masks are made of, becomes infinite.
        if is_visible(value, SMALL_FAULT) and value.abs().max() < 1e30:
            rounded = with_fault(rounded, node, ROUNDING)
    assert named_by_search(repro.code, rounded, inputs) is None
