"""Programs that libraries of models are made of: copied configurations, cached questions, scripted
functions, operators of their own."""

from __future__ import annotations

import collections
import copy
import functools
import itertools

import pytest
import torch
from torch import nn
from transformers.utils import import_utils, logging

import assay
from capture.harness import call, data, program

logger = logging.get_logger("transformers.capture")


@program
def test_string_built_after_a_break():
    """What was formatted by Python between two segments is part of the next one's guards."""

    class Experts(nn.ModuleDict):
        def forward(self, x, hit):
            return [self[f"expert_{i[0]}"](x) for i in hit]

    net = Experts({f"expert_{i}": nn.Linear(3, 3) for i in range(4)})
    yield net
    yield call(data(2, 3), torch.tensor([[0], [2], [3]]))
    yield call(data(2, 3), torch.tensor([[1], [0]]))
    yield call(data(2, 3), torch.tensor([[0], [2], [3]]))


@program
def test_string_built_in_a_loop_after_a_break():
    def forward(x, rows, names):
        total = x
        for row in rows:
            total = total + names[f"row {row[0]}"]
            total = total * len(f"{1.5:{'8' if row[0] > 1 else '12'}}")
        return total

    names = {f"row {i}": i for i in range(4)}
    yield forward
    yield call(data(2, 3), torch.tensor([[0], [2], [3]]), names)
    yield call(data(2, 3), torch.tensor([[3], [1]]), names)
    yield call(data(2, 3), torch.tensor([[0], [2], [3]]), names)


@program(graphs=1, breaks=0)
def test_copies_of_a_configuration():
    class Config:
        def __init__(self):
            self.sizes = [2, 3]
            self.shared = self.sizes
            self.names = {"a": 1, "b": (1, [2])}
            self.kinds = {"x", "y"}
            self.parent = self
            self.dtype = torch.float32

    def forward(x, config):
        copied = copy.deepcopy(config)
        copied.sizes.append(4)
        copied.names["c"] = 2
        shallow = copy.copy(config)
        shallow.names = None
        same = (copied.shared is copied.sizes, copied.parent is copied, shallow.sizes)
        numbers = sum(copied.sizes) + sum(config.sizes) + len(copied.kinds)
        return x.to(copied.dtype) * numbers, copied, same, copy.copy(config.sizes)

    config = Config()
    yield forward
    yield call(data(2, 3), config)
    yield call(data(2, 3), config)
    config.sizes[0] = 7
    yield call(data(2, 3), config)
    config.names["b"][1].append(3)
    yield call(data(2, 3), config)


@program
def test_copies_of_what_says_how_it_is_copied():
    class Counted:
        def __init__(self):
            self.copies = 0

        def __deepcopy__(self, memo):
            self.copies += 1
            return self

    def forward(x, counted):
        return x + copy.deepcopy(counted).copies, copy.deepcopy([x, counted])

    counted = Counted()
    yield forward
    yield call(data(2, 3), counted)
    yield call(data(2, 3), counted)
    yield call(data(2, 3), counted)


@program(
    call(data(2, 3), ["a", "b"]),
    call(data(2, 3), ["a", "b"]),
    call(data(2, 3), ["a", "c", "a"]),
    graphs=1,
    breaks=0,
)
def test_class_methods_of_builtin_types(x, names):
    table = dict.fromkeys(names, x + 1)
    empty = dict.fromkeys(names)
    return table, empty, list(itertools.chain.from_iterable([names, [1]]))


@program
def test_delete_through_super():
    class Output(collections.OrderedDict):
        def __delitem__(self, key):
            super().__delitem__(key)
            self.deleted = key

    def forward(x, output, key):
        made = Output(a=x, b=x + 1)
        del made["a"]
        del output[key]
        return made, len(output)

    yield forward
    yield call(data(2, 3), Output(p=1, q=2), "p")
    yield call(data(2, 3), Output(p=1, q=2), "p")
    yield call(data(2, 3), Output(p=1, q=2), "q")
    yield call(data(2, 3), Output(p=1, q=2), "r")


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)), graphs=1, breaks=0)
def test_abs_of_a_tensor(x):
    return abs(x) + abs(-2), abs(x[0] - x[1]) <= 1


@torch.jit.script
def scripted(x: torch.Tensor, size: int):
    return x * size + torch.relu(x)


@program(call(data(2, 3), 2), call(data(2, 3), 2), call(data(2, 3), 5), graphs=1, breaks=0)
def test_scripted_function(x, size):
    return scripted(x, size) + 1


@program(call(data(2, 3)), call(data(2, 3)), call(data(5, 3)), graphs=1, breaks=0)
def test_cached_questions_of_a_library(x):
    logger.warning_once("only once")
    return x + (1 if import_utils.is_torch_available() else 2)


@program
def test_cached_function_of_the_program_forgets():
    state = {"scale": 2}

    @functools.lru_cache
    def scale():
        return state["scale"]

    yield lambda x: x * scale()
    yield call(data(2, 3))
    state["scale"] = 3
    yield call(data(2, 3))
    scale.cache_clear()
    yield call(data(2, 3))


@program(call(data(2, 3)), call(data(2, 3)), call(data(5, 3)), graphs=1, breaks=0)
def test_operators_by_their_namespace(x):
    fast = torch.backends.mha.get_fastpath_enabled()
    return torch.ops.aten.relu(x) + torch.ops.aten.add.Tensor(x, x), fast


@program
def test_flag_of_a_backend():
    yield lambda x: x + 1 if torch.backends.mha.get_fastpath_enabled() else x - 1
    yield call(data(2, 3))
    torch.backends.mha.set_fastpath_enabled(False)
    yield call(data(2, 3))
    torch.backends.mha.set_fastpath_enabled(True)
    yield call(data(2, 3))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operator_whose_gradient_is_written_in_python(backend: str) -> None:
    """Its backward reads values, so that no graph can hold it."""
    with torch.library._scoped_library("capture_models", "FRAGMENT"):

        @torch.library.custom_op("capture_models::rows", mutates_args=())
        def rows(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:end] for end in ends.tolist()]).sum(0)

        def backward(ctx, gradient):
            (result,) = (torch.zeros(ctx.size),)
            for end in ctx.ends.tolist():
                result[:end] += gradient
            return result, None

        def setup_context(ctx, inputs, output):
            ctx.size, ctx.ends = inputs[0].shape, inputs[1]

        rows.register_autograd(backward, setup_context=setup_context)

        def forward(x, ends):
            return (torch.ops.capture_models.rows(x * 2, ends) + 1).sum()

        compiled = assay.compile(forward, backend=backend)
        for ends in ([1, 2], [1, 2], [3, 4], [1, 1]):
            x = torch.randn(4, 3)
            gradients = []
            for function in (forward, compiled):
                leaf = x.clone().requires_grad_()
                function(leaf, torch.tensor(ends)).backward()
                gradients.append(leaf.grad)
            assert torch.equal(*gradients)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * scale + ctx.needs_input_grad[0]

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.scale * 2 + x, None


class Changed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        x.add_(1)
        ctx.mark_dirty(x)
        return x, y


@program(backward=False, graphs=1, breaks=0)
def test_autograd_function_without_gradients():
    @torch.no_grad()
    def forward(x, scale):
        return Doubled.apply(x, scale) + 1, Changed.apply(x.clone(), x)

    yield forward
    yield call(data(2, 3), 2)
    yield call(data(2, 3, grad=True), 2)
    yield call(data(4, 3), 3)


@program
def test_autograd_function_with_gradients():
    def forward(x, scale):
        return Doubled.apply(x * 2, scale) + 1

    yield forward
    yield call(data(2, 3, grad=True), 2)
    yield call(data(2, 3, grad=True), 2)
    yield call(data(2, 3), 3)


@program
def test_dtype_of_the_first_parameter():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

        def forward(self, x):
            dtype = next(p.dtype for p in self.parameters() if p.is_floating_point())
            return x.to(dtype) * sum(p.numel() for p in self.parameters())

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.layers[2].weight = net.layers[0].weight  # now counted once
    yield call(data(2, 3))
    net.layers[1] = net.layers[0]
    yield call(data(2, 3))


@program(call(data(2, 3)), call(data(2, 3)), call(data(5, 3)), graphs=1, breaks=0)
def test_import_from_a_package(x):
    from torch.nn import utils

    return x + 1, utils


@program
def test_result_that_is_not_used_has_no_gradient():
    """Parameters behind it have none either, rather than zeros, which an optimizer would use."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(3, 3)
            self.unused = nn.Linear(3, 3)

        def forward(self, x):
            y = self.used(x)
            return {"loss": y.sum(), "pooled": [self.unused(y).detach().sum(), self.unused(y)]}

    class Trained(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, x):
            return self.net(x)

    net = Trained()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    compiled = yield net
    for _ in range(3):
        x = data(2, 3)
        optimizer.zero_grad()
        compiled(x)["loss"].backward()
        optimizer.step()
    yield call(data(2, 3))
    yield call(data(2, 3))
    yield call(data(2, 3))
