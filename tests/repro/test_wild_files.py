"""Files as people publish them: every form is shown and runs, or says in one line what it lacks.

Each file of tests/fixtures/wild shows one form; the table says what it computes and which notes a
user reads. Files that cannot run on a CPU are in `REFUSED`, with the reason.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from assay import _C
from support.command import ROOT
from support.command import assay as run_assay

WILD = ROOT / "tests" / "fixtures" / "wild"

ON_CPU = "; Assay runs it on the CPU"
NOT_PYTHON = "the file is not a Python program; Assay reads the graph in it"

FAKE_GROUPS = "the file's process groups are fake"


def t(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor of one row of numbers."""
    return torch.tensor(values, dtype=dtype)


# By file: the results (None where they are random), and parts of the notes.
FILES: dict[str, tuple[Any, list[str]]] = {
    "modules": (None, ["the device 'cuda'" + ON_CPU]),
    "printed_modules": (
        (torch.tensor([[[0.0, 1.0, 2.0, 0.0]], [[0.0, 0.5, 1.0, 0.0]]]),),
        [],
    ),
    "parameters": (None, ["the device 'cuda:0'" + ON_CPU]),
    "devices": ((t(4, 5, dtype=torch.float64),), ["the device 'npu'" + ON_CPU]),
    "gpu_attention": (None, ["the device 'cuda:0'" + ON_CPU]),
    "sizes_by_order": (
        None,
        ["no value for the sizes u0; Assay uses 4"],
    ),
    "sizes_by_name": (([8, 3], [3, 4], [2, 2, 16]), ["the device 'cuda:0'"]),
    "sizes_from_storage": (([5, 8], [4, 5]), ["no value for the sizes s1; Assay uses 4"]),
    "inputs_by_hand": (None, ["the device 'cuda'"]),
    "inputs_called": (torch.tensor([[4.0], [6.0]]), []),
    "reader_on_top": (None, ["the device 'cuda:0'", "2 of 2 storages were synthesized"]),
    "random_state": ((torch.zeros(4), torch.tensor(True)), ["the device 'cuda:0'"]),
    "unsupported_inputs": (
        ([[2, 3], [4]], torch.tensor(0.0), 5),
        [
            "1 inputs are not in the file; they are made from the graph's annotations",
            "the input 'primals_3' is of a type that stock PyTorch does not save",
        ],
    ),
    "stock_bad_output": (
        (t(7, 7),),
        [
            "the file's settings are pickled, and Assay does not unpickle them",
            "torch._inductor.config.post_grad_custom_post_pass is not in the file",
        ],
    ),
    "cut_off": (None, ["line 12 is not Python and was skipped"]),
    "empty_load_args": (([2, 3],), ["1 inputs are not in the file"]),
    "vmap": (
        (
            torch.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 7.0]]),
            torch.ones(3, 1),
        ),
        [],
    ),
    "grad_levels": ((t(3, 12), t(6, 120)), []),
    "helpers": (
        (
            torch.tensor([[-5.0, -10.0], [15.0, 10.0]], dtype=torch.bfloat16),
            torch.tensor([[1.0, 0.0], [3.0, 4.0]]),
            torch.tensor([[-5.0, -10.0], [15.0, 10.0]], dtype=torch.bfloat16),
            torch.tensor([[11.0, 8.0], [13.0, 14.0]]),
            torch.tensor([[-1.0, 2.0], [-3.0, -4.0]]),
            torch.tensor([[-5.0, -10.0], [15.0, 10.0]], dtype=torch.float64),
        ),
        ["the device 'cuda'"],
    ),
    "two_programs": ((t(1, 1),), ["the file holds 2 programs; this is number 2"]),
    "readable": (([3, 2],), []),
    "forward_alone": (([2],), []),
    "old_overloads": ((torch.tensor([[1.0, 2.0]] * 3), [2, 2]), []),
    "quantized": (
        (
            torch.tensor([[4, 0], [9, 82]], dtype=torch.uint8),
            torch.tensor([[1.0, -1.0], [3.5, 40.0]]),
            torch.tensor([[2, -31], [7, 127]], dtype=torch.int8),
            torch.tensor([[1.0, -8.0], [3.5, 31.5]]),
        ),
        [],
    ),
    "log_lines": ((t(2, 2, 2),), []),
    "new_log_lines": ((t(1, 1, 1, dtype=torch.bool),), ["the device 'hpu:0'" + ON_CPU]),
    "auto_functionalized": (
        (t(21, 43), t(21, 2, 43), t(-1, 2, 3), t(-10, -20), t(1, 2, 3), t(10, 20)),
        [],
    ),
    "scan": (
        (torch.tensor(6.0), t(4, 7, 7)),
        ["the device 'cuda:0'" + ON_CPU],
    ),
    "inputs_reshaped": ((t(3, 12), t(2, 3, dtype=torch.int64), [4, 3]), []),
    "old_prims": (
        (
            torch.tensor([[[[5.0, 7.0], [13.0, 15.0]]]]),
            torch.tensor([[[[5, 7], [13, 15]]]]),
            torch.ones(1, 1, 2, 2, dtype=torch.bool),
            torch.tensor([[17.0]]),
            torch.tensor([[[6.0, 14.0]]]),
        ),
        ["the device 'cuda:0'" + ON_CPU],
    ),
    "flex_attention": (None, ["the device 'cuda:0'" + ON_CPU]),
    "associative_scan": ((t(1, 2, 6, 24, 120),), ["the device 'cuda:0'" + ON_CPU]),
    "fake_groups": ((t(1, 2, 1, 2), t(2), t(1, 1, 2, 3)), [FAKE_GROUPS]),
    "fake_world": ((t(1, 2, 1, 2), t(1), t(1, 1, 2, 3)), [FAKE_GROUPS]),
    "dynamic_quantization": (
        (
            torch.tensor([[-128, -64, 127], [-16, -48, 0]], dtype=torch.int8),
            t(-64, dtype=torch.int64),
            torch.tensor([[-128, -64, 127], [63, -64, 127]], dtype=torch.int8),
            torch.tensor([[-64], [-128]]),
        ),
        [],
    ),
    "fused": (
        (
            torch.tensor([[2.0, -1.0], [-1.0, 13.0]]),
            torch.tensor([[2.0, -0.5], [-0.5, 13.0]]),
            t(3, 3),
        ),
        ["the device 'cuda:0'" + ON_CPU],
    ),
    "repeats": ((t(0, 0, 0, 1, 1, dtype=torch.int64),), []),
    "custom_function": ((t(0, 0), t(0, 0)), []),
    "issue_text": ([torch.zeros(2, 2), None], [NOT_PYTHON]),
    "fenced_repro": ((t(0, 0, 0, dtype=torch.int64),), ["line 3 is not Python and was skipped"]),
    "rank_log": ((t(0, 0),), []),
    "notebook_log": ((t(0, 0, 0, dtype=torch.float64),), []),
    "generated_code": ((t(1, 1, dtype=torch.bool),), [NOT_PYTHON]),
    "exported": ((torch.zeros(2, 2),), []),
    "export_shell": ((t(0, 0, 0), torch.tensor(True)), []),
    "joint_graph": ([[2, 2], torch.zeros(2, 2), None], [NOT_PYTHON]),
    "shapes_config": ((torch.zeros(24), torch.tensor(True)), []),
    "class_attributes": ((t(2, 0),), ["the device 'cuda'"]),
    "module_folder": (torch.zeros(2, 2), []),
    "gpu_layers": (None, ["the device 'cuda:0'" + ON_CPU]),
    "raw_attention": (None, ["the device 'cuda'" + ON_CPU]),
    "inputs_computed": (
        (torch.tensor([[-0.25] * 3, [2.5, 3.0, 3.5]]),),
        [],
    ),
    "fsdp": (
        (
            t(1, 2, 3, 4),
            t(1, 2, 3, 4, 0, 0, 0, 0),
            torch.tensor([[1.0], [0.0]]),
            torch.tensor([[2.0, 3.0, 4.0], [0.0, 0.0, 0.0]]),
        ),
        ["the device 'cuda'"],
    ),
    "computed_arguments": (
        (t(0, 0),),
        [
            "run_repro's argument command is computed: 'sys.argv[1]'; Assay ignores it",
            "run_repro's argument save_dir is computed",
        ],
    ),
}


def assert_same(result: Any, expected: Any, where: str) -> None:
    if isinstance(expected, torch.Tensor):
        assert isinstance(result, torch.Tensor), where
        assert result.dtype == expected.dtype, where
        assert torch.equal(result, expected), f"{where}: {result}"
    elif isinstance(expected, (list, tuple)):
        assert len(result) == len(expected), where
        for i, (left, right) in enumerate(zip(result, expected, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    else:
        assert result == expected, where


def test_every_file_has_a_row() -> None:
    assert {path.stem for path in WILD.glob("*.py")} == set(FILES) | set(REFUSED)


@pytest.mark.parametrize("name", FILES)
def test_is_shown(name: str) -> None:
    shown = run_assay("show", WILD / f"{name}.py")
    assert shown.code == 0, shown.err
    assert "shapes are unknown" not in shown.out


@pytest.mark.parametrize("name", FILES)
def test_runs(name: str) -> None:
    expected, notes = FILES[name]
    repro = assay.load(WILD / f"{name}.py")
    with torch.set_grad_enabled(repro.stage != "after_aot"):
        results = repro.run()
    if expected is not None:
        assert_same(results, expected, name)
    done = run_assay("run", WILD / f"{name}.py", "--json")
    assert done.code == 0, done.err
    found = "\n".join(done.json()["inputs"]["notes"])
    for note in notes:
        assert note in found
    assert ("device" in found) == any("device" in note for note in notes), found


def test_hand_written_contents() -> None:
    picked, strided = assay.load(WILD / "inputs_by_hand.py").run()
    # (1 + 3 + 0 + 1) * 2 and (2 + 3 + 1 + 1) * 2
    assert picked.tolist() == [10.0, 14.0]
    assert strided.stride() == (1, 2)


def test_parameters_have_their_contents() -> None:
    total, transposed = assay.load(WILD / "parameters.py").run()
    # d + e + f + g + i: 64 + (1, 2) + 3 + 1 + (0, 1)
    assert total.tolist() == [[69.0, 71.0]]
    assert transposed.shape == (2, 2)


def test_gpu_attention_is_attention() -> None:
    flash, efficient, cudnn, sums, more_sums, gradient = assay.load(WILD / "gpu_attention.py").run()
    assert max(flash.item(), efficient.item(), cudnn.item()) < 1e-5
    assert sums.shape == more_sums.shape == (1, 2, 8)
    assert gradient.shape == (1, 2, 8, 16) and math.isfinite(gradient.sum().item())


@pytest.mark.parametrize("name", ["gpu_layers", "raw_attention"])
def test_gpu_operators_are_the_functions_of_the_cpu(name: str) -> None:
    for i, difference in enumerate(assay.load(WILD / f"{name}.py").run()):
        assert difference.abs().max() < 1e-5, i


def test_listings_become_programs() -> None:
    shown = run_assay("show", WILD / "listing.py", "--code")
    assert "torch.functional.einsum('ij,jk->ik', linear, weight)" in shown.out
    assert "einsum[(slice(None, 2, None), 0)]" in shown.out
    assert "torch.nn.functional.pad(view, (0, 1), mode = 'constant', value = 0)" in shown.out
    assert "return [pad, full, w, None]" in shown.out
    shown = run_assay("show", WILD / "tabular.py", "--code")
    assert "torch.nn.functional.relu(add, inplace = False)" in shown.out
    assert "torch._C._nn.gelu(sin, approximate = 'none')" in shown.out
    assert "torch.ops.aten.sum.dim_IntList(gelu, [0], dtype = torch.float32)" in shown.out


def test_repeats_fit_in_trials_too() -> None:
    done = run_assay("run", WILD / "repeats.py", "--accuracy", "--backend", "aot_eager")
    assert done.code == 0, done.err


def test_sizes_that_are_assigned_together(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text("""\
import torch

N, C = 2, 3

class Repro(torch.nn.Module):
    def forward(self, x):
        return (torch.ops.aten.sym_size.int(x, 0), torch.ops.aten.sym_size.int(x, 1))

x = torch.randn(N, C)
Repro()(x)
""")
    assert assay.load(path).run() == (2, 3)


def test_code_that_inductor_generated(tmp_path: Path) -> None:
    path = tmp_path / "output_code.py"
    path.write_text("""\
from torch._inductor.codecache import AsyncCompile
async_compile = AsyncCompile()
def call(args):
    arg0_1, = args
    return (arg0_1,)
""")
    done = run_assay("show", path)
    assert done.code == 2
    assert "this is code that inductor generated" in done.err


def test_sizes_by_order() -> None:
    count, size, rest, view = assay.load(WILD / "sizes_by_order.py").run()
    assert (count.item(), size, rest, view.shape) == (4.0, 5, 9, (5, 3))


def test_what_is_read_runs_under_stock(tmp_path: Path) -> None:
    """Modules are written out as functions and parameters, which stock runs too."""
    repro = assay.load(WILD / "modules.py")
    scope: dict[str, Any] = {"torch": torch, "device": torch.device}
    exec(repro.code, scope)
    assert scope["Repro"]()(torch.randn(2, 3, 8, 8))[0].shape == (2, 5)


# --- What cannot run says why, in one line --------------------------------------------------------

REFUSED: dict[str, str] = {
    "custom_operator": (
        "unknown operator 'torch.ops.mylib.scale.default'\n|it is a custom operator: load the "
        "library that registers it with --plugin FILE.so"
    ),
    "custom_module": (
        "the module 'norm', a LlamaRMSNorm, needs a Python process|--stack torch runs the file"
    ),
    "lost_subgraph": "the body of the subgraph 'true_graph_0' is not in the file",
    "undescribed": "the file does not describe the input 'l_x_'",
    "lost_graph_module": "the body of the subgraph 'true_graph_0' is not in the file",
    "collective": "torch.ops._c10d_functional.all_reduce.default communicates between processes",
    "readable_modules": "the file does not say what the attribute 'layer' is",
    "listing": "the file does not describe the input 'primals_1'",
    "tabular": "the file does not describe the input 'x'",
    "commented": "the file does not describe the input 'x'",
    "triton_kernel": "it calls a Triton kernel of the user's, which runs on GPUs only",
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_shown_nevertheless(name: str) -> None:
    shown = run_assay("show", WILD / f"{name}.py")
    assert shown.code == 0, shown.err


@pytest.mark.parametrize("name", REFUSED)
def test_says_what_it_lacks(name: str) -> None:
    done = run_assay("run", WILD / f"{name}.py")
    assert done.code == 2, done
    for part in REFUSED[name].split("|"):
        assert part.strip() in done.err


@pytest.mark.parametrize("name", REFUSED)
def test_is_shown_although_it_cannot_run(name: str) -> None:
    shown = run_assay("show", WILD / f"{name}.py")
    assert shown.code == 0, shown.err
    assert "operators" in shown.out


def test_a_program_that_is_not_a_graph(tmp_path: Path) -> None:
    program = """\
import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = x + 1
        return x

Repro()(torch.zeros(3))
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = run_assay("run", path)
    assert done.code == 2, done
    assert "forward() cannot contain this statement" in done.err


@pytest.mark.parametrize("name", ["export_shell", "joint_graph"])
def test_without_its_shell_it_runs_under_stock(name: str) -> None:
    """What the file does not have (specs, guards) is gone from what is written."""
    code = assay.load(WILD / f"{name}.py").code
    assert "pytree" not in code and "missing" not in code
    compile(code, name, "exec")


def test_a_long_issue(tmp_path: Path) -> None:
    """The fences say where the program is; the last one that is a program counts."""
    prose = "".join(f"It isn't like {i}% of (what) I expected.\n" for i in range(40))
    repro = (WILD / "computed_arguments.py").read_text()
    path = tmp_path / "issue.md"
    path.write_text(f"{prose}```\n{repro}```\n{prose}```\nError: (no) 'kernel\n```\n{prose}")
    done = run_assay("run", path, "--json")
    assert done.code == 0, done.err
    assert NOT_PYTHON in "\n".join(done.json()["inputs"]["notes"])


def test_what_is_wrong_in_a_graph_in_a_text(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("""\
It's this graph:
 <eval_with_key>.8 class GraphModule(torch.nn.Module):
    def forward(self, x: f32[2]):
        for _ in x:
            pass
        return (x,)
""")
    done = run_assay("show", path)
    assert done.code == 2
    assert "log.txt:4:8: a graph's forward() cannot contain this statement" in done.err


def test_programs_around_a_repro(tmp_path: Path) -> None:
    """The repro counts, not the program before or behind it that it was made from."""
    user = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)
x = torch.ones(3)
torch.compile(Model())(x)
"""
    path = tmp_path / "both.py"
    path.write_text(user + (WILD / "computed_arguments.py").read_text() + user)
    done = run_assay("show", path, "--code")
    assert done.code == 0, done.err
    assert "torch.ops.aten.sub.Tensor(arg0_1, arg0_1)" in done.out


# --- Damaged files --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(WILD.glob("*.py")), ids=lambda path: path.stem)
def test_truncated_anywhere(path: Path) -> None:
    """A file that ends at any line is read, or refused with a place or a reason; never a crash."""
    lines = path.read_text().splitlines(keepends=True)
    for end in range(len(lines)):
        for text in (
            "".join(lines[:end]),
            "".join(lines[:end]) + lines[end][: len(lines[end]) // 2],
        ):
            try:
                _C.parse_repro(text, "cut.py")
            except assay.UserError as error:
                assert str(error)


def test_a_class_named_graph_module_is_a_subgraph_with_a_body() -> None:
    graph = assay.parse("""
class GraphModule(torch.nn.Module):
    def forward(self, x):
        sin = torch.sin(x)
        return (sin,)

class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = GraphModule()

    def forward(self, x):
        body = self.body
        call = torch.ops.higher_order.invoke_subgraph(body, 'body', x)
        getitem = call[0]
        return (getitem,)
""")
    x = torch.ones(2)
    assert torch.equal(graph(x)[0], torch.sin(x))


def test_an_operator_without_a_kernel_for_cpus(tmp_path: Path) -> None:
    file = tmp_path / "repro.py"
    file.write_text("""\
class Repro(torch.nn.Module):
    def forward(self, x: "bf16[4, 256]", w: "i32[4, 2, 32, 4]", scales: "bf16[8, 32, 2]"):
        mm = torch.ops.aten._weight_int4pack_mm.default(x, w, 32, scales)
        return (mm,)
""")
    done = run_assay("run", file)
    assert done.code == 1
    assert "node 'mm' failed" in done.err
    assert "it has no kernel for CPUs\n" in done.err


def test_fake_groups_are_written_again(tmp_path: Path) -> None:
    """So that stock PyTorch, and the trials of a reduction, set them up too."""
    file = tmp_path / "repro.py"
    file.write_text(assay.load(WILD / "fake_world.py").text)
    assert "setup_fake_process_groups({'0': {'size': 2, 'rank': 0}" in file.read_text()
    assert_same(assay.load(file).run(), FILES["fake_world"][0], "written again")


def test_collectives_are_reduced(tmp_path: Path) -> None:
    """The trials set up the file's groups."""
    done = run_assay(
        *("reduce", WILD / "fake_groups.py", "--backend", "aot_eager"),
        *("--inject", "wait_tensor:runtime_error", "--output", tmp_path / "out", "--json"),
    )
    assert done.code == 0, done.err
    assert done.json()["status"] == "reduced"


@pytest.mark.slow
def test_stock_runs_collectives(tmp_path: Path) -> None:
    done = run_assay(
        *("run", WILD / "fake_groups.py", "--stack", "torch", "--accuracy"),
        env={"ASSAY_PYTHON": sys.executable},
    )
    assert done.code == 0, done.err
    assert "inductor matches eager" in done.out
