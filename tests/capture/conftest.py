"""Skips the programs until there is something to compile them with."""

from __future__ import annotations

import pytest

from capture import engine


@pytest.fixture(autouse=True)
def capture_exists() -> None:
    if engine.MISSING:
        pytest.skip(engine.MISSING)
