"""Operators, containers, patterns and names."""

# Half of this is wrong on purpose.
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from capture.programs import outcome, program


@program
def unpacking() -> Any:
    def two(value: Any) -> Any:
        a, b = value
        return a, b

    def star(value: Any) -> Any:
        a, *b, c, d = value
        return a, b, c, d

    def many(value: Any) -> Any:
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r = value
        return r, q, a

    class Fails:
        def __iter__(self) -> Iterator[int]:
            yield 1
            raise KeyError("while iterating")

    values: list[Any] = [(1, 2), [1, 2], iter([1, 2]), "ab", {1: 2, 3: 4}, (), (1,), (1, 2, 3)]
    values += [range(6), 3, None, Fails()]
    return (
        [outcome(two, value) for value in values],
        [outcome(star, value) for value in values],
        [outcome(many, value) for value in (range(18), range(3), range(19))],
    )


@program
def match_statements() -> Any:
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    class Odd:
        __match_args__ = ("x", "x")
        x = 1

    class Broken:
        __match_args__ = ["x"]

    def match(value: Any) -> Any:
        match value:
            case 0 | 1:
                return "small"
            case [1, x, *rest] if x:
                return "list", x, rest
            case {"a": {"b": [x]}, **rest}:
                return "dict", x, rest
            case Point(x=0, y=y):
                return "origin", y
            case Point(x, y):
                return "point", x, y
            case str() as text:
                return "text", text
            case int(n) | float(n):
                return "number", n
            case None:
                return "none"
            case _:
                return "other"

    def odd(value: Any) -> Any:
        match value:
            case Odd(_, _):
                return 1

    def broken(value: Any) -> Any:
        match value:
            case Broken(_):
                return 1

    def too_many(value: Any) -> Any:
        match value:
            case Point(_, _, _):
                return 1

    values = [0, 5, 2.5, [1, 2, 3], [1, 0], {"a": {"b": [1]}, "c": 2}, {"a": 1}, Point(0, 3)]
    values += [Point(1, 3), "x", b"x", None, (1, 2), set(), defaultdict(list)]
    errors = [outcome(odd, Odd()), outcome(broken, Broken()), outcome(too_many, Point(1, 2))]
    return [match(value) for value in values] + errors


@program
def f_strings() -> Any:
    x, width = "é", 8
    return f"{x}{x!r}{x!a}{x!s:>{width}}{3.14159:.2f}{width=}{{}}", outcome(lambda: f"{3:xyz}")


@program
def operators() -> Any:
    import operator

    a, b = 7, 3
    seen: list[Any] = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a & b, a | b, a ^ b]
    seen += [a << b, a >> b, -a, +a, ~a, not a, a < b, a == b, a is b, a is not b, a in [a]]
    for name in ("iadd", "isub", "imul", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"):
        seen.append(getattr(operator, name)(a, b))
    c = [1]
    alias = c
    c += [2]
    c *= 2
    text = "abcdef"
    seen += [alias, c[1:3], text[::-1], text[1:], 1 < a < 10, a and b or 0, a if b else 0]
    del c[0]
    c[0:2] = [9]
    matrix: Any = [[0] * 2 for _ in range(2)]
    matrix[1][0] = 5
    return [*seen, c, matrix]


@program
def imports() -> Any:
    def from_() -> Any:
        from os.path import join as joined, no_such_name

        return joined, no_such_name

    def module() -> Any:
        import no_such_module

        return no_such_module

    import os.path as path
    from os import sep

    return [path.join("a", "b"), sep, outcome(from_), outcome(module)]


@program
def star_import() -> Any:
    scope: dict[str, Any] = {}
    exec("from os.path import *\nimport os.path\nsame = join is os.path.join", scope)
    return scope["same"], "basename" in scope, "_get_sep" in scope


@program
def namespaces_of_exec() -> Any:
    class Namespace(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            if key == "found":
                return 42
            raise KeyError(key)

    scope = Namespace()
    source = "x = found\ny: int = x\ndel x\nclass C:\n    z: int = len(__name__)\n"
    exec(source, {"__name__": "generated"}, scope)
    globals_: dict[str, Any] = {"__builtins__": {"len": len}}
    return [
        sorted(scope),
        scope["C"].z,
        scope["__annotations__"],
        outcome(exec, "no_such", {}, scope),
        outcome(exec, "del no_such", {}, scope),
        eval("len('abc')", globals_),
        outcome(eval, "print", globals_),
        outcome(exec, "import os", globals_),
        outcome(exec, "class C: pass", globals_),
        eval("[a for a in b]", {"b": [1]}),
    ]


@program
def annotations() -> Any:
    scope: dict[str, Any] = {}
    exec("x: int = 1\ndef f(a: int, *, b: str = 'x') -> float: ...\n", scope)
    f = scope["f"]
    return scope["__annotations__"], f.__annotations__, f.__kwdefaults__
