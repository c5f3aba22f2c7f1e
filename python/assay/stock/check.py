"""Whether a stranger's repro file keeps to what graphs are: tensors, and functions on them."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from assay.stock import targets
from assay.stock.text import (
    CONSTANTS,
    FILE,
    FUNCTIONS,
    ReproText,
    assigned_name,
    assigned_value,
    is_ignored,
    is_symbol,
)

ROOTS = frozenset({"torch", "operator", "_operator", "math"})
RESERVED = ROOTS | {"super", "getattr", "self"}
READER_METHODS = targets.words("storage tensor symint const unsupported opaque generator")


class UntrustedFile(Exception):
    """The text asks for more than a graph may; a user who trusts it can say so."""


def check(text: ReproText) -> None:
    """Raises ``UntrustedFile`` if the file holds what a graph does not."""
    _Check(text).file()


@dataclass
class _Scope:
    """Names within one function: its values, the module's own attributes, classes it may make."""

    values: set[str]
    self_name: str | None = None
    attributes: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()


class _Check:
    """Raises ``UntrustedFile`` at the first thing that a graph does not need."""

    def __init__(self, text: ReproText) -> None:
        self.text = text
        self.symbols: set[str] = set()

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        source = linecache.getline(FILE, line).strip()[:200]
        raise UntrustedFile(
            f"line {line}: {what}\n    {source}\n"
            "this is not executed, as a repro file may come from a stranger; "
            "if you trust it, say so with --trust"
        )

    def file(self) -> None:
        body = self.text.tree.body
        self.symbols = {name for node in body if is_symbol(node) and (name := assigned_name(node))}
        self.new_names(body[0] if body else self.text.tree, self.symbols)
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.module_class(node, frozenset(self.text.classes))
            elif isinstance(node, ast.FunctionDef) and node.name == "load_args":
                self.load_args(node)
            elif assigned_name(node) == "mod":
                self.main_module(node)
            elif not is_symbol(node) and not is_ignored(node):
                self.refuse(node, "a repro file has no such statement")

    def main_module(self, node: ast.stmt) -> None:
        call = assigned_value(node)
        name = getattr(getattr(call, "func", None), "id", None)
        is_plain = isinstance(call, ast.Call) and not call.args and not call.keywords
        if not is_plain or name not in self.text.classes:
            self.refuse(node, "mod is not made by a class of the file")

    def new_names(self, node: ast.AST, names: Iterable[str]) -> None:
        for name in names:
            if name in RESERVED or (name.startswith("__") and name.endswith("__")):
                self.refuse(node, f"'{name}' cannot be given another meaning")

    # Classes

    def module_class(self, node: ast.ClassDef, classes: frozenset[str]) -> None:
        self.new_names(node, [node.name])
        if node.name in FUNCTIONS | CONSTANTS:
            self.refuse(node, f"'{node.name}' cannot be given another meaning")
        bases = [ast.unparse(base) for base in node.bases]
        if bases != ["torch.nn.Module"] or node.keywords or node.decorator_list:
            self.refuse(node, "a graph's class is a plain torch.nn.Module")
        functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        nested = frozenset(item.name for item in node.body if isinstance(item, ast.ClassDef))
        attributes = nested | {
            name
            for item in functions
            if item.name == "__init__"
            for statement in item.body
            if (name := _attribute_set(statement))
        }
        for name in attributes:
            if targets.is_module_attribute(name) or name.startswith("__"):
                self.refuse(node, f"a graph cannot set '{name}'")
        for item in node.body:
            if isinstance(item, ast.ClassDef):
                self.module_class(item, classes | nested)
            elif isinstance(item, ast.FunctionDef) and item.name == "__init__":
                self.init(item, frozenset(attributes), classes)
            elif isinstance(item, ast.FunctionDef) and item.name == "forward":
                self.forward(item, frozenset(attributes))
            elif not self.is_harmless(item):
                self.refuse(item, "a graph's class has __init__ and forward, nothing else")

    @staticmethod
    def is_harmless(node: ast.stmt) -> bool:
        if isinstance(node, ast.AnnAssign):
            return node.value is None
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        return isinstance(node, ast.Pass) or is_text

    def parameters(self, node: ast.FunctionDef) -> list[str]:
        arguments = node.args
        if node.decorator_list or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            self.refuse(node, "a graph's function has plain parameters")
        for default in arguments.defaults:
            self.expression(default, _Scope(set()))
        names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        self.new_names(node, [name for name in names if name != "self"])
        return names

    def init(
        self, node: ast.FunctionDef, attributes: frozenset[str], classes: frozenset[str]
    ) -> None:
        if self.parameters(node) != ["self"]:
            self.refuse(node, "__init__ takes nothing")
        scope = _Scope(set(), "self", attributes, classes)
        for statement in node.body:
            if self.is_harmless(statement) or ast.unparse(statement) == "super().__init__()":
                continue
            if _attribute_set(statement) is None:
                self.refuse(statement, "__init__ sets attributes and does nothing else")
            value = statement.value  # type: ignore[attr-defined]
            if isinstance(statement, ast.Expr):
                value = value.args[1]
            self.expression(value, scope)

    def forward(self, node: ast.FunctionDef, attributes: frozenset[str]) -> None:
        names = self.parameters(node)
        if names[:1] != ["self"]:
            self.refuse(node, "forward's first parameter is self")
        values = set(names[1:])
        for statement in ast.walk(node):
            if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
                values.add(statement.id)
        self.new_names(node, values)
        scope = _Scope(values, "self", attributes)
        for statement in node.body:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: _Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.target(target, scope)
            self.expression(node.value, scope)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            self.target(node.target, scope)
            if node.value is not None:
                self.expression(node.value, scope)
        elif isinstance(node, ast.Return | ast.Expr):
            if node.value is not None:
                self.expression(node.value, scope)
        elif not isinstance(node, ast.Pass):
            self.refuse(node, "a graph's forward() cannot contain this statement")

    def target(self, node: ast.expr, scope: _Scope) -> None:
        if isinstance(node, ast.Tuple | ast.List):
            for item in node.elts:
                self.target(item, scope)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            self.expression(node.value, scope)
            self.expression(node.slice, scope)
        elif not isinstance(node, ast.Name):
            self.refuse(node, "a graph assigns to names and items of values")

    def load_args(self, node: ast.FunctionDef) -> None:
        if self.parameters(node) != ["reader"]:
            self.refuse(node, "load_args takes the reader")
        values: set[str] = set()
        scope = _Scope(values)
        for statement in node.body:
            if self.is_harmless(statement):
                continue
            is_plain = isinstance(statement, ast.Expr | ast.Assign)
            call = statement.value if is_plain else None  # type: ignore[attr-defined]
            if not isinstance(call, ast.Call) or not _is_reader_call(call):
                self.refuse(statement, "load_args calls the reader and does nothing else")
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                self.expression(argument, scope)
            if any(keyword.arg is None for keyword in call.keywords):
                self.refuse(statement, "a graph cannot contain **")
            if isinstance(statement, ast.Assign):
                name = assigned_name(statement)
                if name is None:
                    self.refuse(statement, "load_args assigns to names")
                self.new_names(statement, [name])
                values.add(name)

    # Expressions

    def expression(self, node: ast.expr, scope: _Scope) -> None:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                self.refuse(node, "a graph cannot contain bytes")
        elif isinstance(node, ast.Name):
            if node.id not in scope.values | self.symbols | CONSTANTS:
                self.refuse(node, f"the name '{node.id}' has no meaning in a graph")
        elif isinstance(node, ast.Attribute):
            self.attribute(node, scope)
        elif isinstance(node, ast.Call):
            self.call(node, scope)
        elif isinstance(
            node,
            ast.Tuple
            | ast.List
            | ast.Dict
            | ast.Slice
            | ast.Subscript
            | ast.UnaryOp
            | ast.BinOp
            | ast.Compare,
        ):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child, scope)
        else:
            self.refuse(node, f"a graph cannot contain {type(node).__name__}")

    def attribute(self, node: ast.Attribute, scope: _Scope) -> None:
        path = self.outer_path(node, scope)
        if path is not None:
            if not targets.is_value(path):
                self.refuse(node, f"'{'.'.join(path)}' is no constant a graph may hold")
        elif not self.is_own_attribute(node, scope):
            self.value(node.value, scope)
            if node.attr not in targets.DATA_ATTRIBUTES:
                self.refuse(node, f"the attribute '{node.attr}' is not one of a value's")

    def value(self, node: ast.expr, scope: _Scope) -> None:
        """An expression whose attributes and methods are those of tensors: text has others."""
        if isinstance(node, ast.Constant):
            self.refuse(node, "a constant has no attributes in a graph")
        self.expression(node, scope)

    def outer_path(self, node: ast.expr, scope: _Scope) -> tuple[str, ...] | None:
        """``torch.ops.aten.mm.default`` as its names, if it starts outside of the function."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in ROOTS:
            return None
        return (node.id, *reversed(names))

    def is_own_attribute(self, node: ast.expr, scope: _Scope) -> bool:
        """Whether this is ``self.a``, ``self.a.b`` or ``getattr(self, "0")`` with allowed names."""
        if isinstance(node, ast.Attribute):
            base, name = node.value, node.attr
        elif _is_getattr(node):
            base, name = node.args[0], node.args[1].value  # type: ignore[attr-defined]
        else:
            return False
        if isinstance(base, ast.Name) and base.id == scope.self_name:
            if name not in scope.attributes:
                self.refuse(node, f"the graph has no attribute '{name}'")
            return True
        if not self.is_own_attribute(base, scope):
            return False
        if name.startswith("__") or targets.is_module_attribute(name):
            self.refuse(node, f"a graph cannot use '{name}' of a module")
        return True

    def call(self, node: ast.Call, scope: _Scope) -> None:
        for argument in node.args:
            if not (_is_getattr(node) and argument is node.args[0]):
                self.expression(argument, scope)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(node, "a graph cannot contain **")
            self.expression(keyword.value, scope)
        function = node.func
        if _is_getattr(node):
            if not self.is_own_attribute(node, scope):
                self.value(node.args[0], scope)
                if node.args[1].value not in targets.DATA_ATTRIBUTES:  # type: ignore[attr-defined]
                    self.refuse(node, "getattr reads what a value may be asked for")
            return
        if isinstance(function, ast.Name):
            allowed = FUNCTIONS
            if scope.classes:  # __init__: the only place that makes modules
                allowed = FUNCTIONS | scope.classes | targets.module_classes()
            if function.id in scope.values or function.id not in allowed:
                self.refuse(node, f"a graph cannot call '{function.id}'")
            return
        path = self.outer_path(function, scope)
        if path is not None:
            if not targets.is_callable(path):
                self.refuse(node, f"'{'.'.join(path)}' is no function that a graph may call")
        elif self.is_own_attribute(function, scope):
            return
        elif isinstance(function, ast.Attribute):
            self.value(function.value, scope)
            if not targets.is_tensor_method(function.attr):
                self.refuse(node, f"'{function.attr}' is no method that a graph may call")
        else:
            self.refuse(node, "a graph calls functions by their names")


def _is_reader_call(call: ast.Call) -> bool:
    method = re.fullmatch(r"reader\.(\w+)", ast.unparse(call.func))
    return method is not None and method[1] in READER_METHODS


def _is_getattr(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) == 2
        and not node.keywords
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    )


def _attribute_set(node: ast.stmt) -> str | None:
    """The name that a statement of __init__ gives to an attribute of the module."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            return target.attr if target.value.id == "self" else None
        return None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if ast.unparse(call.func) == "self.register_buffer" and len(call.args) == 2:
            name = call.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and not call.keywords:
                return name.value
    return None
