"""What all tests need to know: where the build is, and where compiled kernels are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Kernels that tests compile stay out of the user's cache, and are there for the next run.
os.environ.setdefault("ASSAY_CACHE_DIR", str(ROOT / "build" / "kernel_cache"))


@pytest.fixture(scope="session")
def assay_binary() -> Path:
    """The built `assay` command; `make test` says which, by hand it is the release build."""
    return Path(os.environ.get("ASSAY_BINARY", ROOT / "build" / "release" / "bin" / "assay"))


@pytest.fixture(scope="session")
def stock_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files of stock PyTorch lie: a model's are written once, for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "stock"
    root.mkdir(exist_ok=True)
    return root


@pytest.fixture(scope="session")
def build_directory(assay_binary: Path) -> Path:
    """The build tree, with the helper binaries of the tests in `bin`."""
    return assay_binary.parents[1]
