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

    def reject(self, node: ast.AST, what: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        source = linecache.getline(FILE, line).strip()[:200]
        raise UntrustedFile(
            f"line {line}: {what}\n    {source}\n"
            "not executed, because a repro file may come from an untrusted source; "
            "if you trust it, use --trust"
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
                self.reject(node, "a repro file cannot contain this statement")

    def main_module(self, node: ast.stmt) -> None:
        call = assigned_value(node)
        name = getattr(getattr(call, "func", None), "id", None)
        is_plain = isinstance(call, ast.Call) and not call.args and not call.keywords
        if not is_plain or name not in self.text.classes:
            self.reject(node, "mod is not an instance of a class in the file")

    def new_names(self, node: ast.AST, names: Iterable[str]) -> None:
        for name in names:
            if name in RESERVED or (name.startswith("__") and name.endswith("__")):
                self.reject(node, f"'{name}' cannot be redefined")

    # Classes

    def module_class(self, node: ast.ClassDef, classes: frozenset[str]) -> None:
        self.new_names(node, [node.name])
        if node.name in FUNCTIONS | CONSTANTS:
            self.reject(node, f"'{node.name}' cannot be redefined")
        bases = [ast.unparse(base) for base in node.bases]
        if bases != ["torch.nn.Module"] or node.keywords or node.decorator_list:
            self.reject(node, "a graph's class must be a plain torch.nn.Module")
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
                self.reject(node, f"a graph cannot set '{name}'")
        for item in node.body:
            if isinstance(item, ast.ClassDef):
                self.module_class(item, classes | nested)
            elif isinstance(item, ast.FunctionDef) and item.name == "__init__":
                self.init(item, frozenset(attributes), classes)
            elif isinstance(item, ast.FunctionDef) and item.name == "forward":
                self.forward(item, frozenset(attributes))
            elif not self.is_harmless(item):
                self.reject(item, "a graph's class may define only __init__ and forward")

    @staticmethod
    def is_harmless(node: ast.stmt) -> bool:
        if isinstance(node, ast.AnnAssign):
            return node.value is None
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        return isinstance(node, ast.Pass) or is_text

    def parameters(self, node: ast.FunctionDef) -> list[str]:
        arguments = node.args
        if node.decorator_list or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            self.reject(node, "a graph's function must have plain parameters")
        for default in arguments.defaults:
            self.expression(default, _Scope(set()))
        names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        self.new_names(node, [name for name in names if name != "self"])
        return names

    def init(
        self, node: ast.FunctionDef, attributes: frozenset[str], classes: frozenset[str]
    ) -> None:
        if self.parameters(node) != ["self"]:
            self.reject(node, "__init__ must take no arguments")
        scope = _Scope(set(), "self", attributes, classes)
        for statement in node.body:
            if self.is_harmless(statement) or ast.unparse(statement) == "super().__init__()":
                continue
            if _attribute_set(statement) is None:
                self.reject(statement, "__init__ may only set attributes")
            value = statement.value  # type: ignore[attr-defined]
            if isinstance(statement, ast.Expr):
                value = value.args[1]
            self.expression(value, scope)

    def forward(self, node: ast.FunctionDef, attributes: frozenset[str]) -> None:
        names = self.parameters(node)
        if names[:1] != ["self"]:
            self.reject(node, "forward's first parameter must be self")
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
            self.reject(node, "a graph's forward() cannot contain this statement")

    def target(self, node: ast.expr, scope: _Scope) -> None:
        if isinstance(node, ast.Tuple | ast.List):
            for item in node.elts:
                self.target(item, scope)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            self.expression(node.value, scope)
            self.expression(node.slice, scope)
        elif not isinstance(node, ast.Name):
            self.reject(node, "a graph may assign only to names and to items of values")

    def load_args(self, node: ast.FunctionDef) -> None:
        if self.parameters(node) != ["reader"]:
            self.reject(node, "load_args must take the reader as its only argument")
        values: set[str] = set()
        scope = _Scope(values)
        for statement in node.body:
            if self.is_harmless(statement):
                continue
            is_plain = isinstance(statement, ast.Expr | ast.Assign)
            call = statement.value if is_plain else None  # type: ignore[attr-defined]
            if not isinstance(call, ast.Call) or not _is_reader_call(call):
                self.reject(statement, "load_args may only call the reader")
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                self.expression(argument, scope)
            if any(keyword.arg is None for keyword in call.keywords):
                self.reject(statement, "a graph cannot contain **")
            if isinstance(statement, ast.Assign):
                name = assigned_name(statement)
                if name is None:
                    self.reject(statement, "load_args may assign only to names")
                self.new_names(statement, [name])
                values.add(name)

    # Expressions

    def expression(self, node: ast.expr, scope: _Scope) -> None:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                self.reject(node, "a graph cannot contain bytes")
        elif isinstance(node, ast.Name):
            if node.id not in scope.values | self.symbols | CONSTANTS:
                self.reject(node, f"the name '{node.id}' is not defined in a graph")
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
            self.reject(node, f"a graph cannot contain {type(node).__name__}")

    def attribute(self, node: ast.Attribute, scope: _Scope) -> None:
        path = self.outer_path(node, scope)
        if path is not None:
            if not targets.is_value(path):
                self.reject(node, f"'{'.'.join(path)}' is not a constant that a graph may contain")
        elif not self.is_own_attribute(node, scope):
            self.value(node.value, scope)
            if node.attr not in targets.DATA_ATTRIBUTES:
                self.reject(node, f"the attribute '{node.attr}' is not one that a graph may read")

    def value(self, node: ast.expr, scope: _Scope) -> None:
        """An expression whose attributes and methods are those of tensors: text has others."""
        if isinstance(node, ast.Constant):
            self.reject(node, "a graph cannot read an attribute of a constant")
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
                self.reject(node, f"the graph has no attribute '{name}'")
            return True
        if not self.is_own_attribute(base, scope):
            return False
        if name.startswith("__") or targets.is_module_attribute(name):
            self.reject(node, f"a graph cannot use '{name}' of a module")
        return True

    def call(self, node: ast.Call, scope: _Scope) -> None:
        for argument in node.args:
            if not (_is_getattr(node) and argument is node.args[0]):
                self.expression(argument, scope)
        for keyword in node.keywords:
            if keyword.arg is None:
                self.reject(node, "a graph cannot contain **")
            self.expression(keyword.value, scope)
        function = node.func
        if _is_getattr(node):
            if not self.is_own_attribute(node, scope):
                self.value(node.args[0], scope)
                if node.args[1].value not in targets.DATA_ATTRIBUTES:  # type: ignore[attr-defined]
                    self.reject(node, "getattr may read only attributes that a graph may read")
            return
        if isinstance(function, ast.Name):
            allowed = FUNCTIONS
            if scope.classes:  # __init__: the only place that makes modules
                allowed = FUNCTIONS | scope.classes | targets.module_classes()
            if function.id in scope.values or function.id not in allowed:
                self.reject(node, f"a graph cannot call '{function.id}'")
            return
        path = self.outer_path(function, scope)
        if path is not None:
            if not targets.is_callable(path) and not self.is_collective(path):
                self.reject(node, f"'{'.'.join(path)}' is not a function that a graph may call")
        elif self.is_own_attribute(function, scope):
            return
        elif isinstance(function, ast.Attribute):
            self.value(function.value, scope)
            if not targets.is_tensor_method(function.attr):
                self.reject(node, f"'{function.attr}' is not a method that a graph may call")
        else:
            self.reject(node, "a graph must call functions by name")

    def is_collective(self, path: tuple[str, ...]) -> bool:
        """Within fake groups, nothing leaves this process."""
        is_named_so = path[:3] == ("torch", "ops", "_c10d_functional") and len(path) == 5
        return bool(self.text.process_groups) and is_named_so


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
