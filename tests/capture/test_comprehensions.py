"""List, dict and set comprehensions."""

from __future__ import annotations

import torch

from capture.harness import call, data, program


@program(call(data(3), 3), call(data(3), 3), call(data(3), 4), graphs=1)
def test_list_of_tensors(x, n):
    return [x * i for i in range(n)]


@program(call(data(3), 6), call(data(3), 6), call(data(3), 3), graphs=1)
def test_condition(x, n):
    return [x + i for i in range(n) if i % 2 == 0 if i != 2]


@program(call(data(3), 2, 3), call(data(3), 2, 3), call(data(3), 3, 1), graphs=1)
def test_two_loops(x, rows, columns):
    return [x * i + j for i in range(rows) for j in range(columns) if i != j]


@program(call(data(3), 2), call(data(3), 2), call(data(3), 3), graphs=1)
def test_nested(x, n):
    return [[x * i + j for j in range(i)] for i in range(n + 1)]


@program(
    call(data(2), ["a", "b"]), call(data(2), ["a", "b"]), call(data(2), ["b", "a", "c"]), graphs=1
)
def test_dict(x, names):
    return {name: x + i for i, name in enumerate(names)}


@program(call(data(2), [1, -1, 2]), call(data(2), [1, -1, 2]), call(data(2), []))
def test_set(x, numbers):
    return x * len({abs(n) for n in numbers}), {n * n for n in numbers}


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), [3]))
def test_variable_does_not_leak(x, numbers):
    n = 100
    squares = [n * n for n in numbers]
    return x * n, squares


@program(call(data(2), 3), call(data(2), 3), call(data(2), 5), graphs=1)
def test_reads_local_of_the_function(x, n):
    shift = n * 2
    return [x * shift + i for i in range(n)]


@program(call(data(2), 4), call(data(2), 4), call(data(2), 2), graphs=1)
def test_walrus_leaks(x, n):
    halves = [half for i in range(n) if (half := i / 2) > 0]
    return x * half, halves


@program(call(data(4, 3)), call(data(4, 3)), call(data(2, 3)))
def test_over_tensor_rows(x):
    return torch.stack([row * i for i, row in enumerate(x)])


@program(call([data(2), data(2)]), call([data(2), data(2)]), call([data(2)]))
def test_over_list_of_tensors(tensors):
    return [t.relu() for t in tensors], sum(t.sum() for t in tensors)


@program(
    call({"a": data(2), "b": data(2)}), call({"a": data(2), "b": data(2)}), call({"b": data(2)})
)
def test_rebuild_dict(tensors):
    doubled = {name: t * 2 for name, t in tensors.items()}
    return {t.shape: name for name, t in doubled.items()}, doubled


@program(
    call({"a": 1, "b": 2}, data(2)),
    call({"a": 1, "b": 2}, data(2)),
    call({"a": 2, "b": 2}, data(2)),
)
def test_inverted_dict(table, x):
    inverse = {value: name for name, value in table.items()}
    return x * len(inverse), inverse


@program(call(data(2), [(1, 2), (3, 4)]), call(data(2), [(1, 2), (3, 4)]), call(data(2), [(5, 6)]))
def test_unpacking_target(x, pairs):
    return [x * a + b for a, b in pairs], {b: a for a, b in pairs}, [rest for _, *rest in pairs]


@program
def test_calls_function_with_effects():
    seen = []

    def note(value):
        seen.append(value)
        return value * 2

    def f(x, n):
        return [x + note(i) for i in range(n)]

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program
def test_late_binding_of_lambdas():
    def f(x, n):
        functions = [lambda v: v * i for i in range(n)]
        fixed = [lambda v, i=i: v * i for i in range(n)]
        return [g(x) for g in functions], [g(x) for g in fixed]

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    yield call(data(2), 3)


@program(call(data(2), [1, 0, 2]), call(data(2), [1, 0, 2]), call(data(2), [1, 2]))
def test_exception_inside(x, numbers):
    y = x + 1
    return [y / n + 1 // n for n in numbers]


@program
def test_in_a_method_over_own_attribute():
    class Bag:
        def __init__(self):
            self.weights = [1.0, 2.0]

        def apply(self, x):
            return [x * weight for weight in self.weights]

    bag = Bag()

    def f(x):
        return bag.apply(x)

    yield f
    yield call(data(2))
    yield call(data(2))
    bag.weights.append(3.0)
    yield call(data(2))
    bag.weights = [7.0]
    yield call(data(2))


@program
def test_over_module_list():
    layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])

    def f(x):
        outputs = [layer(x) for layer in layers]
        return torch.stack(outputs).mean(0), [p.numel() for p in layers.parameters()]

    yield f
    yield call(data(2, 3))
    yield call(data(2, 3))
    layers.append(torch.nn.Linear(3, 3))
    yield call(data(2, 3))


@program(call(data(3), 3), call(data(3), 3), call(data(3), 1))
def test_conditional_expression_inside(x, n):
    return [x if i % 2 else -x for i in range(n)], [0 if i == 0 else x / i for i in range(n)]


@program(call(data(4)), call(data(4)), call(data(2)))
def test_of_shapes(x):
    parts = [x[: i + 1] for i in range(x.shape[0])]
    return [p.shape for p in parts], {p.numel(): p.sum() for p in parts}


@program(call(data(2), [[1, 2], [3]]), call(data(2), [[1, 2], [3]]), call(data(2), [[], [4]]))
def test_flattened_lists(x, lists):
    flat = [item for inner in lists for item in inner]
    return x * sum(flat), flat, {item for inner in lists for item in inner}


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_empty_and_shared_results(x, n):
    nothing = [i + 1 for i in range(0)]
    shared = [[]] * n
    separate = [[] for _ in range(n)]
    shared[0].append(x)
    separate[0].append(x)
    return nothing, shared, separate
