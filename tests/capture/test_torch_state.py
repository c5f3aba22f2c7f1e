"""Flags of torch and what tensors say of themselves."""

from __future__ import annotations

import torch

from capture.harness import call, data, program

CALLS = (call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))


@program
def test_flags_of_backends():
    def f(x):
        if torch.backends.mkldnn.enabled:
            x = x + 1
        if torch.backends.cuda.matmul.allow_tf32:
            x = x * 2
        return x * 3 if torch.backends.cudnn.enabled else x

    yield f
    yield call(data(3))
    with torch.backends.cudnn.flags(enabled=False):
        yield call(data(3))
    torch.backends.cuda.matmul.allow_tf32 = True
    yield call(data(3))
    torch.backends.cuda.matmul.allow_tf32 = False
    yield call(data(3))


@program
def test_number_of_threads():
    before = torch.get_num_threads()

    def f(x):
        return x * torch.get_num_threads()

    yield f
    yield call(data(3))
    torch.set_num_threads(before + 1)
    yield call(data(3))
    torch.set_num_threads(before)
    yield call(data(3))


@program(*CALLS, breaks=0)
def test_dtypes(x):
    if x.dtype == torch.promote_types(torch.int32, torch.float32):
        x = x + 1
    return x * torch.can_cast(torch.int, torch.float), x.type(), x.double().type()


@program(*CALLS, breaks=0)
def test_type_converts(x):
    return x.type(torch.DoubleTensor), x.type("torch.IntTensor"), x.type(torch.float16)


@program(*CALLS, breaks=0)
def test_class_of_a_tensor(x):
    return x + 1, x.__class__, x.__class__.__name__, x == None, None != x  # noqa: E711


@program(call(data(3, grad=True)), call(data(3)), call(data(3, grad=True)), breaks=0)
def test_grad_fn_of_a_leaf(x):
    return x * 2, x.grad_fn is None, x.is_leaf


@program(*CALLS, breaks=0)
def test_range_as_data(x):
    return x + 1, torch.tensor(range(3)), torch.as_tensor(range(x.shape[0]))


@program(*CALLS, breaks=0)
def test_record_function(x):
    with torch.profiler.record_function("outer"):
        with torch.autograd.profiler.record_function("inner"):
            x = x + 1
        return x * 2


@program
def test_record_function_with_a_break_inside():
    def f(x):
        with torch.profiler.record_function("region"):
            x = x + 1
            print("break")
            return x * 2

    yield f
    for _ in range(3):
        yield call(data(3))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor + torch.is_grad_enabled()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@program(call(data(3), 2), call(data(3, grad=True), 2), call(data(3), 3))
def test_autograd_function_without_gradients(x, factor):
    return Scale.apply(x, factor) + 1


@program(tolerance=True, breaks=0)
def test_lstm():
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 3)

    def f(x):
        return lstm(x)[0]

    yield f
    for _ in range(3):
        yield call(data(2, 3))
