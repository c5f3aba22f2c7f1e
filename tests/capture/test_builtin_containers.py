"""Builtin containers and their subclasses: what C code reads of them is guarded, and what a method
called by name does is what the operator does."""

import collections
import collections.abc
import keyword
import types
from typing import Any

from capture.harness import call, data, program


class Items(list):
    pass


class Table(dict):
    pass


class Row(tuple):
    __slots__ = ()


class Ordered(collections.OrderedDict):
    pass


class Defaults(collections.defaultdict):
    pass


class Names(set):
    pass


class Frozen(frozenset):
    pass


@program
def test_subclasses_are_made_of_what_is_guarded():
    """Their constructors are C code, which reads what it is given."""

    def f(x, items, table):
        made = (Items(items), Row(items), Names(items), Frozen(items), Items(iter(items)))
        tables = (Table(table), Ordered(table), Defaults(int, table), Table(table.items()))
        total = sum(sum(values) for values in made)
        return x * total, [sum(entries.values()) for entries in tables], made, tables

    yield f
    for items, table in (([1, 2], {1: 2}), ([3, 4], {1: 3}), ([1, 2, 3], {2: 3, 4: 5})):
        yield call(data(3), list(items), dict(table))


@program
def test_a_subclass_is_made_of_pairs():
    def f(x, pairs):
        return x * sum(Table(pairs).values()), Table(pairs, extra=x)

    yield f
    for pairs in ([(1, 2)], [(1, 3)], [[1, 3], [2, 4]]):
        yield call(data(3), pairs)


@program
def test_a_subclass_is_made_of_an_iterator_from_outside():
    def f(x, items):
        return x + sum(Items(items))

    yield f
    for numbers in ([1, 2], [3, 4], [5]):
        yield call(data(3), iter(numbers))


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_containers_that_grow_while_they_are_read(x):
    """What extends a container one by one may look at it."""
    row = collections.deque([1])
    row.extendleft(number + row[0] for number in range(3))
    row.extend(number + row[-1] for number in range(3))
    names = {0}
    names.update(number for number in (1, 2, 1, 3) if number not in names)
    table = {"a": 1}
    table.update((key, len(table)) for key in "bcd")
    items = [1]
    items.extend(number + items[-1] for number in range(3))
    return x + 1, row, sorted(names), table, items


class Counted(list):
    def __init__(self, items):
        super().__init__(items)
        self.count = len(items)

    def __iter__(self):
        return super().__iter__()

    def __len__(self):
        return super().__len__() + 1

    def __eq__(self, other):
        return super().__eq__(other)

    def __add__(self, other):
        return Counted([*super().__iter__(), *other])


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_methods_of_the_builtin_base(x):
    items = Counted([1, 2])
    names = Names([1])
    names.__init__([2, 3])
    return x + len(items) + items.count, items == [1, 2], items + [3], list(items), names


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_special_methods_called_by_name(x):
    table, items, names, row = {"a": 1}, [1, 2], {1}, (1, 2)
    queue = collections.deque([1, 2, 3], maxlen=4)
    queue.__setitem__(0, 5)
    queue.__delitem__(1)
    queue.__iadd__([7])
    queue.remove(3)
    return (
        x + 1,
        table.__eq__({"a": 1}),
        table.__eq__(3) is NotImplemented,
        items.__iadd__((4, 5)),
        items.__rmul__(2),
        list(items.__reversed__()),
        list(table.__iter__()),
        names.__ror__({2}),
        names.__len__(),
        row.__lt__((1, 3)),
        row.__hash__() == hash((1, 2)),
        range(4).__getitem__(2),
        (3).__rand__(1),
        list("abc".__iter__()),
        [table.__repr__(), items.__str__(), f"{table}"],
        queue,
        queue.__contains__(5),
        queue * 2,
        queue == collections.deque([5, 7]),
        list.__new__(Items),
    )


@program
def test_operators_that_change_a_set_from_outside():
    def f(x, names):
        names |= {3}
        names &= {1, 3}
        names ^= {1}
        names -= {9}
        return x + len(names), names

    yield f
    for names in ({1, 2}, {1, 2}, {2, 5}):
        yield call(data(3), set(names))


@program
def test_operators_that_change_subclasses_from_outside():
    """Their effects are redone like those of the builtin ones."""

    def f(x, items, table, names, queue):
        items += [3]
        items *= 2
        table |= {4: 5}
        names |= {6}
        queue += (7,)
        return x + len(items), items, table, names, queue

    yield f
    for _ in range(3):
        queue = collections.deque([1], maxlen=2)
        yield call(data(3), Items([1, 2]), Table({1: 2}), Names({1}), queue)


class AddsItself:
    def __radd__(self, items):
        return len(items)

    def __iter__(self):
        return iter([9])


@program
def test_an_object_that_adds_itself_to_a_list():
    def f(x, items, other):
        before = items
        items += other
        return x + 1, items, before

    yield f
    for _ in range(3):
        yield call(data(3), [1, 2], AddsItself())


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_messages_for_what_cannot_be_iterated(x):
    texts = []
    for make in (list, tuple, set, sum, sorted, [].extend, collections.deque):
        try:
            make(3)
        except TypeError as error:
            texts.append(str(error))
    return x + 1, texts


@program(*[call(data(3), word) for word in ("None", "x", "None")], breaks=0)
def test_a_method_of_a_frozenset(x, word):
    return x + 1 if keyword.iskeyword(word) else x - 1


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_fromkeys_of_a_subclass(x):
    table = Ordered.fromkeys("ab", x)
    return table, collections.OrderedDict.fromkeys("ab", value=1), Table.fromkeys([1])


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_a_counter(x):
    letters = collections.Counter("aabbc")
    letters.update(["a"])
    more = letters + collections.Counter(a=1)
    return x + letters["a"], letters.most_common(1), more["a"], letters["z"]


class OnlySet:
    def __set__(self, owner, value):
        owner.__dict__["field"] = value * 2


class Owner:
    field = OnlySet()

    def __init__(self):
        self.__dict__["field"] = 0


@program
def test_a_descriptor_that_only_sets():
    owner = Owner()

    def f(x):
        owner.field = 10
        return x + owner.field

    yield f
    for _ in range(3):
        yield call(data(3))


def annotated(x) -> Any:
    def inner(y: types.FunctionType | None, z: collections.abc.Callable[[int], Any] = print):
        return x * 2

    return inner(None)


@program(*[call(data(3)) for _ in range(3)], breaks=0)
def test_annotations_with_type_arguments(x):
    return annotated(x)
