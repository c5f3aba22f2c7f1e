"""nn.Module programs: containers, hooks, modes, buffers, and modules changed between calls."""

from __future__ import annotations

import copy

import torch
from torch import nn

from capture.harness import call, data, program


@program(graphs=1)
def test_sequential():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    yield call(data(5, 3))


@program
def test_module_list_in_order():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

        def forward(self, x, skip=None):
            for i, layer in enumerate(self.layers):
                if i != skip:
                    x = torch.tanh(layer(x))
            return x, len(self.layers), self.layers[-1].out_features

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3), skip=1)
    net.layers.insert(0, nn.Linear(3, 3))
    yield call(data(2, 3))
    del net.layers[1]
    yield call(data(2, 3))


@program
def test_module_dict_by_key():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 2)})

        def forward(self, x, name):
            outputs = {key: head(x) for key, head in self.heads.items()}
            return outputs[name], list(self.heads.keys()), name in self.heads

    net = Net()
    yield net
    yield call(data(2, 3), "a")
    yield call(data(2, 3), "b")
    net.heads["c"] = nn.Linear(3, 3)
    yield call(data(2, 3), "c")
    net.heads.pop("a")
    yield call(data(2, 3), "a")


@program
def test_parameter_list_and_dict():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(data(3)) for _ in range(2)])
            self.named = nn.ParameterDict({"bias": nn.Parameter(data(3))})

        def forward(self, x):
            for scale in self.scales:
                x = x * scale
            return x + self.named["bias"]

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.scales.append(nn.Parameter(data(3)))
    yield call(data(2, 3))


@program
def test_buffers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(3))
            self.register_buffer("maybe", None)
            self.register_buffer("hidden", torch.zeros(3), persistent=False)

        def forward(self, x):
            self.hidden.add_(x.detach().sum(0))
            if self.maybe is not None:
                x = x * self.maybe
            return x * self.mask + self.hidden

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.maybe = data(3)
    yield call(data(2, 3))
    net.mask = torch.zeros(3)
    yield call(data(2, 3))


@program
def test_shared_weights():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3, bias=False)
            self.second = nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.second.weight = nn.Parameter(data(3, 3))
    yield call(data(2, 3))


@program
def test_one_module_used_twice():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.alias = self.layer

        def forward(self, x):
            return self.layer(x) + self.alias(x * 2)

    net = Net()
    yield net
    yield call(data(2, 3))
    yield call(data(2, 3))
    net.alias = nn.Identity()
    yield call(data(2, 3))


@program
def test_own_getattr_of_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

        def forward(self, x):
            return self.inner(x) * self.out_features + self.weight.sum()

    net = Net()
    yield net
    yield call(data(2, 2))
    yield call(data(2, 2))
    net.inner.out_features = 7
    yield call(data(2, 2))


@program
def test_functional_call():
    net = nn.Linear(2, 2)

    def f(x, weight):
        return torch.func.functional_call(net, {"weight": weight, "bias": net.bias}, (x,))

    yield f
    yield call(data(3, 2), data(2, 2, grad=True))
    yield call(data(3, 2), data(2, 2, grad=True))
    yield call(data(3, 2), data(2, 2))


@program
def test_walk_over_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            penalty = sum((p**2).sum() for p in self.parameters())
            names = [name for name, _ in self.named_parameters()]
            return self.b(self.a(x)).sum() + penalty, names, len(list(self.children()))

    net = Net()
    yield net
    yield call(data(2, 2))
    yield call(data(2, 2))
    net.extra = nn.Parameter(data(2))
    yield call(data(2, 2))


@program(tolerance=True)
def test_module_made_inside():
    def f(x, n):
        torch.manual_seed(n)
        layer = nn.Linear(3, 3)
        return layer(x), layer.weight.shape

    yield f
    yield call(data(2, 3), 1)
    yield call(data(2, 3), 1)
    yield call(data(2, 3), 2)


@program(tolerance=True)
def test_convolution_network():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    yield net
    yield call(data(2, 1, 4, 4))
    yield call(data(2, 1, 4, 4))
    yield call(data(3, 1, 4, 4))
    net.eval()
    yield call(data(3, 1, 4, 4))


@program(tolerance=True)
def test_attention_block():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)
            self.qkv = nn.Linear(4, 12)
            self.out = nn.Linear(4, 4)

        def forward(self, x, causal=True):
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, 2, width // 2).unbind(2)
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return x + self.out(y.transpose(1, 2).reshape(batch, length, width))

    block = Block()
    yield block
    yield call(data(2, 3, 4))
    yield call(data(2, 3, 4), causal=False)
    yield call(data(1, 5, 4))


@program(tolerance=True)
def test_recurrent_cell_in_a_loop():
    cell = nn.GRUCell(3, 4)

    def f(steps, hidden):
        outputs = []
        for step in steps:
            hidden = cell(step, hidden)
            outputs.append(hidden)
        return torch.stack(outputs), hidden

    yield f
    yield call(data(3, 2, 3), torch.zeros(2, 4))
    yield call(data(3, 2, 3), torch.zeros(2, 4))
    yield call(data(2, 2, 3), data(2, 4))


@program(tolerance=True)
def test_embedding_and_loss():
    embedding = nn.Embedding(10, 4)
    head = nn.Linear(4, 10)

    def f(tokens, targets, smoothing):
        logits = head(embedding(tokens))
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing
        )

    yield f
    yield call(torch.tensor([[1, 2, 3]]), torch.tensor([[2, 3, 4]]), 0.0)
    yield call(torch.tensor([[1, 2, 9]]), torch.tensor([[2, 3, 4]]), 0.1)
    yield call(torch.tensor([[1, 2]]), torch.tensor([[0, 0]]), 0.1)


@program(tolerance=True)
def test_training_step():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    yield step
    yield call(data(5, 3), data(5, 1))
    yield call(data(5, 3), data(5, 1))
    optimizer.param_groups[0]["lr"] = 0.01
    yield call(data(4, 3), data(4, 1))


@program
def test_module_copied():
    net = nn.Linear(2, 2)
    clone = copy.deepcopy(net)

    def f(x, module):
        return module(x)

    yield f
    yield call(data(2, 2), net)
    yield call(data(2, 2), clone)
    with torch.no_grad():
        clone.weight.add_(1)
    yield call(data(2, 2), clone)
    yield call(data(2, 2), net)


@program
def test_method_of_module_is_compiled():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.count = 0

        def encode(self, x):
            self.count += 1
            return self.linear(x) * self.count

    net = Net()
    yield net.encode
    yield call(data(2, 2))
    yield call(data(2, 2))
    net.count = 7
    yield call(data(3, 2))


@program
def test_output_dataclass_like_container():
    class Output(dict):
        def __getattr__(self, name):
            return self[name]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x, return_dict=True):
            y = self.linear(x)
            return Output(logits=y, hidden=(x, y)) if return_dict else (y, x)

    net = Net()
    yield net
    yield call(data(2, 2))
    yield call(data(2, 2), return_dict=False)
    yield call(data(3, 2))
