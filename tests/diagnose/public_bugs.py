"""Bugs of torch.compile that users reported and that PyTorch 2.13.0 still has on a CPU.

Each program is our own, written after the description; where the report is about another case of
the same fault, its number is called related, and without one it was found here. ``f`` and ``args``
are the program under test; ``stage`` and ``calls`` are what a diagnosis must find: the calls of the
result are among ``calls``, and the first of them is there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A program and what is wrong with it."""

    issue: str
    stage: str
    kind: str
    calls: tuple[str, ...]
    program: str
    is_inside: bool = True  # whether it can be part of a larger model
    tail: str = "result = torch.compile(f)(*args)\nprint(result, result.dtype, result.stride())\n"


DECOMPOSITIONS = "inductor (decompositions and partitioner)"
# Checks of eager's that compiled code does without.
VALIDATION = "pytorch/pytorch#197554 (related)"


BUGS = {
    # 5 // 0.1 is 49 in eager: inductor divides and rounds down.
    "floor_divide": Bug(
        "pytorch/pytorch#197895", "inductor", "accuracy", ("//",), """
def f(x, y):
    return x // y
args = (torch.tensor([5.0, -5.0, 0.3, 6.0, 0.9]), torch.full((5,), 0.1))
"""),
    "int8_bmm_dtype": Bug(
        "pytorch/pytorch#191308", "inductor", "accuracy", ("torch.matmul",), """
def f(a, b):
    return torch.matmul(a, b)
args = (torch.ones((1, 1, 2), dtype=torch.int8), torch.ones((1, 2, 2), dtype=torch.int8))
"""),
    "prod_int8": Bug(
        "pytorch/pytorch#191499 (related)", "inductor", "accuracy", (".prod", ".to"), """
def f(x):
    return x.prod(dtype=torch.int8)
args = (torch.full((40,), 3, dtype=torch.int8),)
"""),
    "amin_uint8": Bug(
        "pytorch/pytorch#191499", "inductor", "accuracy", (".amin", ".to"), """
def f(x):
    return x.amin()
args = (torch.randint(1, 255, (64, 64), dtype=torch.uint8),)
"""),
    "cummin_empty": Bug(
        "pytorch/pytorch#188224", "inductor", "exception",
        ("torch.cummin", "torch.clone", "torch.bartlett_window"), """
def f():
    window = torch.bartlett_window(0, periodic=False)
    return torch.cummin(torch.clone(window), -46)[0]
args = ()
"""),
    "half_reductions": Bug(
        "pytorch/pytorch#194706", "inductor", "exception", ("torch.ops.aten.sum.dim_IntList",), """
def g(x):
    return torch.sum(torch.mm(torch.mm(torch.prod(x) + x, torch.sum(x) + x), torch.sum(x) + x))
f = torch.func.jacfwd(g)
args = ((torch.arange(1, 10, dtype=torch.float16) / 10).reshape(3, 3),)
""", is_inside=False),
    "normal_dtype": Bug(
        "pytorch/pytorch#194547", DECOMPOSITIONS, "accuracy",
        ("torch.normal",), """
def f(loc, scale):
    return torch.normal(loc, scale)
args = (torch.zeros(8, dtype=torch.float16), torch.zeros(8))
"""),
    "resize_uint8": Bug(
        "pytorch/pytorch#156788 (related)", "aot_autograd", "accuracy",
        ("torch.nn.functional.interpolate", ".to"), """
def f(x):
    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
args = (torch.randint(0, 255, (1, 3, 8, 8), dtype=torch.uint8),)
"""),
    "alias_view": Bug(
        "pytorch/pytorch#198095", "aot_autograd", "exception", (".add_", "operator.getitem"), """
def f(t0, ta):
    t0.add_(100)
    return ta[0]
base = torch.arange(24.0).reshape(4, 6)
args = (base, base[1:])
"""),
    # The forward pass is right, the gradients are not.
    "where_pool_gradient": Bug(
        "pytorch/pytorch#185509", "inductor", "accuracy",
        ("torch.nn.functional.max_pool2d", "torch.conv2d", "torch.where", ">"), """
def f(x, weight, bias):
    y = torch.nn.functional.interpolate(x, scale_factor=(1.5, 1.25), mode="bilinear")
    conv = torch.nn.functional.conv2d(y[:, :, 1:7, 1:8], weight, bias, padding=1)
    pool = torch.nn.functional.max_pool2d(conv, 3, 1, 1)
    return torch.where(conv > conv.mean((2, 3), keepdim=True), conv, pool)
sizes = [(2, 3, 6, 8), (4, 3, 3, 3), (4,)]
args = [torch.randn(size, requires_grad=True) for size in sizes]
""", is_inside=False, tail="""
torch.compile(f)(*args).sum().backward()
print(args[0].grad.flatten()[:8])
"""),
    "acosh_of_large": Bug(
        "", "inductor", "accuracy", ("torch.acosh",), """
def f(x):
    return torch.acosh(x)
args = (torch.tensor([1.0, 1e20, 0.5] * 8),)
"""),
    # One NaN that is right must not hide the one that is wrong.
    "remainder_of_infinity": Bug(
        "", "inductor", "accuracy", ("torch.remainder",), """
def f(x, y):
    return torch.remainder(x, y)
inf = float("inf")
args = (torch.tensor([1.0, -1.0, 5.0] * 8), torch.tensor([inf, inf, -inf] * 8))
"""),
    "grid_sample_of_nan": Bug(
        "", DECOMPOSITIONS, "accuracy", ("torch.nn.functional.grid_sample",), """
def f(x, grid):
    return torch.nn.functional.grid_sample(x, grid, mode="nearest", padding_mode="border")
args = (torch.randn(1, 2, 4, 4), torch.full((1, 3, 3, 2), float("nan")))
"""),
    "sum_to_bool": Bug(
        "", "inductor", "exception", (".sum",), """
def f(x):
    return x.sum(dtype=torch.bool)
args = (torch.tensor([1, 2, 3]),)
"""),
    "addr_strides": Bug(
        "pytorch/pytorch#198364", DECOMPOSITIONS, "accuracy", ("torch.addr",), """
def f(a, x, y):
    return torch.addr(a, x, y, beta=0.0)
args = (torch.rand(6, 5).mT, torch.rand(5), torch.rand(6))
"""),
    "negative_beta": Bug(
        "pytorch/pytorch#194501", DECOMPOSITIONS, "accuracy",
        ("torch.nn.functional.smooth_l1_loss",), """
def f(x, y):
    return torch.nn.functional.smooth_l1_loss(x, y, beta=-1.0)
args = (torch.tensor([1.0]), torch.tensor([0.0]))
"""),
    "cross_entropy_target": Bug(
        "pytorch/pytorch#193757", DECOMPOSITIONS, "accuracy",
        ("torch.nn.functional.binary_cross_entropy",), """
def f(x, target):
    return torch.nn.functional.binary_cross_entropy(x, target)
args = (torch.ones(4, 4), torch.full((4, 4), 1.5))
"""),
    "bernoulli_probability": Bug(
        "pytorch/pytorch#185246", DECOMPOSITIONS, "accuracy", ("torch.bernoulli",), """
def f(x):
    return torch.bernoulli(x)
args = (torch.full((4,), 1.5),)
"""),
    "linear_dtypes": Bug(
        "pytorch/pytorch#141865", DECOMPOSITIONS, "accuracy", ("torch._C._nn.linear",), """
def f(x, weight):
    return torch.nn.functional.linear(x, weight)
args = (torch.ones(1, 1, dtype=torch.float16), torch.ones(1, 1))
"""),
    "index_bounds": Bug(
        VALIDATION, "inductor", "accuracy", ("operator.getitem",), """
def f(x, i):
    return x[i]
args = (torch.randn(4), torch.tensor([0, 7]))
"""),
    "argmax_of_bool": Bug(
        VALIDATION, "inductor", "accuracy", ("torch.argmax",), """
def f(x):
    return torch.argmax(x)
args = (torch.tensor([True, False]),)
"""),
    "index_add_dtypes": Bug(
        VALIDATION, "inductor", "accuracy", (".index_add",), """
def f(x, i, y):
    return x.index_add(0, i, y)
args = (torch.zeros(5), torch.tensor([1, 1]), torch.ones(2, dtype=torch.float64))
"""),
    "maximum_of_nothing": Bug(
        VALIDATION, "inductor", "accuracy", (".max",), """
def f(x):
    return x.max()
args = (torch.empty(0),)
"""),
    "write_to_expanded": Bug(
        VALIDATION, "aot_autograd", "accuracy", (".add_", ".expand"), """
def f(x):
    return x.expand(3, 4).add_(1)
args = (torch.randn(1, 4),)
"""),
    # Of int8 values that are all negative, the largest is 0.
    "max_int8": Bug(
        "pytorch/pytorch#191499", "inductor", "accuracy", ("torch.max", "torch.argmax"), """
def f(x):
    return torch.max(x), torch.argmax(x)
args = (-torch.arange(1, 19, dtype=torch.int8).flip(0),)
""", tail="print(torch.compile(f)(*args))\n", is_inside=False),
    # The cast to half precision is left out.
    "attention_casts": Bug(
        "pytorch/pytorch#171190", "inductor", "accuracy",
        ("torch._C._nn.scaled_dot_product_attention", ".to", ".float"), """
def f(q, k, v):
    q = q.to(torch.float16).float()
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
args = [torch.randn(1, 2, 8, 16) * 20 for _ in range(3)]
"""),
    "negative_power": Bug(
        VALIDATION, "inductor", "accuracy", ("**",), """
def f(x):
    return x ** -1
args = (torch.tensor([1, 2, -1]),)
"""),
    "nan_is_not_comparable": Bug(
        "pytorch/pytorch#188225", "inductor", "exception",
        ("torch.arccosh", "torch.nn.functional.softmax", "torch.neg", "torch.ones", "torch.log2"),
        """
def f():
    one = torch.ones([2, 2])
    return torch.nn.functional.softmax(torch.arccosh(torch.log2(torch.atan2(one, one))), dim=1)
args = ()
"""),
    # Where one operand is an arange, the product of two int64 has 32 bits.
    "arange_overflow": Bug(
        "pytorch/pytorch#175966", "inductor", "accuracy", ("*", "torch.arange", "torch.tensor"), """
def f(x):
    return torch.arange(11) * torch.tensor([1000000000]) + x
args = (torch.zeros(1, dtype=torch.int64),)
"""),
    "sum_of_infinity": Bug(
        "pytorch/pytorch#190421", "inductor", "exception",
        ("torch.sum", "torch.log", "torch.full"), """
def f():
    return torch.sum(torch.log(torch.full((2,), 0.0)), dtype=torch.int32)
args = ()
"""),
    "celu_alpha": Bug(
        "pytorch/pytorch#178480", DECOMPOSITIONS, "accuracy", ("torch.celu_",), """
def f(x):
    return torch.celu_(x, 0.0)
args = (torch.ones(3),)
"""),
    "cat_strides": Bug(
        "", DECOMPOSITIONS, "accuracy", ("torch.cat",), """
def f(x):
    return torch.cat([x, x], 1)
args = (torch.randn(2, 3, 4, 5).permute(0, 3, 1, 2),)
"""),
    # Eager promises nothing about the strides of an empty result, but this script prints them.
    "strides_of_nothing": Bug(
        "intel/intel-xpu-backend-for-triton#5950", "inductor", "accuracy", ("torch.rms_norm",), """
def f(x, weight):
    return torch.nn.functional.rms_norm(x, (1,), weight)
args = (torch.empty(0, 1), torch.ones(1))
"""),
    # Eager's half precision is left out: right in float64, but the script compares with eager.
    "casts_under_an_assertion": Bug(
        "pytorch/pytorch#185337", "inductor", "accuracy", (".to", ".to"), """
def f(x):
    y = x.to(torch.float16).to(torch.float32)
    return y, y.sum(dim=1)
args = (torch.arange(20.0).reshape(5, 4).t() / 7.0,)
""", is_inside=False, tail="""
torch.testing.assert_close(torch.compile(f)(*args), f(*args), rtol=0, atol=0)
"""),
    # A matrix that is singular but for rounding.
    "condition_number": Bug(
        "pytorch/pytorch#150114", "inductor", "accuracy",
        ("torch._C._linalg.linalg_cond", "torch.arctan"), """
def f(x):
    return torch.linalg.cond(torch.arctan(x))
args = (torch.ones(2, 2),)
"""),
    # The quotient is next to an integer, so that float64 has another one, too.
    "floor_divide_under_an_exit_code": Bug(
        "pytorch/pytorch#197895 (related)", "inductor", "accuracy", ("//",), """
def f(x):
    return x * 1.0 // 0.1
args = (torch.round(torch.randn(50) * 10) / 10,)
""", is_inside=False, tail="""
raise SystemExit(0 if torch.equal(torch.compile(f)(*args), f(*args)) else 3)
"""),
    "abs_uint8": Bug(
        "pytorch/pytorch#187018", "inductor", "accuracy", (".abs", "torch.cat", ".sum"), """
def f(x):
    y = -x.abs()
    return torch.cat([y, y]).sum()
args = (torch.full((20,), 200, dtype=torch.uint8),)
"""),
    "region_reads_a_global": Bug(
        "pytorch/pytorch#191821", "dynamo", "output", (), """
class Box:
    def __init__(self, value):
        self.value = value
box = Box(torch.tensor(0))
@torch.compiler.nested_compile_region
def region():
    return box.value + 1
def f(h):
    global box
    for _ in range(2):
        box = Box(h)
        h = region()
    return h
args = (torch.tensor(0),)
""", is_inside=False, tail="print(torch.compile(f)(*args))\n"),
    # Eager refuses the bound; compiled code converts it first, and every value becomes 44.
    "clamp_out_of_range": Bug(
        "pytorch/pytorch#198071", "inductor", "accuracy", ("torch.clamp",), """
def f(x):
    return torch.clamp(x, max=300)
args = (torch.tensor([-128, -3, 0, 5, 127] * 4, dtype=torch.int8),)
"""),
    "power_of_minus_a_half": Bug(
        "", "inductor", "accuracy", ("**",), """
def f(x):
    return x ** -0.5
args = (torch.tensor([-0.0, float("-inf"), 4.0, 0.0] * 6),)
"""),
    "format_of_a_size": Bug(
        "pytorch/pytorch#197093", "dynamo", "exception", (), """
def f(x):
    return f"{x.shape[0]:d}", x + 1
""", is_inside=False, tail="""
c = torch.compile(f, dynamic=True)
print(c(torch.zeros(3)), c(torch.zeros(5)))
"""),
    # From the second call on the number is a symbol.
    "modulo_of_a_float": Bug(
        "", "aot_autograd", "exception", (), """
@torch.compile
def f(x, s):
    return x * (s % 0.3)
""", is_inside=False, tail="\nfor s in (0.7, 0.9):\n    print(f(torch.ones(2), s))\n"),
    # Needs a second call, whose inputs share memory.
    "alias_in_second_call": Bug(
        "pytorch/pytorch#139789", "aot_autograd", "output", (), """
def f(x, y):
    x.mul_(2)
    return x + y
""", is_inside=False, tail="""
c = torch.compile(f)
first = c(torch.ones(4), torch.ones(4))
base = torch.ones(8)
print(first, c(base[:4], base[2:6]))
"""),
    "second_derivative": Bug(
        "pytorch/pytorch#183603", "aot_autograd", "exception", (), """
def f(x):
    y = (x ** 4).sum()
    return torch.autograd.grad(y, x, create_graph=True)[0]
""", is_inside=False, tail="""
x = torch.tensor([0.5, 1.5], requires_grad=True)
print(torch.autograd.grad(torch.compile(f)(x).sum(), x)[0])
"""),
    # The backward pass is wrong only because it runs outside of autocast.
    "autocast_off_inside": Bug(
        "pytorch/pytorch#179804", "aot_autograd", "output", (), """
weight = torch.randn(8, 8, requires_grad=True)
def f(x):
    with torch.autocast("cpu", enabled=False):
        return x.float() @ weight.float().T
""", is_inside=False, tail="""
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = torch.compile(f)(torch.randn(4, 8, dtype=torch.bfloat16))
y.sum().backward()
print(weight.grad.flatten()[:8])
"""),
    "nested_regions": Bug(
        "pytorch/pytorch#192905", "dynamo", "output", (), """
region = torch.compiler.nested_compile_region
class Layer(torch.nn.Module):
    def __init__(self, flag):
        super().__init__()
        self.flag = flag
@region
def inner(layer, x):
    return x.sin() if layer.flag else x.cos()
@region
def outer(layer, x):
    return inner(layer, x) + 1.0
layers = [Layer(True), Layer(False)]
def f(x):
    return sum(outer(layer, x) for layer in layers)
args = (torch.ones(4),)
""", is_inside=False, tail="print(torch.compile(f)(*args))\n"),
    # No graph shows it: that the input is a ZeroTensor cannot be written to a file.
    "zero_tensor": Bug(
        "pytorch/pytorch#197067", "inductor", "signal", (), """
def f(t):
    return t[-1] + 10
x = torch.randn(3, requires_grad=True)
args = (torch.autograd.grad(torch.sgn(x).sum(), x)[0],)
"""),
    # inductor raises, but what AOTAutograd gives it is wrong already.
    "assigned_data": Bug(
        "pytorch/pytorch#94773", "aot_autograd", "output", (), """
def f(x):
    y = x[:]
    x.data = torch.ones(3, 4)
    return y
args = (torch.arange(6.0).reshape(2, 3),)
""", is_inside=False),
    "state_of_local_class": Bug(
        "pytorch/pytorch#197896", "dynamo", "output", (), """
def make():
    state = {"n": 0}
    class Counter:
        def count(self):
            state["n"] += 1
    def f(x):
        Counter().count()
        return x + 1
    return f, state
""", is_inside=False, tail="""
f, state = make()
c = torch.compile(f)
print(c(torch.ones(2)), state)
"""),
    # Only with a gradient, while AOTAutograd traces the backward pass; Dynamo catches it.
    "loop_gradient": Bug(
        "pytorch/pytorch#183017", "aot_autograd", "exception", (), """
def f(x):
    def condition(i, y):
        return i < 3
    def body(i, y):
        return i + 1, y * 2
    return torch.while_loop(condition, body, (torch.tensor(0), x))[1]
x = torch.randn(4, 6, requires_grad=True)
""", is_inside=False, tail="""
torch.compile(f)(x).sum().backward()
print(x.grad.sum())
"""),
    # Needs three calls, and is in Dynamo's guards.
    "identity": Bug(
        "pytorch/pytorch#196173", "dynamo", "output", (), """
class Owner:
    pass
first, second = Owner(), Owner()
def f(x, owner):
    y = torch.sin(x) * 2
    return x + 1 if owner is first else x * 10
""", is_inside=False, tail="""
c = torch.compile(f)
for owner in (first, second, first):
    print(c(torch.ones(1), owner))
"""),
}  # fmt: skip

HEAD = "import torch\ntorch.manual_seed(0)\n"

INSIDE = '''
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(16), torch.nn.Linear(16, 16)

    def forward(self, h):
        return h + torch.nn.functional.gelu(self.linear(self.norm(h))) * 0.5


class Model(torch.nn.Module):
    """Some 120 calls around the one that is wrong."""

    def __init__(self):
        super().__init__()
        self.before = torch.nn.ModuleList([Block() for _ in range(12)])
        self.after = torch.nn.ModuleList([Block() for _ in range(12)])

    def forward(self, h, *args):
        for block in self.before:
            h = block(h)
        result = f(*args)
        h = h + result.to(h.dtype).sum().clamp(-1, 1)
        for block in self.after:
            h = block(h)
        return h, result


with torch.no_grad():
    h, result = torch.compile(Model())(torch.randn(2, 16), *args)
print(h.sum(), result, result.dtype, result.stride())
'''


def alone(bug: Bug) -> str:
    """The program by itself, as a script."""
    return HEAD + bug.program + bug.tail


def inside(bug: Bug) -> str:
    """The program in the middle of a model."""
    return HEAD + bug.program + INSIDE
