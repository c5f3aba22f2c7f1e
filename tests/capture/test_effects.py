"""Writes to objects that outlive the call."""

from __future__ import annotations

import random

import numpy
import torch
from torch import nn

from capture.harness import call, data, program


@program
def test_attribute_of_argument():
    class State: ...

    def f(x, state, n):
        state.last = x * n
        state.n = n
        return state.last + 1

    state = State()
    yield f
    yield call(data(2), state, 1)
    yield call(data(2), state, 1)
    yield call(data(2), State(), 2)


@program
def test_global_number():
    global STEPS
    STEPS = 0

    def f(x):
        global STEPS
        STEPS += 1
        return x * STEPS

    yield f
    yield call(data(2))
    yield call(data(2))
    STEPS = 100
    yield call(data(2))


@program
def test_global_tensor_replaced():
    global LAST
    LAST = None

    def f(x):
        global LAST
        previous = LAST
        LAST = x + 1
        return x if previous is None else x + previous

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(2))
    LAST = None
    yield call(data(2))


@program
def test_global_created_and_deleted():
    def f(x, create):
        global MARK
        if create:
            MARK = x
        else:
            del MARK
        return "MARK" in globals()

    yield f
    yield call(data(2), True)
    yield call(data(2), False)
    yield call(data(2), True)
    yield call(data(2), True)


@program
def test_append_to_global_list():
    global LOG
    LOG = []

    def f(x, tag):
        LOG.append(tag)
        LOG.append(x.shape)
        return x + len(LOG)

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(3), "b")


@program(call(data(3)), call(data(3)), call(data(2, 3)))
def test_in_place_on_argument(x):
    x.add_(1)
    x *= 2
    return x.sum()


@program(call(data(3), data(3)), call(data(3), data(3)), call(data(2, 3), data(3)))
def test_in_place_through_view(x, y):
    x[..., 0] = 5
    x.view(-1)[1] += 1
    x[..., 1:].copy_(y[1:])
    return x * 2, x


@program(call(data(4, 4)), call(data(4, 4)), call(data(6, 6)))
def test_in_place_on_own_tensor(x):
    y = x * 2
    y[0] = 0
    y[:, 1:3].mul_(10)
    y.t()[1] -= 1
    return y


@program(call([data(2), data(2)]), call([data(2), data(2)]), call([data(3), data(3), data(3)]))
def test_in_place_on_tensors_of_list(tensors):
    for i, tensor in enumerate(tensors):
        tensor.mul_(i + 1)
    tensors[0] = tensors[-1]
    return tensors[0] + 1


@program
def test_order_of_effects():
    class Trace(list): ...

    trace = []

    def f(x, n):
        trace.append("start")
        x.add_(1)
        trace.append(n)
        table["x"] = x
        trace.append(len(table))
        return x

    table = {}
    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_grad_accumulates():
    weight = data(3, 3, grad=True)

    def f(x):
        return (x @ weight).sum()

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    weight.grad = None
    yield call(data(2, 3))


@program(
    call(data(3, grad=True)), call(data(3, grad=True)), call(data(2, 3, grad=True)), backward=False
)
def test_backward_inside(x):
    loss = (x * x).sum()
    loss.backward()
    return x.grad * 2


@program
def test_grad_set_and_cleared_inside():
    weight = data(3, grad=True)

    def f(x, clear):
        if clear:
            weight.grad = None
        y = (weight * x).sum()
        return y

    yield f
    yield call(data(3), False)
    yield call(data(3), False)
    yield call(data(3), True)
    yield call(data(3), True)


@program
def test_batch_norm_statistics():
    norm = nn.BatchNorm1d(3)
    yield norm
    yield call(data(4, 3))
    yield call(data(4, 3))
    norm.eval()
    yield call(data(4, 3))
    norm.train()
    norm.momentum = None
    yield call(data(6, 3))


@program
def test_counter_on_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.calls += 1
            self.total += x
            return self.total / self.calls

    net = Net()
    yield net
    yield call(data(2))
    yield call(data(2))
    net.calls = 10
    yield call(data(2))


@program
def test_buffer_replaced_by_assignment():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("running", torch.zeros(2))

        def forward(self, x):
            self.running = self.running * 0.9 + x.detach() * 0.1
            return x - self.running

    net = Net()
    yield net
    yield call(data(2))
    yield call(data(2))
    yield call(data(3, 2))


@program
def test_cache_on_module_by_length():
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.length = 0
            self.cos = None

        def forward(self, x):
            if self.cos is None or x.shape[0] > self.length:
                self.length = x.shape[0]
                self.cos = torch.cos(torch.arange(self.length, dtype=torch.float32))
            return x * self.cos[: x.shape[0], None]

    rotary = Rotary()
    yield rotary
    yield call(data(3, 2))
    yield call(data(3, 2))
    yield call(data(5, 2))
    yield call(data(2, 2))


@program
def test_dict_argument_with_nested_writes():
    def f(x, state):
        state["steps"]["n"] += 1
        state["history"].append(x)
        state["history"][0] = x * 2
        return x * state["steps"]["n"]

    state = {"steps": {"n": 0}, "history": []}
    yield f
    yield call(data(2), state)
    yield call(data(2), state)
    state["steps"] = {"n": 10}
    yield call(data(2), state)


@program
def test_swap_attributes():
    class Pair: ...

    pair = Pair()
    pair.a, pair.b = data(2), data(2)

    def f(x):
        pair.a, pair.b = pair.b, pair.a + x
        return pair.a * 2

    yield f
    yield call(data(2))
    yield call(data(2))
    pair.a = pair.b
    yield call(data(2))


@program
def test_deleted_attribute():
    class Bag: ...

    def f(x, bag):
        value = bag.temporary
        del bag.temporary
        return x + value

    bag = Bag()
    yield f
    bag.temporary = 1
    yield call(data(2), bag)
    bag.temporary = 2
    yield call(data(2), bag)
    yield call(data(2), bag)


@program
def test_write_then_read_of_the_same_attribute():
    class Bag:
        n = 0

    bag = Bag()

    def f(x, k):
        bag.n = k
        y = x * bag.n
        bag.n = bag.n + 1
        return y + bag.n, Bag.n

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 5)


@program(call(data(3)), call(data(3)), call(data(4)))
def test_python_random_is_consumed(x):
    return x * random.random() + random.randint(0, 10), random.choice([1, 2, 3])


@program(call(data(3)), call(data(3)), call(data(4)))
def test_numpy_random_is_consumed(x):
    return x * float(numpy.random.rand()) + int(numpy.random.randint(5))


@program(call(data(3)), call(data(3)), call(data(4)))
def test_torch_random_is_consumed(x):
    noise = torch.rand_like(x) + torch.randn(x.shape)
    return x + noise, torch.randint(0, 10, (2,)), torch.randperm(4)


@program(call(data(3), True), call(data(3), True), call(data(3), False))
def test_requires_grad_set_inside(x, flag):
    weight = torch.ones(3)
    weight.requires_grad_(flag)
    return (weight * x).sum(), weight


@program(call(data(3)), call(data(3)), call(data(4)))
def test_argument_becomes_leaf_that_requires_grad(x):
    x.requires_grad_()
    return x * 2


@program
def test_tensor_attribute():
    def f(x, tag):
        x.tag = tag
        y = x * 2
        y.origin = x
        return y

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(2), 5)


@program(call(data(4), data(4)), call(data(4), data(4)), call(data(2), data(2)))
def test_set_data(x, y):
    x.data = y * 2
    return x + 1


@program(call(data(3)), call(data(3)), call(data(2)))
def test_out_argument(x):
    result = torch.empty_like(x)
    other = torch.add(x, 1, out=result)
    return result, other is result


@program(
    call(data(2, 3), torch.zeros(2, 3)),
    call(data(2, 3), torch.zeros(2, 3)),
    call(data(4, 3), torch.zeros(4, 3)),
)
def test_out_argument_from_outside(x, out):
    torch.mul(x, 3, out=out)
    return out.sum()


@program
def test_optimizer_like_update():
    weight = data(3, grad=True)
    momentum = {}

    def f(x, rate):
        loss = (weight * x).pow(2).sum()
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            velocity = momentum.get("v")
            velocity = grad if velocity is None else velocity * 0.9 + grad
            momentum["v"] = velocity
            weight.sub_(velocity, alpha=rate)
        return loss.detach()

    yield f
    yield call(data(3), 0.1)
    yield call(data(3), 0.1)
    yield call(data(3), 0.01)


@program
def test_list_held_by_two_names():
    shared = []
    holder = {"list": shared}

    def f(x):
        shared.append(x)
        holder["list"].append(x * 2)
        return len(shared), holder["list"] is shared

    yield f
    yield call(data(2))
    yield call(data(2))
    holder["list"] = []
    yield call(data(2))


@program
def test_effects_of_a_call_that_raises():
    log = []

    def f(x, n):
        log.append("before")
        x.add_(1)
        if n > 2:
            raise ValueError(n)
        log.append("after")
        return x

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 3)
    yield call(data(2), 1)


@program
def test_effects_before_a_torch_error():
    log = []

    def f(x, y):
        log.append(1)
        x.mul_(2)
        z = x + y
        log.append(2)
        return z

    yield f
    yield call(data(2), data(2))
    yield call(data(2), data(2))
    yield call(data(2), data(3))
