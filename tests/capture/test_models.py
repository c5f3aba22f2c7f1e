"""The baseline's models through assay.compile: one graph, no break, eager's results to the bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import assay
from stock.models import build, call

EVAL = ["mlp", "resnet", "gpt2_small", "bert", "llama", "t5", "vit", "whisper"]
TRAIN = ["resnet_train", "gpt2_small_train", "bert_train", "t5_train", "vit_train"]


def leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if hasattr(value, "__dict__"):
        return leaves(vars(value))
    return []


def assert_same(actual: Any, expected: Any) -> None:
    ours, theirs = leaves(actual), leaves(expected)
    assert type(actual) is type(expected) and len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def records(compiled: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assay._C.capture_records(type(compiled)._compiled_call)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", EVAL)
def test_inference(name: str, backend: str) -> None:
    model, inputs = build(name)
    compiled = assay.compile(model, backend=backend)
    with torch.no_grad():
        expected = call(model, inputs)
        for _ in range(3):
            assert_same(call(compiled, inputs), expected)
    found = records(compiled)
    assert [record["break"] for record in found] == [None]
    assert assay._C.capture_replays(type(compiled)._compiled_call) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", TRAIN)
def test_training_steps_equal_eagers(name: str, backend: str) -> None:
    model, inputs = build(name)
    other = copy.deepcopy(model)
    compiled = assay.compile(other, backend=backend)
    histories = []
    for parameters, program in ((model.parameters(), model), (other.parameters(), compiled)):
        torch.manual_seed(0)
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
        history = []
        for _ in range(5):
            optimizer.zero_grad()
            result = call(program, inputs)
            loss = sum(leaf.float().pow(2).mean() for leaf in leaves(result) if leaf.requires_grad)
            loss.backward()
            optimizer.step()
            history.append(loss.detach())
        histories.append(history)
    torch.testing.assert_close(histories[1], histories[0], rtol=1e-5, atol=1e-6)
    for one, two in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    found = records(compiled)
    # ViT's first call writes to its configuration what the second one reads.
    assert [record["break"] for record in found] in ([None], [None, None])
    assert all(record["graph"] is not None for record in found)
