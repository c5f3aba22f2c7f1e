"""What others see of a frame while it runs: debuggers, the collector, destructors."""

# Half of this is wrong on purpose.
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

from capture.programs import outcome, program


@program
def frame_locals() -> Any:
    def function(a: int, *b: int, **c: int) -> Any:
        x = [a]

        def inner() -> Any:
            return x

        inner()
        frame = sys._getframe()
        seen = dict(frame.f_locals)
        seen.pop("frame")
        seen.pop("inner")
        line = frame.f_lineno - frame.f_code.co_firstlineno
        return seen, sorted(locals()), line, outcome(frame.clear)

    return function(1, 2, 3, k=4)


@program
def frames_outlive_their_call() -> Any:
    def function(x: int) -> Any:
        y = x + 1
        return sys._getframe(), y

    frame, _ = function(3)
    seen = [
        dict(frame.f_locals),
        frame.f_back is None,
        frame.f_lineno - frame.f_code.co_firstlineno,
    ]
    frame.clear()
    return seen, dict(frame.f_locals)


@program
def garbage_collection_inside_frames() -> Any:
    class Node:
        me: Any

    def generator() -> Iterator[int]:
        node = Node()
        node.me = node
        kept = [node, [generator]]
        for i in range(3):
            gc.collect(1)
            yield i + len(kept)

    def cycle() -> Any:
        node = Node()
        node.me = (node, generator())
        next(node.me[1])
        return weakref.ref(node)

    reference = cycle()
    gc.collect(1)
    return list(generator()), reference() is None


@program
def destructors_run_in_time() -> Any:
    events: list[Any] = []

    class Dies:
        def __init__(self, name: str) -> None:
            self.name = name

        def __del__(self) -> None:
            events.append(self.name)

        def __add__(self, other: Any) -> str:
            events.append("add")
            return "sum"

        def __iter__(self) -> Iterator[int]:
            return iter([1])

        def __bool__(self) -> bool:
            return True

    def function() -> None:
        Dies("popped")
        events.append("after popped")
        x = Dies("replaced")
        x = Dies("second")
        events.append("after replaced")
        del x
        Dies("left") + Dies("right")
        events.append("after sum")
        for _ in Dies("iterated"):
            events.append("in the loop")
        if Dies("condition"):
            events.append("in the branch")
        _ = (lambda *args: events.append("called"))(Dies("argument"))
        [Dies("item")][0].name
        _, *rest = [Dies("first"), Dies("rest")]
        events.append("end")

    function()
    return events


@program
def reference_counts() -> Any:
    def function(x: Any) -> list[int]:
        seen = [sys.getrefcount(x)]
        y = [x, x]
        seen.append(sys.getrefcount(x))
        del y
        seen.append(sys.getrefcount(x))
        try:
            raise ValueError(x)
        except ValueError:
            seen.append(sys.getrefcount(x))
        seen.append(sys.getrefcount(x))
        a, *b = (x, x, x)
        seen.append(sys.getrefcount(x) + len([a, b]))
        for _ in (x,):
            seen.append(sys.getrefcount(x))
        # How many hold the arguments of a call depends on how CPython calls.
        return [count - seen[0] for count in seen]

    value = object()
    before = sys.getrefcount(value)
    return function(value), sys.getrefcount(value) - before


@program
def trace_is_switched_on_inside() -> Any:
    events: list[Any] = []
    first = traced_body.__code__.co_firstlineno

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        value = arg[0] if event == "exception" else arg
        events.append((frame.f_code.co_name, event, frame.f_lineno - first, value))
        return tracer

    result = outcome(traced_body, tracer)
    return result, events


def traced_body(tracer: Any) -> int:
    def callee(x: int) -> int:
        if x == 3:
            raise ValueError(x)
        return x + 1

    def starts_and_fails() -> None:
        sys.settrace(tracer)
        sys._getframe(1).f_trace = tracer
        raise KeyError

    try:
        try:
            starts_and_fails()
        except KeyError:
            callee(1)
        total = 0
        for i in range(5):
            try:
                total += callee(i)
            except ValueError:
                total += 100
        return total
    finally:
        sys.settrace(None)


@program
def profile_is_switched_on_inside() -> Any:
    events: list[Any] = []

    def profiler(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_filename == __file__:
            events.append((frame.f_code.co_name, event, getattr(arg, "__name__", arg)))

    def callee(x: int) -> int:
        return len([x])

    def starts_and_fails() -> None:
        sys.setprofile(profiler)
        raise KeyError

    def is_unwound() -> None:
        starts_and_fails()

    def body() -> int:
        try:
            is_unwound()
        except KeyError:
            pass
        return callee(1)

    try:
        result = outcome(body)
    finally:
        sys.setprofile(None)
    return result, events
