"""Random programs that do all kinds of things with sizes and numbers.

`generate(seed)` gives source text: a function of two tensors (N, M) and (N, 3), an int and a float,
all of which differ from call to call. It computes with sizes and numbers, decides by them, keeps
them in containers, objects and globals, formats them, and gives them to operators.
"""

from __future__ import annotations

import random

NUMBERS = (
    "x.shape[0]",
    "x.size(1)",
    "len(y)",
    "x.numel()",
    "x.shape.numel()",
    "y.shape[-1]",
    "x.dim()",
    "{t}.shape[0]",
    "{t}.size(-1)",
    "{t}.numel()",
    "k",
    "box.count",
    "G",
    "cell()",
    "round(r * 4)",
    "data[0][0]",
    "data[1]['k']",
    "data[0].index(2)",
    "data[0].count({n})",
    "sorted(data[0])[0]",
    "sum(data[0])",
    "max(data[0])",
    "len(str(data))",
    "len(repr(data[1]))",
    "hash(tuple(data[0])) % 7",
    "data[1].get('k', 3)",
    "list(data[1].values())[0]",
    "len(set(data[0]))",
    "len(dict(data[1], z={n}))",
    "len([*data[0], {n}])",
    "hypot(*data[0])",
    "keyed(**data[1])",
    "copy.deepcopy(data)[0][0]",
    "int(math.dist(data[0], [0, {n}]))",
    "len(Number({n}))",
    "hash(Number({n})) % 5",
    "operator.index(Number({n}))",
    "round(float(Number({n})))",
    "(Number({n}) + 1)",
    "min(Number(2), Number({n})).n",
    "len({{Number(2): 1, Number({n}): 2}})",
    "sorted([1, {n}, 3], key=lambda v: -v)[0]",
    "max(data[0], key=lambda v: v % 3)",
    "list(map(lambda v: v + 1, data[0]))[0]",
    "next(filter(lambda v: v != {n}, [1, 2, 3]))",
    "sum(v for v in data[0])",
    "[5, 6, 7][Number({n} % 3)]",
    "({n} + {n})",
    "({n} - {n})",
    "({n} * 2)",
    "({n} // 2)",
    "({n} % 3)",
    "(-{n})",
    "max({n}, 1)",
    "min({n}, {n})",
    "sum(x.shape)",
    "math.prod(y.shape)",
    "int({n})",
    "abs({n})",
    "sorted([{n}, {n}])[0]",
    "box.kept",
    "table['n']",
    "list(x.shape)[0]",
    "(*x.shape, 4)[1]",
    "len(range({n} % 7))",
    "dict(zip('ab', x.shape))['b']",
    "helper({n})",
    "next(iter(x.shape))",
    "[{n}, 2][0]",
    "len('%d' % {n})",
    "len('{}'.format({n}))",
    "len(str({n}))",
    "([5, 6, 7, 8])[{n} % 4]",
    "{{1: 4, 2: 5}}.get({n}, 6)",
    "len({{{n}, {n}, 3}})",
    "({n} if {c} else 3)",
    "functools.reduce(operator.mul, x.shape)",
    "math.floor({n} / 2)",
    "round({n} ** 0.5)",
    "({n} and 2)",
    "({n} or 5)",
    "bool({n})",
    "({n} & 3)",
    "hash({n}) % 5",
    "len(x.chunk(2))",
    "len(x.split(2))",
    "{t}.stride(0)",
)
CONDITIONS = (
    "{n} > 4",
    "{n} == {n}",
    "{n} != 6",
    "{n} <= {n}",
    "{n}",
    "not {n}",
    "x.shape == y.shape",
    "x.shape[0] in (2, 5)",
    "{n} in [3, {n}]",
    "{n} % 2 == 0",
    "3 < {n} < 9",
    "x.is_contiguous()",
    "isinstance({n}, int)",
    "{n} is None",
    "torch.is_tensor(x)",
    "{t}.shape[0] > 3",
    "any(s > 5 for s in x.shape)",
    "all(x.shape)",
    "{n} * 1.5 > 6",
    "data[0] == [{n}, 2]",
    "data[1] == {{'k': 2}}",
    "{n} in data[0]",
    "data[0] < [2, 2]",
    "tuple(data[0]) in {{(1, 2): 3}}",
    "Number({n})",
    "Number({n}) in [Number(2), Number(4)]",
    "Number({n}) < Number(3)",
    "r > 1",
    "k",
    "r",
)
TENSORS = (
    "x",
    "y",
    "{t} + {n}",
    "{t} * 2",
    "{t} * r",
    "{t} + k",
    "torch.full((2, abs(k) % 4), r)",
    "torch.relu({t})",
    "x.view(-1)",
    "x.reshape(x.shape[1], x.shape[0])",
    "torch.zeros(x.shape)",
    "torch.ones(max({n}, 0) % 9)",
    "torch.arange(abs({n}) % 11)",
    "x[: {n}]",
    "x[{n} % max(x.shape[0], 1) :]",
    "torch.cat([x, x])",
    "torch.cat([{t}.reshape(-1), y.reshape(-1)])",
    "y.sum({n} % 2)",
    "x.new_full((2, x.shape[0]), float({n}))",
    "x.t()",
    "x.unsqueeze(0).expand(2, *x.shape)",
    "torch.nn.functional.pad(y, (0, abs({n}) % 3))",
    "x.chunk(2)[0]",
    "torch.stack([r for r in y])",
    "sum(y.unbind(1))",
    "torch.full((3,), {n})",
    "x.repeat(1, abs({n}) % 3 + 1)",
    "x / x.shape[0]",
    "x.narrow(0, 0, x.shape[0] // 2)",
    "(x if {c} else y)",
    "torch.linspace(0, 1, abs({n}) % 6 + 1)",
    "torch.empty_like(x).fill_({n})",
    "x.mean(dim=0, keepdim=True)",
    "torch.tensor([{n}, 1])",
    "torch.tensor({n})",
    "x.clone().fill_diagonal_({n})",
    "x.flatten()[{n} % x.numel()]",
)


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # A few of each: what fixes a size is not in every program.
        self.number_forms = tuple(self.random.sample(NUMBERS, 6))
        self.condition_forms = tuple(self.random.sample(CONDITIONS, 3))
        self.tensor_forms = tuple(self.random.sample(TENSORS, 7))
        self.tensors = ["x", "y"]
        self.numbers = ["x.shape[0]", "k"]

    def fill(self, forms: tuple[str, ...], depth: int) -> str:
        form = self.random.choice(forms)
        text = ""
        rest = form
        while rest:
            for key, choose in (
                ("{n}", self.number),
                ("{c}", self.condition),
                ("{t}", self.tensor),
            ):
                if rest.startswith(key):
                    text += choose(depth - 1)
                    rest = rest[len(key) :]
                    break
            else:
                double = rest[:2] in ("{{", "}}")
                text += rest[0]
                rest = rest[2 if double else 1 :]
        return text

    def number(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.3:
            return self.random.choice(self.numbers)
        return self.fill(self.number_forms, depth)

    def condition(self, depth: int) -> str:
        return self.fill(self.condition_forms, depth)

    def tensor(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.3:
            return f"({self.random.choice(self.tensors)})"
        return f"({self.fill(self.tensor_forms, depth)})"

    def program(self) -> str:
        lines = [
            "def f(x, y, k, r, data, *more, **named):",
            "    global G",
            "    out = []",
            "    table = {'n': x.shape[0]}",
            "    box.kept = 1",
        ]
        for i in range(self.random.randint(2, 6)):
            kind = self.random.random()
            if kind < 0.35:
                lines.append(f"    n{i} = {self.number(3)}")
                self.numbers.append(f"n{i}")
            elif kind < 0.65:
                lines.append(f"    t{i} = {self.tensor(3)}")
                self.tensors.append(f"t{i}")
            elif kind < 0.75:
                lines.append(f"    if {self.condition(2)}:")
                lines.append(f"        out.append({self.tensor(2)})")
                lines.append("    else:")
                lines.append(f"        out.append({self.number(2)})")
            elif kind < 0.82:
                lines.append(f"    box.kept = {self.number(2)}")
            elif kind < 0.88:
                lines.append(f"    table['n'] = {self.number(2)}")
            elif kind < 0.93:
                lines.append(f"    for i in range(abs({self.number(2)}) % 4):")
                lines.append(f"        out.append({self.tensor(1)} + i)")
            elif kind < 0.94:
                lines.append(f"    x.add_({self.number(2)})")
            elif kind < 0.955:
                lines.append("    box.count += 1")
            elif kind < 0.97:
                lines.append(f"    G = {self.number(1)}")
            elif kind < 0.98:
                lines.append("    out.extend([more, named, r, data])")
            else:
                lines.append("    break_here()")
            if self.random.random() < 0.4:
                lines.append(f"    out.append({self.random.choice(self.numbers)})")
        names = ", ".join(self.tensors[2:] + self.numbers[2:])
        lines.append(f"    return out, x.shape, [{names}]")
        return "\n".join(lines) + "\n"


PRELUDE = """import copy
import functools
import math
import operator
import torch
import assay


G = 1


class Box:
    kept = 0

    def __init__(self):
        self.count = 0


box = Box()


class Number:
    # C code asks it for numbers.

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return abs(self.n)

    def __index__(self):
        return self.n

    def __float__(self):
        return self.n * 1.0

    def __hash__(self):
        return self.n

    def __bool__(self):
        return self.n > 2

    def __add__(self, other):
        return self.n + other

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


def helper(n):
    return n + 1 if n > 3 else n


def hypot(a, b):
    return int(math.hypot(a, b))


def keyed(k):
    return k + 1


def counter():
    n = 0

    def cell():
        nonlocal n
        n += 1
        return n

    return cell


cell = counter()


@assay.disable
def break_here():
    pass


"""


def generate(seed: int) -> str:
    return PRELUDE + Writer(seed).program()
