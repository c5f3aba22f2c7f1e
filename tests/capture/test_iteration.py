"""zip, enumerate, map and friends, itertools, starred unpacking."""

# ruff: noqa: B905, C417 (the programs are written as users write them)
from __future__ import annotations

import itertools

import torch

from capture.harness import call, data, program


@program(
    call([data(2), data(2)], [1, 2]), call([data(2), data(2)], [1, 2]), call([data(2)], [5, 6])
)
def test_zip(tensors, scales):
    return [t * s for t, s in zip(tensors, scales)]


@program(call([1, 2], "ab"), call([1, 2], "ab"), call([1, 2], "abc"))
def test_zip_strict(numbers, text):
    x = torch.ones(2)
    for n, letter in zip(numbers, text, strict=True):
        x = x * n + ord(letter)
    return x


@program(call(data(2), "ab"), call(data(2), "ab"), call(data(2), "xyz"), graphs=1)
def test_enumerate_from_start(x, names):
    for i, name in enumerate(names, start=5):
        x = x * i + len(name)
    return x, list(enumerate(names))


@program(
    call(data(2), 2, 9, 3), call(data(2), 2, 9, 3), call(data(2), 9, 2, -3), call(data(2), 0, 0, 1)
)
def test_range_forms(x, start, stop, step):
    numbers = range(start, stop, step)
    for n in numbers:
        x = x + n
    return x, len(numbers), list(numbers), 5 in numbers, numbers[::-1], range(3)[1]


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [4]))
def test_reversed(x, numbers):
    for n in reversed(numbers):
        x = x * 2 + n
    return x, list(reversed(range(3))), list(reversed({"a": 1, "b": 2}))


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), []))
def test_map(x, numbers):
    scaled = map(lambda n: x * n, numbers)
    pairs = map(max, numbers, reversed(numbers))
    return list(scaled), list(pairs), tuple(map(str, numbers))


@program(call(data(2), [1, 0, 3]), call(data(2), [1, 0, 3]), call(data(2), [0]))
def test_filter(x, numbers):
    return [x * n for n in filter(lambda n: n > 1, numbers)], list(filter(None, numbers))


@program(call(data(2), [1, 2], [3]), call(data(2), [1, 2], [3]), call(data(2), [], [4, 5]))
def test_chain(x, a, b):
    for n in itertools.chain(a, b):
        x = x + n
    return x, list(itertools.chain.from_iterable([a, b, a]))


@program(call(data(2), 2), call(data(2), 2), call(data(2), 3))
def test_product(x, n):
    for i, j in itertools.product(range(n), repeat=2):
        x = x + i * j
    return x, list(itertools.product("ab", range(n)))


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [3, 1]))
def test_combinations_and_permutations(x, numbers):
    for a, b in itertools.combinations(numbers, 2):
        x = x + a * b
    return (
        x,
        list(itertools.permutations(numbers, 2)),
        list(itertools.combinations_with_replacement(numbers, 2)),
    )


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [5]))
def test_accumulate_and_pairwise(x, numbers):
    sums = list(itertools.accumulate(numbers))
    products = list(itertools.accumulate(numbers, lambda a, b: a * b, initial=1))
    return x * sums[-1], products, list(itertools.pairwise(numbers))


@program(call(data(2), 3), call(data(2), 3), call(data(2), 5))
def test_islice_count_repeat(x, n):
    taken = list(itertools.islice(itertools.count(10, 3), 1, n))
    for k in itertools.repeat(2, n):
        x = x * k
    return x, taken, list(itertools.islice(range(100), 2, 20, n))


@program(call(data(2), [1, 2], 5), call(data(2), [1, 2], 5), call(data(2), [7], 3))
def test_cycle(x, numbers, n):
    for k, _ in zip(itertools.cycle(numbers), range(n)):
        x = x + k
    return x


@program(call(data(2), [1, 1, 2, 3, 3]), call(data(2), [1, 1, 2, 3, 3]), call(data(2), [2]))
def test_groupby(x, numbers):
    groups = {key: len(list(group)) for key, group in itertools.groupby(numbers)}
    for key, size in groups.items():
        x = x + key * size
    return x, groups


@program(call(data(2), [1, 3, 2, 5]), call(data(2), [1, 3, 2, 5]), call(data(2), [9]))
def test_takewhile_and_dropwhile(x, numbers):
    head = list(itertools.takewhile(lambda n: n < 3, numbers))
    tail = list(itertools.dropwhile(lambda n: n < 3, numbers))
    return (
        x * len(head) - len(tail),
        head,
        tail,
        list(itertools.filterfalse(lambda n: n % 2, numbers)),
    )


@program(call(data(2), [1, 2], [3]), call(data(2), [1, 2], [3]), call(data(2), [], []))
def test_zip_longest_and_starmap(x, a, b):
    pairs = list(itertools.zip_longest(a, b, fillvalue=0))
    return (
        x * len(pairs),
        list(itertools.starmap(pow, pairs)),
        list(itertools.compress("abc", [1, 0, 1])),
    )


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [1]))
def test_tee(x, numbers):
    left, right = itertools.tee(iter(numbers))
    next(right)
    return [x * a for a in left], list(right)


@program(call(data(2), [1, 2, 3, 4]), call(data(2), [1, 2, 3, 4]), call(data(2), [1, 2]))
def test_starred_unpacking(x, numbers):
    first, *middle, last = numbers
    return x * first + last, middle, [*numbers, *middle], {*numbers}, (*middle, x)


@program(call(data(2), [1]), call(data(2), [1, 2]), call(data(2), [1]), call(data(2), []))
def test_starred_unpacking_too_short(x, numbers):
    first, *rest = numbers
    return x * first, rest


@program(call(data(3, 2)), call(data(3, 2)), call(data(3, 4)))
def test_unpack_tensor(x):
    a, b, c = x
    first, *rest = x.unbind(0)
    return a + b * c, first, rest


@program(call(data(2)), call(data(2)), call(data(3)))
def test_unpack_tensor_of_wrong_length(x):
    a, b = x
    return a - b


@program(call(data(2), [3, 1]), call(data(2), [3, 1]), call(data(2), [2, 5, 1]))
def test_iter_and_next(x, numbers):
    iterator = iter(numbers)
    first = next(iterator)
    rest = list(iterator)
    return x * first, rest, next(iterator, "done"), list(iterator)


@program
def test_iterator_argument_is_advanced():
    numbers = iter([1, 2, 3, 4, 5])

    def f(x):
        return x * next(numbers)

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(2))
    numbers = iter([10])
    yield call(data(2))
    yield call(data(2))


@program
def test_shared_count():
    ids = itertools.count(1)

    def f(x):
        return x + next(ids), next(ids)

    yield f
    yield call(data(2))
    yield call(data(2))
    yield call(data(3))


@program
def test_iter_with_sentinel():
    values = [3, 2, 1, 0, 7]

    def f(x):
        for n in iter(values.pop, 0):
            x = x + n
        return x

    yield f
    yield call(data(2))
    values += [1, 0, 2]
    yield call(data(2))
    values += [0, 4, 4]
    yield call(data(2))


@program(call(data(2), {"a": 1, "b": 2}), call(data(2), {"a": 1, "b": 2}), call(data(2), {"c": 3}))
def test_dict_views(x, table):
    keys, values, items = table.keys(), table.values(), table.items()
    table["z"] = 9
    return x * sum(values), list(keys), ("z", 9) in items, keys & {"a", "z"}


@program(call(data(2), [1, 2, 3, 4, 5]), call(data(2), [1, 2, 3, 4, 5]), call(data(2), [1, 2]))
def test_list_changed_while_iterated(x, numbers):
    for n in numbers:
        if n == 2:
            numbers.remove(3) if 3 in numbers else numbers.append(100)
        x = x + n
    return x


@program(call(data(2), [[1, 2], [3, 4]]), call(data(2), [[1, 2], [3, 4]]), call(data(2), [[5, 6]]))
def test_transpose_with_zip(x, rows):
    columns = list(zip(*rows))
    return x * len(columns), columns, [sum(column) for column in columns]


@program(call(data(6), 2), call(data(6), 2), call(data(6), 3))
def test_loop_over_chunks(x, n):
    total = 0
    for i, part in enumerate(x.chunk(n)):
        total = total + part.sum() * i
    return total, [p.shape for p in x.split(n)]


@program(call(data(2), [3, 1, 2]), call(data(2), [3, 1, 2]), call(data(2), [1]))
def test_sorted_is_stable(x, numbers):
    pairs = sorted(((n % 2, n) for n in numbers), key=lambda p: p[0])
    return x, pairs, sorted(numbers, reverse=True), list(map(lambda p: p[1] + 1, pairs))


@program(call(data(2), 3), call(data(2), 3), call(data(2), 0))
def test_exhausted_iterator_keeps_state(x, n):
    numbers = iter(range(n))
    zipped = zip(numbers, "ab")
    pairs = list(zipped)
    return x * len(pairs), list(numbers), pairs


@program(call(data(3, 3)), call(data(3, 3)), call(data(2, 2)))
def test_min_max_sum_over_tensor_items(x):
    rows = list(x)
    return sum(rows), len(x), [r.shape for r in rows], rows[0] is x[0]
