"""Generated graphs, printed as files, run under stock PyTorch with the results Assay gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

import assay
from stock.compare import assert_identical
from stock.make_files import AFTER_DYNAMO, run_file

GRAPHS = 300


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, build_directory: Path) -> Path:
    made = tmp_path_factory.mktemp("generated")
    generator = build_directory / "bin" / "generate_graphs"
    subprocess.run([generator, made, str(GRAPHS)], check=True, capture_output=True)
    return made


@pytest.mark.filterwarnings("ignore")
def test_printed_graphs_run_under_stock_with_equal_results(directory: Path) -> None:
    files = sorted(directory.glob("graph_*.py"))
    assert len(files) == GRAPHS
    for file in files:
        results = run_file(file, AFTER_DYNAMO, "checkpoints")
        found = assay.load(file).run()
        assert_identical(found, results.outputs, file.name)


@pytest.mark.filterwarnings("ignore")
def test_printed_graphs_run_with_loaded_inputs(directory: Path) -> None:
    """Inputs come from the store the generator wrote, and stock reads the same ones."""
    inputs, notes = assay.load(directory / "graph_0.py").inputs()
    assert notes == []
    assert any(isinstance(value, torch.Tensor) for value in inputs)
