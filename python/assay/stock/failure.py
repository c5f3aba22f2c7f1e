"""An exception as a trial reports it: what was meant, and which node it was about."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor.exc import CppCompileError
from torch.fx.node import Node, _get_qualified_name

from assay.stock import kernels
from assay.stock.text import ReproText
from assay.stock.wrappers import quotes

LONGEST_MESSAGE = 16_000
LONGEST_STACK = 16_000
COMPILER_ERROR = re.compile(r"\berror: (.+)")
BELONGS_TO_THE_GRAPH = re.compile(
    r"^ +target: |^While executing |^from user code:|^Set TORCHDYNAMO_VERBOSE", re.MULTILINE
)
NAMES_ARE_THE_FILES = "assay_file"  # in the meta of a module that was made from the file's graph
TARGET = re.compile(r"^\s*target: (\S+)", re.MULTILINE)


def innermost(error: BaseException) -> BaseException:
    """The exception that Dynamo and inductor wrapped."""
    while isinstance(error, BackendCompilerFailed):
        error = error.inner_exception
    return error


def is_alike(error: BaseException, eager: BaseException) -> bool:
    """Whether a compiled program raised what eager did, itself or as what a wrapper is about."""
    kind = type(eager)
    waiting: list[BaseException | None] = [error]
    seen = {id(eager)}  # it is the context of what is raised after it
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        # PyTorch's wrappers are RuntimeErrors, whatever they wrap.
        is_wrapper = type(one).__module__.startswith("torch._") and type(one) is not kind
        if (isinstance(one, kind) and not is_wrapper) or quotes(str(one), kind.__name__):
            return True
        waiting += [one.__cause__, one.__context__, getattr(one, "inner_exception", None)]
    return False


def describe(error: BaseException, text: ReproText | None = None) -> dict[str, Any]:
    """The fields of a report for a failure."""
    error = innermost(error)
    message = str(error)
    stack = "".join(traceback.format_exception(error, chain=False))
    fields: dict[str, Any] = {
        "type": type_name(error),
        "message": _shorten(_essence(error, message), LONGEST_MESSAGE),
        "stack": _shorten(stack, LONGEST_STACK),
    }
    node = _failing_node(error)
    operator = _operator(node, message)
    if operator is not None:
        fields["operator"] = operator
    if text is not None and (suspects := _suspects(error, node, operator, text)):
        fields["suspects"] = suspects
    return fields


def type_name(error: BaseException) -> str:
    """The qualified name of an exception's class; Python's own and ours without their module."""
    kind = type(error)
    if kind.__module__ == "builtins" or kind.__module__.startswith("assay."):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _essence(error: BaseException, message: str) -> str:
    """The message without what belongs to the graph rather than to the fault.

    Two graphs with the same fault shall have the same message: the arguments of a lowering, the
    compiler's command, and how many of its errors there are, differ. ``stack`` has all of it.
    """
    if isinstance(error, CppCompileError):
        first = COMPILER_ERROR.search(error.output)
        return f"C++ compile error: {first[1] if first else error.output.strip()}"
    cut = BELONGS_TO_THE_GRAPH.search(message)
    return message[: cut.start()].rstrip() if cut else message


def _shorten(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n... {len(text) - longest} characters ...\n{text[-half:]}"


def _nodes_in_frames(error: BaseException) -> Iterator[Node]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for name in ("n", "node"):
            value = frame.f_locals.get(name)
            if isinstance(value, Node):
                yield value


def _failing_node(error: BaseException) -> Node | None:
    """The node that a compiler was at: the innermost frame that holds one knows."""
    nodes = list(_nodes_in_frames(error))
    return nodes[-1] if nodes else None


def _is_of_the_file(node: Node) -> bool:
    module = node.graph.owning_module
    return module is not None and bool(module.meta.get(NAMES_ARE_THE_FILES))


def _operator(node: Node | None, message: str) -> str | None:
    if node is not None and node.op == "call_function":
        return _get_qualified_name(node.target).replace("torch._ops.", "torch.ops.")
    if node is not None and node.op == "call_method":
        return str(node.target)
    found = TARGET.search(message)  # LoweringException keeps its operator in its message only
    if found and getattr(torch.ops, found[1].partition(".")[0], None) is not None:
        return f"torch.ops.{found[1]}"
    return None


def _suspects(
    error: BaseException, node: Node | None, operator: str | None, text: ReproText
) -> list[str]:
    """The file's nodes that the failing node or kernel was made of."""
    if node is not None and _is_of_the_file(node) and node.name in text.lines.values():
        return [node.name]
    stacks = kernels.stacks(error) if node is None else [node.meta.get("stack_trace") or ""]
    if names := text.nodes_in("\n".join(stacks)):
        return names
    return [
        name for name, target in text.calls.items() if operator is not None and target == operator
    ]
