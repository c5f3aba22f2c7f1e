"""Only whether something is there matters, not what it is: that is guarded too."""

from __future__ import annotations

from capture.harness import call, data, program


class Holder:
    pass


def holder_with(**attributes):
    holder = Holder()
    holder.__dict__.update(attributes)
    return holder


@program
def test_key_in_dict():
    def f(x, table):
        return x + 1 if "b" in table else x

    yield f
    yield call(data(3), {"b": data(3)})
    yield call(data(3), {})
    yield call(data(3), {"a": data(3), "b": [1]})


@program
def test_key_that_is_only_looked_up():
    def f(x, table):
        try:
            table["b"]
        except KeyError:
            return x
        return x + 1

    yield f
    yield call(data(3), {"b": data(3)})
    yield call(data(3), {})
    yield call(data(3), {"b": data(4)})


@program
def test_hasattr():
    def f(x, holder):
        return x + 1 if hasattr(holder, "value") else x

    yield f
    yield call(data(3), holder_with(value=data(3)))
    yield call(data(3), Holder())
    yield call(data(3), holder_with(value=data(3)))


@program
def test_pop_of_a_value_that_nobody_uses():
    def f(x, table):
        table.pop("b", None)
        return x * 2

    yield f
    yield call(data(3), {"a": 1, "b": data(3)})
    yield call(data(3), {"a": 1, "b": data(3)})
    yield call(data(3), {"a": 1})


@program
def test_del_of_an_attribute():
    def f(x, holder):
        del holder.value
        return x + 1

    yield f
    yield call(data(3), holder_with(value=data(3)))
    yield call(data(3), holder_with(value=data(3)))
    yield call(data(3), Holder())


@program
def test_slot():
    class Slots:
        __slots__ = ("value",)

    def slots_with(value):
        made = Slots()
        made.value = value
        return made

    def f(x, slots):
        return x + 1 if hasattr(slots, "value") else x

    yield f
    yield call(data(3), slots_with(data(3)))
    yield call(data(3), Slots())
    yield call(data(3), slots_with([]))
