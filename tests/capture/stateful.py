"""A program that reads state of every kind, and the ways in which a user may change that state.

test_changing_state.py loads this module twice, as two worlds, makes the same random changes in
both, and compares the program run eagerly in one with the compiled one in the other.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable
from random import Random
from typing import Any

import torch

Change = Callable[[Random], Any]
changes: list[Change] = []


class Color(enum.Enum):
    red = 1
    blue = 2


class Base:
    k = 5

    def shifted(self, x):
        return x + self.k


class Thing(Base):
    def __init__(self):
        self.a = 1
        self.items = [1, 2]
        self._p = 2
        self.t = torch.arange(4.0)

    @property
    def p(self):
        return self._p * 2

    def __getattr__(self, name):
        if name == "made_up":
            return 7
        raise AttributeError(name)

    def __len__(self):
        return len(self.items)

    def __call__(self, x):
        return x * self.a


class Slots:
    __slots__ = ("v", "w")

    def __init__(self):
        self.v = 1
        self.w = torch.zeros(4)


class Descriptor:
    def __get__(self, instance, owner):
        return instance.__dict__.get("_q", 9)


class WithDescriptor:
    q = Descriptor()


@dataclasses.dataclass
class Data:
    a: int = 1
    b: object = None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.flag = True
        self.register_buffer("shift", torch.ones(4))
        self.tail = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
        self.config = {"n": 2}

    def forward(self, x):
        x = self.linear(x.view(1, 4).expand(3, 4))
        if self.flag:
            x = x + self.shift
        if self.training:
            x = x * 2
        for i in range(self.config["n"]):
            x = x + i
        return self.norm(self.tail(x)).sum(0)


def make_cell():
    c = 10

    def read(x):
        return x + c

    def write(value):
        nonlocal c
        c = value

    return read, write


def with_defaults(x, n=2, *, m=3):
    return x * n + m


number = 3
numbers = [1, 2, 3]
table = {"a": 1, "b": 2}
function = lambda t: t + 1
tensor = torch.ones(4)
color = Color.red
space = types.SimpleNamespace(scale=2.0, function=lambda t: t * 2)
thing, slots, described, record = Thing(), Slots(), WithDescriptor(), Data()
read_cell, write_cell = make_cell()
torch.manual_seed(0)
net = Net()
anything: Any = 1
options: dict[str, int] = {}
nested = [{"k": [1, 2]}]
log: list[int] = []


def program(x, y):
    r = x * number + sum(numbers) + table.get("a", 0)
    if "c" in table:
        r = r + table["c"]
    for v in table.values():
        r = r + v
    r = function(r) + tensor
    if color is Color.red:
        r = r + 1
    r = space.function(r) * space.scale
    r = r + thing.a + len(thing) + thing.p + thing.made_up + thing.shifted(x) + thing.t
    r = thing(r)
    for v in thing.items:
        r = r + v
    if hasattr(thing, "extra"):
        r = r + thing.extra
    r = r * slots.v + slots.w + described.q + record.a
    if record.b is not None:
        r = r - 1
    if isinstance(anything, int):
        r = r + anything
    elif isinstance(anything, (list, tuple)):
        r = r + len(anything)
    elif anything is None:
        r = r - 5
    r = with_defaults(read_cell(r))
    r = net(r) + r
    if x is y:
        r = r + 100
    if options.get("on"):
        r = r + 1
    log.append(len(log))
    r = r + nested[0]["k"][1]
    if torch.is_grad_enabled():
        r = r * 1.5
    return r + y


def small(random: Random) -> int:
    return random.randint(0, 3)


def sets_global(name: str, value: Callable[[Random], Any]) -> Change:
    def change(random: Random) -> None:
        globals()[name] = value(random)

    return change


def sets(owner: Any, name: str, value: Callable[[Random], Any] = small) -> Change:
    return lambda random: setattr(owner, name, value(random))


def forgets(owner: Any, name: str) -> Change:
    """Removes an attribute of the object itself."""

    def change(random: Random) -> None:
        if name in vars(owner):
            delattr(owner, name)

    return change


def grows_and_shrinks(items: list[int], longest: int) -> Change:
    return lambda random: items.append(small(random)) if len(items) < longest else items.clear()


def adds_hook(module: torch.nn.Module, kind: str, hook: Callable[..., Any]) -> Change:
    def change(random: Random) -> None:
        hooks = getattr(module, f"_{kind}_hooks")
        if len(hooks) < 2:
            getattr(module, f"register_{kind}_hook")(hook)
        else:
            hooks.clear()

    return change


def adder(random: Random) -> Callable[[Any], Any]:
    n = small(random)
    return lambda t: t + n


def returns(random: Random) -> Callable[..., Any]:
    n = small(random)
    return lambda *args: n


def coin(random: Random) -> bool:
    return random.random() < 0.5


codes = [(lambda x, n=2, *, m=3: x - n + m).__code__, with_defaults.__code__]

changes += [
    sets_global("number", small),
    grows_and_shrinks(numbers, 6),
    lambda random: table.__setitem__(random.choice("abc"), small(random)),
    lambda random: table.pop("c", None),
    sets_global("function", adder),
    sets_global("tensor", lambda random: torch.full((4,), float(small(random)))),
    lambda random: tensor.add_(1),
    sets_global("color", lambda random: random.choice(list(Color))),
    sets(space, "scale", lambda random: float(small(random))),
    sets(space, "function", lambda random: random.choice([torch.sin, adder(random)])),
    sets(thing, "a"),
    grows_and_shrinks(thing.items, 5),
    sets(thing, "_p"),
    sets(thing, "k"),
    forgets(thing, "k"),
    sets(Base, "k"),
    sets(Thing, "k"),
    forgets(Thing, "k"),
    sets(Base, "shifted", lambda random: random.choice([lambda s, x: x - s.k, lambda s, x: x])),
    sets(Thing, "p", lambda random: property(returns(random))),
    sets(thing, "made_up"),
    forgets(thing, "made_up"),
    sets(thing, "t", lambda random: torch.arange(4.0) * small(random)),
    sets(thing, "extra"),
    forgets(thing, "extra"),
    sets(Thing, "__len__", returns),
    sets(Thing, "__call__", returns),
    sets(slots, "v"),
    sets(slots, "w", lambda random: torch.full((4,), float(small(random)))),
    lambda random: vars(described).__setitem__("_q", small(random)),
    sets(record, "a"),
    sets(record, "b", lambda random: random.choice([None, 1])),
    sets_global("anything", lambda random: random.choice([1, 2, None, [1], (1, 2), True, "x"])),
    lambda random: write_cell(small(random)),
    sets(with_defaults, "__defaults__", lambda random: (small(random),)),
    sets(with_defaults, "__kwdefaults__", lambda random: {"m": small(random)}),
    sets(with_defaults, "__code__", lambda random: random.choice(codes)),
    lambda random: net.train(coin(random)),
    sets(net, "flag", coin),
    lambda random: net.config.__setitem__("n", small(random)),
    lambda random: net.linear.weight.data.mul_(0.9),
    sets(net, "linear", lambda random: torch.nn.Linear(4, 4)),
    lambda random: net.tail.append(torch.nn.Sigmoid()) if len(net.tail) < 5 else None,
    lambda random: net.tail.__setitem__(
        0, random.choice([torch.nn.ReLU, torch.nn.GELU, torch.nn.Identity])()
    ),
    adds_hook(net, "forward", lambda module, inputs, output: output + 1),
    adds_hook(net.linear, "forward_pre", lambda module, inputs: (inputs[0] * 2,)),
    sets(net, "forward", lambda random: types.MethodType(lambda s, x: x * 3, net)),
    forgets(net, "forward"),
    lambda random: net.shift.add_(1),
    lambda random: net.register_buffer("shift", torch.full((4,), float(small(random)))),
    sets(net.norm, "momentum", lambda random: random.choice([0.1, 0.5, None])),
    sets(net.norm, "eps", lambda random: random.choice([1e-5, 1e-2])),
    lambda random: net.linear.weight.requires_grad_(coin(random)),
    lambda random: options.__setitem__("on", small(random)),
    lambda random: options.pop("on", None),
    lambda random: nested[0]["k"].__setitem__(1, small(random)),
    lambda random: nested.insert(0, {"k": [0, small(random)]}),
    sets(
        thing,
        "__class__",
        lambda random: random.choice([Thing, type("Other", (Thing,), {"made_up": small(random)})]),
    ),
]
