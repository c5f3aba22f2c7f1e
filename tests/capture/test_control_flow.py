"""Programs whose control flow depends on Python values: loops, branches, match, short circuits.

PYTEST_DONT_REWRITE: the programs' assertions are to be plain ones."""

from __future__ import annotations

import torch

from capture.harness import call, data, program


@program(
    call(data(2, 3), 3), call(data(2, 3), 3), call(data(2, 3), 5), call(data(2, 3), 0), graphs=1
)
def test_while_counts_down(x, n):
    while n > 0:
        x = x * 2 + n
        n -= 1
    return x


@program(call(data(3), True), call(data(3), True), call(data(3), False), graphs=1)
def test_if_else_on_flag(x, flag):
    if flag:
        y = x + 1
    else:
        y = x - 1
    return y * 2


@program(call(data(3), 1), call(data(3), 2), call(data(3), 3), call(data(3), 1))
def test_elif_chain(x, kind):
    if kind == 1:
        return x.sin()
    elif kind == 2:
        return x.cos()
    else:
        return x.tan()


@program(call(data(4), 2), call(data(4), 2), call(data(4), 3), graphs=1)
def test_for_range(x, n):
    for i in range(n):
        x = x + i
    return x


@program(call(data(4), 6), call(data(4), 6), call(data(4), 9), graphs=1)
def test_break_and_continue(x, n):
    for i in range(100):
        if i % 2:
            continue
        if i > n:
            break
        x = x * (i + 1)
    return x, i


@program(call(data(4), [1, 2, 3]), call(data(4), [1, 2, 3]), call(data(4), [1, 5, 3]), graphs=1)
def test_for_else_runs_without_break(x, numbers):
    for n in numbers:
        if n == 5:
            x = x + 100
            break
        x = x + n
    else:
        x = x * 2
    return x


@program(call(data(4), 3), call(data(4), 3), call(data(4), -1), graphs=1)
def test_while_else(x, n):
    while n:
        n -= 1
        x = x + n
        if n < -3:
            break
    else:
        x = -x
    return x, n


@program(call(data(2, 2), 2, 3), call(data(2, 2), 2, 3), call(data(2, 2), 3, 2), graphs=1)
def test_nested_loops_with_labels(x, rows, columns):
    for row in range(rows):
        for column in range(columns):
            if column > row:
                break
            x = x + row * 10 + column
        else:
            x = x * 2
    return x


@program(call(data(3), 0), call(data(3), 0), call(data(3), 4), call(data(3), None), graphs=1)
def test_or_gives_default(x, n):
    n = n or 7
    return x * n


@program(call(data(3), None), call(data(3), data(3)), call(data(3), None), graphs=1)
def test_optional_tensor(x, mask=None):
    if mask is not None:
        x = x * mask
    return x.relu()


@program(call(data(3), 1, 2), call(data(3), 2, 2), call(data(3), 5, 2), call(data(3), 5, 9))
def test_chained_comparison(x, a, b):
    return x + 1 if a < b < 7 else x - 1 if a == b else x


@program(call(data(3), "relu"), call(data(3), "relu"), call(data(3), "tanh"), call(data(3), "none"))
def test_match_strings(x, name):
    match name:
        case "relu":
            return x.relu()
        case "tanh" | "sigmoid":
            return x.tanh()
        case _:
            return x


@program(
    call(data(3), (1, 2)),
    call(data(3), (1, 2)),
    call(data(3), [5]),
    call(data(3), {"scale": 3}),
    call(data(3), 9),
)
def test_match_structures(x, spec):
    match spec:
        case (a, b):
            return x * a + b
        case [only]:
            return x * only
        case {"scale": scale}:
            return x * scale
        case int() as n if n > 5:
            return x + n
    return x


@program
def test_match_classes():
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x = x
            self.y = y

    def f(t, point):
        match point:
            case Point(0, y):
                return t + y
            case Point(x=px, y=0):
                return t * px
            case Point(px, py):
                return t * px + py

    yield f
    yield call(data(3), Point(0, 2))
    yield call(data(3), Point(0, 2))
    yield call(data(3), Point(3, 0))
    yield call(data(3), Point(3, 4))


@program(call(data(4), 3), call(data(4), 3), call(data(4), 0))
def test_early_return_in_loop(x, limit):
    for i in range(5):
        x = x + i
        if i == limit:
            return x * 10
    return x


@program(call(data(2, 3)), call(data(2, 3)), call(data(5, 3)), call(data(2, 3, 4)))
def test_branch_on_shape(x):
    if x.dim() == 3:
        return x.sum(0)
    if x.shape[0] > 4:
        return x[:4]
    return x.t()


@program(call(data(3)), call(data(3, dtype=torch.float64)), call(data(3, dtype=torch.int64)))
def test_branch_on_dtype(x):
    if x.dtype == torch.float32:
        return x + 1
    if x.is_floating_point():
        return x + 2
    return x + 3


@program(call(data(3)), call(data(3, grad=True)), call(data(3)), call(data(3, grad=True)))
def test_branch_on_requires_grad(x):
    return x * 2 if x.requires_grad else x * 3


@program(call(data(3), 2), call(data(3), 2), call(data(3), 3), call(data(3), 3))
def test_assert_on_python_value(x, n):
    assert n < 3, f"n is {n}"
    return x * n


@program(call(data(3), 3), call(data(3), 3), call(data(3), 10), graphs=1)
def test_walrus(x, n):
    while (n := n - 2) > 0:
        x = x + n
    if (m := n * n) > 0:
        x = x * m
    return x, m


@program(
    call(data(3), [1, 0, 2]), call(data(3), [1, 0, 2]), call(data(3), [0, 0]), call(data(3), [])
)
def test_any_all_on_numbers(x, flags):
    if all(flags):
        x = x + 1
    if any(flags):
        x = x * 2
    return x


@program(call(data(3), 1), call(data(3), True), call(data(3), 1.0), call(data(3), 1))
def test_int_bool_float_are_told_apart(x, n):
    if n is True:
        return x + 10
    if isinstance(n, float):
        return x + 20
    return x + 30


@program(call(data(3), data(3)), call(data(3), data(3)), call(data(3), None))
def test_is_between_tensors(x, y):
    if y is x:
        return x
    if y is None:
        y = x
    if y is x:
        return x + 1
    return x - y


@program
def test_same_tensor_twice_takes_the_is_branch():
    def f(x, y):
        return x * 2 if x is y else x * y

    yield f
    yield call(data(3), data(3))
    z = data(3)
    yield call(z, z)
    yield call(data(3), data(3))
    yield call(z, z)


@program(call(data(4), 5), call(data(4), 5), call(data(4), 8), graphs=1)
def test_fibonacci_numbers(x, n):
    a, b = 0, 1
    while a < n:
        a, b = b, a + b
        x = x + a
    return x, a, b


@program(call(data(3), 12, 18), call(data(3), 12, 18), call(data(3), 7, 5))
def test_gcd(x, a, b):
    while b:
        a, b = b, a % b
    return x / a


@program(call(data(3), 0), call(data(3), 1), call(data(3), 2), call(data(3), 0))
def test_table_of_functions(x, index):
    functions = [torch.sin, torch.cos, torch.Tensor.exp]
    return functions[index](x)


@program(call(data(3), "b"), call(data(3), "b"), call(data(3), "a"), call(data(3), "z"))
def test_table_of_lambdas(x, key):
    table = {"a": lambda v: v + 1, "b": lambda v: v * 2}
    return table.get(key, lambda v: v)(x)


@program(call(data(2, 2), 4), call(data(2, 2), 4), call(data(2, 2), 1))
def test_infinite_loop_with_break(x, limit):
    steps = 0
    while True:
        x = x @ x * 0.5
        steps += 1
        if steps >= limit:
            break
    return x, steps


@program(call(data(4, 3)), call(data(4, 3)), call(data(2, 3)), call(data(0, 3)))
def test_loop_over_rows(x):
    total = torch.zeros(3)
    for row in x:
        total = total + row
    return total


@program(call(data(4, 3)), call(data(4, 3)), call(data(6, 3)))
def test_loop_over_first_size(x):
    rows = []
    for i in range(x.size(0)):
        rows.append(x[i] * i)
    return torch.stack(rows)


@program(call(data(3), 1), call(data(3), 1), call(data(3), 0), call(data(3), -1))
def test_ternary_of_three_with_effects(x, sign):
    seen = []
    y = (seen.append("+") or x) if sign > 0 else (seen.append("0") or x * 0) if sign == 0 else -x
    return y, seen


@program(call(data(3), 3), call(data(3), 3), call(data(3), 4))
def test_del_local_then_unbound(x, n):
    y = x * 2
    if n == 4:
        del y
    return y


@program(call(data(3), True), call(data(3), True), call(data(3), False))
def test_unbound_local_in_other_branch(x, flag):
    if flag:
        y = x + 1
    return y


@program(call(data(3), 2), call(data(3), 2), call(data(3), "a"), call(data(3), (1, 2)))
def test_isinstance_of_tuple_of_types(x, value):
    if isinstance(value, (int, float)):
        return x * value
    if isinstance(value, (str, bytes)):
        return x + len(value)
    return x - sum(value)


@program(
    call(data(3), 0.5), call(data(3), 0.5), call(data(3), float("nan")), call(data(3), float("inf"))
)
def test_branch_on_float(x, p):
    if p != p:
        return x * 0
    if p > 1e300:
        return x + 1
    return x * p


@program(call(data(2, 3), -1), call(data(2, 3), -1), call(data(2, 3), 0), call(data(2, 3), 7))
def test_normalized_dimension(x, dim):
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"dim {dim} out of range for {x.ndim} dimensions")
    return x.softmax(dim % x.ndim)


@program(call(data(8), 3), call(data(8), 3), call(data(8), 2))
def test_recursion_halves(x, depth):
    def halve(v, d):
        if d == 0 or v.numel() == 1:
            return v.sum()
        middle = v.numel() // 2
        return halve(v[:middle], d - 1) * 2 - halve(v[middle:], d - 1)

    return halve(x, depth)
