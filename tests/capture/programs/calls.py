"""Functions, methods, classes and what they are called with."""

# Half of this is wrong on purpose.
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from capture.programs import outcome, program


@program
def call_errors() -> Any:
    def f(a: Any, /, b: Any, *, c: Any = 3, **d: Any) -> Any:
        return a, b, c, d

    def calls() -> Iterator[Callable[[], Any]]:
        yield lambda: f(1, 2)
        yield lambda: f(1, b=2, c=4, e=5)
        yield lambda: f(*[1, 2], **{"c": 5}, **{"x": 1})
        yield lambda: f()
        yield lambda: f(1, 2, 3)
        yield lambda: f(1, 2, b=3)
        yield lambda: f(1, 2, **{"c": 1}, **{"c": 2})
        yield lambda: f(*3)
        yield lambda: f(**3)
        yield lambda: f(1, *3)
        yield lambda: f(1, 2, **{3: 4})
        yield lambda: f(1, 2)()
        yield lambda: [].append(1, 2)
        yield lambda: len()
        yield lambda: "x".no_such_method()
        yield lambda: {**{"a": 1}, **3}
        yield lambda: [*3]
        yield lambda: {[]: 1}
        yield lambda: {[]}
        yield lambda: 1 + "a"
        yield lambda: f(1, 2).x[0]

    return [outcome(call) for call in calls()]


@program
def methods_and_attributes() -> Any:
    class Base:
        shared = 1

        def method(self, x: int) -> Any:
            return type(self).__name__, x, self.shared

        @classmethod
        def made(cls, *args: Any) -> Any:
            return cls.__name__, args

        @staticmethod
        def plain(x: int, y: int = 2) -> int:
            return x + y

        @property
        def computed(self) -> int:
            raise AttributeError("in the property")

        def __getattr__(self, name: str) -> Any:
            return f"missing {name}"

    class Derived(Base):
        def method(self, x: int) -> Any:
            return super().method(x), __class__.__name__

    d = Derived()
    d.shared = 2
    bound = d.method
    d.own = lambda x: x
    seen = [d.method(1), bound(2), d.made(1, 2), d.plain(1), d.plain(x=1, y=5), d.own(3)]
    seen += [d.computed, d.other, Derived.method(d, 4)]
    del d.shared
    return [*seen, d.shared]


@program
def classes() -> Any:
    def make(base: Any, value: int) -> Any:
        class Made(base, flag=value):
            x: int = value
            y = [value for _ in range(2)]

            def get(self) -> int:
                return value

            for attribute in ("a", "b"):
                locals()[attribute] = value

        return Made

    class Base:
        def __init_subclass__(cls, flag: int) -> None:
            cls.flag = flag

    made = make(Base, 3)
    names = ("x", "y", "a", "b", "flag", "__annotations__", "__qualname__")
    return [getattr(made, name) for name in names] + [made().get()]


@program
def closures() -> Any:
    def counter() -> Any:
        count = 0

        def step(by: int = 1, *, twice: bool = False) -> int:
            nonlocal count
            count += by * (2 if twice else 1)
            return count

        return step

    a, b = counter(), counter()
    return [a(), a(5), b(twice=True), a.__closure__[0].cell_contents, [f() for f in [lambda: 7]]]


@program
def recursion_limit() -> Any:
    depth = 0

    def deeper() -> None:
        nonlocal depth
        depth += 1
        deeper()

    def generator() -> Iterator[Any]:
        yield from generator()

    limit = sys.getrecursionlimit()
    frame, here = sys._getframe(), 0
    while frame.f_back is not None:
        frame, here = frame.f_back, here + 1
    sys.setrecursionlimit(here + 100)
    try:
        kinds = []
        for function in (deeper, functools.partial(list, generator())):
            try:
                function()
            except RecursionError as error:
                kinds.append(str(error))
        return depth, kinds
    finally:
        sys.setrecursionlimit(limit)


@program
def long_jumps_and_many_constants() -> Any:
    # Enough of everything that arguments need EXTENDED_ARG.
    lines = ["def function(flag, values):", "    total = 0", "    for value in values:"]
    lines += ["        if flag:"]
    lines += [f"            total += value * {i}.5 + v{i % 300}" for i in range(1500)]
    lines += ["        else:", "            raise ValueError(total)", "    return total"]
    namespace: dict[str, Any] = {f"v{i}": i for i in range(300)}
    exec(compile("\n".join(lines), "<generated>", "exec"), namespace)
    function = namespace["function"]
    many = ", ".join(f"a{i}" for i in range(400))
    source = f"def unpack(values):\n    {many} = values\n    return [{many}][::-1]\n"
    exec(source, namespace)
    keywords = ", ".join(f"k{i}={i}" for i in range(300))
    exec(f"def call(f):\n    return f({keywords})\n", namespace)
    return [
        function(True, range(3)),
        outcome(function, False, [1]),
        namespace["unpack"](range(400)),
        namespace["call"](lambda **kwargs: sum(kwargs.values())),
    ]
