"""In-place writes where elements, arguments or inputs share memory, compiled against eager.

A compiled program may give eager's results, or be refused, or raise where eager raises. It must
never differ silently.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import assay

View = Callable[[Tensor], Tensor]
Write = Callable[[Tensor], Any]

# Views of twelve elements.
VIEWS: dict[str, View] = {
    "whole": lambda x: x,
    "rows": lambda x: x.view(3, 4)[1:],
    "columns": lambda x: x.view(3, 4)[:, ::2],
    "transposed": lambda x: x.view(3, 4).t(),
    "diagonal": lambda x: x.view(3, 4).diagonal(),
    "expanded": lambda x: x[:4].expand(3, 4),
    "row_of_expanded": lambda x: x[:4].expand(3, 4)[1],
    "one_element": lambda x: x[2:3].expand(5),
    "strided": lambda x: x.as_strided((2, 2), (1, 1)),
    "strided_apart": lambda x: x.as_strided((2, 3), (6, 2)),
    "strided_irregular": lambda x: x.as_strided((3, 2), (2, 3)),
    "strided_irregular_overlap": lambda x: x.as_strided((3, 3), (2, 3)),
    "strided_from_third": lambda x: x.as_strided((2, 3), (3, 1), 2),
    "row_of_strided": lambda x: x.as_strided((2, 2), (1, 1))[0],
    "item_of_strided": lambda x: x.as_strided((2, 2), (1, 1))[1, 0],
    "windows": lambda x: x.unfold(0, 4, 2),
    "windows_apart": lambda x: x.unfold(0, 4, 4),
    "windows_with_gaps": lambda x: x.unfold(0, 3, 4),
    "first_window": lambda x: x.unfold(0, 4, 2)[0],
    "broadcast": lambda x: torch.broadcast_to(x.view(3, 1, 4), (3, 2, 4)),
}

WRITES: dict[str, Write] = {
    "add_": lambda v: v.add_(1),
    "mul_": lambda v: v.mul_(2),
    "add_itself": lambda v: v.add_(v),
    "add_counting": lambda v: v.add_(torch.arange(v.numel(), dtype=v.dtype).view(v.shape)),
    "exp_": lambda v: v.exp_(),
    "copy_": lambda v: v.copy_(torch.arange(v.numel(), dtype=v.dtype).view(v.shape)),
    "fill_": lambda v: v.fill_(3),
    "zero_": lambda v: v.zero_(),
    "clamp_": lambda v: v.clamp_(min=0.5),
    "addcmul_": lambda v: v.addcmul_(torch.ones_like(v), torch.full_like(v, 2)),
    "masked_fill_": lambda v: v.masked_fill_(v > 0, -1),
    "cumsum_": lambda v: v.cumsum_(0) if v.dim() else v,
    "index_put_": lambda v: v.index_put_((torch.tensor([0]),), v.new_tensor(5.0)) if v.dim() else v,
    "index_put_accumulate": lambda v: (
        v.index_put_((torch.tensor([0, 0]),), v.new_tensor(5.0), accumulate=True) if v.dim() else v
    ),
    "index_add_": lambda v: (
        v.index_add_(0, torch.tensor([0]), torch.ones_like(v[:1])) if v.dim() else v
    ),
    "index_fill_": lambda v: v.index_fill_(0, torch.tensor([0]), 7) if v.dim() else v,
    "scatter_": lambda v: (
        v.scatter_(0, torch.zeros_like(v, dtype=torch.int64), 9.0) if v.dim() else v
    ),
    "set_item": lambda v: v.__setitem__(0, 4.0) if v.dim() else v,
    "set_all": lambda v: v.__setitem__(..., 4.0),
    "add_out": lambda v: torch.add(v, 1, out=v),
    "mul_out": lambda v: torch.mul(torch.ones(v.shape), 2, out=v),
    "foreach_add_": lambda v: torch._foreach_add_([v], 1),
    "foreach_add_twice": lambda v: torch._foreach_add_([v, v], 1),
    "as_strided_": lambda v: v.as_strided_((2, 2), (2, 1)).add_(1),
    "as_strided_offset": lambda v: (v.add_(1), v.as_strided_((2, 2), (2, 1), 1).mul_(3)),
    "as_strided_copy": lambda v: (
        v.add_(1),
        v.copy_(torch.as_strided_copy(v, v.shape, v.stride(), 0)),
    ),
    "as_strided_scatter": lambda v: (
        v.add_(1),
        v.copy_(torch.as_strided_scatter(v, torch.zeros(2), (2,), (1,), 6)),
    ),
    "resize_": lambda v: v.resize_(2).add_(1),
}

# Writes that read the memory they write to from another place; `x` is the whole.
CROSSED: dict[str, Callable[[Tensor], Any]] = {
    "shifted_up": lambda x: x[1:].add_(x[:-1]),
    "shifted_down": lambda x: x[:-1].add_(x[1:]),
    "shifted_rows": lambda x: x.view(3, 4)[:, 1:].add_(x.view(3, 4)[:, :-1]),
    "shifted_rows_back": lambda x: x.view(3, 4)[:, :-1].add_(x.view(3, 4)[:, 1:]),
    "shifted_copy": lambda x: x.view(3, 4)[:, 1:].copy_(x.view(3, 4)[:, :-1]),
    "even_and_odd": lambda x: x[::2].add_(x[1::2]),
    "two_halves": lambda x: x[:6].mul_(x[6:]),
    "swapped": lambda x: x.view(3, 4)[:, :3].add_(x.view(3, 4)[:, :3].t()),
    "first_element": lambda x: x.add_(x[0]),
    "product": lambda x: x[:9].view(3, 3).addmm_(x[:9].view(3, 3), x[:9].view(3, 3)),
    "foreach_crossed": lambda x: torch._foreach_add_([x[:6], x[6:]], [x[6:], x[:6]]),
    "foreach_apart": lambda x: torch._foreach_add_([x[:6], x[6:]], [x[:6], x[6:]]),
    "foreach_overlapping": lambda x: torch._foreach_add_([x[:7], x[6:]], 1),
    "two_outputs": lambda x: torch.max(torch.ones(3, 4), 1, out=(x[:3], torch.zeros(3).long())),
}

# What a program is given, made of the twelve elements: some inputs overlap each other.
INPUTS: dict[str, Callable[[Tensor, View], list[Tensor]]] = {
    "base": lambda x, view: [x],
    "view": lambda x, view: [view(x)],
    "view_and_base": lambda x, view: [view(x), x],
    "base_and_view": lambda x, view: [x, view(x)],
    "view_twice": lambda x, view: [view(x), view(x)],
}


def outcome(call: Callable[..., Any], inputs: list[Tensor], memory: Tensor) -> Any:
    """Results and memory after the call, or the exception."""
    try:
        results = call(*inputs)
    except Exception as error:
        return error
    return [tensor.detach().clone() for tensor in [*results, memory]]


def check(program: Callable[..., Any], make: Callable[[Tensor], list[Tensor]]) -> str:
    """Compares with eager; returns what happened: equal, refused or raised."""
    check_at(5, program, make)
    return check_at(0, program, make)


def check_at(
    offset: int, program: Callable[..., Any], make: Callable[[Tensor], list[Tensor]]
) -> str:
    """The same with the twelve elements at this place of their memory."""

    def run(call: Callable[..., Any]) -> tuple[Any, Tensor]:
        memory = torch.linspace(-1, 2, 24)
        return outcome(call, make(memory[offset : offset + 12]), memory), memory

    expected, _ = run(program)
    found, memory = run(assay.aot.compile(program, backend="aot_eager"))
    if isinstance(found, assay.TraceError):
        assert torch.equal(memory, torch.linspace(-1, 2, 24)), "refused after it wrote"
        return "refused"
    if isinstance(found, Exception) or isinstance(expected, Exception):
        assert type(found) is type(expected), f"eager: {expected}\ncompiled: {found}"
        return "raised"
    for left, right in zip(found, expected, strict=True):
        assert torch.equal(left, right), f"eager: {right}\ncompiled: {left}"
    return "equal"


def written_inside(view: View, write: Write) -> Callable[..., Any]:
    """The view is taken inside of the program, of an input."""

    def program(x: Tensor) -> tuple[Tensor, ...]:
        taken = view(x)
        write(taken)
        return x * 1, taken * 1

    return program


def written_intermediate(view: View, write: Write) -> Callable[..., Any]:
    """The view is taken of something that the program computes."""

    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        taken = view(y)
        write(taken)
        return y, taken * 1

    return program


def written_input(write: Write) -> Callable[..., Any]:
    """The first input is written to; the others may see it."""

    def program(*inputs: Tensor) -> tuple[Tensor, ...]:
        write(inputs[0])
        return tuple(x * 1 for x in inputs)

    return program


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("view", VIEWS)
def test_writes_through_views(view: str) -> None:
    for write in WRITES.values():
        check(written_inside(VIEWS[view], write), lambda x: [x])
        check(written_intermediate(VIEWS[view], write), lambda x: [x])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("view", VIEWS)
def test_writes_to_inputs_that_overlap(view: str, kind: str) -> None:
    for write in WRITES.values():
        check(written_input(write), lambda x: INPUTS[kind](x, VIEWS[view]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", CROSSED)
def test_arguments_that_overlap(write: str) -> None:
    check(written_inside(lambda x: x, CROSSED[write]), lambda x: [x])
    check(written_intermediate(lambda x: x, CROSSED[write]), lambda x: [x])


@pytest.mark.filterwarnings("ignore")
def test_random_chains_of_views_and_writes() -> None:
    choose = random.Random(13)
    for _ in range(60):
        steps = [
            (choose.choice(list(VIEWS.values())), choose.choice(list(WRITES.values())))
            for _ in range(choose.randint(1, 3))
        ]

        def program(x: Tensor, steps: Any = steps) -> tuple[Tensor, ...]:
            y = x.sin()
            for view, write in steps:
                write(view(y))
                write(view(x))
            return x + y, y

        check(program, lambda x: [x])


@pytest.mark.parametrize(
    "view", ["strided", "row_of_strided", "windows", "first_window", "row_of_expanded"]
)
def test_refused_where_a_functional_graph_would_differ(view: str) -> None:
    assert check(written_inside(VIEWS[view], WRITES["add_"]), lambda x: [x]) == "refused"


@pytest.mark.parametrize(
    "view", ["rows", "columns", "transposed", "diagonal", "strided_irregular", "windows_apart"]
)
def test_not_refused_where_no_memory_is_shared(view: str) -> None:
    assert check(written_inside(VIEWS[view], WRITES["add_"]), lambda x: [x]) == "equal"


def test_reading_through_overlap_is_not_refused() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        windows = x.unfold(0, 4, 2).sum(1)
        x.mul_(2)
        return windows, x.expand(2, 12) + 1

    assert check(program, lambda x: [x]) == "equal"


def test_the_message_has_the_line_and_a_way_out() -> None:
    def program(x: Tensor) -> Tensor:
        return x.as_strided((2, 2), (1, 1)).add_(1)

    with pytest.raises(assay.TraceError) as error:
        assay.aot.compile(program, backend="aot_eager")(torch.zeros(3))
    assert "elements overlap in memory" in str(error.value)
    assert "test_overlapping_writes.py" in str(error.value)
    assert "clone()" in str(error.value)


def test_the_eager_backend_runs_it() -> None:
    def program(x: Tensor) -> Tensor:
        return x.as_strided((2, 2), (1, 1)).add_(1)

    x = torch.zeros(3)
    assay.aot.compile(program, backend="eager")(x)
    assert x.tolist() == [1, 2, 1]


def test_a_graph_that_was_read_from_text() -> None:
    text = """
class Program(torch.nn.Module):
    def forward(self, x):
        view = torch.ops.aten.as_strided.default(x, [2, 2], [1, 1])
        add_ = torch.ops.aten.add_.Tensor(view, 1)
        return (add_,)
"""
    with pytest.raises(assay.TraceError, match="elements overlap in memory"):
        assay.aot.compile(text, backend="aot_eager")(torch.zeros(3))
