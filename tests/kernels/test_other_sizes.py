"""A program that is compiled for another size: which kernels are compiled again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import assay


def compilations(
    function: Callable[..., torch.Tensor], inputs: list[torch.Tensor], directory: Path
) -> list[int]:
    """How many libraries there are in the cache after each input, the first compiled for."""
    compiled = assay.compile(function, backend="native")
    counts = []
    with assay.config.patch(cache_dir=str(directory)):
        for x in inputs:
            for _ in range(2):  # the first call is eager's
                torch.testing.assert_close(compiled(x), function(x))
            counts.append(len(list(directory.rglob("*.so"))))
    return counts


def normalize(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.softmax(x, -1) * 3) + x


def shift(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + torch.exp(-x)


def normalize_columns(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 0) + x.mean()


@pytest.mark.parametrize("rows", [2, 5, 64, 1000])
def test_rows_are_not_part_of_a_kernel(rows: int, tmp_path: Path) -> None:
    inputs = [torch.randn(3, 40), torch.randn(rows, 40), torch.randn(7, rows, 40)]
    assert compilations(normalize, inputs, tmp_path) == [1, 1, 1]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("auto", [1, 2, 2, 2]), ("fixed", [1, 2, 3, 4]), ("passed", [1, 1, 1, 1])],
)
def test_sizes_that_a_kernel_loops_over(setting: str, expected: list[int], tmp_path: Path) -> None:
    inputs = [torch.randn(rows, 40) for rows in (3, 9, 11, 30)]
    with assay.config.patch(kernel_sizes=setting):
        assert compilations(normalize_columns, inputs, tmp_path) == expected


def test_the_ends_of_flat_kernels(tmp_path: Path) -> None:
    # Kernels differ in how many vectors go side by side and in what is left after these: few.
    sizes = [*range(1, 40), 64, 100, 127, 128, 129, 1000, 1024, 4099]
    counts = compilations(shift, [torch.randn(size) for size in sizes], tmp_path)
    assert counts[-1] < 12


@pytest.mark.parametrize("threads", [1, 2])
def test_one_kernel_for_several_threads(threads: int, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compilations(shift, [torch.randn(size) for size in (100_000, 100_003, 250_001)], tmp_path)
    finally:
        torch.set_num_threads(before)


CONSTANTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": lambda x: x.int().abs() + x.to(torch.int8).abs(),
    "sign": lambda x: x.int().sign() + x.signbit(),
    "copysign": lambda x: torch.copysign(x + 1, -x),
    "bools": lambda x: (x > 0) & ~(x[:, :1] == 0),
    "positions": lambda x: x.argmax(-1) + torch.arange(x.size(0)),
    "maxima": lambda x: x.max(0)[1],
    "padded": lambda x: torch.nn.functional.pad(x > 0, (3, 2)),
    "triangle": lambda x: x.tril() + (torch.arange(x.size(1)) < 7),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_no_sizes(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is the same for all sizes stays in the text: a vector takes no variable."""
    compiled = assay.compile(CONSTANTS[name], backend="native", dynamic=False)
    with assay.config.patch(kernel_sizes="passed", cache_dir=str(tmp_path)):
        for rows in (5, 9):
            x = torch.randn(rows, 37)
            for _ in range(2):
                assert torch.equal(compiled(x), CONSTANTS[name](x))
    assert "does not compile" not in capfd.readouterr().err
