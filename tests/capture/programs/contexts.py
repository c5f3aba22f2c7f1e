"""With-blocks, generators and coroutines."""

# Half of this is wrong on purpose.
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from capture.programs import outcome, program


class Manager:
    def __init__(self, events: list[Any], name: str, suppress: bool = False) -> None:
        self.events, self.name, self.suppress = events, name, suppress

    def __enter__(self) -> str:
        self.events.append(f"enter {self.name}")
        if self.name == "bad":
            raise OSError("no entry")
        return self.name

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        line = trace.tb_lineno - trace.tb_frame.f_code.co_firstlineno if trace else None
        self.events.append((f"exit {self.name}", kind, str(value), line))
        return self.suppress


@program
def nested_with() -> Any:
    events: list[Any] = []

    def body(names: str, suppress: bool, fails: bool) -> Any:
        first, second = names.split()
        with Manager(events, first, suppress) as a, Manager(events, second) as b:
            events.append((a, b))
            if fails:
                raise ValueError("inside")
            return "returned"
        return "suppressed"

    return [
        outcome(body, names, suppress, fails)
        for names in ("a b", "a bad", "bad b")
        for suppress in (False, True)
        for fails in (False, True)
    ], events


@program
def not_a_context_manager() -> Any:
    class Half:
        def __enter__(self) -> None: ...

    def with_(manager: Any) -> None:
        with manager:
            pass

    return [outcome(with_, 3), outcome(with_, Half())]


@program
def contextmanager_decorator() -> Any:
    import contextlib

    events = []

    @contextlib.contextmanager
    def manager(suppress: bool) -> Iterator[int]:
        try:
            yield 1
        except ValueError as error:
            events.append(str(error))
            if not suppress:
                raise
        finally:
            events.append("finally")

    def body(suppress: bool) -> str:
        with manager(suppress) as value:
            events.append(str(value))
            raise ValueError("in the body")
        return "suppressed"

    return outcome(body, True), outcome(body, False), events


def echo(events: list[Any]) -> Iterator[Any]:
    received = yield "started"
    while received != "stop":
        try:
            received = yield received
        except ValueError as error:
            events.append(("thrown", str(error), sys.exc_info()[0]))
            received = yield "recovered"
        except GeneratorExit:
            events.append("closed")
            raise
        finally:
            events.append(("finally", sys.exc_info()[0]))
    return "returned"


@program
def generator_send_throw_close() -> Any:
    events: list[Any] = []
    generator: Any = echo(events)
    seen = [next(generator), generator.send(1), generator.throw(ValueError("a"))]
    seen += [generator.send("b"), outcome(generator.send, "stop"), outcome(next, generator)]
    generator = echo(events)
    seen += [outcome(generator.send, 3), next(generator), next(generator)]
    seen += [generator.close(), generator.gi_frame, outcome(next, generator)]
    generator = echo(events)
    seen += [next(generator), outcome(generator.throw, KeyError("unhandled")), generator.gi_running]
    generator = echo(events)
    seen.append(outcome(generator.throw, KeyError("before the start")))
    return seen, events


@program
def generators_delegate() -> Any:
    events: list[Any] = []

    def outer() -> Iterator[Any]:
        result = yield from echo(events)
        events.append(("inner", result))
        yield from [1, 2]
        return "outer"

    generator: Any = outer()
    seen = [next(generator), generator.send(1), generator.throw(ValueError("through"))]
    seen += [generator.send("stop"), generator.gi_yieldfrom is not None]
    seen += [next(generator), outcome(next, generator)]
    generator = outer()
    seen += [next(generator), next(generator), generator.close()]
    return seen, events


@program
def generator_errors() -> Any:
    def stops() -> Iterator[int]:
        yield 1
        raise StopIteration("inside")

    def reenters() -> Iterator[Any]:
        yield next(me[0])

    def ignores_exit() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    me = [reenters()]
    ignoring = ignores_exit()
    next(ignoring)
    seen = [outcome(list, stops()), outcome(next, me[0]), outcome(ignoring.close)]

    def bad_delegate() -> Iterator[int]:
        yield from 3

    return [*seen, outcome(list, bad_delegate())]


@program
def generator_expressions_and_comprehensions() -> Any:
    x = [3, 1, 2]
    return (
        [i * j for i in x for j in range(i) if i != j],
        {i: str(i) for i in x},
        {i % 2 for i in x},
        sum(i for i in x if i > 1),
        sorted(({"k": i} for i in x), key=lambda item: item["k"]),
        [*x, *(i for i in x)],
        {**{"a": 1}, "b": 2, **dict(c=3)},
        {*x, *x},
    )


@program
def asynchronous_functions() -> Any:
    import asyncio

    events = []

    async def numbers() -> Any:
        for i in range(3):
            await asyncio.sleep(0)
            yield i

    async def main() -> str:
        async for i in numbers():
            events.append(i)
        events.append(await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3))))
        return "end"

    return asyncio.run(main()), events
