"""Random Python programs, made from a seed as source text.

`generate(seed)` gives a world for the harness: helpers, an object, a module and globals, a function
that uses them, and four calls with changing arguments. Whatever the grammar combines is valid
Python, and every loop ends; exceptions may reach the user, which is compared like everything else.
All tensors have shape (B, 3), (1, 3) or (3,), so that any two of them can meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

UNARY = (
    "torch.sin({})",
    "{}.tanh()",
    "{}.relu()",
    "torch.abs({})",
    "{}.clamp(-2, 2)",
    "(-{})",
    "{}.flip(0)",
    "{}.clone()",
    "{}.sum(0, keepdim=True)",
    "{}.reshape(-1, 3)",
    "({} * 1)",
    "torch.zeros_like({})",
    "{}.detach()",
    "torch.sigmoid(input={})",
    "{}.softmax(-1)",
    "torch.rand_like({})",
    "{}.to(torch.float64).float()",
    "{}.sort(-1)[0]",
    "{}.max(0, keepdim=True)[0]",
    "torch.cat({}.split([1, 2], -1)[::-1], -1)",
    "linear({})",
    "box.apply({})",
)
IN_PLACE = (
    "{}.add_({number})",
    "{}.mul_({number})",
    "{} += {number}",
    "{}[0] = {number}",
    "{}.copy_(torch.zeros(3))",
    "{}.clamp_(-1, 1)",
    "{}[..., 1:].zero_()",
)
WORDS = ("'a'", "'b'", "'c'", "'long word'", "''")


@dataclass
class Scope:
    """The names that are surely bound here, by kind."""

    names: dict[str, list[str]]
    in_loop: bool = False
    function: str = "f"

    def inner(self, in_loop: bool | None = None) -> Scope:
        names = {kind: list(names) for kind, names in self.names.items()}
        return Scope(names, self.in_loop if in_loop is None else in_loop, self.function)

    def add(self, kind: str, name: str) -> None:
        if name not in self.names[kind]:
            self.names[kind].append(name)


@dataclass
class Generated:
    source: str
    backward: bool


@dataclass
class Generator:
    """Writes one program; every choice comes from `random`."""

    random: random.Random
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    counter: int = 0
    helpers: list[str] = field(default_factory=list)
    with_grad: bool = False

    # Writing.

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, header: str, body: Callable[[], None]) -> None:
        self.line(header)
        self.depth += 1
        before = len(self.lines)
        body()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def name(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # Expressions, by the kind of their value.

    def tensor(self, scope: Scope, depth: int = 2) -> str:
        variable = self.random.choice(scope.names["tensor"])
        if depth == 0 or self.chance(0.2):
            return variable
        inner = self.tensor(scope, depth - 1)
        other = self.tensor(scope, depth - 1)
        choices = [
            f"({inner} {self.random.choice('+-*')} {other})",
            f"({inner} {self.random.choice('+-*')} {self.number(scope)})",
            f"({inner} / (1 + abs({self.integer(scope)})))",
            self.random.choice(UNARY).format(f"({inner})" if not inner.isidentifier() else inner),
            f"({inner} if {self.truth(scope)} else {other})",
            f"torch.where({inner} > 0, {variable}, {other})",
            f"torch.full((3,), float({self.number(scope)}))",
            f"(torch.ones(3) * {self.integer(scope)})",
            f"({inner}.mean() + {variable})",
            f"torch.cat([{variable}, {variable}])[: {variable}.shape[0]]",
            f"max({self.integer(scope)}, 1) * {variable}",
        ]
        for tensors in scope.names["tensors"]:
            choices.append(f"{tensors}[{self.integer(scope)} % len({tensors})]")
            choices.append(f"sum({tensors})")
        for table in scope.names["table"]:
            choices.append(f"{table}['a']")
            choices.append(f"{table}.get({self.random.choice(WORDS)}, {variable})")
        for function in scope.names["function"]:
            choices.append(f"{function}({inner})")
        for helper in self.helpers:
            choices.append(f"{helper}({inner}, {self.integer(scope)})")
            choices.append(f"{helper}(*[{inner}, 2])")
        return self.random.choice([*choices, "box.bias", "(G1 + box.doubled)"])

    def integer(self, scope: Scope) -> str:
        variable = self.random.choice(scope.names["int"])
        choices = [
            variable,
            str(self.random.randint(-3, 6)),
            f"({variable} {self.random.choice(['+', '-', '*', '%'])} {self.random.randint(1, 5)})",
            f"({variable} // {self.random.randint(1, 4)})",
            f"{self.random.choice(scope.names['tensor'])}.shape[-1]",
            f"{self.random.choice(scope.names['tensor'])}.ndim",
            "box.scale",
            "G0",
            "len(LOG)",
        ]
        for tensors in scope.names["tensors"]:
            choices.append(f"len({tensors})")
        for numbers in scope.names["ints"]:
            choices.append(f"{numbers}[-1]")
            choices.append(f"sum({numbers})")
            choices.append(f"max({numbers})")
        return self.random.choice(choices)

    def number(self, scope: Scope) -> str:
        if self.chance(0.06):
            return f"{self.random.choice(scope.names['tensor'])}.sum().item()"
        floats = [*scope.names["float"], f"{self.random.choice([0.5, 1.5, -0.25, 2.0])}"]
        return self.random.choice([self.integer(scope), *floats, f"round({floats[0]} * 3, 1)"])

    def truth(self, scope: Scope) -> str:
        if self.chance(0.06):
            return f"{self.random.choice(scope.names['tensor'])}.sum() > 0"
        comparison = self.random.choice(["<", ">", "==", "!=", "<=", ">="])
        choices = [
            f"{self.integer(scope)} {comparison} {self.integer(scope)}",
            *scope.names["bool"],
            f"isinstance({self.number(scope)}, int)",
            f"{self.random.choice(scope.names['tensor'])}.requires_grad",
            "torch.is_grad_enabled()",
        ]
        for table in scope.names["table"]:
            choices.append(f"{self.random.choice(WORDS)} in {table}")
        first = self.random.choice(choices)
        if self.chance(0.3):
            return f"({first} {self.random.choice(['and', 'or'])} {self.random.choice(choices)})"
        return f"not ({first})" if self.chance(0.2) else f"({first})"

    def text(self, scope: Scope) -> str:
        value = self.random.choice([self.integer(scope), *scope.names["float"]])
        return self.random.choice([*WORDS, f'f"{{{value}}} of {{{self.integer(scope)}:>3}}"'])

    # Statements.

    def statements(self, scope: Scope, count: int, nesting: int) -> None:
        for _ in range(count):
            self.statement(scope, nesting)

    def statement(self, scope: Scope, nesting: int) -> None:
        simple = [
            self.assign_tensor,
            self.assign_tensor,
            self.assign_number,
            self.assign_container,
            self.change_container,
            self.change_object,
            self.change_global,
            self.in_place,
            self.say,
            self.unpack,
        ]
        nested = [self.branch, self.loop, self.while_loop, self.attempt, self.context, self.closure]
        nested += [self.choose]
        leaving = [self.leave]
        self.random.choice(simple * 2 + (nested if nesting else []) + leaving)(scope, nesting)

    def assign_tensor(self, scope: Scope, nesting: int) -> None:
        known = scope.names["tensor"]
        name = self.random.choice(known) if self.chance(0.4) else self.name("t")
        self.line(f"{name} = {self.tensor(scope)}")
        scope.add("tensor", name)

    def assign_number(self, scope: Scope, nesting: int) -> None:
        if self.chance(0.5):
            name = self.name("i")
            self.line(f"{name} = ({self.integer(scope)} * 3 + {self.integer(scope)}) % 17")
            scope.add("int", name)
        elif self.chance(0.5):
            name = self.name("v")
            self.line(f"{name} = {self.number(scope)} * 0.5")
            scope.add("float", name)
        else:
            name = self.random.choice(scope.names["int"])
            self.line(
                f"{name} {self.random.choice(['+=', '-=', '%='])} {self.random.randint(1, 5)}"
            )

    def assign_container(self, scope: Scope, nesting: int) -> None:
        kind = self.random.choice(["tensors", "tensors", "ints", "table"])
        name = self.name({"tensors": "list", "ints": "nums", "table": "dict"}[kind])
        count = self.random.randint(1, 3)
        if kind == "tensors":
            literal = ", ".join(self.tensor(scope, 1) for _ in range(count))
            comprehension = f"{self.tensor(scope, 1)} * k for k in range({count})"
            self.line(f"{name} = [{self.random.choice([literal, comprehension])}]")
        elif kind == "ints":
            literal = ", ".join(self.integer(scope) for _ in range(count))
            comprehension = f"k * {self.integer(scope)} for k in range(1, 4) if k != 2"
            self.line(f"{name} = [{self.random.choice([literal, comprehension])}]")
        else:
            extra = f", {self.random.choice(WORDS)}: {self.tensor(scope, 1)}"
            literal = f"'a': {self.tensor(scope, 1)}{extra if self.chance(0.5) else ''}"
            merged = f"**{self.random.choice(scope.names['table'] or ['{}'])}, {literal}"
            comprehension = f"key: {self.tensor(scope, 1)} * i for i, key in enumerate('ab')"
            self.line(f"{name} = {{{self.random.choice([literal, merged, comprehension])}}}")
        scope.add(kind, name)

    def change_container(self, scope: Scope, nesting: int) -> None:
        choices = []
        for tensors in scope.names["tensors"]:
            choices.append(f"{tensors}.append({self.tensor(scope, 1)})")
            choices.append(f"{tensors}[-1] = {self.tensor(scope, 1)}")
            choices.append(f"{tensors}.reverse()")
            choices.append(f"{tensors}.extend({self.tensor(scope, 0)} + k for k in range(2))")
        for numbers in scope.names["ints"]:
            choices.append(f"{numbers}.append({self.integer(scope)})")
            choices.append(f"{numbers}.sort()")
            choices.append(f"{numbers}[0] += 1")
        for table in scope.names["table"]:
            choices.append(f"{table}[{self.random.choice(WORDS)}] = {self.tensor(scope, 1)}")
            choices.append(f"{table}.pop('b', None)")
            choices.append(f"{table}.update(a={self.tensor(scope, 0)})")
            choices.append(f"{table}.setdefault('c', {self.tensor(scope, 0)})")
        if choices:
            self.line(self.random.choice(choices))

    def change_object(self, scope: Scope, nesting: int) -> None:
        self.line(
            self.random.choice(
                [
                    f"box.scale = {self.integer(scope)} % 5",
                    "box.count += 1",
                    f"box.bias = {self.tensor(scope, 1)}.detach()",
                    f"box.log.append({self.text(scope)})",
                    f"setattr(box, 'extra', {self.number(scope)})",
                    f"box.level = {self.integer(scope)} % 7",
                ]
            )
        )

    def change_global(self, scope: Scope, nesting: int) -> None:
        choices = [f"LOG.append({self.text(scope)})"]
        if scope.function == "f":
            choices.append(f"G0 = {self.integer(scope)} % 7")
            choices.append(f"G1 = {self.tensor(scope, 1)}.detach()")
        self.line(self.random.choice(choices))

    def in_place(self, scope: Scope, nesting: int) -> None:
        if self.with_grad:
            return  # an in-place write would fail in eager more often than not
        owned = self.name("w")
        if self.chance(0.5):
            self.line(f"{owned} = {self.tensor(scope)} * 1")
            scope.add("tensor", owned)
        else:
            owned = self.random.choice(["x", "y"]) if scope.function == "f" else "t"
        self.line(self.random.choice(IN_PLACE).format(owned, number=self.number(scope)))

    def say(self, scope: Scope, nesting: int) -> None:
        if self.chance(0.35):
            self.line(f"print({self.text(scope)}, {self.integer(scope)})")
        else:
            self.line(f"LOG.append({self.text(scope)})")

    def unpack(self, scope: Scope, nesting: int) -> None:
        first, second = self.name("t"), self.name("t")
        if scope.names["tensors"] and self.chance(0.4):
            source = self.random.choice(scope.names["tensors"])
            rest = self.name("list")
            self.line(f"{first}, *{rest} = [*{source}, {self.tensor(scope, 1)}]")
            scope.add("tensor", first)
            scope.add("tensors", rest)
            return
        if self.chance(0.4):
            pair = f"{self.tensor(scope)} * torch.tensor([1.0, -2.0]).view(2, 1, 1)"
            self.line(f"{first}, {second} = ({pair}).unbind(0)")
        else:
            self.line(f"{first}, {second} = {self.tensor(scope)}, {self.tensor(scope, 1)}")
        if self.chance(0.4):
            self.line(f"{first}, {second} = {second}, {first}")
        scope.add("tensor", first)
        scope.add("tensor", second)

    def leave(self, scope: Scope, nesting: int) -> None:
        ways = [f"return {self.tensor(scope, 1)}", f"raise ValueError({self.integer(scope)})"]
        if scope.in_loop:
            ways += ["break", "continue", "continue"]
        condition = f"{self.integer(scope)} == {self.random.randint(0, 9)}"
        self.block(f"if {condition}:", lambda: self.line(self.random.choice(ways)))

    def branch(self, scope: Scope, nesting: int) -> None:
        self.block(
            f"if {self.truth(scope)}:",
            lambda: self.statements(scope.inner(), self.random.randint(1, 2), nesting - 1),
        )
        if self.chance(0.5):
            self.block("else:", lambda: self.statements(scope.inner(), 1, nesting - 1))

    def choose(self, scope: Scope, nesting: int) -> None:
        def body() -> None:
            cases = ["0 | 1", "int(k) if k > 4", "[_, *_]", "{'a': _}", "str()"]
            for case in self.random.sample(cases, 2):
                self.block(f"case {case}:", lambda: self.statements(scope.inner(), 1, nesting - 1))
            self.block("case _:", lambda: self.statements(scope.inner(), 1, nesting - 1))

        containers = [*scope.names["ints"], *scope.names["table"], *scope.names["float"]]
        self.block(f"match {self.random.choice([self.integer(scope), *containers])}:", body)

    def loop(self, scope: Scope, nesting: int) -> None:
        inner = scope.inner(in_loop=True)
        target = self.name("k")
        count = self.random.randint(1, 3)
        kinds = [(f"for {target} in range({count}):", "int")]
        kinds += [(f"for {target} in list({name}):", "tensor") for name in scope.names["tensors"]]
        kinds += [
            (f"for _, {target} in sorted({name}.items()):", "tensor")
            for name in scope.names["table"]
        ]
        kinds += [
            (f"for {target}, _ in enumerate(list({name})):", "int") for name in scope.names["ints"]
        ]
        kinds += [
            (f"for {target}, _ in zip(list({name}), range(2)):", "tensor")
            for name in scope.names["tensors"]
        ]
        kinds.append((f"for {target} in numbers({count}):", "int"))
        header, kind = self.random.choice(kinds)
        inner.add(kind, target)
        self.block(header, lambda: self.statements(inner, self.random.randint(1, 3), nesting - 1))

    def while_loop(self, scope: Scope, nesting: int) -> None:
        name = self.name("k")
        self.line(f"{name} = {self.random.randint(1, 3)}")
        inner = scope.inner(in_loop=True)

        def body() -> None:
            self.line(f"{name} -= 1")
            self.statements(inner, self.random.randint(1, 2), nesting - 1)

        self.block(f"while {name} > 0:", body)

    def attempt(self, scope: Scope, nesting: int) -> None:
        failing = [
            f"{self.integer(scope)} // ({self.integer(scope)} % 2)",
            f"{{'a': 1}}[{self.random.choice(WORDS)}]",
            f"[1, 2][{self.integer(scope)}]",
            f"{self.random.choice(scope.names['tensor'])}.view(3, {self.integer(scope)})",
        ]

        def body() -> None:
            self.statements(scope.inner(), 1, nesting - 1)
            self.line(f"LOG.append(str({self.random.choice(failing)})[:9])")

        self.block("try:", body)
        handlers = ["ZeroDivisionError", "(KeyError, IndexError)", "Exception as error"]
        handler = self.random.choice(handlers)

        def handle() -> None:
            self.statements(scope.inner(), 1, nesting - 1)
            shown = "type(error).__name__" if "error" in handler else "'handled'"
            self.line(f"LOG.append({shown})")

        self.block(f"except {handler}:", handle)
        if self.chance(0.3):
            self.block("finally:", lambda: self.line("LOG.append('finally')"))

    def context(self, scope: Scope, nesting: int) -> None:
        manager = self.random.choice(
            ["torch.no_grad()", "torch.enable_grad()", "Scoped('s')", "scoped(2)"]
        )
        self.block(
            f"with {manager}:",
            lambda: self.statements(scope.inner(), self.random.randint(1, 2), nesting - 1),
        )

    def closure(self, scope: Scope, nesting: int) -> None:
        name = self.name("g")
        if self.chance(0.4):
            captured = self.tensor(scope, 1)
            self.line(f"{name} = lambda v, k={self.integer(scope)}: v * k + {captured}")
        else:
            state = self.name("state")
            self.line(f"{state} = {self.random.randint(0, 3)}")

            def body() -> None:
                self.line(f"nonlocal {state}")
                self.line(f"{state} = ({state} + 1) % 5")
                self.line(f"return v * {state} + {self.random.choice(scope.names['tensor'])}")

            self.block(f"def {name}(v):", body)
        scope.add("function", name)

    # The whole.

    def scope(self, function: str) -> Scope:
        names: dict[str, list[str]] = {
            kind: [] for kind in ("bool", "float", "ints", "tensors", "table", "function")
        }
        if function == "f":
            names |= {"tensor": ["x", "y"], "int": ["n"], "float": ["p"], "bool": ["flag"]}
            names |= {"tensors": ["items"], "table": ["table"]}
        else:
            names |= {"tensor": ["t"], "int": ["m"]}
        return Scope(names, function=function)

    def helper(self) -> None:
        name = self.name("helper")
        scope = self.scope(name)

        def body() -> None:
            self.statements(scope, self.random.randint(1, 3), 1)
            self.line(f"return {self.tensor(scope)}")

        self.block(f"def {name}(t, m):", body)
        self.helpers.append(name)

    def program(self) -> None:
        scope = self.scope("f")

        def body() -> None:
            self.line("global G0, G1")
            self.statements(scope, self.random.randint(4, 9), 2)
            rest = ", ".join(scope.names["tensor"][-4:])
            self.line(
                f"return {self.tensor(scope)}, {self.integer(scope)}, {self.text(scope)}, [{rest}]"
            )

        self.block("def f(x, y, n, p, flag, items, table):", body)

    def call(self, rows: int, values: int) -> None:
        grad = ", grad=True" if self.with_grad else ""
        numbers = random.Random(values)
        extra = numbers.choice(["", ", 'b': data(3)"])
        self.line(
            f"yield call(data({rows}, 3{grad}), data(3{grad}), {numbers.randint(0, 6)}, "
            f"{numbers.choice([0.5, 1.5, 2.0])}, {numbers.random() < 0.5}, "
            f"[data(3), data({rows}, 3)], {{'a': data(3){extra}}})"
        )


PRELUDE = """\
import contextlib

import torch

from capture.harness import call, data


def world():
    global G0, G1, LOG
    G0, G1, LOG = 2, data(3), []
    linear = torch.nn.Linear(3, 3)

    class Box:
        def __init__(self):
            self.scale, self.count, self.bias, self.log = 2, 0, data(3), []
            self._level = 1

        @property
        def doubled(self):
            return self.bias * 2

        @property
        def level(self):
            return self._level

        @level.setter
        def level(self, value):
            self.log.append(value)
            self._level = value

        def apply(self, t):
            self.count += 1
            return t * self.scale + self.level

    class Scoped:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            LOG.append("+" + self.name)

        def __exit__(self, kind, value, traceback):
            LOG.append("-" + self.name)

    @contextlib.contextmanager
    def scoped(k):
        old, box.scale = box.scale, k
        try:
            yield
        finally:
            box.scale = old

    def numbers(count):
        for k in range(count):
            LOG.append(k)
            yield k * 2

    box = Box()
"""


def generate(seed: int) -> Generated:
    generator = Generator(random.Random(seed))
    generator.with_grad = generator.chance(0.4)
    generator.depth = 1
    for _ in range(generator.random.randint(0, 2)):
        generator.helper()
    generator.program()
    generator.line("yield f")
    generator.call(2, seed)
    generator.call(2, seed)
    generator.line("box.scale = 3" if generator.chance(0.5) else "G0 = 5")
    generator.call(2, seed + 1)
    generator.call(4, seed)
    return Generated(PRELUDE + "\n".join(generator.lines) + "\n", generator.with_grad)
