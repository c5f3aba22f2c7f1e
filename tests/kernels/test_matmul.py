"""Matrix products by oneDNN, and what is added to them by kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import assay
from kernels.against_eager import Program
from kernels.schedules import steps_of


@pytest.fixture(autouse=True)
def onednn() -> Iterator[None]:
    with assay.config.patch(matmul="onednn"):
        yield


def floats(*sizes: tuple[int, ...]) -> Callable[[], list[Tensor]]:
    return lambda: [torch.randn(size, requires_grad=True) for size in sizes]


def infinite() -> list[Tensor]:
    left, right = torch.randn(128, 128), torch.randn(128, 128)
    left[3, 5], left[7, 9], right[2, 2] = float("inf"), float("nan"), -float("inf")
    return [left, right]


def masks() -> Tensor:
    """Some keys are not seen, and in one row none is."""
    mask = torch.zeros(2, 1, 64, 64).masked_fill(torch.rand(2, 1, 64, 64) < 0.3, -float("inf"))
    mask[1, 0, 5] = -float("inf")
    return mask


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[Tensor]]]] = {
    "product": (torch.mm, floats((128, 128), (128, 128))),
    "transposed": (lambda x, y: x.t() @ y.t(), floats((64, 160), (130, 64))),
    "one operand": (lambda x: x @ x.t(), floats((128, 128))),
    "slices": (lambda x, y: x[:, 3:131] @ y[1:129, ::2], floats((128, 140), (140, 260))),
    "expanded": (lambda x, y: x.expand(128, 128) @ y, floats((1, 128), (128, 128))),
    "few rows": (lambda x, y: x @ y, floats((4, 700), (700, 700))),
    "linear": (F.linear, floats((128, 128), (128, 128), (128,))),
    "linear without bias": (F.linear, floats((128, 128), (128, 128))),
    "three dimensions": (F.linear, floats((4, 32, 128), (128, 128), (128,))),
    "a matrix is added": (torch.addmm, floats((128, 128), (128, 128), (128, 128))),
    "a number is added": (lambda b, x, y: torch.addmm(b, x, y), floats((), (128, 128), (128, 128))),
    "with factors": (
        lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2),
        floats((128,), (128, 128), (128, 128)),
    ),
    "batches": (torch.bmm, floats((5, 64, 96), (5, 96, 64))),
    "batches of transposed ones": (
        lambda x, y: x.transpose(1, 2) @ y.transpose(1, 2),
        floats((5, 64, 96), (5, 80, 64)),
    ),
    "heads": (
        lambda x: (lambda h: h @ h.transpose(-1, -2))(x.view(2, 64, 4, 64).transpose(1, 2)),
        floats((2, 64, 256)),
    ),
    "added to batches": (torch.baddbmm, floats((5, 1, 64), (5, 64, 96), (5, 96, 64))),
    "activation": (
        lambda x, w, b: F.gelu(F.linear(x, w, b)) + x,
        floats((128, 128), (128, 128), (128,)),
    ),
    "double": (
        lambda x, y: x.double() @ y.double(),
        floats((128, 128), (128, 128)),
    ),
    "convolutions of single pixels": (
        lambda x, v, w, b: F.conv2d(F.conv2d(x, v, b).relu(), w, b).sin(),
        lambda: [*floats((2, 48, 24, 24), (48, 48, 1, 1), (48, 48, 1, 1))(), torch.randn(48)],
    ),
    "attention": (
        F.scaled_dot_product_attention,
        lambda: [torch.randn(2, 60, 8, 64).transpose(1, 2) for _ in range(3)],
    ),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        lambda: [torch.randn(2, 8, 64, 64) for _ in range(3)],
    ),
    "masked attention": (
        F.scaled_dot_product_attention,
        lambda: [*(torch.randn(2, 8, 64, 64) for _ in range(3)), masks()],
    ),
    "attention to fewer keys": (
        F.scaled_dot_product_attention,
        lambda: [torch.randn(3, 8, 65, 48), *(torch.randn(3, 8, 50, 48) for _ in range(2))],
    ),
    "infinities and NaN": (torch.mm, infinite),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_program(name: str, threads: int) -> None:
    call, make = PROGRAMS[name]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        text = Program(call, make).difference()
    finally:
        torch.set_num_threads(before)
    assert not text, text


def test_a_bias_is_added_with_what_follows(capfd: pytest.CaptureFixture[str]) -> None:
    x, w, b = (torch.randn(128, 128), torch.randn(128, 128), torch.randn(128))
    steps = steps_of(capfd, lambda x, w, b: F.gelu(F.linear(x, w, b)), [x, w, b])
    product, kernel = [step.split(":")[0] for step in steps]
    assert product == "extern torch.ops.aten.mm.default"
    assert kernel.startswith("kernel fused_add_mul_")


def test_small_products_are_left_to_aten(capfd: pytest.CaptureFixture[str]) -> None:
    x, w, b = (torch.randn(16, 16), torch.randn(16, 16), torch.randn(16))
    steps = steps_of(capfd, lambda x, w, b: F.linear(x, w, b).relu(), [x, w, b])
    assert steps[0].startswith("extern torch.ops.aten.addmm.default")


def test_atens_is_bit_for_bit() -> None:
    x, y = torch.randn(128, 128), torch.randn(128, 128)
    with assay.config.patch(matmul="aten"):
        compiled = assay.aot.compile(lambda x, y: (x @ y).relu(), backend="native")
        assert torch.equal(compiled(x, y), (x @ y).relu())


def test_switching_onednn_off_is_obeyed() -> None:
    x, y = torch.randn(128, 128), torch.randn(128, 128)
    with torch.backends.mkldnn.flags(enabled=False):
        compiled = assay.aot.compile(lambda x, y: (x @ y).relu(), backend="native")
        assert torch.equal(compiled(x, y), (x @ y).relu())


def test_convolutions_of_single_pixels_are_products(capfd: pytest.CaptureFixture[str]) -> None:
    x, v, w = (torch.randn(size) for size in ((2, 256, 24, 24), *2 * ((256, 256, 1, 1),)))

    def run(x: Tensor, v: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(F.conv2d(x, v).relu(), w).sin()

    steps = [step.split(":")[0] for step in steps_of(capfd, run, [x, v, w])]
    assert steps == [
        "kernel clone_0",
        "extern torch.ops.aten.mm.default",
        "kernel relu_1",
        "extern torch.ops.aten.mm.default",
        "kernel fused_sin_clone_2",
    ]
    torch.testing.assert_close(assay.aot.compile(run)(x, v, w), run(x, v, w), rtol=1e-3, atol=1e-3)


def test_attention_over_short_sequences_is_products(capfd: pytest.CaptureFixture[str]) -> None:
    short, long = ([torch.randn(2, 8, length, 64) for _ in range(3)] for length in (64, 512))

    def run(*inputs: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(*inputs).relu()

    names = [step.split(":")[0] for step in steps_of(capfd, run, short)]
    assert [name for name in names if "bmm" in name] == ["extern torch.ops.aten.bmm.default"] * 2
    assert "flash" in steps_of(capfd, run, long)[0]


def test_a_product_alone(capfd: pytest.CaptureFixture[str]) -> None:
    x, y = torch.randn(128, 128), torch.randn(128, 128)
    assert steps_of(capfd, torch.mm, [x, y]) == ["extern torch.ops.aten.mm.default: mm"]
