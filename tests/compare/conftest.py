"""Where the files of stock PyTorch lie that the tests of compare share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory per session: a model's files are written once."""
    return tmp_path_factory.mktemp("stock")
