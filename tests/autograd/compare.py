"""Holds a compiled program against the same program run eagerly.

    check(lambda x: x.sin().mul_(2), lambda: (leaf(3, 4),))

Both get inputs of their own, made with the same seed, and are called twice. Compared are: results
(structure, dtype, sizes, strides, requires_grad, values to the last bit), which tensors share
memory or are the same one, the inputs after the call, the random generator after forward and after
backward, gradients of every leaf behind the inputs and of the module's parameters for random
tangents, and parameters and buffers after. The second call must find the first one's graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import assay
from conformance.eager import difference

torch.set_num_threads(1)

SEED = 7
Make = Callable[[], Sequence[Any]]


# --- Inputs ---------------------------------------------------------------------------------------


def leaf(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor that gradients are taken for."""
    return plain(*sizes, dtype=dtype).requires_grad_()


def computed(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor with a history: unlike a leaf it may be changed in place."""
    return leaf(*sizes, dtype=dtype).clone()


def plain(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor without gradient."""
    return torch.randn(sizes, dtype=torch.float64).to(dtype)


def indices(high: int, *sizes: int) -> Tensor:
    """Integers from 0 up to ``high``, without it."""
    return torch.randint(0, high, sizes)


class Arguments:
    """Arguments of a call, of which only the tensors, wherever they are, become inputs."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.args = tuple(args)
        self.kwargs = kwargs
        self._items, self._structure = pytree.tree_flatten((self.args, kwargs))
        self._positions = [i for i, item in enumerate(self._items) if isinstance(item, Tensor)]

    def make(self) -> list[Tensor]:
        """Copies of the tensors, which share memory as the tensors do."""
        return copy_tensors([self._items[i] for i in self._positions])

    def __deepcopy__(self, _: Any) -> Arguments:
        return self

    def call(self, function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
        """``function`` called with these tensors instead of the original ones."""
        items = list(self._items)
        for position, tensor in zip(self._positions, tensors, strict=True):
            items[position] = tensor
        args, kwargs = pytree.tree_unflatten(items, self._structure)
        return function(*args, **kwargs)


def copy_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Leaves with the same values, strides and shared memory."""
    storages: dict[int, torch.UntypedStorage] = {}
    copies: dict[int, Tensor] = {}
    for tensor in tensors:
        copied = tensor.detach()
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            own = storages.setdefault(storage._cdata, storage.clone())
            place = (tensor.storage_offset(), tensor.shape, tensor.stride())
            copied = torch.empty(0, dtype=tensor.dtype).set_(own, *place)
        else:
            copied = copied.clone()
        copies.setdefault(id(tensor), copied.requires_grad_(tensor.requires_grad))
    return [copies[id(tensor)] for tensor in tensors]


# --- One call -------------------------------------------------------------------------------------


def tensors_in(value: Any) -> list[Tensor]:
    return [item for item in pytree.tree_leaves(value) if isinstance(item, Tensor)]


def leaves_behind(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The leaves that gradients of ``tensors`` flow to, in an order that is the same every time."""
    found: dict[int, Tensor] = {}
    seen = set()
    todo = []
    for tensor in tensors:
        if tensor.requires_grad and tensor.is_leaf:
            found.setdefault(id(tensor), tensor)
        elif tensor.grad_fn is not None:
            todo.append(tensor.grad_fn)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.setdefault(id(node.variable), node.variable)
        todo.extend(next_node for next_node, _ in node.next_functions if next_node is not None)
    return list(found.values())


def sharing(tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """For each tensor the first that is the same one, and the first that shares its memory."""

    def first(same: Callable[[Tensor], bool]) -> int:
        return next(i for i, other in enumerate(tensors) if same(other))

    return [
        (
            first(lambda other: other is tensor),
            first(lambda other: other is tensor or _same_memory(other, tensor)),
        )
        for tensor in tensors
    ]


def _same_memory(left: Tensor, right: Tensor) -> bool:
    if left.layout != torch.strided or right.layout != torch.strided:
        return False
    address = left.untyped_storage().data_ptr()
    return address != 0 and address == right.untyped_storage().data_ptr()


def snapshot(value: Any) -> Any:
    """``value`` as it is now, also if its tensors are changed later."""
    return pytree.tree_map_only(Tensor, lambda t: t.detach().clone(), value)


class Observed:
    """What one call of a program returned and did, piece by piece."""

    def __init__(
        self,
        program: Callable[..., Any],
        args: Sequence[Any],
        state: Sequence[Tensor] = (),
        process: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        inputs = tensors_in(args)
        leaves = leaves_behind([*inputs, *state])
        torch.manual_seed(SEED)
        results = program(*args)
        pieces: dict[str, Any] = {"results": results}
        outputs = tensors_in(results)
        pieces["is a leaf"] = [tensor.is_leaf for tensor in outputs]
        pieces["shared memory of inputs, then results"] = sharing([*inputs, *outputs])
        pieces["inputs after the call"] = inputs
        pieces["inputs that are leaves"] = [tensor.is_leaf for tensor in inputs]
        pieces["generator"] = torch.get_rng_state()
        pieces["parameters and buffers"] = snapshot(list(state))
        changed = [tensor for tensor in inputs if not tensor.is_leaf]
        roots = [t for t in tensors_in([process(results), changed]) if t.requires_grad]
        pieces["gradients"] = _gradients(roots, leaves)
        pieces["generator after backward"] = torch.get_rng_state()
        self.pieces = pieces

    def differs_from(
        self, eager: Observed, tolerance: float = 0.0, gradient_strides: bool = True
    ) -> str:
        """What is different, or an empty text."""
        for name, expected in eager.pieces.items():
            found = self.pieces[name]
            if name == "results" and (text := _structure_difference(found, expected)):
                return f"{name}: {text}"
            exact = tolerance == 0.0 or name.startswith("generator")
            if name == "gradients":
                settle = _without_idle_strides if gradient_strides else _contiguous
                found, expected = settle(found), settle(expected)
            text = difference(found, expected, values=exact)
            if not text and not exact:
                text = _values_difference(found, expected, tolerance)
            if text:
                return f"{name}: {text}"
        return ""


def _gradients(roots: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[Tensor | None]:
    if not roots or not leaves:
        return []
    generator = torch.Generator().manual_seed(SEED)
    tangents = [_random_like(root, generator) for root in roots]
    return list(torch.autograd.grad(roots, leaves, tangents, allow_unused=True))


def _random_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    values = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    return torch.empty_like(tensor).detach().copy_(values)


def _without_idle_strides(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The same gradients, where the stride of a dimension with one item is 1: it means nothing."""

    def settle(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.layout != torch.strided or tensor.numel() == 0:
            return tensor
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        strides = [1 if size == 1 else stride for size, stride in pairs]
        return tensor.as_strided(tensor.shape, strides)

    return [settle(gradient) for gradient in gradients]


def _contiguous(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if gradient is None else gradient.contiguous() for gradient in gradients]


def _structure_difference(found: Any, expected: Any) -> str:
    left, right = pytree.tree_structure(found), pytree.tree_structure(expected)
    return "" if left == right else f"structure is {left}, expected {right}"


def _values_difference(found: Any, expected: Any, tolerance: float) -> str:
    for left, right in zip(tensors_in(found), tensors_in(expected), strict=True):
        try:
            torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            return str(error)
    return ""


# --- Several calls --------------------------------------------------------------------------------


def state_of(program: Any) -> list[Tensor]:
    if not isinstance(program, nn.Module):
        return []
    return [*program.parameters(), *program.buffers()]


def check(
    program: Callable[..., Any],
    make: Make,
    *,
    tolerance: float = 0.0,
    gradient_strides: bool = True,
    calls: int = 2,
    process: Callable[[Any], Any] = lambda result: result,
) -> assay.aot.Compiled:
    """Asserts that compiled and eager calls do the same, and that one compilation serves them all.

    ``process`` makes of the results what is differentiated; by default they all are. Returns the
    compiled program, for what else a test wants to know.
    """
    reference = copy.deepcopy(program) if isinstance(program, nn.Module) else program
    compiled = assay.aot.compile(program, backend="aot_eager")
    for call in range(calls):
        observed = []
        for callable_, owner in ((reference, reference), (compiled, program)):
            torch.manual_seed(SEED + call)
            observed.append(Observed(callable_, make(), state_of(owner), process))
        eager, found = observed
        text = found.differs_from(eager, tolerance, gradient_strides)
        assert not text, f"call {call + 1}: {text}"
    assert len(compiled.graphs) == 1, f"compiled {len(compiled.graphs)} times"
    assert compiled.graphs[0], "ran eagerly"
    return compiled
