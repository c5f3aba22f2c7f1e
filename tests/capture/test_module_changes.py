"""nn.Modules that change between two calls: hooks, parameters, submodules, modes."""

from __future__ import annotations

import torch
from torch import nn

from capture.harness import call, data, program


@program(tolerance=True)
def test_train_and_eval_with_dropout():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    yield net
    yield call(data(3, 4))
    yield call(data(3, 4))
    net.eval()
    yield call(data(3, 4))
    net.train()
    net[1].p = 0.1
    yield call(data(3, 4))


@program
def test_compiled_wrapper_switches_mode():
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    compiled = yield net
    yield call(data(4, 3))
    compiled.eval()
    modes = [module.training for module in net.modules()]
    yield call(data(4, 3))
    compiled.train()
    modes += [module.training for module in net.modules()]
    yield call(data(4, 3))
    modes.append([list(value.shape) for value in compiled.state_dict().values()])
    yield call(data(4, 3))


@program
def test_forward_hooks():
    net = nn.Linear(3, 3)
    seen = []

    def after(module, args, output):
        seen.append(tuple(output.shape))
        return output * 2

    def before(module, args):
        seen.append("before")
        return (args[0] + 1,)

    yield net
    yield call(data(2, 3))
    first = net.register_forward_hook(after)
    yield call(data(2, 3))
    second = net.register_forward_pre_hook(before)
    yield call(data(2, 3))
    first.remove()
    yield call(data(2, 3))
    second.remove()
    yield call(data(2, 3))


@program
def test_hooks_with_keywords():
    class Net(nn.Module):
        def forward(self, x, *, scale=1.0):
            return x * scale

    net = Net()

    def before(module, args, kwargs):
        return args, {"scale": kwargs.get("scale", 1.0) * 10}

    def after(module, args, kwargs, output):
        return output + kwargs["scale"]

    yield net
    yield call(data(2), scale=2.0)
    net.register_forward_pre_hook(before, with_kwargs=True)
    yield call(data(2), scale=2.0)
    net.register_forward_hook(after, with_kwargs=True)
    yield call(data(2), scale=3.0)


@program
def test_hook_on_inner_module_collects():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    activations = {}
    for name, module in net.named_modules():
        if name:
            module.register_forward_hook(
                lambda module, args, output, name=name: activations.__setitem__(name, output)
            )
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    yield call(data(4, 3))


@program
def test_backward_hooks():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    seen = []
    yield net
    yield call(data(2, 3, grad=True))
    handle = net[0].register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append(grad_output[0].clone())
    )
    yield call(data(2, 3, grad=True))
    handle.remove()
    yield call(data(2, 3, grad=True))


@program
def test_tensor_hook_inside():
    seen = []

    def f(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda grad: seen.append(grad.clone()) or grad * 10)
        return y.sin()

    yield f
    yield call(data(2, grad=True))
    yield call(data(2, grad=True))
    yield call(data(2))


@program
def test_submodule_replaced():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 3)
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(self.body(x))

    net = Net()
    yield net
    yield call(data(2, 3))
    net.act = nn.Tanh()
    yield call(data(2, 3))
    net.body = nn.Linear(3, 5)
    yield call(data(2, 3))
    del net.act
    net.act = torch.abs
    yield call(data(2, 3))


@program
def test_parameter_replaced_and_frozen():
    net = nn.Linear(3, 3)
    yield net
    yield call(data(2, 3))
    net.weight = nn.Parameter(data(3, 3))
    yield call(data(2, 3))
    net.weight.requires_grad_(False)
    yield call(data(2, 3))
    net.bias.requires_grad_(False)
    yield call(data(2, 3))
    net.bias = None
    yield call(data(2, 3))


@program
def test_weights_written_between_calls():
    net = nn.Linear(2, 2)
    yield net
    yield call(data(2, 2))
    with torch.no_grad():
        net.weight.mul_(3)
        net.bias.zero_()
    yield call(data(2, 2))
    net.load_state_dict({"weight": data(2, 2), "bias": data(2)})
    yield call(data(2, 2))
    net.weight.data = data(2, 2)
    yield call(data(2, 2))


@program
def test_module_changed_to_double():
    net = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    yield net
    yield call(data(3, 2))
    net.double()
    yield call(data(3, 2, dtype=torch.float64))
    net.float()
    yield call(data(3, 2))


@program
def test_forward_replaced_on_instance():
    net = nn.Linear(2, 2)

    def f(x):
        return net(x)

    yield f
    yield call(data(2, 2))
    net.forward = lambda x: x * 100
    yield call(data(2, 2))
    del net.forward
    yield call(data(2, 2))


@program
def test_forward_replaced_on_class():
    class Net(nn.Module):
        def forward(self, x):
            return x + 1

    net = Net()
    yield net
    yield call(data(2))
    Net.forward = lambda self, x: x * 50
    yield call(data(2))
    yield call(data(2))


@program
def test_training_flag_is_read():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            if self.training:
                x = x * 2
            return self.inner(x) if self.inner.training else -x

    net = Net()
    yield net
    yield call(data(2))
    net.inner.eval()
    yield call(data(2))
    net.eval()
    yield call(data(2))
    net.train()
    yield call(data(2))


@program
def test_global_hook():
    net = nn.Linear(2, 2)
    seen = []
    yield net
    yield call(data(2, 2))
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, args, output: seen.append(type(module).__name__)
    )
    try:
        yield call(data(2, 2))
    finally:
        handle.remove()
    yield call(data(2, 2))
