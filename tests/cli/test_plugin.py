"""Backends that are not part of the library: `assay --plugin FILE`."""

from __future__ import annotations

from pathlib import Path

from support.command import BINARY, assay, graph_file

PLUGIN = BINARY.parent.parent / "lib" / "wrong_sin_plugin.so"
BODY = """
a = torch.cos(x)
b = torch.sin(a)
c = b * 2
d = c + a
return (d,)
"""


def test_it_is_listed() -> None:
    names = [backend["name"] for backend in assay("backends", "--json").json()]
    assert "wrong_sin" not in names
    result = assay("backends", "--json", "--plugin", PLUGIN)
    assert "wrong_sin" in [backend["name"] for backend in result.json()], result.err
    named = assay("backends", "--json", env={"ASSAY_PLUGINS": f":{PLUGIN}:"})
    assert named.out == result.out


def test_it_is_compared_and_reduced(tmp_path: Path) -> None:
    file = graph_file(tmp_path, BODY)
    options = ["--plugin", PLUGIN, "--backend", "wrong_sin"]
    result = assay("run", file, *options, "--accuracy")
    assert result.code == 1, result.out + result.err
    assert "differs from eager" in result.out + result.err
    out = tmp_path / "out"
    reduced = assay("reduce", file, *options, "--json", "--output", out)
    assert reduced.code == 0, reduced.out + reduced.err
    code = (out / "repro.py").read_text()
    assert "torch.sin" in code and "torch.cos" not in code
    again = assay("run", out / "repro.py", *options, "--accuracy")
    assert again.code == 1, again.out + again.err


def test_a_library_that_cannot_be_loaded(tmp_path: Path) -> None:
    file = tmp_path / "broken.so"
    file.write_text("not a library")
    result = assay("backends", "--plugin", file)
    assert result.code == 2
    assert str(file) in result.err and "cannot be loaded" in result.err
