"""A graph file from a stranger is data: whatever Python stands in it, none of it is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import FIXTURES, assay, graph_text

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"


def hostile_texts(attack: str) -> dict[str, tuple[str, str]]:
    """The attack in every place of a file, with the message; no message where it is skipped."""
    launcher = LAUNCHER.read_text().replace("'checkpoints'", repr(str(LAUNCHER.parent)))
    return {
        "top level": (f"import os\n{attack}\n{launcher}", ""),
        "main block": (f"{launcher}\n    {attack}\n", ""),
        "decorator": (launcher.replace("class Repro", f"@{attack}\nclass Repro"), ""),
        "forward": (
            graph_text(f"y = {attack}\nreturn (y,)"),
            "the function 'os.system' needs a Python process",
        ),
        "import in forward": (
            graph_text(f"y = __import__('os').{attack.partition('.')[2]}\nreturn (y,)"),
            "the function '__import__' needs a Python process",
        ),
        "default value": (
            graph_text("return (x,)", inputs=f"x={attack}"),
            "expected a constant",
        ),
        "constructor": (
            graph_text("return (x,)", constructor=attack),
            "__init__ of a graph cannot contain this statement",
        ),
        "attribute": (
            graph_text("y = self.w\nreturn (y,)", constructor=f"self.w = {attack}"),
            "the module 'w', a os.system, needs a Python process",
        ),
        "load_args": (
            launcher.replace("    buf1 = ", f"    {attack}\n    buf1 = "),
            "unknown reader method 'os.system'",
        ),
        "size": (
            launcher.replace("(10, 10), req", f"(10, {attack}), req"),
            "expected a size",
        ),
    }


@pytest.mark.parametrize("place", hostile_texts("os.system('')"))
def test_nothing_is_executed(place: str, tmp_path: Path) -> None:
    sign = tmp_path / "executed"
    text, message = hostile_texts(f"os.system('touch {sign}')")[place]
    file = tmp_path / "hostile.py"
    file.write_text(text)
    result = assay("run", file)
    assert not sign.exists()
    if message:
        assert (result.code, result.out) == (2, "")
        assert message in result.err
    else:
        assert result.code == 0, result.err
