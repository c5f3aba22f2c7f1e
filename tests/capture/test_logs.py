"""What TORCH_LOGS shows of capture."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import assay
from support.command import environment

PROGRAM = """
    import torch, assay

    class Counter:
        n = 0
        def step(self, x):
            self.n += 1
            return x * self.n

    counter, log = Counter(), []

    def f(x, k):
        y = counter.step(x) + k
        log.append(y)
        print("hello")
        return torch.relu(y)

    compiled = assay.compile(f, backend="eager")
    for k in (1, 1, 2):
        compiled(torch.ones(2), k)
"""


def logs(names: str, tmp_path: Path, **settings: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(TORCH_LOGS=names, **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stderr


def messages(text: str) -> list[str]:
    """The lines without what the log puts before each."""
    return [line.split("] ", 2)[-1] for line in text.splitlines()]


def test_bytecode_shows_each_captured_function_once(tmp_path: Path) -> None:
    lines = messages(logs("bytecode", tmp_path))
    assert sum(line.startswith("ORIGINAL BYTECODE") for line in lines) == 1
    assert lines[0].startswith("ORIGINAL BYTECODE f ")
    assert lines[0].endswith("program.py line 12")
    assert any("LOAD_GLOBAL" in line and "counter" in line for line in lines)


def test_side_effects_have_the_line_of_the_user(tmp_path: Path) -> None:
    lines = messages(logs("side_effects", tmp_path))
    assert lines[0].startswith("SIDE EFFECTS")
    assert "  counter.n = ..." in lines
    assert "    " + f"{tmp_path}/program.py:7 in step: self.n += 1" in lines
    assert "  log.append(...)" in lines
    assert "    " + f"{tmp_path}/program.py:14 in f: log.append(y)" in lines


def test_every_instruction_and_line_with_the_stack(tmp_path: Path) -> None:
    text = logs("+dynamo", tmp_path)
    lines = messages(text)
    assert f"TRACE starts_line {tmp_path}/program.py:13 in f" in lines
    assert "    y = counter.step(x) + k" in lines
    assert "TRACE LOAD_FAST k (f:13) [Tensor]" in lines
    assert "TRACE BINARY_OP + (f:13) [Tensor, int]" in lines


def test_graph_sizes(tmp_path: Path) -> None:
    lines = messages(logs("graph_sizes", tmp_path))
    assert lines[0] == "TRACED GRAPH TENSOR SIZES"
    assert "L_x_: (2,)" in lines


def test_recompiles_verbose_names_every_segment_that_does_not_fit(tmp_path: Path) -> None:
    lines = messages(logs("recompiles_verbose", tmp_path))
    assert "    none of these fits:" in lines
    assert any("counter.n is 2, was 1" in line for line in lines) or any(
        "counter.n" in line for line in lines
    )


def test_steps_and_breaks(tmp_path: Path) -> None:
    text = logs("dynamo,graph_breaks,graph_code,guards,graph", tmp_path)
    for part in (
        "Step 1: torchdynamo start tracing f",
        "Step 1: torchdynamo done tracing f",
        "Step 2: calling compiler function eager",
        "Graph break: a call of 'builtins.print'",
        "GUARDS:",
        "class GraphModule(torch.nn.Module)",
        "opcode ",
    ):
        assert part in text, part


def test_debug_function(tmp_path: Path) -> None:
    assert "start tracing" not in logs("dynamo", tmp_path, TORCHDYNAMO_DEBUG_FUNCTION="g")
    assert "start tracing f" in logs("dynamo", tmp_path, TORCHDYNAMO_DEBUG_FUNCTION="f")


def test_compile_times_is_a_table(tmp_path: Path) -> None:
    program = textwrap.dedent(PROGRAM) + "\nprint(assay.compile_times())\n"
    (tmp_path / "times.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "times.py"],
        cwd=tmp_path,
        env=environment(TORCH_LOGS="dynamo"),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Runtimes (s)" in done.stdout


@pytest.mark.parametrize("name", ["bytecode", "side_effects", "trace_source", "trace_bytecode"])
def test_the_names_are_those_of_pytorch(name: str) -> None:
    import torch._logging._internal as stock

    assert name in stock.log_registry.artifact_names
    assert assay is not None
