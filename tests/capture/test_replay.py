"""Records of frames whose capture failed: written where the message says, and run again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from capture import engine
from support.command import environment

pytestmark = pytest.mark.skipif(engine.ENGINE != "assay", reason="about assay's own records")

SCALE = 3


@pytest.fixture(autouse=True)
def records(tmp_path: Path) -> Iterator[None]:
    with assay.config.patch(replay_record_enabled=True, debug_dir_root=str(tmp_path / "debug")):
        yield


def refuses(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    raise NotImplementedError(f"cannot compile {len(list(gm.graph.nodes))} nodes")


def refuses_relu(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    if any(node.target is torch.relu for node in gm.graph.nodes):
        raise NotImplementedError("relu")
    return gm.forward


def failure(compiled: Any, *args: Any, **kwargs: Any) -> Any:
    with pytest.raises(Exception) as caught:
        compiled(*args, **kwargs)
    return caught.value


def fails_again(error: Any) -> Any:
    """The record's frame fails as the program did; returns the second exception."""
    assert Path(error.record_filename).is_file()
    assert any(error.record_filename in note for note in error.__notes__)
    with pytest.raises(type(error)) as caught:
        assay.replay(error.record_filename, trusted=True)
    assert str(caught.value) == str(error)
    return caught.value


def test_a_backend_that_raises(tmp_path: Path) -> None:
    def f(x: torch.Tensor, *, n: int) -> torch.Tensor:
        return torch.relu(x) * n * SCALE

    error = failure(assay.compile(f, backend=refuses), torch.tensor([1.0, -1.0]), n=2)
    again = fails_again(error)
    assert isinstance(again.__cause__, NotImplementedError)
    file = Path(error.record_filename)
    assert file.name == f"f_BackendCompilerFailed_{f.__code__.co_firstlineno}.rec"
    assert file.parent.name == "error_recordings"
    assert file.parents[2] == tmp_path / "debug"
    result = assay.replay(file, trusted=True, backend="eager")
    assert torch.equal(result, torch.tensor([6.0, 0.0]))


def test_a_registered_backend() -> None:
    assay.register_backend(refuses, name="refuses_for_test_replay")
    error = failure(assay.compile(torch_sum, backend="refuses_for_test_replay"), torch.ones(2))
    fails_again(error)


def torch_sum(x: torch.Tensor) -> torch.Tensor:
    return x.sum() + 1


def test_an_injected_fault_of_a_builtin_backend() -> None:
    with assay.config.patch(inject_fault="sum:compile_error"):
        error = failure(assay.compile(torch_sum, backend="aot_eager"), torch.ones(2))
    fails_again(error)


def test_a_break_under_fullgraph() -> None:
    def g(x: torch.Tensor) -> torch.Tensor:
        print("in g")
        return x + 1

    def f(x: torch.Tensor) -> torch.Tensor:
        return g(x * 2)

    error = failure(assay.compile(f, fullgraph=True, backend="eager"), torch.ones(2))
    assert isinstance(error, assay.Unsupported)
    assert "print" in str(fails_again(error))


def test_closures_and_globals_are_those_of_the_failure() -> None:
    global SCALE
    factor = 5

    def f(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return torch.relu(x) * factor, SCALE

    SCALE = 7
    error = failure(assay.compile(f, backend=refuses), torch.ones(1))
    SCALE, factor = 3, 0
    fails_again(error)
    value, scale = assay.replay(error.record_filename, trusted=True, backend="eager")
    assert (value.item(), scale) == (5.0, 7)


def test_a_method_of_a_module() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.calls = 0

        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            self.calls += 1
            return torch.relu(self.linear(x)) * scale * self.calls

    net, x = Net(), torch.randn(3, 2)
    error = failure(assay.compile(net, backend=refuses_relu), x, scale=2.0)
    fails_again(error)
    result = assay.replay(error.record_filename, trusted=True, backend="eager")
    assert torch.equal(result, torch.relu(net.linear(x)) * 2.0)


def test_a_later_segment_is_replayed_from_the_start_of_its_frame() -> None:
    def f(x: torch.Tensor, log: list[float]) -> torch.Tensor:
        x.add_(1)
        log.append(x.sum().item())
        return torch.relu(x) * len(log)

    error = failure(assay.compile(f, backend=refuses_relu), torch.zeros(2), [])
    fails_again(error)
    result = assay.replay(error.record_filename, trusted=True, backend="eager")
    assert torch.equal(result, torch.ones(2))


def test_arguments_share_memory_as_before() -> None:
    def f(x: torch.Tensor, view: torch.Tensor, *rest: Any, **named: Any) -> torch.Tensor:
        view.add_(1)
        return torch.relu(x) + rest[0] + named["k"]

    x = torch.zeros(3)
    error = failure(assay.compile(f, backend=refuses), x, x[1:], 10, k=x)
    result = assay.replay(error.record_filename, trusted=True, backend="eager")
    assert result.tolist() == [10.0, 12.0, 12.0]


def test_grad_mode_and_random_numbers() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        return torch.relu(x) + torch.rand(2), torch.is_grad_enabled()

    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.no_grad():
        error = failure(assay.compile(f, backend=refuses), torch.zeros(2))
    before = torch.get_rng_state()
    result, grad = assay.replay(error.record_filename, trusted=True, backend="eager")
    assert torch.equal(result, expected)
    assert grad is False
    assert torch.equal(torch.get_rng_state(), before)


def test_an_untrusted_record_is_refused_with_a_reason(tmp_path: Path) -> None:
    class Armed:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "executed",)

    error = failure(assay.compile(lambda x, _: x + 1, backend=refuses), torch.ones(1), Armed())
    with pytest.raises(assay.UserError, match="It is a pickle: loading it can run any code") as no:
        assay.replay(error.record_filename)
    assert "<lambda>" in str(no.value)
    assert "trusted=True" in str(no.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("where", ["argument", "closure"])
def test_what_cannot_be_pickled_is_named(where: str) -> None:
    lock = threading.Lock()

    def with_closure(x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return x + 1, lock

    def with_argument(x: torch.Tensor, lock: Any) -> tuple[torch.Tensor, Any]:
        return x + 1, lock

    arguments = (lock,) if where == "argument" else ()
    function = with_argument if where == "argument" else with_closure
    error = failure(assay.compile(function, backend=refuses), torch.ones(1), *arguments)
    assert isinstance(error, assay.BackendCompilerFailed)
    assert not hasattr(error, "record_filename")
    [note] = error.__notes__
    name = {"argument": "argument 'lock'", "closure": "the variable 'lock'"}[where]
    assert note.startswith(f"The frame was not recorded: {name}")
    assert "cannot pickle '_thread.lock' object" in note


def test_a_backend_that_cannot_be_pickled() -> None:
    lock = threading.Lock()

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        with lock:
            raise NotImplementedError

    error = failure(assay.compile(torch_sum, backend=backend), torch.ones(2))
    with pytest.raises(assay.UserError, match="backend 'backend' is not in the record"):
        assay.replay(error.record_filename, trusted=True)
    assert assay.replay(error.record_filename, trusted=True, backend="eager").item() == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        (b"PK", "is not a record"),
        (b"assay frame record 1\n{", "damaged"),
    ],
)
def test_files_that_are_not_records(content: bytes | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.rec"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(assay.UserError, match=message):
        assay.replay(file, trusted=True)


def test_nothing_is_written_without_the_setting(tmp_path: Path) -> None:
    with assay.config.patch(replay_record_enabled=False):
        error = failure(assay.compile(torch_sum, backend=refuses), torch.ones(2))
    assert not hasattr(error, "record_filename")
    assert not (tmp_path / "debug").exists()


def test_a_frame_that_does_not_fail_leaves_nothing(tmp_path: Path) -> None:
    compiled = assay.compile(torch_sum, backend="eager")
    assert [compiled(torch.ones(2)).item() for _ in range(3)] == [3, 3, 3]
    assert not (tmp_path / "debug").exists()


SCRIPT = """
    import torch

    LIMIT = 4

    class Net(torch.nn.Module):
        def forward(self, x):
            return helper(x) + LIMIT

    def helper(x):
        return torch.relu(x)

    def my_backend(gm, example_inputs):
        raise NotImplementedError("my_backend")

    torch.compile(Net(), backend=my_backend)(torch.ones(2))
"""


def test_a_script_is_replayed_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "assay", *arguments],
            cwd=tmp_path,
            env=environment(TORCH_COMPILE_REPLAY_RECORD="1"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    first = run("script.py")
    assert first.returncode == 1
    [record] = (tmp_path / "torch_compile_debug").glob("run_*/error_recordings/*.rec")
    assert f"python -m assay --replay {record} --trusted" in first.stderr
    script.unlink()
    refused = run("--replay", str(record))
    assert refused.returncode == 1
    assert "It is a pickle" in refused.stderr
    assert "Traceback" not in refused.stderr
    again = run("--replay", str(record), "--trusted")
    assert again.returncode == 1
    assert "BackendCompilerFailed: backend 'my_backend' raised:" in again.stderr
    assert "NotImplementedError: my_backend" in again.stderr
