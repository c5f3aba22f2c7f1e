"""Tensors that share storage: among arguments, among results, and between the two."""

from __future__ import annotations

import torch

from capture.harness import call, data, program


@program
def test_same_tensor_twice():
    def f(x, y):
        return x + y, x is y

    yield f
    one, two = data(3), data(3)
    yield call(one, two)
    yield call(one, one)
    yield call(two, one)


@program
def test_same_tensor_twice_with_write():
    def f(x, y):
        x.add_(1)
        return x * y

    yield f
    one = data(3)
    yield call(one, data(3))
    yield call(one, one)
    yield call(data(3), one)


@program
def test_views_of_one_base():
    def f(a, b):
        a.mul_(2)
        return a + b

    yield f
    base = data(6)
    yield call(base[:3], base[3:])
    yield call(base[:3], base[1:4])
    yield call(base[::2], base[1::2])
    yield call(data(3), data(3))


@program
def test_base_and_view():
    def f(base, view):
        view.zero_()
        return base.sum(), view + 1

    yield f
    base = data(2, 3)
    yield call(base, base[0])
    yield call(base, base[:, 1])
    yield call(data(2, 3), data(3))


@program(call(data(3)), call(data(3)), call(data(2, 2)))
def test_result_is_the_argument(x):
    return x


@program(call(data(3)), call(data(3)), call(data(4)))
def test_result_is_a_view_of_the_argument(x):
    return x[1:], x.view(-1, 1), x.unsqueeze(0), x.detach()


@program(call(data(3)), call(data(3)), call(data(4)))
def test_results_alias_each_other(x):
    y = x * 2
    return y, y, y[1:], [y], {"y": y}


@program(call(data(4, 2)), call(data(4, 2)), call(data(6, 2)))
def test_chunks_share_one_storage(x):
    y = x + 1
    a, b = y.chunk(2)
    return a, b, a.t()


@program(call(data(3), True), call(data(3), True), call(data(3), False))
def test_argument_or_copy(x, copy):
    y = x.clone() if copy else x
    y.add_(1)
    return y


@program(call(data(3)), call(data(3)), call(data(3, dtype=torch.float64)))
def test_conversion_that_may_be_the_same_tensor(x):
    y = x.to(torch.float32)
    return y, y is x, x.contiguous() is x, x.float() is x


@program(call(data(2, 3)), call(data(2, 3)), call(data(3, 2)))
def test_reshape_aliases_or_copies(x):
    a = x.reshape(-1)
    b = x.t().reshape(-1)
    a[0] = 100
    b[0] = 200
    return a, b, x


@program(call(data(4)), call(data(4)), call(data(6)))
def test_argument_written_through_a_view(x):
    middle = x[1:3]
    middle.fill_(7)
    x.view(2, -1)[0].add_(1)
    return x.sum()


@program(call(data(3, 3)), call(data(3, 3)), call(data(4, 4)))
def test_view_taken_before_and_after_the_write(x):
    before = x.t()
    x.mul_(2)
    after = x.t()
    return before, after, before is after


@program
def test_list_with_one_tensor_twice():
    def f(values):
        values[0].add_(1)
        return values[0] + values[1], values[0] is values[1]

    yield f
    one = data(3)
    yield call([one, data(3)])
    yield call([one, one])
    yield call([data(3), one])


@program
def test_one_list_in_two_places():
    def f(first, second, x):
        first.append(x)
        return len(second), first is second

    yield f
    shared = []
    yield call(shared, shared, data(2))
    yield call(shared, [], data(2))
    yield call([], shared, data(2))


@program
def test_attribute_is_the_argument():
    class Holder: ...

    holder = Holder()
    holder.value = data(3)

    def f(x):
        x.add_(1)
        return x * holder.value

    yield f
    yield call(data(3))
    yield call(holder.value)
    yield call(holder.value[:])


@program
def test_global_is_the_argument():
    global SHARED
    SHARED = data(3)

    def f(x):
        x.mul_(2)
        return SHARED + 1

    yield f
    yield call(data(3))
    yield call(SHARED)
    SHARED = data(3)
    yield call(data(3))


@program
def test_parameter_is_the_argument():
    linear = torch.nn.Linear(3, 3, bias=False)

    def f(weight, x):
        return linear(x) + x @ weight, weight is linear.weight

    yield f
    yield call(data(3, 3, grad=True), data(2, 3))
    yield call(linear.weight, data(2, 3))
    yield call(data(3, 3, grad=True), data(2, 3))


@program
def test_stored_argument_is_the_object_itself():
    kept = []

    def f(x):
        kept.append(x)
        y = x + 1
        kept.append(y)
        return y

    yield f
    same = data(2)
    yield call(same)
    yield call(same)
    yield call(data(2))


@program
def test_result_written_by_the_user():
    def f(x):
        return x * 2, torch.zeros(2)

    yield f
    result = yield call(data(2))
    result[0].add_(100)
    result[1].add_(100)
    result = yield call(data(2))
    result[1].sub_(5)
    yield call(data(2))


@program
def test_constant_tensor_is_made_anew():
    def f(n):
        table = torch.tensor([1.0, 2.0, 3.0])
        table[0] = n
        return table

    yield f
    yield call(5.0)
    yield call(5.0)
    yield call(6.0)


@program
def test_list_result_is_made_anew():
    def f(x):
        return [1, 2], {"x": x}, [x]

    yield f
    result = yield call(data(2))
    result[0].append(3)
    result[1]["y"] = 5
    yield call(data(2))
    yield call(data(3))


@program(call(data(3)), call(data(3)), call(data(4)))
def test_in_place_returns_self(x):
    y = x.add_(1)
    z = y.mul_(2)
    return y, z is x, y is z


@program(call(data(2, 3)), call(data(2, 3)), call(data(1, 3)))
def test_expanded_argument(x):
    wide = x[:1].expand(4, 3)
    return wide, wide + 1, wide.stride()


@program(call(data(4, grad=True)), call(data(4, grad=True)), call(data(6, grad=True)))
def test_write_to_view_of_intermediate_with_grad(x):
    y = x * 2
    y[1:3] = 0
    view = y[2:]
    view.mul_(3)
    return y, view


@program
def test_view_argument_with_grad():
    def f(view, x):
        return view * x

    yield f
    for size in (2, 2, 3):
        base = data(6, grad=True)
        yield call(base[:size], data(size))


@program(call(data(2, 2), data(2, 2)), call(data(2, 2), data(2, 2)), call(data(2, 2), data(1, 2)))
def test_copy_between_arguments(x, y):
    x.copy_(y)
    y.add_(1)
    return x, y


@program
def test_out_argument_aliases_input():
    def f(x, out):
        torch.add(x, 1, out=out)
        return x * out

    yield f
    x = data(3)
    yield call(x, torch.zeros(3))
    yield call(x, x)
    yield call(data(3), x)


@program(call(data(3)), call(data(3)), call(data(2)))
def test_tuple_of_argument_and_views_stays_ordered(x):
    first, rest = x[0], x[1:]
    rest += 1
    first.zero_()
    return (x, first, rest, x[0] == first)


@program
def test_views_stored_between_calls():
    store = {}

    def f(x, name):
        if "base" in store:
            store["base"].add_(x.sum())
        store["base"] = x
        store[name] = x[1:]
        return x[0] + 1

    yield f
    yield call(data(3), "a")
    yield call(data(3), "b")
    yield call(data(4), "a")


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))
def test_as_strided_and_diagonal(x):
    y = x.clone()
    y.diagonal().fill_(9)
    y.as_strided((2,), (1,)).add_(1)
    return y, y.diagonal()


@program(
    call(data(3, dtype=torch.complex64)),
    call(data(3, dtype=torch.complex64)),
    call(data(2, dtype=torch.complex64)),
)
def test_real_view_of_complex(x):
    parts = torch.view_as_real(x)
    parts[..., 1] = 0
    return x, x.real, x.conj(), x.imag
