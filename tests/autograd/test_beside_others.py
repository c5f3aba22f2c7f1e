"""Assay in one process with stock's compiler, and with libraries that want its dispatch keys."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import assay


def _network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))


def _step(program: object, net: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    net.zero_grad()
    result = program(x)  # type: ignore[operator]
    result.square().sum().backward()
    return [result.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


def test_stock_compile_is_undisturbed() -> None:
    net, x = _network(), torch.randn(3, 4)
    expected = _step(net, net, x)
    torch._dynamo.reset()
    stock = torch.compile(net, backend="aot_eager")
    ours = assay.aot.compile(net, backend="aot_eager")
    for program in (ours, stock, ours, stock):
        for found, wanted in zip(_step(program, net, x), expected, strict=True):
            torch.testing.assert_close(found, wanted)


def test_stock_can_capture_while_ours_is_loaded() -> None:
    net, x = _network(), torch.randn(3, 4)
    assay.aot.trace(net, (x,))
    exported = torch.export.export(net, (x,))
    torch.testing.assert_close(exported.module()(x), net(x))


OWNED = """
import torch
library = torch.library.Library("_", "IMPL", "{key}")
library.fallback(lambda op, *args, **kwargs: None, "{key}")
import assay
try:
    assay.aot.compile(lambda x: x + 1)(torch.ones(2))
except assay.UserError as error:
    print(error)
"""


@pytest.mark.parametrize("key", ["Fake", "TESTING_ONLY_GenericMode"])
def test_a_key_owned_by_another_library_is_said(key: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWNED.format(key=key)], capture_output=True, text=True, check=False
    )
    assert f"another library of this process uses the dispatch key {key}" in done.stdout, done
    assert "hint: load Assay in a process without it" in done.stdout
