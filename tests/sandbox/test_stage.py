"""Both trial servers, and everything else, name the stages alike."""

from __future__ import annotations

from assay import _C
from assay.stock.stage import Stage


def test_python_and_cpp_have_the_same_stages_in_the_same_order() -> None:
    assert [stage.value for stage in Stage] == list(_C.stages)
    assert Stage.COMPARE.is_after(Stage.EAGER)
    assert not Stage.RUN.is_after(Stage.RUN)
