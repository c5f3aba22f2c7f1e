"""What C code would read unseen: iterators that the caller has, views of dicts, and what is in
containers in containers."""

from __future__ import annotations

import collections
import itertools
import operator

from capture.harness import call, data, program


def of_iterators(make):
    def world():
        yield make
        for numbers in ([1, 2], [3, 4], [5, 6, 7]):
            yield call(data(2), iter(numbers))
        for numbers in ([1, 2], [3, 5]):
            yield call(data(2), map(abs, numbers))

    return world


@program
def test_enumerate():
    yield from of_iterators(lambda x, items: [x * i + item for i, item in enumerate(items)])()


@program
def test_zip_and_map():
    def f(x, items):
        pairs = list(zip(items, range(1), strict=False))
        return x, pairs, list(map(str, items))

    yield from of_iterators(f)()


@program
def test_itertools():
    def f(x, items):
        first = list(itertools.islice(items, 1))
        return x + sum(itertools.accumulate(items)), first

    yield from of_iterators(f)()


@program
def test_filter_and_union():
    yield from of_iterators(lambda x, items: (x, {1}.union(filter(None, items))))()


@program
def test_sets_and_what_is_no_set():
    def f(x, items):
        names = {1}
        names.update(items)
        return x + len(names), {0}.union(items), {1, 2, 3}.intersection(items), names

    yield f
    for items in (range(3), range(5), collections.deque([7]), collections.deque([8, 9]), {4: 5}):
        yield call(data(2), items)


@program
def test_in_a_view_of_a_dict():
    def f(x, keys):
        return x + 1 if 1 in keys else x - 1

    yield f
    for table in ({1: 2}, {3: 4}, {1: 5}):
        yield call(data(2), table.keys())


@program
def test_starmap_of_pairs():
    def f(x, pairs):
        return x + sum(itertools.starmap(operator.add, pairs)), list(
            itertools.chain.from_iterable(pairs)
        )

    yield f
    for pairs in ([(1, 2), (3, 4)], [(1, 5), (3, 4)], [[1, 5], [3, 9]]):
        yield call(data(2), pairs)


@program
def test_items_that_a_defaultdict_makes():
    def f(x, table):
        return x + table.__getitem__(0), table

    yield f
    for default in (3, 4, 4):
        yield call(data(2), collections.defaultdict(lambda default=default: default))


@program
def test_the_integer_of_a_float():
    def f(x, number):
        return x * int(number), int(number)

    yield f
    for number in (1.5, 2.5, -0.5, 3.7, 2.1):
        yield call(data(2), number)


@program(*[call(data(2)) for _ in range(3)], breaks=0)
def test_next_called_by_name(x):
    table = {"a": 1}
    return x + 1, iter(table).__next__(), iter({3}).__next__(), enumerate([4]).__next__()
