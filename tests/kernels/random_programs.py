"""Random programs of tensor calls, as text: for holding compilers against eager.

    program = generate(seed)
    print(program.text)              # a function that anyone can run
    program.run(*program.make())     # eagerly

Every line is tried eagerly when it is generated, so a program never raises. Values are kept small.
Calls that turn a rounding error into another integer (comparing, rounding, sorting) only get
operands that every correct compiler computes to the last bit.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["RandomProgram", "generate", "reduce"]

FLOATS = ("float32", "float64", "bfloat16", "float16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
LARGEST = 4000  # elements of a value


@dataclasses.dataclass(frozen=True)
class Line:
    """``name = call``."""

    name: str
    call: str

    def __str__(self) -> str:
        return f"{self.name} = {self.call}"


@dataclasses.dataclass(frozen=True)
class RandomProgram:
    """Inputs, lines of calls, and the names of what is returned."""

    seed: int
    inputs: tuple[Line, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]

    @functools.cached_property
    def text(self) -> str:
        body = [f"    {line}" for line in self.lines]
        names = ", ".join(line.name for line in self.inputs)
        result = ", ".join(self.outputs)
        made = [f"{line}" for line in self.inputs]
        header = ["import torch", f"torch.manual_seed({self.seed})", *made]
        return "\n".join([*header, f"def program({names}):", *body, f"    return ({result},)"])

    @functools.cached_property
    def run(self) -> Callable[..., Any]:
        return self._function(self.text)

    @functools.cached_property
    def run_in_float64(self) -> Callable[..., Any]:
        """The same for inputs in float64."""
        return self._function(re.sub(r"torch\.(b?float16|float32)", "torch.float64", self.text))

    def _function(self, text: str) -> Callable[..., Any]:
        names: dict[str, Any] = {"torch": torch}
        exec(text[text.index("def program(") :], names)
        return names["program"]

    def make(self) -> list[Tensor]:
        """The inputs, the same ones every time."""
        torch.manual_seed(self.seed)
        return [_evaluate(line.call, {}) for line in self.inputs]


def _evaluate(call: str, values: dict[str, Tensor]) -> Any:
    return eval(call, {"torch": torch}, dict(values))


class _Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.inputs: list[Line] = []
        self.lines: list[Line] = []
        self.values: dict[str, Tensor] = {}
        self.exact: dict[str, bool] = {}
        # Few sizes, so that many values fit together.
        self.sizes = self.random.sample([2, 3, 4, 5, 8, 9, 16, 17, 33], 3)

    # ---- inputs ----

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choices((0, 1, 2, 3, 4), (1, 3, 5, 4, 3))[0]
        return tuple(
            self.random.choices((self.random.choice(self.sizes), 1, 0), (40, 6, 1))[0]
            for _ in range(rank)
        )

    def input_text(self, dtype: str) -> str:
        shape = list(self.shape())
        layout = self.random.choice(
            ("plain", "plain", "transposed", "expanded", "offset", "stepped")
        )
        if len(shape) == 4 and self.random.random() < 0.5:
            layout = "channels_last"
        made, view = list(shape), ""
        if layout == "transposed" and len(shape) >= 2:
            made, view = [*shape[:-2], shape[-1], shape[-2]], ".transpose(-1, -2)"
        elif layout == "expanded" and shape:
            position = self.random.randrange(len(shape))
            made[position], view = 1, f".expand({shape})"
        elif layout == "offset" and shape:
            made[0], view = shape[0] + 2, f"[1:{shape[0] + 1}]"
        elif layout == "stepped" and shape and shape[-1] > 0:
            made[-1], view = shape[-1] * 2, "[..., ::2]"
        elif layout == "channels_last":
            view = ".contiguous(memory_format=torch.channels_last)"
        if dtype in FLOATS:
            text = f"torch.randn({made}, dtype=torch.float64).to(torch.{dtype})"
        elif dtype == "bool":
            text = f"torch.randint(0, 2, {made}).bool()"
        else:
            low = 0 if dtype == "uint8" else -9
            text = f"torch.randint({low}, 10, {made}, dtype=torch.{dtype})"
        text += view
        if dtype in FLOATS and self.random.random() < 0.6:
            text += ".requires_grad_()"
        return text

    def add_input(self) -> None:
        dtype = self.random.choices(
            ("float32", *FLOATS[1:], *INTEGERS, "bool"), (12, 2, 2, 2, 3, 1, 1, 1, 1, 2)
        )[0]
        name = f"x{len(self.inputs)}"
        torch.manual_seed(self.seed + len(self.inputs))
        self.inputs.append(Line(name, self.input_text(dtype)))

    # ---- calls ----

    def pick(self, *, where: Callable[[str], bool] = lambda _: True) -> str:
        """A value, one of the latest more often than not."""
        names = [name for name in self.values if where(name)]
        if not names:
            raise LookupError
        if self.random.random() < 0.6:
            names = names[-4:]
        return self.random.choice(names)

    def is_float(self, name: str) -> bool:
        return self.values[name].is_floating_point()

    def dimension(self, name: str) -> int:
        rank = self.values[name].dim()
        if rank == 0:
            raise LookupError
        return self.random.randrange(-rank, rank)

    def unary(self) -> tuple[str, bool]:
        name = self.pick(where=self.is_float)
        form = self.random.choice(_UNARY)
        return form.format(name), False

    def exact_unary(self) -> tuple[str, bool]:
        name = self.pick()
        form = self.random.choice(_EXACT_UNARY)
        return form.format(name), self.exact[name]

    def binary(self) -> tuple[str, bool]:
        left, right = self.pick(), self.pick()
        form, exact = self.random.choice(_BINARY)
        is_exact = exact and self.exact[left] and self.exact[right]
        return form.format(left, right), is_exact

    def scalar(self) -> tuple[str, bool]:
        name = self.pick()
        number = self.random.choice((2, -3, 0.5, 1.25, 0, 1))
        form = self.random.choice(_SCALAR)
        return form.format(name, number), self.exact[name]

    def discontinuous(self) -> tuple[str, bool]:
        name = self.pick(where=lambda name: self.exact[name])
        other = self.pick(where=lambda name: self.exact[name])
        form = self.random.choice(_DISCONTINUOUS)
        return form.format(name, other, self.random.choice((-1, 0, 2))), True

    def choose(self) -> tuple[str, bool]:
        mask = self.pick(where=lambda name: self.values[name].dtype == torch.bool)
        left, right = self.pick(), self.pick()
        form = self.random.choice(
            ("torch.where({0}, {1}, {2})", "{1}.masked_fill({0}, 0.5)", "torch.where({0}, {1}, 0)")
        )
        return form.format(mask, left, right), self.exact[left] and self.exact[right]

    def reduction(self) -> tuple[str, bool]:
        name = self.pick()
        keep = self.random.random() < 0.4
        dim: Any = self.dimension(name) if self.random.random() < 0.8 else None
        if dim is not None and self.random.random() < 0.2 and self.values[name].dim() > 1:
            dim = tuple(self.random.sample(range(self.values[name].dim()), 2))
        arguments = f"{dim}, keepdim={keep}" if dim is not None else ""
        kinds = ["sum", "mean", "amax", "amin", "prod", "any", "all", "var", "logsumexp"]
        kind = self.random.choice(kinds)
        exact = kind in ("amax", "amin", "any", "all") or not self.is_float(name)
        if kind in ("prod", "any", "all") and isinstance(dim, tuple):
            raise LookupError
        if kind in ("any", "all") and not self.exact[name]:
            raise LookupError
        if kind == "prod":
            return f"torch.tanh({name}).prod({arguments})", False
        if kind in ("mean", "var", "logsumexp") and not self.is_float(name):
            kind = "sum"
        if kind == "logsumexp" and dim is None:
            arguments = "-1"
        return f"{name}.{kind}({arguments})", exact and self.exact[name]

    def along(self) -> tuple[str, bool]:
        name = self.pick()
        dim = self.dimension(name)
        form = self.random.choice(_ALONG)
        exact = "softmax" not in form and "cum" not in form and "norm" not in form
        if not self.is_float(name) and not exact and "cumsum" not in form:
            raise LookupError
        exact = exact or (not self.is_float(name) and "cumsum" in form)
        return form.format(name, dim), exact and self.exact[name]

    def view(self) -> tuple[str, bool]:
        name = self.pick()
        value = self.values[name]
        rank = value.dim()
        forms = [f"{name}.unsqueeze({self.random.randint(0, rank)})", f"{name}.reshape(-1)"]
        if rank >= 1:
            dim, size = self.dimension(name), value.shape[self.dimension(name)]
            first = self.random.randint(0, max(size - 1, 0))
            forms += [
                f"{name}.squeeze({dim})",
                f"{name}.narrow({dim}, 0, {max(value.shape[dim] - 1, 0)})",
                f"{name}[{min(first, max(value.shape[0] - 1, 0))}]",
                f"{name}[..., 1:]",
                f"{name}[::2]",
            ]
        if rank >= 2:
            order = self.random.sample(range(rank), rank)
            forms += [f"{name}.transpose(0, -1)", f"{name}.permute({order})"] * 2
            forms += [f"{name}.diagonal(0, 0, 1)", f"{name}.contiguous()"]
        if rank <= 3:
            forms.append(f"{name}.expand({[self.random.choice(self.sizes), *value.shape]})")
        return self.random.choice(forms), self.exact[name]

    def join(self) -> tuple[str, bool]:
        left = self.pick()
        dim = self.dimension(left)
        right = self.pick(where=lambda name: self.values[name].dim() == self.values[left].dim())
        form = self.random.choice(("torch.cat([{0}, {1}], {2})", "torch.stack([{0}, {1}], {2})"))
        return form.format(left, right, dim), self.exact[left] and self.exact[right]

    def cast(self) -> tuple[str, bool]:
        name = self.pick()
        to = self.random.choice((*FLOATS, *INTEGERS, "bool"))
        if to not in FLOATS and not self.exact[name]:
            raise LookupError
        return f"{name}.to(torch.{to})", self.exact[name]

    def indexed(self) -> tuple[str, bool]:
        name = self.pick()
        dim = self.dimension(name)
        size = self.values[name].shape[dim]
        count = self.random.randint(0, 5)
        if size == 0:
            raise LookupError
        numbers = [self.random.randrange(size) for _ in range(count)]
        text = f"torch.tensor({numbers}, dtype=torch.int64)"
        forms = [f"{name}.index_select({dim}, {text})"]
        if dim == 0:
            forms += [f"{name}[{text}]", f"torch.nn.functional.embedding({text}, {name})"]
        return self.random.choice(forms), self.exact[name]

    def matmul(self) -> tuple[str, bool]:
        left = self.pick(where=lambda name: self.is_float(name) and self.values[name].dim() == 2)
        right = self.pick(where=lambda name: self.is_float(name) and self.values[name].dim() == 2)
        return f"torch.tanh({left} @ {right})", False

    def try_line(self) -> bool:
        kinds = (
            (self.unary, 8), (self.exact_unary, 4), (self.binary, 12), (self.scalar, 5),
            (self.discontinuous, 3), (self.choose, 3), (self.reduction, 6), (self.along, 4),
            (self.view, 9), (self.join, 3), (self.cast, 3), (self.indexed, 2), (self.matmul, 2),
        )  # fmt: skip
        kind = self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        try:
            call, exact = kind()
            value = _evaluate(call, self.values)
        except Exception:  # does not fit: another one will
            return False
        if not isinstance(value, Tensor) or value.numel() > LARGEST or value.dim() > 5:
            return False
        if value.is_floating_point() and value.numel() > 0:
            largest = value.detach().abs().max()
            if not bool(largest < 100):  # or NaN
                return False
        name = f"v{len(self.lines)}"
        self.lines.append(Line(name, call))
        self.values[name], self.exact[name] = value, exact
        return True

    def generate(self) -> RandomProgram:
        for _ in range(self.random.randint(1, 4)):
            self.add_input()
        program = RandomProgram(self.seed, tuple(self.inputs), (), ())
        for line, value in zip(self.inputs, program.make(), strict=True):
            self.values[line.name], self.exact[line.name] = value, True
        wanted, tries = self.random.choice((5, 10, 20, 40, 60)), 0
        while len(self.lines) < wanted and tries < 20 * wanted:
            tries += 1
            self.try_line()
        text = "\n".join(line.call for line in self.lines)
        outputs = [line.name for line in self.lines if f"{line.name}" not in _names(text)]
        outputs += [line.name for line in self.lines if self.random.random() < 0.1]
        if not outputs:
            outputs = [self.inputs[0].name]
        return RandomProgram(
            self.seed, tuple(self.inputs), tuple(self.lines), tuple(dict.fromkeys(outputs))
        )


def _names(text: str) -> set[str]:
    table = str.maketrans(dict.fromkeys("()[]{},.=+-*/@&|^~<>:", " "))
    return set(text.translate(table).split())


_LAYOUTS = ("plain", "plain", "transposed", "expanded", "offset", "stepped")
_UNARY = (
    "torch.sin({0})", "torch.cos({0})", "torch.tanh({0})", "torch.sigmoid({0})",
    "torch.exp(-{0}.abs())", "torch.log({0}.abs() + 0.5)", "torch.log1p({0}.abs())",
    "torch.sqrt({0}.abs() + 0.1)", "torch.rsqrt({0}.abs() + 0.5)", "torch.erf({0})",
    "torch.nn.functional.gelu({0})", "torch.nn.functional.gelu({0}, approximate='tanh')",
    "torch.nn.functional.silu({0})", "torch.nn.functional.softplus({0})",
    "torch.nn.functional.elu({0})", "torch.nn.functional.mish({0})", "torch.atan({0})",
    "torch.reciprocal({0}.abs() + 1)", "torch.expm1(-{0}.abs())", "{0} / ({0}.abs() + 1)",
    "torch.pow({0}.abs() + 0.5, 1.5)", "torch.nn.functional.logsigmoid({0})",
)  # fmt: skip
_EXACT_UNARY = (
    "-{0}", "{0}.abs()", "torch.relu({0})", "{0}.clone()", "{0} * {0}", "torch.sign({0})",
    "{0}.clamp(-2, 2)", "torch.nn.functional.hardtanh({0}, -2.0, 2.0)",
    "torch.nn.functional.leaky_relu({0}, 0.125)", "torch.ones_like({0})", "{0}.detach() + {0}",
    "torch.square({0})", "{0}.logical_not()", "~{0}", "torch.nn.functional.hardsigmoid({0})",
)  # fmt: skip
_BINARY = (
    ("{0} + {1}", True), ("{0} - {1}", True), ("{0} * {1}", True),
    ("torch.maximum({0}, {1})", True), ("torch.minimum({0}, {1})", True),
    ("{0} / ({1}.abs() + 1)", False), ("torch.add({0}, {1}, alpha=2)", True),
    ("torch.atan2({0}, {1}.abs() + 1)", False), ("torch.lerp({0}, {1}, 0.25)", False),
    ("torch.hypot({0}, {1})", False), ("{0} & {1}", True), ("{0} | {1}", True),
    ("torch.addcmul({0}, {1}, {1}, value=0.5)", False), ("torch.copysign({0}, {1})", True),
)  # fmt: skip
_SCALAR = (
    "{0} + {1}", "{0} * {1}", "{1} - {0}", "torch.rsub({0}, {1})", "{0}.clamp(min={1})",
    "torch.maximum({0}, torch.tensor({1}))",
)  # fmt: skip
_DISCONTINUOUS = (
    "{0} > {1}", "{0} == {1}", "{0} <= {2}", "{0} != {2}", "torch.floor({0})", "torch.round({0})",
    "{0} // 2", "{0} % 3", "torch.fmod({0}, 2)", "torch.trunc({0})", "torch.isnan({0})",
    "{0}.argmax()", "{0}.argmin(-1)", "torch.sort({0}, -1).values", "{0}.max(-1).values",
    "{0}.heaviside(torch.zeros((), dtype={0}.dtype))", "torch.logical_and({0}, {1})",
    "{0} // ({1}.abs() + 1)", "torch.div({0}, 3, rounding_mode='trunc')", "{0}.min(0).indices",
)  # fmt: skip
_ALONG = (
    "torch.softmax({0}, {1})", "torch.log_softmax({0}, {1})", "torch.cumsum({0}, {1})",
    "torch.nn.functional.layer_norm({0}, [{0}.shape[-1]])", "{0}.flip({1})",
    "torch.roll({0}, 2, {1})", "torch.nn.functional.normalize({0}, dim={1}, eps=0.1)",
    "torch.nn.functional.pad({0}, (1, 2))", "torch.nn.functional.pad({0}, (0, -1))",
    "{0}.repeat_interleave(2, {1})", "torch.diff({0}, dim={1})", "{0}.select({1}, 0)",
)  # fmt: skip


def generate(seed: int) -> RandomProgram:
    """The program of a seed."""
    return _Generator(seed).generate()


def reduce(program: RandomProgram, fails: Callable[[RandomProgram], bool]) -> RandomProgram:
    """A smaller program that fails too: fewer results, and inputs in the place of calls."""

    def smaller(candidates: Iterable[RandomProgram]) -> RandomProgram | None:
        return next((candidate for candidate in candidates if fails(candidate)), None)

    program = smaller(_needed(program, [name]) for name in program.outputs) or program
    for name in program.outputs:
        others = [other for other in program.outputs if other != name]
        if others and fails(candidate := _needed(program, others)):
            program = candidate
    while (found := smaller(_with_inputs(program))) is not None:
        program = found
    return program


def _needed(program: RandomProgram, outputs: Sequence[str]) -> RandomProgram:
    """The program with these outputs, and only the lines and inputs they need."""
    needed = set(outputs)
    lines = []
    for line in reversed(program.lines):
        if line.name in needed:
            lines.append(line)
            needed |= _names(line.call)
    return RandomProgram(
        program.seed,
        tuple(line for line in program.inputs if line.name in needed) or program.inputs[:1],
        tuple(reversed(lines)),
        tuple(outputs),
    )


def _with_inputs(program: RandomProgram) -> Iterator[RandomProgram]:
    """The program with one call replaced by an input like its value, latest calls first."""
    values = dict(zip([line.name for line in program.inputs], program.make(), strict=True))
    for line in program.lines:
        values[line.name] = _evaluate(line.call, values)
    for line in reversed(program.lines):
        inputs = (*program.inputs, Line(line.name, _like(values[line.name])))
        others = tuple(other for other in program.lines if other is not line)
        candidate = RandomProgram(program.seed, inputs, others, program.outputs)
        if not set(program.outputs) <= {other.name for other in others}:
            continue  # a program that returns its inputs says nothing
        yield _needed(candidate, program.outputs)


def _like(value: Tensor) -> str:
    """An expression that makes a tensor of the same dtype, sizes and strides."""
    steps = zip(value.shape, value.stride(), strict=True)
    extent = 1 + sum((size - 1) * stride for size, stride in steps if size > 0)
    dtype = str(value.dtype)
    if value.is_floating_point():
        text = f"torch.randn([{extent}], dtype=torch.float64).to({dtype})"
    else:
        text = f"torch.randint(0, {2 if dtype == 'torch.bool' else 10}, [{extent}]).to({dtype})"
    text += f".as_strided({tuple(value.shape)}, {value.stride()})"
    return text + (".requires_grad_()" if value.requires_grad else "")
