"""What is generated from the table of settings is up to date, and mypy reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.command import BINARY, ROOT, environment


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(ASSAY_BINARY=str(BINARY)),
        timeout=300,
        check=False,
    )


def test_the_page_and_the_stub_are_up_to_date() -> None:
    done = run("tools/config_pages.py", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_setting_is_named_in_one_place_of_the_sources() -> None:
    """One edit adds a setting: one that only the sources of a room read shows where that is."""
    name = "compile_timeout"
    generated = [ROOT / "docs" / "config.md", ROOT / "python" / "assay" / "config.pyi"]
    folders = ("src", "include", "python", "tools", "cmake", "docs")
    named_in = [
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".h", ".cpp", ".py", ".pyi", ".cmake", ".txt", ".md"}
        and path not in generated
        and name in path.read_text()
    ]
    assert sorted(named_in) == [
        "src/config/settings.h",
        "src/kernels/toolchain.cpp",
        "src/kernels/toolchain.h",
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("assay.config.repro_level = 3", None),
        ("assay.config.repro_after = None", None),
        ("with assay.config.patch(repro_level=3): pass", None),
        ("assay.config.repro_levl = 3", 'has no attribute "repro_levl"'),
        ("assay.config.repro_level = '3'", "Incompatible types"),
        ("assay.config.repro_after = 'dynamos'", "Incompatible types"),
    ],
)
def test_mypy_knows_the_settings(tmp_path: Path, line: str, complaint: str | None) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import assay\n\n{line}\n")
    done = run("-m", "mypy", "--config-file", ROOT / "pyproject.toml", program)
    if complaint is None:
        assert done.returncode == 0, done.stdout
    else:
        assert complaint in done.stdout
