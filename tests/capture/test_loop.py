"""The interpreter loop does what CPython does: programs.py in both, and what needs more than that.

CPython's own test suite is the larger test of the same; see cpython_suite.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import dis
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay import _C
from capture.programs import programs


@contextlib.contextmanager
def all_frames(hand_over_after: int | None = None, checked: bool = False) -> Iterator[None]:
    _C.capture_run_all_frames(True, hand_over_after, checked)
    try:
        yield
    finally:
        _C.capture_run_all_frames(False)


def run_twice(program: Any, **options: Any) -> tuple[Any, Any]:
    """What the program gives in CPython and in the loop, from the same place."""
    results = []
    for in_loop in (False, True):
        with all_frames(**options) if in_loop else contextlib.nullcontext():
            results.append(program())
    return results[0], results[1]


@pytest.mark.parametrize("name", programs)
def test_program(name: str) -> None:
    expected, actual = run_twice(programs[name])
    assert repr_of(actual) == repr_of(expected)


def repr_of(value: Any) -> str:
    """Values without the addresses of objects, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


@pytest.mark.parametrize("name", programs)
def test_specialized_code(name: str) -> None:
    """CPython rewrites instructions of code that runs often; the loop reads the original ones."""
    for _ in range(10):
        programs[name]()
    expected, actual = run_twice(programs[name])
    assert repr_of(actual) == repr_of(expected)


@pytest.mark.parametrize("name", programs)
def test_promises_to_operations(name: str) -> None:
    """Operands stay on the stack while they are used, and origins stay beside their values."""
    expected, actual = run_twice(programs[name], checked=True)
    assert repr_of(actual) == repr_of(expected)


@pytest.mark.parametrize("instructions", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_hand_over_at_any_instruction(instructions: int) -> None:
    """CPython can execute the rest of a frame from wherever the loop stops."""
    # CPython reports a frame that it gets in the middle of a line as starting that line.
    traced = {"trace_is_switched_on_inside", "profile_is_switched_on_inside"}
    for name in programs.keys() - traced:
        expected, actual = run_twice(programs[name], hand_over_after=instructions)
        assert repr_of(actual) == repr_of(expected), name


def test_frames_do_go_through_the_loop() -> None:
    """It does not specialize instructions, so code that only ran in the loop stays as it was."""

    def function(x: int) -> int:
        total = 0
        for i in range(x):
            total += i
        return total

    def is_specialized() -> bool:
        adaptive = [i.opname for i in dis.get_instructions(function, adaptive=True)]
        return adaptive != [i.opname for i in dis.get_instructions(function)]

    with all_frames():
        for _ in range(100):
            function(10)
    assert not is_specialized()
    for _ in range(100):
        function(10)
    assert is_specialized()


def test_keyboard_interrupt_in_a_loop() -> None:
    def spin() -> int:
        count = 0
        while True:
            count += 1
            if count == 100:
                signal.raise_signal(signal.SIGINT)

    # A shell's background job starts with the signal ignored.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with all_frames(), pytest.raises(KeyboardInterrupt) as caught:
            spin()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert caught.traceback[-1].name == "spin"


def test_signal_interrupts_an_empty_loop() -> None:
    class Alarm(Exception):
        pass

    def handler(number: int, frame: Any) -> None:
        raise Alarm(frame.f_code.co_name)

    def spin() -> None:
        while True:
            pass

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with all_frames(), pytest.raises(Alarm, match="spin"):
            spin()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_threads_take_turns() -> None:
    """Each waits for the other without ever calling anything that would release the GIL."""
    turn = [0]
    rounds = 20
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)

    def player(me: int) -> None:
        for _ in range(rounds):
            while turn[0] != me:
                pass
            turn[0] = 1 - me

    try:
        with all_frames():
            other = threading.Thread(target=player, args=(1,))
            other.start()
            player(0)
            other.join(60)
            assert not other.is_alive()
    finally:
        sys.setswitchinterval(interval)


def test_asynchronous_exception() -> None:
    caught = []
    started = threading.Event()

    def spin() -> None:
        try:
            started.set()
            while True:
                pass
        except ZeroDivisionError:
            caught.append("caught")
            for _ in range(10):  # the request is answered: nothing more is raised
                time.sleep(0)
            caught.append("goes on")

    with all_frames():
        thread = threading.Thread(target=spin)
        thread.start()
        started.wait()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(ZeroDivisionError)
        )
        thread.join(60)
    assert caught == ["caught", "goes on"]


def test_pending_calls_are_made() -> None:
    called = []
    callback_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

    def callback(_: Any) -> int:
        called.append(True)
        return 0

    kept = callback_type(callback)

    def wait() -> None:
        while not called:
            pass

    with all_frames():
        ctypes.pythonapi.Py_AddPendingCall(kept, None)
        wait()
    assert called


def test_appending_to_a_string_takes_linear_time() -> None:
    def build(count: int) -> int:
        text = ""
        for _ in range(count):
            text += "0123456789"
        return len(text)

    def seconds() -> float:
        start = time.perf_counter()
        assert build(200_000) == 2_000_000
        return time.perf_counter() - start

    expected, actual = run_twice(seconds)
    assert actual < 20 * expected  # Quadratic would be thousands of times.


def test_appending_to_a_string_changes_no_other() -> None:
    def build() -> list[str]:
        text = "".join(["a", "b"])
        kept = [text]
        text += "c"
        text = text + text
        other = text
        text += "d"
        return [*kept, other, text]

    expected, actual = run_twice(build)
    assert actual == expected


def test_appending_to_a_string_with_an_origin() -> None:
    """The origin goes with the value that had it, not to what takes its place."""

    def build() -> str:
        text = "".join(["a", "b"])
        text += "c"
        return text

    expected, actual = run_twice(build, checked=True)
    assert actual == expected


SCRIPT = """
import atexit, sys, threading
from assay import _C
_C.capture_run_all_frames(True)
from collections import *

class Late:
    def __del__(self):
        print("deleted")

def generator():
    try:
        yield Late()
    finally:
        print("closed")

def spin():
    while True:
        pass

atexit.register(lambda: print("at exit"))
if "threads" in sys.argv:  # still running when the interpreter ends
    for _ in range(2):
        threading.Thread(target=spin, daemon=True).start()
kept = generator()
held = next(kept)
print(OrderedDict(a=1)["a"])
"""


def test_module_and_script_run_in_the_loop(tmp_path: Any) -> None:
    """A whole program in a process of its own, to the end of the interpreter."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))

    def run(*arguments: str) -> Any:
        command = [sys.executable, str(script), *arguments]
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment, check=False
        )
        return result.returncode, result.stdout, result.stderr

    assert run() == (0, "1\nat exit\nclosed\ndeleted\n", "")
    code, output, errors = run("threads")
    assert (code, output[:10], errors) == (0, "1\nat exit\n", "")
