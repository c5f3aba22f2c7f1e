"""Iterators that call the program back, and breaks in the middle of one."""

from __future__ import annotations

import collections
import itertools

from capture.harness import call, data, program


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [4, 5]))
def test_break_inside_map(x, numbers):
    def scaled(n):
        print("now", n)
        return x * n

    total = x
    for value in map(scaled, numbers):
        total = total + value
    return total


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [4, 5]))
def test_break_inside_map_inside_enumerate(x, numbers):
    def scaled(n):
        print("now", n)
        return x * n

    total = x
    for i, value in enumerate(map(scaled, numbers)):
        total = total + value * i
    return total


@program(call(data(2), [1, 2, 3]), call(data(2), [1, 2, 3]), call(data(2), [4, 5]))
def test_break_inside_takewhile(x, numbers):
    def is_small(n):
        print("asked", n)
        return n < 3

    total = x
    for n in itertools.takewhile(is_small, numbers):
        total = total + x * n
    return total, list(itertools.dropwhile(lambda n: n < 2, numbers))


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), []), graphs=1, breaks=0)
def test_starmap_of_functions_of_numbers(x, numbers):
    powers = list(itertools.starmap(pow, zip(numbers, numbers, strict=True)))
    return x + sum(powers), powers


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), []))
def test_starmap_that_changes_a_list(x, numbers):
    seen = []
    done = list(itertools.starmap(seen.append, [(n,) for n in numbers]))
    return x * len(seen), seen, done


@program(call(data(2), [1, 2]), call(data(2), [1, 2]), call(data(2), [1]), graphs=1, breaks=0)
def test_zip_longest_filled_with_a_tensor(x, numbers):
    return [a * b for a, b in itertools.zip_longest([x, x + 1], numbers, fillvalue=x)]


@program
def test_ordered_dict_moved_inside():
    table = collections.OrderedDict(a=1.0, b=2.0, c=3.0)

    def f(x):
        own = collections.OrderedDict(p=x, q=x + 1)
        own.move_to_end("p")
        table.move_to_end(next(iter(table)))
        for value in table.values():
            x = (x + value) * 2
        return x, own, list(own), dict(own)

    yield f
    yield call(data(2))
    yield call(data(2))
    table.move_to_end("b", last=False)
    yield call(data(2))


@program
def test_name_of_a_class_changes():
    class Item:
        pass

    class Other:
        pass

    class Part(Item):
        pass

    def f(x):
        return x * len(Item.__name__), Part.__bases__[0].__name__

    yield f
    yield call(data(2))
    yield call(data(2))
    Item.__name__ = "Renamed"
    yield call(data(2))
    Part.__bases__ = (Other,)
    yield call(data(2))
