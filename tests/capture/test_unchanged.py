"""Guards that have held are checked by what could have changed since: every change must be seen."""

from __future__ import annotations

import gc

import torch

from capture.harness import call, data, program


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.second = torch.nn.Linear(3, 3)
        self.scale = 2
        self.sizes = (1, 2)
        self.table = {"bias": 1}
        self.names = ["a", "b"]
        self.tags = {"x"}
        self.parts = [torch.nn.Identity(), torch.nn.ReLU()]

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        x = self.second(self.first(x) * self.scale) + self.table["bias"] + self.sizes[1]
        return x * len(self.names) + ("x" in self.tags)


class Other(Block):
    def forward(self, x):
        return x - 1


def changed_by(change):
    """Calls a module until its guards are known to hold, changes it, and calls it again."""

    def world():
        torch.manual_seed(0)
        module = Block()
        yield module
        for _ in range(4):
            yield call(data(2, 3))
        change(module)
        for _ in range(3):
            yield call(data(2, 3))

    world.__name__ = change.__name__
    world.__qualname__ = change.__qualname__
    return program(world)


@changed_by
def test_parameter(module):
    module.first.weight = torch.nn.Parameter(torch.ones(3, 3))


@changed_by
def test_parameter_of_another_size(module):
    module.second = torch.nn.Linear(3, 5)


@changed_by
def test_data_of_a_parameter(module):
    module.second.weight.data = torch.arange(9.0).reshape(3, 3).t()


@changed_by
def test_requires_grad(module):
    module.first.weight.requires_grad_(False)


@changed_by
def test_parameter_is_gone(module):
    module.first.bias = None


@changed_by
def test_value(module):
    module.scale = 3


@changed_by
def test_tuple(module):
    module.sizes = (1, 5)


@changed_by
def test_dict(module):
    module.table["bias"] = 4


@changed_by
def test_list(module):
    module.names.append("c")


@changed_by
def test_set(module):
    module.tags.clear()


@changed_by
def test_part_in_a_list(module):
    module.parts[1] = torch.nn.Tanh()


@changed_by
def test_class(module):
    module.__class__ = Other


@changed_by
def test_class_of_a_part(module):
    class Twice(torch.nn.Identity):
        def forward(self, x):
            return x * 2

    module.parts[0].__class__ = Twice


@changed_by
def test_dict_of_an_object(module):
    module.__dict__ = {**module.__dict__, "scale": 7}


@changed_by
def test_hook(module):
    module.second.register_forward_hook(lambda module, args, result: result + 1)


@changed_by
def test_method_of_an_instance(module):
    module.first.forward = lambda x: x * 0


@changed_by
def test_dtype(module):
    module.double()
    module.first.register_forward_pre_hook(lambda module, args: (args[0].double(),))


@program
def test_another_module_at_the_same_place():
    class Holder:
        pass

    holder = Holder()
    holder.module = Block()

    def f(x):
        return holder.module(x)

    yield f
    for seed in range(3):
        holder.module = None
        gc.collect()
        torch.manual_seed(seed)
        holder.module = Block()
        for _ in range(3):
            yield call(data(2, 3))


@program
def test_new_functions_and_objects_each_time():
    def make(scale):
        module = Block()
        module.scale = scale

        def inner(x):
            return module(x) * scale

        return inner

    def f(x, function):
        return function(x)

    yield f
    for scale in range(5):
        torch.manual_seed(0)
        yield call(data(2, 3), make(scale))
        gc.collect()


@program
def test_closure():
    module = Block()
    scale = torch.nn.Identity()

    def f(x):
        return scale(module(x))

    yield f
    for _ in range(4):
        yield call(data(2, 3))
    scale = torch.nn.ReLU()
    for _ in range(2):
        yield call(data(2, 3))
    module = torch.nn.Linear(3, 2)
    for _ in range(2):
        yield call(data(2, 3))


@program
def test_same_tensor_twice():
    module = Block()

    def f(x, y):
        return module(x) + y.add_(1)

    yield f
    x = data(3, 3)
    for _ in range(4):
        yield call(data(3, 3), data(3, 3))
    yield call(x, x)
    yield call(x, module.first.weight.detach())
    with torch.no_grad():
        yield call(data(3, 3), module.first.weight)
