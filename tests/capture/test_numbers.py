"""Arithmetic on Python numbers, and numbers meeting tensors."""

from __future__ import annotations

import cmath
import decimal
import fractions
import math
import operator

import torch

from capture.harness import call, data, program


@program(
    call(data(3), 7, 2), call(data(3), 7, 2), call(data(3), -7, 2), call(data(3), -7, -3), graphs=1
)
def test_floor_division_and_modulo(x, a, b):
    return x * (a // b) + a % b, divmod(a, b)


@program(call(data(3), 7.5, 2.0), call(data(3), 7.5, 2.0), call(data(3), -7.5, 2.0), graphs=1)
def test_float_floor_division(x, a, b):
    return x + a // b, a % b, divmod(a, b)


@program(call(data(3), 2, 10), call(data(3), 2, 10), call(data(3), 2, -1), call(data(3), 2, 100))
def test_power(x, a, b):
    return x.double() + a**b, a**b, pow(a, 2, 7)


@program(call(data(3), 5, 3), call(data(3), 5, 3), call(data(3), -1, 2), graphs=1)
def test_bit_operations(x, a, b):
    return x + (a & b), a | b, a ^ b, ~a, a << b, a >> b


@program(call(data(3), 2**62), call(data(3), 2**62), call(data(3), -(2**62)))
def test_integers_beyond_64_bits(x, a):
    big = a * 4
    return x, big, big // 3, big % 1000, hash(big), big.bit_length()


@program(call(data(3), 10**20), call(data(3), 10**20), call(data(3), 5))
def test_huge_integer_meets_tensor(x, a):
    return x + a


@program(call(data(3), 0.0), call(data(3), -0.0), call(data(3), 0.0), call(data(3), -0.0))
def test_negative_zero_is_not_zero(x, zero):
    return math.copysign(1.0, zero) * x, zero


@program(call(data(3), float("nan")), call(data(3), float("nan")), call(data(3), 1.0))
def test_nan_in_comparisons(x, value):
    same = value == value
    listed = value in [value]
    return x, same, listed, min(value, 1.0), max(1.0, value)


@program(call(data(3), float("inf")), call(data(3), float("-inf")), call(data(3), 3.5))
def test_infinity(x, value):
    return x * value, math.isinf(value), value - value, value > 10**400


@program(call(data(3), 1, 0), call(data(3), 1, 1), call(data(3), 1, 0), call(data(3), 1.0, 0.0))
def test_division_by_zero_raises(x, a, b):
    y = x + 1
    return y * (a / b)


@program(call(data(3), 1e308), call(data(3), 1e308), call(data(3), 1.0))
def test_overflow_of_float_power(x, a):
    return x, a * 10, a ** (2 if a > 1e10 else 1)


@program(call(data(3), 1 + 2j), call(data(3), 1 + 2j), call(data(3), 0j), call(data(3), 3j))
def test_complex_numbers(x, z):
    return x + abs(z), z.real, z.imag, z.conjugate(), z * z, cmath.exp(z)


@program(call(data(3), 2.5), call(data(3), 2.5), call(data(3), -2.5), call(data(3), 3.5))
def test_rounding(x, a):
    return (
        x + round(a),
        round(a, 1),
        int(a),
        math.floor(a),
        math.ceil(a),
        math.trunc(a),
        a.is_integer(),
    )


@program(call(data(3), 1234), call(data(3), 1234), call(data(3), 1255))
def test_round_to_negative_digits(x, n):
    return x + round(n, -2), round(n, -1)


@program(call(data(3), 2.0), call(data(3), 2.0), call(data(3), 0.5), graphs=1)
def test_math_functions(x, a):
    scale = math.sqrt(a) + math.exp(-a) + math.log(a) + math.sin(a) * math.pi
    return x * scale, math.hypot(a, 1.0), math.atan2(a, -1.0), math.log2(a), math.fmod(a, 0.3)


@program(call(data(3), 6, 4), call(data(3), 6, 4), call(data(3), 10, 3), graphs=1)
def test_integer_math_functions(x, n, k):
    return (
        x * math.comb(n, k),
        math.factorial(n),
        math.gcd(n, k),
        math.lcm(n, k),
        math.isqrt(n),
        math.perm(n, k),
        math.prod([n, k]),
    )


@program(call(data(3), 0.25), call(data(3), 0.25), call(data(3), -1.0))
def test_math_domain_error(x, a):
    return x * math.sqrt(a)


@program(call(data(3), 3, 5), call(data(3), 3, 5), call(data(3), 5, 3), call(data(3), 3.0, 5))
def test_min_max_sum_abs(x, a, b):
    return x * min(a, b), max(a, b, key=lambda v: -v), sum([a, b], 10), abs(a - b)


@program(call(data(3), True, False), call(data(3), True, True), call(data(3), False, True))
def test_bool_arithmetic(x, a, b):
    return x * (a + b), a & b, a ^ b, True + a, -a, ~b, int(a), a * 2.5


@program(call(data(3), "12", "ff"), call(data(3), "12", "ff"), call(data(3), "-3", "10"))
def test_numbers_from_strings(x, a, b):
    return x * int(a), int(b, 16), float(a), int(a) + float(b.replace("ff", "1e3"))


@program(call(data(3), 255), call(data(3), 255), call(data(3), -1))
def test_number_formats(x, n):
    return x, hex(n), oct(n), bin(n), f"{n:08b}", str(n), repr(float(n)), format(n, ",")


@program(call(data(3), 0.1), call(data(3), 0.1), call(data(3), 1e22), call(data(3), 1e-7))
def test_float_representation(x, a):
    return x * a, repr(a), str(a * 3), a.hex(), a.as_integer_ratio(), f"{a:.3e}"


@program(call(data(3), 1000), call(data(3), 1000), call(data(3), -129))
def test_integer_methods(x, n):
    return (
        x,
        n.bit_length(),
        n.bit_count(),
        n.to_bytes(4, "big", signed=True),
        int.from_bytes(b"\x01\x02", "little") + n,
    )


@program(call(data(3), 2), call(data(3), 2), call(data(3), 2.0), call(data(3), True))
def test_tensor_times_number_types(x, n):
    integers = torch.arange(3)
    return x * n, integers * n, integers / n, n - integers, n**integers


@program(call(data(3), 3), call(data(3), 3), call(data(3), 5), graphs=1)
def test_reflected_operators(x, n):
    return n + x, n - x, n * x, n / (x + 10), n // (x + 10), n % (x + 10), (n / 10) ** x


@program(call(data(3), 7), call(data(3), 7), call(data(3), 8))
def test_augmented_assignment_of_numbers(x, n):
    n += 1
    n *= 3
    n -= 2
    n //= 2
    n **= 2
    n %= 50
    n <<= 1
    n |= 1
    n ^= 7
    return x + n, n


@program(call(data(3), 4, 2), call(data(3), 4, 2), call(data(3), 9, 4), graphs=1)
def test_operator_module(x, a, b):
    y = operator.add(x, a)
    y = operator.mul(y, operator.sub(a, b))
    return (
        operator.truediv(y, b),
        operator.index(a),
        operator.neg(b),
        operator.lt(a, b),
        operator.mod(a, b),
    )


@program(call(data(3), 3), call(data(3), 3), call(data(3), 4))
def test_fractions(x, n):
    half = fractions.Fraction(n, 2) + fractions.Fraction(1, 3)
    return x * float(half), half.numerator, half.denominator


@program(call(data(3), "0.1"), call(data(3), "0.1"), call(data(3), "2.5"))
def test_decimals(x, text):
    value = decimal.Decimal(text) * 3
    return x * float(value), str(value)


@program(call(data(2, 6), 3), call(data(2, 6), 3), call(data(2, 6), 2), graphs=1)
def test_sizes_in_arithmetic(x, heads):
    batch, width = x.shape
    per_head = width // heads
    scale = per_head**-0.5
    return x.view(batch, heads, per_head) * scale, x.numel() / batch


@program(call(data(5), 3), call(data(5), 3), call(data(7), 3))
def test_ceiling_division_of_size(x, block):
    blocks = -(-x.size(0) // block)
    padded = torch.nn.functional.pad(x, (0, blocks * block - x.size(0)))
    return padded.view(blocks, block).sum(1)


@program(call(data(3), 0.5), call(data(3), 0.25), call(data(3), 0.125), call(data(3), 0.0625))
def test_float_changes_every_call(x, p):
    return x * p + p**2


@program(call(data(3), 1), call(data(3), 2), call(data(3), 3), call(data(3), 4), call(data(3), 5))
def test_integer_changes_every_call(x, step):
    return x + step, step * 2


@program(call(data(3), 257), call(data(3), 257), call(data(3), 258))
def test_identity_of_small_and_large_integers(x, n):
    m = n
    return x, m is n, n + 1 is not n, type(n) is int


@program(call(data(3), 3), call(data(3), 3), call(data(3), "3"))
def test_unsupported_operand_raises(x, n):
    y = x * 2
    return y, n + 1


@program(call(data(3)), call(data(3)), call(data(3, dtype=torch.float64)))
def test_sum_of_tensors_starts_at_zero(x):
    return sum([x, x * 2, x * 3]), sum((x for _ in range(2)), x)


@program(call(3, 4.0), call(3, 4.0), call(5, 4.0), call(5, 0.5))
def test_no_tensor_argument(n, scale):
    return torch.full((n,), scale) * torch.arange(n)


@program(call(1, 2), call(1, 2), call(3, 4))
def test_no_tensor_at_all(a, b):
    return a + b * 2, [a, b], {"a": a}


@program(call(data(3), 1e16), call(data(3), 1e16), call(data(3), 0.1))
def test_float_sums_keep_python_precision(x, a):
    total = 0.0
    for _ in range(10):
        total += a + 1.0
    return x + total, total, math.fsum([a] * 10)
