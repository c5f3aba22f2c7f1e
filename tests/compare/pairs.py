"""Random pairs of results to compare: of every dtype, equal, nearly equal, wrong in many ways."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
DTYPES = [*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool]
DTYPES += [torch.complex64, torch.complex128]
SHAPES = [(), (1,), (7,), (3, 4), (0, 3), (2, 3, 1, 1), (11, 60), (40, 40)]
SPECIAL = [float("nan"), float("inf"), float("-inf")]
ERRORS = [1e-7, 3e-6, 5e-5, 4e-4, 7e-3, 0.3]


@dataclass(frozen=True)
class Pair:
    """What is handed to ``same``."""

    reference: Any
    result: Any
    fp64_reference: Any
    options: dict[str, Any]


class Pairs:
    """Makes pairs; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def pair(self) -> Pair:
        reference, result, fp64 = self.values(depth=self.random.choice([0, 0, 0, 1, 2]))
        if self.chance(0.35):
            fp64 = None
        return Pair(reference, result, fp64, self.options())

    def options(self) -> dict[str, Any]:
        flags = ["cos_similarity", "use_larger_multiplier_for_smaller_tensor"]
        flags += ["force_max_multiplier", "use_iou_for_bool", "ignore_non_fp"]
        made: dict[str, Any] = {flag: True for flag in flags if self.chance(0.15)}
        if self.chance(0.5):
            made["equal_nan"] = True
        if self.chance(0.3):
            made["exact_dtype"] = False
        if self.chance(0.5):
            made["tol"] = self.random.choice([0.0, 1e-6, 1e-3, 3e-2])
        if self.chance(0.2):
            made["iou_threshold"] = self.random.choice([0.5, 0.9])
        return made

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def values(self, depth: int) -> tuple[Any, Any, Any]:
        """Eager's value, the result and the float64 reference."""
        if depth == 0:
            return self.tensors() if self.chance(0.75) else self.constants()
        items = [self.values(depth - 1) for _ in range(self.random.randint(0, 3))]
        columns = [list(column) for column in zip(*items, strict=True)] or [[], [], []]
        if self.chance(0.06) and columns[1]:
            columns[self.random.choice([1, 2])].pop()  # too few
        kind = self.random.choice([list, tuple, dict])
        if kind is not dict:
            return kind(columns[0]), self.random.choice([list, tuple])(columns[1]), kind(columns[2])
        names = ["logits", "loss", "hidden"]
        dicts = [dict(zip(names, column, strict=False)) for column in columns]
        if self.chance(0.3):
            dicts[1] = dict(reversed(dicts[1].items()))
        return dicts[0], dicts[1], dicts[2]

    def constants(self) -> tuple[Any, Any, Any]:
        choices: list[Any] = [None, 0, 1, 3, True, False, "relu", "gelu", 1.0, 2.5, float("nan")]
        choices += [torch.device("cpu"), float("inf"), 1e300, 1 + 2j, torch.float16]
        reference = self.random.choice(choices)
        result = reference
        if self.chance(0.3):
            result = self.random.choice([*choices, torch.tensor(1), torch.tensor(2.5)])
        elif isinstance(reference, float) and self.chance(0.7):
            result = reference * (1 + self.random.choice(ERRORS))
        return reference, result, self.random.choice([reference, None])

    def tensors(self) -> tuple[Any, Any, Any]:
        dtype, shape = self.random.choice(DTYPES), self.random.choice(SHAPES)
        exact = self.numbers(dtype, shape)
        noise = self.random.choice(ERRORS) if self.chance(0.8) else 0.0
        reference = self.noisy(exact, noise * 0.3).to(dtype)
        result = self.noisy(exact, noise).to(dtype)
        if self.chance(0.2):
            result = reference.clone()
        fp64 = exact
        if self.chance(0.35):
            self.spoil([reference, result, fp64])
        if self.chance(0.06):
            result = result.to(self.random.choice([d for d in DTYPES if not d.is_complex]))
        if self.chance(0.1) and reference.is_floating_point():
            result = result.to(self.random.choice(FLOATS))
        if self.chance(0.06):
            result = self.other_shape(result)
        if self.chance(0.03):
            fp64 = self.other_shape(fp64)
        if self.chance(0.06) and reference.dim() > 0:
            reference, result = reference.to_sparse(), self.sparse_or_not(result)
        return reference, result, fp64

    def numbers(self, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.rand(shape, generator=self.generator) > 0.5
        if not dtype.is_floating_point and not dtype.is_complex:
            return torch.randint(0, 100, shape, generator=self.generator).to(dtype)
        wide = torch.complex128 if dtype.is_complex else torch.float64
        scale = self.random.choice([1.0, 1.0, 0.01, 30.0])
        return torch.randn(shape, generator=self.generator, dtype=wide) * scale

    def noisy(self, exact: torch.Tensor, size: float) -> torch.Tensor:
        if exact.dtype == torch.bool:
            flips = torch.rand(exact.shape, generator=self.generator) < size / 4
            return exact ^ flips
        if not exact.is_floating_point() and not exact.is_complex():
            steps = torch.rand(exact.shape, generator=self.generator) < size
            return exact + steps.to(exact.dtype)
        noise = torch.randn(exact.shape, generator=self.generator, dtype=exact.dtype)
        return exact * (1 + noise * size)

    def spoil(self, tensors: list[torch.Tensor]) -> None:
        """Put NaN or infinity at one place of some of them."""
        count = tensors[0].numel()
        if count == 0 or not (tensors[0].is_floating_point() or tensors[0].is_complex()):
            return
        place, number = self.random.randrange(count), self.random.choice(SPECIAL)
        for tensor in tensors:
            if self.chance(0.6):
                tensor.view(-1)[place] = number

    def other_shape(self, tensor: torch.Tensor) -> torch.Tensor:
        ways = [tensor.unsqueeze(0), tensor.flatten(), tensor.reshape(-1)[:1]]
        return self.random.choice([*ways, tensor.mT] if tensor.dim() >= 2 else ways)

    def sparse_or_not(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to_sparse() if tensor.dim() > 0 and self.chance(0.8) else tensor
