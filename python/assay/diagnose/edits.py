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
    yield _without_annotations(tree)
    yield from _removals(tree)
    yield from _hoists(tree)
    yield from _parameters(tree)
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
    """A compound statement replaced with what is inside of it; a value that is not returned."""
    for number, node in enumerate(_nodes(tree)):
        if not isinstance(node, _HAS_BODY):
            continue
        for name in BODIES:
            for index, child in enumerate(getattr(node, name, None) or []):
                changes = []
                if isinstance(child, ast.If | ast.For | ast.While | ast.With | ast.Try):
                    changes = [_hoist(name, index, "body"), _hoist(name, index, "orelse")]
                elif isinstance(child, ast.Return) and child.value is not None:
                    changes = [_only_evaluate(name, index)]
                for change in changes:
                    made = _changed(tree, number, change)
                    if made is not None:
                        yield made


def _only_evaluate(name: str, index: int) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        statements = getattr(node, name)
        statements[index] = ast.Expr(statements[index].value)
        return True

    return change


def _hoist(name: str, index: int, inner: str) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        statements = getattr(node, name)
        inside = getattr(statements[index], inner, [])
        if not inside:
            return False
        statements[index : index + 1] = inside
        return True

    return change


def _without_annotations(tree: ast.Module) -> ast.Module:
    made = copy.deepcopy(tree)
    for node in ast.walk(made):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
    return ast.fix_missing_locations(made)


def _parameters(tree: ast.Module) -> Iterator[ast.Module]:
    """Without one parameter of a function, and without its argument in all calls by that name."""
    for number, node in enumerate(_nodes(tree)):
        if isinstance(node, ast.FunctionDef):
            for index, parameter in enumerate(node.args.args):
                made = _changed(tree, number, _delete_parameter(index))
                if made is None:
                    continue
                is_method = node.args.args[0].arg == "self"
                for call in ast.walk(made):
                    if isinstance(call, ast.Call):
                        _delete_argument(call, node.name, parameter.arg, index, is_method)
                yield ast.fix_missing_locations(made)


def _delete_argument(call: ast.Call, name: str, parameter: str, index: int, method: bool) -> None:
    is_attribute = isinstance(call.func, ast.Attribute) and call.func.attr == name
    if not (is_attribute or (isinstance(call.func, ast.Name) and call.func.id == name)):
        return
    position = index - 1 if method and is_attribute else index
    if 0 <= position < len(call.args):
        del call.args[position]
    call.keywords[:] = [keyword for keyword in call.keywords if keyword.arg != parameter]


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
        for index in range(len(node.args.kwonlyargs)):
            yield _delete_keyword_only(index)
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


def _delete_keyword_only(index: int) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        del node.args.kwonlyargs[index], node.args.kw_defaults[index]
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
