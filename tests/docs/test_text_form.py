"""docs/text_form.md is true: its examples are read, print as they stand, and what it says is
refused is refused with these words."""

from __future__ import annotations

from pathlib import Path

import pytest

import assay
from support.command import ROOT, graph_text
from support.pages import blocks, tables

PAGE = ROOT / "docs" / "text_form.md"
EXAMPLES = ["\n".join(lines) + "\n" for _, lines in blocks(PAGE, "python")]
WHOLE, NESTED, FLAT, IN_PLACE, ATTRIBUTES, INPUTS = EXAMPLES
REFUSED = tables(PAGE)[-1][1:]


def code(text: str, tmp_path: Path) -> str:
    """The graph of a file, printed. Loaded and not parsed: nothing is planned or run."""
    file = tmp_path / "graph.py"
    file.write_text(text)
    return assay.load(file).code


def body(text: str) -> str:
    """The statements of the printed forward()."""
    lines = text.split("    def forward(", 1)[1].splitlines()[1:]
    return "\n".join(line.removeprefix("        ") for line in lines) + "\n"


def test_the_whole_graph_prints_as_it_stands(tmp_path: Path) -> None:
    assert code(WHOLE, tmp_path) == WHOLE


def test_nested_statements_print_flat(tmp_path: Path) -> None:
    assert body(code(graph_text(NESTED + "return (a, b)"), tmp_path)) == FLAT + "return (a, b)\n"


def test_in_place_statements_print_as_they_stand(tmp_path: Path) -> None:
    text = IN_PLACE + "return (setitem,)\n"
    assert body(code(graph_text(text), tmp_path)) == text


def test_attributes_print_as_they_stand(tmp_path: Path) -> None:
    inner = graph_text("return (x,)").replace("Repro", "Body")
    text = inner + graph_text("y = self.body(x)\nreturn (y,)", constructor=ATTRIBUTES)
    printed = code(text, tmp_path)
    constructor = printed.split("class Repro")[1].split("super().__init__()\n")[1]
    lines = [line.strip() for line in constructor.split("\n\n")[0].splitlines()]
    assert lines == ATTRIBUTES.splitlines()
    assert printed.index("class Body") < printed.index("class Repro")


def test_inputs_are_read(tmp_path: Path) -> None:
    text = graph_text("return (x,)", inputs="s77, x, indices, training") + INPUTS
    file = tmp_path / "repro.py"
    file.write_text(text)
    inputs, notes = assay.load(file).inputs()
    assert inputs[0] == 4
    assert inputs[1].shape == (4, 8)
    assert inputs[1].requires_grad
    assert (inputs[2].shape, inputs[2].stride(), inputs[2].storage_offset()) == ((2, 2), (1, 2), 4)
    assert inputs[3] is None
    assert any("'cuda:0'" in note for note in notes)


def test_annotations_of_the_table_are_known(tmp_path: Path) -> None:
    rows = tables(PAGE)[1][1:]
    for annotation, _ in ((row[0].strip("`"), row[1]) for row in rows):
        text = graph_text(f'y: "{annotation}" = torch.relu(x)\nreturn (y,)')
        printed = body(code(text, tmp_path))
        assert printed.startswith(f'y: "{annotation}'), annotation


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(assay.UserError) as caught:
        code(graph_text(text.strip("`")), tmp_path)
    assert message.strip("`") in str(caught.value)
    assert f"{tmp_path}/graph.py:" in str(caught.value)
