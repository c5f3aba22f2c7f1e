"""The ways to make a Python program smaller on its syntax tree.

Each proposal is a copy of the tree with one change. The order is from large to small: pieces of
statement lists first, then branches, then parts of expressions.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

BODIES = ("body", "orelse", "finalbody", "handlers")


def proposals(tree: ast.Module) -> Iterator[ast.Module]:
    """Every smaller program that is one step away."""
    yield from _removals(tree)
    yield from _hoists(tree)
    yield from _expressions(tree)


def _nodes(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))  # breadth first: large pieces first


def _changed(tree: ast.Module, number: int, change: Callable[[Any], bool]) -> ast.Module | None:
    """A copy in which the node with that number was changed."""
    made = copy.deepcopy(tree)
    if not change(_nodes(made)[number]):
        return None
    return ast.fix_missing_locations(made)


def _removals(tree: ast.Module) -> Iterator[ast.Module]:
    """Without half of a list of statements, a quarter, ... one statement."""
    for number, node in enumerate(_nodes(tree)):
        for name in BODIES:
            count = len(getattr(node, name, None) or []) if isinstance(node, _HAS_BODY) else 0
            size = count
            while size >= 1:
                for start in range(0, count, size):
                    made = _changed(tree, number, _remove(name, start, size))
                    if made is not None:
                        yield made
                size = size // 2


_HAS_BODY = (
    ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While,
    ast.With, ast.Try, ast.ExceptHandler,
)  # fmt: skip


def _remove(name: str, start: int, size: int) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        statements = getattr(node, name)
        if isinstance(statements[0], ast.Pass) and len(statements) == 1:
            return False
        del statements[start : start + size]
        if not statements and name == "body" and not isinstance(node, ast.Module):
            statements.append(ast.Pass())
        if isinstance(node, ast.Try) and not node.handlers and not node.finalbody:
            node.finalbody.append(ast.Pass())
        return True

    return change


def _hoists(tree: ast.Module) -> Iterator[ast.Module]:
    """A compound statement replaced with what is inside of it."""
    for number, node in enumerate(_nodes(tree)):
        for name in BODIES:
            for index, child in enumerate(
                getattr(node, name, None) or [] if isinstance(node, _HAS_BODY) else []
            ):
                if isinstance(child, ast.If | ast.For | ast.While | ast.With | ast.Try):
                    for inner in ("body", "orelse"):
                        made = _changed(tree, number, _hoist(name, index, inner))
                        if made is not None:
                            yield made


def _hoist(name: str, index: int, inner: str) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        statements = getattr(node, name)
        inside = getattr(statements[index], inner, [])
        if not inside:
            return False
        statements[index : index + 1] = inside
        return True

    return change


def _expressions(tree: ast.Module) -> Iterator[ast.Module]:
    """Fewer arguments, decorators, parameters; an operand instead of an operation."""
    for number, node in enumerate(_nodes(tree)):
        for change in _changes_of(node):
            made = _changed(tree, number, change)
            if made is not None:
                yield made


def _changes_of(node: ast.AST) -> Iterator[Callable[[Any], bool]]:
    if isinstance(node, ast.Call):
        for index in range(len(node.keywords)):
            yield _delete("keywords", index)
        for index in range(len(node.args)):
            yield _delete("args", index)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        for index in range(len(node.decorator_list)):
            yield _delete("decorator_list", index)
    if isinstance(node, ast.FunctionDef):
        for index in range(len(node.args.args)):
            yield _delete_parameter(index)
    for name, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        for index, child in enumerate(values):
            for part in _parts(child):
                yield _replace(name, index if isinstance(value, list) else None, part)


def _parts(node: Any) -> list[str]:
    """The operands that could stand in a node's place."""
    if isinstance(node, ast.BinOp):
        return ["left", "right"]
    if isinstance(node, ast.UnaryOp):
        return ["operand"]
    if isinstance(node, ast.IfExp):
        return ["body", "orelse"]
    if isinstance(node, ast.Subscript):
        return ["value"]
    if isinstance(node, ast.Call):
        return ["first"]
    return []


def _replace(name: str, index: int | None, part: str) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        value = getattr(node, name)
        child = value if index is None else value[index]
        operand = _operand(child, part)
        if operand is None:
            return False
        if index is None:
            setattr(node, name, operand)
        else:
            value[index] = operand
        return True

    return change


def _operand(node: Any, part: str) -> Any:
    if part != "first":
        return getattr(node, part)
    if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
        return node.func.value
    return node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None


def _delete(name: str, index: int) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        del getattr(node, name)[index]
        return True

    return change


def _delete_parameter(index: int) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        arguments = node.args
        from_end = len(arguments.args) - index
        if from_end <= len(arguments.defaults):
            del arguments.defaults[len(arguments.defaults) - from_end]
        del arguments.args[index]
        return True

    return change
