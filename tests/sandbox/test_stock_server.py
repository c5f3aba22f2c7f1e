"""The trial server with stock PyTorch: what it answers, and what it survives."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._content_store import ContentStoreReader

from sandbox.stock_client import Connection, Server
from sandbox.stock_texts import AFTER_AOT, AFTER_DYNAMO, BUG, WALL, backend, with_body

Answer = dict[str, Any]


def test_ready(server: Server) -> None:
    for ready in server.ready:
        assert ready["ready"] is True
        assert ready["torch"] == torch.__version__
        assert ready["seconds"] > 0


# --- What a compiler does -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "last_stage"),
    [(AFTER_DYNAMO, "compare"), (AFTER_AOT, "compare")],
    ids=["dynamo", "aot"],
)
def test_passes(connection: Connection, file: str, last_stage: str) -> None:
    answer = connection.ask(file, backend="inductor", accuracy=True, limits=WALL)
    assert answer["report"] == {"stage": last_stage, "status": "passed"}, answer
    assert (answer["exit"], answer["signal"], answer["limit"]) == (0, None, None)
    assert 0 < answer["cpu_seconds"] <= answer["seconds"] * 2
    assert answer["peak_bytes"] > 1 << 20


def test_stages_end_with_backward(connection: Connection) -> None:
    asked = {"backend": "aot_eager", "limits": WALL}
    assert connection.ask(AFTER_DYNAMO, **asked)["report"]["stage"] == "backward"
    assert connection.ask(AFTER_DYNAMO, backward=False, **asked)["report"]["stage"] == "run"


@pytest.mark.parametrize("file", [AFTER_DYNAMO, AFTER_AOT], ids=["dynamo", "aot"])
def test_compile_error(connection: Connection, file: str) -> None:
    answer = connection.ask(file, config=[[BUG, "compile_error"]], limits=WALL)
    report = answer["report"]
    assert report["status"] == "failed"
    assert report["stage"] == "compile"
    assert report["type"] == "torch._inductor.exc.CppCompileError"
    assert report["message"].startswith("C++ compile error: ")
    assert "\n" not in report["message"]  # the command and all errors are in the stack
    assert "compile error!" in report["stack"]
    assert (answer["exit"], answer["signal"]) == (1, None)


@pytest.mark.parametrize("file", [AFTER_DYNAMO, AFTER_AOT], ids=["dynamo", "aot"])
def test_runtime_error(connection: Connection, file: str) -> None:
    answer = connection.ask(file, config=[[BUG, "runtime_error"]], limits=WALL)
    assert answer["report"]["stage"] == "run"
    # Thrown out of a kernel that may not throw: the process is aborted.
    assert answer["signal"] == signal.SIGABRT or answer["report"]["status"] == "failed"


@pytest.mark.parametrize("file", [AFTER_DYNAMO, AFTER_AOT], ids=["dynamo", "aot"])
def test_accuracy(connection: Connection, file: str) -> None:
    asked = {"config": [[BUG, "accuracy"]], "limits": WALL}
    assert connection.ask(file, **asked)["report"]["status"] == "passed"
    report = connection.ask(file, accuracy=True, **asked)["report"]
    assert (report["status"], report["stage"]) == ("failed", "compare")
    found = report["accuracy"]
    assert found["kind"] == "values"
    assert found["where"].startswith("output[0]")
    assert 0.5 < found["error"] < 2
    assert 0 < found["tolerance"] < 0.01


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("nan", "[out[0] * float('nan'), out[1]]"),
        ("dtype", "[out[0].double(), out[1]]"),
        ("shape", "[out[0][:1], out[1]]"),
        ("structure", "out[:1]"),
        ("structure", "[None, out[1]]"),
    ],
)
def test_kinds_of_differences(connection: Connection, kind: str, result: str) -> None:
    setup = backend(f"out = graph(*inputs); return {result}")
    asked = {"backend": "mine", "setup": setup, "accuracy": True, "limits": WALL}
    report = connection.ask(AFTER_AOT, **asked)["report"]
    assert (report["status"], report["stage"]) == ("failed", "compare")
    assert report["accuracy"]["kind"] == kind


def test_autocast(connection: Connection) -> None:
    setup = backend("out = graph(*inputs); print(out[0].dtype); return out")
    asked = {"backend": "mine", "setup": setup, "accuracy": True, "limits": WALL}
    assert "torch.bfloat16" not in connection.ask(AFTER_DYNAMO, **asked)["output"]
    answer = connection.ask(AFTER_DYNAMO, autocast=True, **asked)
    assert answer["report"]["status"] == "passed"
    assert "torch.bfloat16" in answer["output"]


def test_a_trial_has_threads_of_its_own(connection: Connection) -> None:
    work = "x = torch.ones(900, 900); x @ x"
    tasks = "len(os.listdir('/proc/self/task'))"
    setup = backend(f"{work}; print('threads', torch.get_num_threads(), {tasks} > 1)")
    asked = {"backend": "mine", "setup": setup, "accuracy": True}
    limits = {"wall": 120.0, "cpu": 60.0, "memory": 1 << 30}
    for threads in (2, 1, 3):  # the server has none, so each trial can start its own
        answer = connection.ask(AFTER_DYNAMO, threads=threads, limits=limits, **asked)
        assert answer["report"]["status"] == "passed", answer
        assert f"threads {threads} {threads > 1}" in answer["output"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("out = graph(*inputs); return [out[0], out[1] + 1]", "output[1]"),
        ("out = graph(*inputs); inputs[1].add_(1); return out", "input['y']"),
    ],
)
def test_integers_and_changed_inputs_are_compared(
    connection: Connection, body: str, where: str
) -> None:
    file = with_body(
        "        sin = torch.ops.aten.sin.default(x);  x = None\n"
        "        ge = torch.ops.aten.ge.Tensor(sin, y);  y = None\n"
        "        sum_1 = torch.ops.aten.sum.default(ge)\n"
        "        return (sin, sum_1)\n"
    )
    asked = {"backend": "mine", "setup": backend(body), "accuracy": True, "limits": WALL}
    report = connection.ask(file, **asked)["report"]
    assert (report["status"], report["stage"]) == ("failed", "compare"), report
    assert report["accuracy"]["where"] == where
    is_integer = where.startswith("output")
    assert report["accuracy"]["kind"] == ("integers" if is_integer else "mutation")
    report = connection.ask(file, ignore_non_fp=True, **asked)["report"]
    assert report["status"] == ("passed" if is_integer else "failed")
    assert report["not_compared"] == "1 integer or bool result was not compared"


@pytest.mark.parametrize("file", [AFTER_DYNAMO, AFTER_AOT], ids=["dynamo", "aot"])
def test_lowering_names_its_operator(connection: Connection, file: str) -> None:
    setup = """
import torch
from torch._inductor.lowering import lowerings
def broken(*args, **kwargs):
    raise ValueError("not today")
lowerings[torch.ops.aten.relu.default] = broken
"""
    report = connection.ask(file, setup=setup, limits=WALL)["report"]
    assert report["stage"] == "compile"
    assert report["type"] == "torch._inductor.exc.LoweringException"
    assert report["message"] == "ValueError: not today"
    assert report["operator"] == "torch.ops.aten.relu.default"
    assert report["suspects"] == ["relu"]


@pytest.mark.parametrize("file", [AFTER_DYNAMO, AFTER_AOT], ids=["dynamo", "aot"])
def test_kernel_names_the_calls_it_was_made_of(connection: Connection, file: str) -> None:
    file = file.replace("torch.mm(l_x_, l_w_)", "torch.ops.aten.mm.default(l_x_, l_w_)")
    report = connection.ask(file, config=[[BUG, "compile_error"]], limits=WALL)["report"]
    assert report["status"] == "failed"
    assert "relu" in report["suspects"]
    assert not {"mm", "expand"} & set(report["suspects"])


def test_exception_of_a_backend(connection: Connection) -> None:
    setup = backend("raise KeyError('lost')")
    report = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=WALL)["report"]
    assert (report["status"], report["stage"], report["type"]) == ("failed", "run", "KeyError")
    assert "lost" in report["stack"]


# --- What is no fault of a compiler's -------------------------------------------------------------


def test_eager_failure_is_invalid(connection: Connection) -> None:
    file = AFTER_AOT.replace("[1, 0]", "[1, 5]")
    report = connection.ask(file, limits=WALL)["report"]
    assert (report["status"], report["stage"]) == ("invalid", "eager")
    assert report["type"] == "IndexError"


def test_eager_is_compared_with_itself_before_the_compiler_runs(connection: Connection) -> None:
    setup = backend("raise KeyError('lost')")
    setup += "import itertools; relu, n = torch.relu, itertools.count()\n"
    setup += "torch.relu = lambda x: relu(x) + 10 ** next(n)\n"
    asked = {"backend": "mine", "setup": setup, "accuracy": True, "limits": WALL}
    assert connection.ask(AFTER_DYNAMO, **asked)["report"]["status"] == "failed"
    report = connection.ask(AFTER_DYNAMO, repeat_eager=True, **asked)["report"]
    assert (report["status"], report["stage"]) == ("invalid", "eager")
    assert "not repeatable" in report["message"]


def test_what_is_not_compared_need_not_be_repeatable(connection: Connection) -> None:
    setup = backend("raise KeyError('lost')")
    setup += "import itertools; relu, n = torch.relu, itertools.count()\n"
    setup += "torch.relu = lambda x: (relu(x) > 0).int() + next(n)\n"
    asked = {"backend": "mine", "setup": setup, "accuracy": True, "repeat_eager": True}
    asked |= {"backward": False, "limits": WALL}
    report = connection.ask(AFTER_DYNAMO, **asked)["report"]
    assert (report["status"], report["stage"]) == ("invalid", "eager")
    report = connection.ask(AFTER_DYNAMO, ignore_non_fp=True, **asked)["report"]
    assert (report["status"], report["type"]) == ("failed", "KeyError"), report


def test_calls_on_one_line_are_no_fault(connection: Connection) -> None:
    file = AFTER_AOT.replace(";  x = None\n        relu", "; relu")
    assert file != AFTER_AOT
    report = connection.ask(file, backend="inductor", limits=WALL)["report"]
    assert report["status"] == "passed", report


def test_syntax_error_is_invalid(connection: Connection) -> None:
    report = connection.ask("class <lambda>:", limits=WALL)["report"]
    assert (report["status"], report["stage"], report["type"]) == ("invalid", "load", "SyntaxError")


def test_unknown_backend_is_invalid(connection: Connection) -> None:
    report = connection.ask(AFTER_DYNAMO, backend="no_such", limits=WALL)["report"]
    assert (report["status"], report["stage"]) == ("invalid", "load")
    assert "no_such" in report["message"]


def test_not_a_request(connection: Connection) -> None:
    connection.socket.sendall(b"hello\n")
    assert "not a request" in connection.read()["error"]
    assert "not a request" in connection.ask_anything(limits={"wall": "long"})["error"]
    assert connection.ask(AFTER_AOT, backend="eager", limits=WALL)["exit"] == 0


# --- Limits ---------------------------------------------------------------------------------------


def test_hang(connection: Connection) -> None:
    setup = backend("time.sleep(1000)")
    limits = {"wall": 1.5, "cpu": 100.0}
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=limits)
    assert (answer["exit"], answer["signal"], answer["limit"]) == (None, signal.SIGKILL, "wall")
    assert answer["report"] == {"stage": "run"}
    assert 1.5 <= answer["seconds"] < 15


@pytest.mark.parametrize("limit", ["wall", "cpu"])
def test_no_time_at_all(limit: str, connection: Connection) -> None:
    setup = backend("time.sleep(1000)")
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits={**WALL, limit: 0})
    assert answer["limit"] == limit


def test_cpu_limit_counts_processes_below(connection: Connection) -> None:
    setup = backend("subprocess.run([sys.executable, '-c', 'while True: pass'])")
    limits = {"wall": 60.0, "cpu": 1.0}
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=limits)
    assert (answer["signal"], answer["limit"]) == (signal.SIGKILL, "cpu")
    assert 1.0 <= answer["cpu_seconds"] < 10


def test_segmentation_fault(connection: Connection) -> None:
    setup = backend("ctypes.string_at(0)")
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=WALL)
    assert (answer["exit"], answer["signal"], answer["limit"]) == (None, signal.SIGSEGV, None)
    assert answer["report"]["stage"] == "run"
    assert "Segmentation fault" in answer["output"]


def test_memory_limit(connection: Connection) -> None:
    setup = backend("torch.zeros(1 << 30)")
    limits = {**WALL, "memory": 1 << 30}
    report = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=limits)["report"]
    assert (report["status"], report["stage"]) == ("failed", "run")
    assert "can't allocate memory" in report["message"]


def test_memory_exhausted_slowly_is_no_hang(connection: Connection) -> None:
    setup = backend("[(torch.empty(1 << 24), time.sleep(0.2)) for _ in range(1000)]")  # 64 MB each
    limits = {"wall": 1.5, "cpu": 100.0, "memory": 1 << 30}
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=limits)
    assert answer["limit"] is None
    assert "can't allocate memory" in answer["report"]["message"]
    assert answer["seconds"] > limits["wall"]


def test_killed_from_outside(server: Server, connection: Connection) -> None:
    connection.send(AFTER_DYNAMO, backend="mine", setup=backend("time.sleep(1000)"), limits=WALL)
    os.kill(wait_for_trial(server), signal.SIGKILL)
    answer = connection.read()
    assert (answer["exit"], answer["signal"], answer["limit"]) == (None, signal.SIGKILL, None)


def test_output_is_bounded(connection: Connection) -> None:
    setup = backend("print('x' * 10_000_000); print('the end', file=sys.stderr)")
    limits = {**WALL, "output": 1000}
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=limits)
    assert answer["report"]["status"] == "passed"
    assert len(answer["output"]) == 1000
    assert "the end" in answer["output"]


def test_half_built_kernels_are_removed(server: Server, connection: Connection) -> None:
    """g++ writes in place, and inductor loads what is there."""
    directory = server.cache / "zz"
    building = directory / "key.main_CxxBuild"
    building.mkdir(parents=True)
    half, source = directory / "key.main.so", directory / "key.main.cpp"
    for path in (half, source):
        path.write_text("half")
    setup = backend("os.kill(os.getpid(), 9)")
    assert connection.ask(AFTER_DYNAMO, backend="mine", setup=setup, limits=WALL)["signal"] == 9
    assert source.exists()
    assert not half.exists()
    assert not building.exists()


def test_what_a_trial_starts_ends_with_it(connection: Connection, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = "['sh', '-c', 'echo $$ > {}; sleep 1000']"
    start = f"subprocess.Popen({command.format(note)}, start_new_session=True); time.sleep(0.5)"
    answer = connection.ask(AFTER_DYNAMO, backend="mine", setup=backend(start), limits=WALL)
    assert answer["report"]["status"] == "passed"
    assert not is_running(int(note.read_text()))


# --- Record ---------------------------------------------------------------------------------------


def test_record(connection: Connection, tmp_path: Path) -> None:
    asked = {"task": "record", "save_dir": str(tmp_path), "limits": WALL}
    report = connection.ask(AFTER_AOT, **asked)["report"]
    assert report["status"] == "passed"
    values = report["values"]
    assert list(values) == ["x", "y", "sin", "relu", "permute", "expand", "add"]
    x, sin, permute, expand = (load(tmp_path, values[n]) for n in ("x", "sin", "permute", "expand"))
    assert torch.equal(sin, x.sin())
    assert torch.equal(permute, x.sin().relu().t())
    assert permute.stride() == (1, 4)
    assert torch.equal(expand, permute.expand(2, 4, 4))
    assert values["expand"]["bytes"] == 128  # materialised
    for name, value in values.items():
        stored = ContentStoreReader(str(tmp_path)).read_storage(value["storage"])
        assert hashlib.sha1(bytes(stored)).hexdigest() == value["storage"], name


def test_record_with_gradients(connection: Connection, tmp_path: Path) -> None:
    asked = {"task": "record", "save_dir": str(tmp_path), "limits": WALL}
    values = connection.ask(AFTER_DYNAMO, **asked)["report"]["values"]
    assert values["l_w_"]["requires_grad"] is True
    assert values["mul"]["requires_grad"] is True
    assert values["scale"] == {**values["scale"], "size": [], "requires_grad": False}


def test_record_other_values(connection: Connection, tmp_path: Path) -> None:
    body = """
        pair = torch.ops.aten.max.dim(x, 0)
        getitem = pair[0];  pair = None
        size = x.size(0)
        half = size / 2
        dtype = getattr(x, 'dtype')
        x += 1;  iadd = x;  x = None
        return (getitem,)
"""
    file = with_body(body)
    asked = {"task": "record", "save_dir": str(tmp_path), "seed": 3, "limits": WALL}
    values = connection.ask(file, **asked)["report"]["values"]
    assert [item["dtype"] for item in values["pair"]["items"]] == ["float32", "int64"]
    assert values["size"] == {"constant": 4}
    assert values["half"] == {"constant": 2.0}
    assert values["dtype"] == {"unknown": "dtype"}
    assert torch.equal(load(tmp_path, values["iadd"]), load(tmp_path, values["x"]) + 1)


def load(save_dir: Path, value: Answer) -> torch.Tensor:
    storage = ContentStoreReader(str(save_dir)).read_storage(value["storage"])
    assert storage.nbytes() == value["bytes"]
    tensor = torch.empty(0, dtype=getattr(torch, value["dtype"]))
    return tensor.set_(storage, value["offset"], value["size"], value["stride"])


# --- Processes ------------------------------------------------------------------------------------


def test_connections_work_at_the_same_time(server: Server, tmp_path: Path) -> None:
    signal_file = tmp_path / "go"
    setup = backend(f"while not os.path.exists({str(signal_file)!r}): time.sleep(0.01)")
    for connection in server.connections:
        connection.send(AFTER_DYNAMO, backend="mine", setup=setup, limits=WALL)
    wait_for_trials(server, 2)
    signal_file.touch()
    for connection in server.connections:
        assert connection.read()["report"]["status"] == "passed"


def test_end_of_stream_ends_everything(tmp_path: Path) -> None:
    """A connection ends during a trial; then the server is killed during another."""
    with Server(tmp_path, workers=2) as server:
        first, second = server.connections
        for connection in server.connections:
            connection.send(
                AFTER_DYNAMO, backend="mine", setup=backend("time.sleep(1000)"), limits=WALL
            )
        trials = wait_for_trials(server, 2)
        first.close()
        wait_until(lambda: sum(is_running(pid) for pid in trials) == 1)
        # The other worker and its trial.
        wait_until(lambda: len(descendants(server.process.pid)) == 2)
        below = descendants(server.process.pid)
        server.process.kill()
        server.process.wait()
        wait_until(lambda: not any(is_running(pid) for pid in [*below, *trials]))
        second.close()


def test_start_without_trials(tmp_path: Path) -> None:
    with Server(tmp_path, workers=1) as server:
        server.connections[0].socket.shutdown(2)
        assert server.process.wait(timeout=60) == 0


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        return []
    found = [int(child) for child in children.read_text().split()]
    return found + [below for child in found for below in descendants(child)]


def wait_for_trials(server: Server, count: int) -> list[int]:
    """The processes of running trials: below the workers, which are below the server."""

    def trials() -> list[int]:
        workers = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        return [pid for worker in workers.read_text().split() for pid in descendants(int(worker))]

    wait_until(lambda: len(trials()) == count)
    return trials()


def wait_for_trial(server: Server) -> int:
    return wait_for_trials(server, 1)[0]


def wait_until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
