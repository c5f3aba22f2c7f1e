"""Whether two outputs say the same."""

from __future__ import annotations

import pytest

from assay.diagnose import output


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("loss 2.3012", "loss 2.3013"),
        ("tensor([0.12345678])", "tensor([0.12345712])"),
        ("1e-05", "1.0001e-05"),
        ("nan", "nan"),
        ("a  b", "a b"),
        ("grad_fn=<MulBackward0>", "grad_fn=<CompiledFunctionBackward>"),
        ("<generator object f at 0x7f01>", "<generator object f at 0x7fa2>"),
        # What is left of a sum that is zero; and it decides how all numbers are printed.
        ("tensor([8.5000e+00, 2.9802e-08])", "tensor([8.5000e+00, -1.1921e-07])"),
        ("tensor([8.5000e+00,\n        2.9802e-08]) end", "tensor([8.5000, 0.0000]) end"),
    ],
)
def test_rounding_is_not_a_difference(left: str, right: str) -> None:
    assert output.difference(left, right) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("tensor([49.])", "tensor([50.])"),
        ("loss 2.3012", "loss 2.4012"),
        ("3", "4"),
        ("dtype=torch.int8", "dtype=torch.int64"),
        ("0.5", "nan"),
        ("one\ntwo", "one"),
        ("0x7f01", "0x7fa2"),
        ("tensor([8.5000e+00,\n        2.9802e-08])", "tensor([8.5000, 0.0100])"),
        ("loss 2.9802e-08 [1.0]", "loss 2.9802e-05 [1.0]"),
        ("time 1e9\ntensor([1e-3])", "time 1e9\ntensor([2e-3])"),
    ],
)
def test_other_text_and_numbers_are(left: str, right: str) -> None:
    assert output.difference(left, right) is not None


def test_what_does_not_repeat_is_not_compared() -> None:
    assert (
        output.difference("took 3 s, loss 1.5", "took 9 s, loss 1.5", "took 4 s, loss 1.5") is None
    )
    found = output.difference("took 3 s, loss 1.5", "took 9 s, loss 7.5", "took 4 s, loss 1.5")
    assert found == (1, "took 3 s, loss 1.5", "took 9 s, loss 7.5")


def test_the_line_that_differs_is_named() -> None:
    left = "start\ntensor([1.0,\n        2.0])\nend"
    assert output.difference(left, left.replace("2.0", "3.0")) == (
        3,
        "        2.0])",
        "        3.0])",
    )
    assert output.difference(left, left + "\nmore") == (5, "(nothing)", "more")
    assert output.difference(left, "start") == (2, "tensor([1.0,", "(nothing)")
