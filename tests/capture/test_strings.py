"""Strings and f-strings, as names of things, in messages and in results."""

from __future__ import annotations

import re
import string
import textwrap

import torch

from capture.harness import call, data, program


@program(call(data(3), 2), call(data(3), 2), call(data(3), 11), graphs=1)
def test_f_string_as_key(x, n):
    return {f"layer_{n}": x * n, f"{n:03d}": x + n, f"{n!r:>4}|": n}


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)))
def test_f_string_of_shape(x):
    return f"{tuple(x.shape)} {x.dtype} {x.ndim=}", x + 1


@program(call(data(3), 0.5), call(data(3), 0.5), call(data(3), 1e-10), call(data(3), -0.0))
def test_f_string_of_float(x, p):
    return f"{p} {p:.2f} {p:e} {p:g} {p!s} {p:+.1%} {p:>10.3}", x * p


@program(call(data(3), "relu"), call(data(3), "relu"), call(data(3), "sigmoid"))
def test_getattr_by_name(x, name):
    return getattr(torch, name)(x), getattr(x, name)()


@program(call(data(3), "sin,cos"), call(data(3), "sin,cos"), call(data(3), "exp"))
def test_split_and_dispatch(x, names):
    for name in names.split(","):
        x = getattr(torch, name.strip())(x)
    return x


@program(call(data(3), " Ab c "), call(data(3), " Ab c "), call(data(3), "xyz"))
def test_string_methods(x, text):
    parts = [
        text.strip(),
        text.lower(),
        text.upper(),
        text.title(),
        text.swapcase(),
        text.center(9, "*"),
    ]
    return (
        x * len(text),
        parts,
        text.find("b"),
        text.replace(" ", "_"),
        text.isalpha(),
        text.zfill(8),
    )


@program(call(data(3), "a.b.c"), call(data(3), "a.b.c"), call(data(3), "abc"))
def test_partition_and_join(x, path):
    head, dot, tail = path.partition(".")
    return x + len(tail), "/".join(path.split(".")), path.rsplit(".", 1), head + dot


@program(call(data(3), "weight"), call(data(3), "weight"), call(data(3), "bias"))
def test_prefix_and_suffix(x, name):
    if name.startswith("w"):
        x = x * 2
    if name.endswith(("s", "t")):
        x = x + 1
    return x, name.removeprefix("we"), "ei" in name, name[1:-1], name[::-1]


@program(call(data(3), "abc"), call(data(3), "abc"), call(data(3), "héllo"))
def test_iteration_over_characters(x, text):
    for letter in text:
        x = x + ord(letter)
    return x, [chr(ord(c) + 1) for c in text], sorted(text), text.encode()


@program(call(data(3), 3), call(data(3), 3), call(data(3), 4))
def test_percent_and_format(x, n):
    return (
        "%d of %s, %5.2f%%" % (n, "many", n / 7),  # noqa: UP031
        "{0} {name!r} {0:>3}".format(n, name="x"),
        x * n,
    )


@program(call(data(3), "ab", 2), call(data(3), "ab", 2), call(data(3), "ab", 0))
def test_concatenation_and_repetition(x, text, n):
    return text * n + "!", "abcd" + text, x * len(text * n)


@program(call(data(3), "a", "b"), call(data(3), "b", "a"), call(data(3), "a", "a"))
def test_comparison(x, left, right):
    if left < right:
        return x + 1
    return x - 1 if left == right else x * 2


@program(call(data(3), "1"), call(data(3), "1"), call(data(3), "x"))
def test_value_error_from_int(x, text):
    y = x * 2
    return y + int(text)


@program
def test_custom_format_and_str():
    class Unit:
        def __init__(self, value):
            self.value = value
            self.formatted = 0

        def __format__(self, spec):
            self.formatted += 1
            return f"<{self.value}|{spec}>"

        def __str__(self):
            return f"unit {self.value}"

        def __repr__(self):
            return f"Unit({self.value})"

    def f(x, unit):
        return x, f"{unit:abc} {unit!s} {unit!r} {unit}", str([unit])

    unit = Unit(1)
    yield f
    yield call(data(2), unit)
    yield call(data(2), unit)
    unit.value = 2
    yield call(data(2), unit)


@program(call(data(3), 4), call(data(3), 4), call(data(3), 2))
def test_nested_f_string(x, width):
    return f"{'ab':>{width}}|{f'{width}' * 2}|{{}}|{x.shape[0]:{width}d}", x


@program(call(data(3), "a\tb\nc"), call(data(3), "a\tb\nc"), call(data(3), ""))
def test_escapes_and_lines(x, text):
    return x, text.splitlines(), text.expandtabs(4), repr(text), text.split()


@program(call(data(3), b"abc"), call(data(3), b"abc"), call(data(3), b""))
def test_bytes(x, raw):
    return x + len(raw), raw.hex(), raw.decode(), list(raw), raw + b"!", bytearray(raw)


@program(call(data(3), "sum"), call(data(3), "sum"), call(data(3), "mean"), call(data(3), "max"))
def test_reduction_by_name(x, reduction):
    if reduction not in ("sum", "mean", "none"):
        raise ValueError(f"{reduction!r} is not a valid value for reduction")
    return x.sum() if reduction == "sum" else x.mean()


@program(call(data(4, 4), "ij,jk->ik"), call(data(4, 4), "ij,jk->ik"), call(data(4, 4), "ij,ij->"))
def test_einsum_equation(x, equation):
    inputs, output = equation.split("->")
    return torch.einsum(equation, x, x), len(output), inputs.count(",")


@program(call(data(3), "name"), call(data(3), "name"), call(data(3), "other"))
def test_template(x, name):
    return string.Template("$name is $kind").substitute(name=name, kind="known"), x


@program(call(data(3), "abc" * 10), call(data(3), "abc" * 10), call(data(3), "xy " * 10))
def test_textwrap(x, text):
    return textwrap.shorten(text, 20), textwrap.indent(text, "> "), x.abs()


@program(call(data(3), 5), call(data(3), 5), call(data(3), 6))
def test_string_interning_is_not_observable(x, n):
    a = "key" + str(n)
    b = f"key{n}"
    return a == b, {a: x, b: x + 1}


@program(call(data(3), ["b", "a"]), call(data(3), ["b", "a"]), call(data(3), ["B", "a"]))
def test_sorting_names(x, names):
    names = sorted(names, key=str.lower)
    return x, names, max(names), ",".join(reversed(names))


@program(call(data(3), "x"), call(data(3), "x"), call(data(3), "y"))
def test_translate(x, text):
    return text.translate(str.maketrans("xy", "ab")), str.join("-", ["a", text]), x - 1


@program(call(data(3), "layer12.weight"), call(data(3), "layer3.bias"), call(data(3), "other"))
def test_regular_expressions(x, name):
    found = re.match(r"layer(\d+)\.(\w+)", name)
    if found is None:
        return x, re.findall("[aeiou]", name)
    number, kind = found.groups()
    return x * int(number), kind, found.span(1), re.sub(r"\d+", "N", name), re.split(r"\.", name)
