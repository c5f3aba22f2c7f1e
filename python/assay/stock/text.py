"""Reads a repro file: what it defines, where its nodes are.

Of the text only the symbols, the classes and ``load_args`` are ever executed. Imports, settings and
what stands under ``if __name__`` are not: names come from a fixed list, settings from the request.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import operator
import re
import sys
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.stock import targets

FILE = "<trial>"
FRAME_OF_FILE = re.compile(rf'File "{re.escape(FILE)}", line (\d+)')

# Names that stock PyTorch writes into its files, some without importing them.
GLOBALS: dict[str, Any] = {
    "torch": torch,
    "operator": operator,
    "_operator": operator,
    "math": math,
    "device": torch.device,
    "tensor": torch.tensor,
    "inf": math.inf,
    "nan": math.nan,
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "math_ceil": math.ceil,
    "math_floor": math.floor,
    "math_trunc": math.trunc,
    **{name: getattr(torch.nn, name) for name in targets.module_classes()},
}
FUNCTIONS = targets.words(
    "slice int float bool complex max min abs len round sum device tensor "
    "Max Min Mod math_ceil math_floor math_trunc"
)
CONSTANTS = frozenset({"inf", "nan", "Ellipsis"})
BUILTINS = {
    name: getattr(builtins, name)
    for name in (FUNCTIONS & set(dir(builtins)))
    | {"super", "getattr", "__build_class__", "Ellipsis"}
}

# Statements around the graph that stock writes and that a trial has no use for.
IGNORED_CALLS = re.compile(
    r"os\.environ\.\w+|torch\._higher_order_ops\.triton_kernel_wrap\.kernel_side_table\.reset_table"
)
IGNORED_TARGETS = re.compile(r"(os\.environ\[|torch\.[\w.]*config\.)|load_args\._version$")
IGNORED_CONDITIONS = ("__name__ == '__main__'", "'__compile_source__' in globals()")


_DYNAMOS_OWN = (
    "torch._C._functorch.",
    "torch._functorch.predispatch.",
    "torch.ops.higher_order.",
)


@dataclass
class ReproText:
    """A repro file as a syntax tree, and what a trial needs to know of it."""

    tree: ast.Module
    stage: str = "after_aot"
    tracing_mode: str = "real"
    main_class: str = "Repro"
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    # What the file's collectives run in: {'0': {'size': 8, 'rank': 0}}.
    process_groups: dict[str, dict[str, int]] = field(default_factory=dict)
    # For the nodes of the main graph: line and target of each by its name.
    lines: dict[int, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)

    def nodes_in(self, stack: str) -> list[str]:
        """The nodes whose lines are in a stack (or in several)."""
        lines = [int(line) for line in FRAME_OF_FILE.findall(stack)]
        return list(dict.fromkeys(self.lines[line] for line in lines if line in self.lines))

    def stack_of(self, name: str) -> str:
        """A stack that has only the line of a node; empty for one that is not the first there."""
        lines = [line for line, node in self.lines.items() if node == name]
        return "".join(f'  File "{FILE}", line {line}, in forward\n' for line in lines)

    @property
    def is_only_for_backends(self) -> bool:
        """Whether the graph has calls that Dynamo makes and cannot trace again.

        They enter functorch's levels, or pass subgraphs to operators.
        """
        return any(call.startswith(_DYNAMOS_OWN) for call in self.calls.values())

    @property
    def parameters(self) -> list[str]:
        """The names of the main graph's inputs."""
        arguments = self.forward.args
        return [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]][1:]

    @property
    def forward(self) -> ast.FunctionDef:
        """The main graph."""
        for statement in self.classes[self.main_class].body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                return statement
        raise ValueError(f"class {self.main_class} has no forward()")


def read(text: str) -> ReproText:
    """Parse a file. ``check`` says whether it may be executed."""
    tree = ast.parse(text, FILE)
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    result = ReproText(tree)
    _note_stage(result)
    result.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    made = [assigned_value(node) for node in tree.body if assigned_name(node) == "mod"]
    if made and isinstance(made[-1], ast.Call) and isinstance(made[-1].func, ast.Name):
        result.main_class = made[-1].func.id
    elif "Repro" not in result.classes and result.classes:
        result.main_class = next(reversed(result.classes))
    if result.main_class not in result.classes:
        raise ValueError("the file defines no graph")
    for statement in result.forward.body:
        name = assigned_name(statement)
        value = assigned_value(statement)
        if name is not None and not isinstance(value, ast.Constant):
            result.lines.setdefault(statement.lineno, name)
            if isinstance(value, ast.Call):
                result.calls[name] = ast.unparse(value.func)
    return result


def execute(result: ReproText, setup: str | None) -> dict[str, Any]:
    """Define what the file defines. ``setup``, the user's own lines, is executed before."""
    names: dict[str, Any] = {**GLOBALS, "__name__": "assay_trial"}
    if setup:
        exec(compile(setup, "<setup>", "exec"), names)
        imports = (ast.Import, ast.ImportFrom)
        kept = [
            node for node in result.tree.body if isinstance(node, imports) or not is_ignored(node)
        ]
    else:
        names["__builtins__"] = BUILTINS
        kinds = (ast.ClassDef, ast.FunctionDef)
        kept = [node for node in result.tree.body if isinstance(node, kinds) or is_symbol(node)]
    body = [_NoAnnotations().visit(node) for node in kept if assigned_name(node) != "mod"]
    module = ast.fix_missing_locations(ast.Module(body, type_ignores=[]))
    exec(compile(module, FILE, "exec"), names)
    # The functions keep the few builtins they were made with; Dynamo's guards need the others.
    names["__builtins__"] = builtins
    return names


def add_modules(result: ReproText, names: dict[str, Any]) -> None:
    """Let the text call functions of any module of this process, by their qualified names."""
    for node in ast.walk(result.tree):
        if isinstance(node, ast.Name) and node.id in sys.modules:
            names.setdefault(node.id, sys.modules[node.id])


# --- What is where --------------------------------------------------------------------------------


def _note_stage(result: ReproText) -> None:
    for node in ast.walk(result.tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for stage in ("after_dynamo", "after_aot"):
                if node.module == f"torch._dynamo.repro.{stage}":
                    result.stage = stage
        elif isinstance(node, ast.keyword) and node.arg == "tracing_mode":
            mode = node.value.value if isinstance(node.value, ast.Constant) else None
            if mode in ("real", "fake", "symbolic"):
                result.tracing_mode = mode
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setup_fake_process_groups":
            result.process_groups = ast.literal_eval(node.args[0])


def assigned_name(node: ast.stmt) -> Any:
    """The one name that a statement assigns to, else None."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def assigned_value(node: ast.stmt) -> ast.expr | None:
    """What a statement assigns."""
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None


def is_symbol(node: ast.stmt) -> bool:
    """Whether a statement gives a name to a constant."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and (assigned_name(node) is not None)
    )


def is_ignored(node: ast.stmt) -> bool:
    """Whether a statement outside of the definitions is one that files have and trials do not."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Assign):
        return all(IGNORED_TARGETS.match(ast.unparse(target)) for target in node.targets)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in IGNORED_CONDITIONS
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Call):
        return IGNORED_CALLS.fullmatch(ast.unparse(node.value.func)) is not None
    return isinstance(node.value, ast.Constant)


class _NoAnnotations(ast.NodeTransformer):
    """Annotations are expressions, which Python evaluates; to a graph they are comments."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)
