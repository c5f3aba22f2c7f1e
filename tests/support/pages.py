"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
from pathlib import Path

from support.command import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[tuple[int, list[str]]]:
    """The blocks of a page in one language: the number of the first line, and the lines."""
    found = []
    lines = page.read_text().splitlines()
    start = None
    for i, line in enumerate(lines):
        if start is None and line == f"```{language}":
            start = i + 1
        elif start is not None and line == "```":
            found.append((start + 1, lines[start:i]))
            start = None
    return found


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def tables(page: Path) -> list[list[list[str]]]:
    """The tables of a page: rows of cells, without the line under the header."""
    found: list[list[list[str]]] = []
    inside = False
    for line in page.read_text().splitlines():
        if not line.startswith("| "):
            inside = inside and line.startswith("|--")
            continue
        if not inside:
            found.append([])
        inside = True
        found[-1].append([cell.strip().replace("\\|", "|") for cell in line[1:-1].split(" | ")])
    return found
