"""``assay.watch(backend)``: stock ``torch.compile`` with our debug wrapper around its backend.

>>> model = torch.compile(model, backend=assay.watch("inductor"))

The backend gets what Dynamo gives it and returns what it returns. If it fails, the graph and its
inputs are written as docs/debug_wrapper.md describes, and the failure is raised unchanged.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from assay import config
from assay._backends import backend_name
from assay.errors import AccuracyError, UserError

__all__ = ["watch"]


def watch(
    backend: str | Callable[..., Any] = "inductor",
    *,
    after: str | None = None,
    level: int | None = None,
    reduce: str | None = None,
) -> Callable[..., Any]:
    """A backend for ``torch.compile`` that writes a repro file when ``backend`` fails.

    ``after`` (``dynamo`` or ``aot``), ``level`` (1 to 4) and ``reduce`` (``now`` or ``launcher``)
    are the settings ``repro_after``, ``repro_level`` and ``reduce``; without them those of
    ``assay.config`` hold, and ``dynamo`` if nothing says after what.
    """
    after = after or config.repro_after or "dynamo"
    if after not in ("dynamo", "aot"):
        raise UserError(f"after is 'dynamo' or 'aot', not {after!r}")
    level = config.repro_level if level is None else level
    if level not in (1, 2, 3, 4):
        raise UserError(f"the level is 1, 2, 3 or 4, not {level!r}")
    return _Watched(backend, after, level, reduce or config.reduce)


class _Watched:
    """The backend that Dynamo calls."""

    def __init__(
        self, backend: str | Callable[..., Any], after: str, level: int, reduce: str | None
    ) -> None:
        self.backend = backend
        self.after = after
        self.level = level
        self.reduces_now = (reduce or ("now" if after == "dynamo" else "launcher")) == "now"
        self.__name__ = backend if isinstance(backend, str) else backend_name(backend)

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        from torch._dynamo.backends.registry import lookup_backend

        found = lookup_backend(self.backend) if isinstance(self.backend, str) else self.backend
        if self.after == "aot":
            from assay import _watch_inner

            with _watch_inner.watching(self, found):
                return found(gm, inputs, **options)
        compiler = functools.partial(found, **options)
        return watched_compile(self, compiler, found, gm, inputs, "after_dynamo")


def watched_compile(
    watched: _Watched,
    compiler: Callable[..., Any],
    backend: Any,
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    stage: str,
) -> Callable[..., Any]:
    """Compile, and watch that and every run."""
    from assay import _watch_files

    site = _watch_files.Site(watched.level, watched.reduces_now, backend, gm, inputs, stage)
    eager = _copied(gm) if watched.level == 4 else None
    with site.reporting(inputs if stage == "after_dynamo" else None):
        compiled = compiler(gm, inputs)

    def call(*arguments: Any) -> Any:
        if _is_watching():  # what a watched run compiles or runs is not watched
            return compiled(*arguments)
        with _watching(), site.reporting(arguments):
            if eager is not None:
                _check(site, eager, compiled, arguments, stage)
            return compiled(*arguments)

    return call


_active = threading.local()


def _is_watching() -> bool:
    return getattr(_active, "depth", 0) > 0


@contextlib.contextmanager
def _watching() -> Iterator[None]:
    _active.depth = getattr(_active, "depth", 0) + 1
    try:
        yield
    finally:
        _active.depth -= 1


def _copied(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The module as it is now: a backend may work on the one it is given."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return torch.fx.GraphModule(gm, graph)


def _check(
    site: Any, eager: torch.fx.GraphModule, compiled: Any, arguments: Sequence[Any], stage: str
) -> None:
    """Raise if the compiled graph computes something else than eager on copies of the inputs."""
    from assay.stock import accuracy

    has_backward = stage == "after_dynamo" and not config.repro_forward_only
    state = torch.get_rng_state()

    def run(function: Callable[..., Any], cast: bool = False) -> accuracy.Run:
        torch.set_rng_state(state)
        found = _run(function, _copies(arguments, cast), has_backward)
        # A backward half may reuse the memory of what forward saved for it.
        return found if stage == "after_dynamo" else accuracy.Run(found.output)

    interpreter = torch.fx.Interpreter(eager).run
    try:
        expected = run(interpreter)
        result = run(compiled)
        reference = _reference(eager, run)
        found = accuracy.compare(
            expected,
            result,
            reference,
            tolerance=config.repro_tolerance,
            ignore_non_fp=config.repro_ignore_non_fp,
        )
        again = None if found is None else accuracy.compare(
            expected, run(interpreter), reference,
            tolerance=config.repro_tolerance, ignore_non_fp=config.repro_ignore_non_fp,
        )  # fmt: skip
    finally:
        torch.set_rng_state(state)
    if found is not None and again is None:
        site.is_accuracy = True
        raise AccuracyError(f"Bad accuracy detected: {found['kind']} at {found['where']}")


def _reference(eager: torch.fx.GraphModule, run: Callable[..., Any]) -> Any:
    """Eager in float64, or None where that cannot be had (as stock does)."""
    from torch._dynamo.debug_utils import cast_to_fp64

    try:
        model, _ = cast_to_fp64(copy.deepcopy(eager), [])
        return run(torch.fx.Interpreter(model).run, cast=True)
    except Exception:  # operators without a float64 kernel raise what they like
        return None


def _run(function: Callable[..., Any], inputs: list[Any], has_backward: bool) -> Any:
    from torch._dynamo.testing import reduce_to_scalar_loss, requires_bwd_pass

    from assay.stock import accuracy

    names = [str(position) for position in range(len(inputs))]
    named = accuracy.Inputs(names, inputs)
    output = function(*inputs)
    gradients = {}
    if has_backward and torch.is_grad_enabled() and requires_bwd_pass(output):
        reduce_to_scalar_loss(output).backward()
        leaves = {name: value for name, value in named.tensors.items() if value.is_leaf}
        gradients = {name: value.grad for name, value in leaves.items()}
    left = {name: value.detach() for name, value in named.tensors.items()}
    return accuracy.Run(_detached(output), gradient=gradients, input=left, changed=named.changed())


def _detached(value: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, value)


def _copies(arguments: Sequence[Any], cast: bool) -> list[Any]:
    """Copies that share memory with each other where the originals do, each a leaf."""
    storages: dict[int, torch.UntypedStorage] = {}
    made = []
    for value in arguments:
        if not isinstance(value, torch.Tensor):
            made.append(value)
            continue
        if value.layout != torch.strided or type(value) not in (torch.Tensor, torch.nn.Parameter):
            copied = value.detach().clone()
        else:
            original = value.untyped_storage()
            key = original._cdata
            if key not in storages:
                storages[key] = original.clone()
            copied = torch.empty(0, dtype=value.dtype).set_(
                storages[key], value.storage_offset(), value.size(), value.stride()
            )
        if cast and copied.is_floating_point():
            copied = copied.double()
        made.append(copied.requires_grad_(value.requires_grad))
    return made
