"""The steps of a program on its way through a compiler: those of ``include/assay/stage.h``."""

from __future__ import annotations

import enum


class Stage(enum.Enum):
    """In the order in which they happen."""

    LOAD = "load"
    CAPTURE = "capture"
    EAGER = "eager"
    COMPILE = "compile"
    RUN = "run"
    BACKWARD = "backward"
    COMPARE = "compare"

    def is_after(self, other: Stage) -> bool:
        order = list(Stage)
        return order.index(self) > order.index(other)
