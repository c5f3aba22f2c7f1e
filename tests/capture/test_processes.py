"""Compiled functions over many calls, in several threads, and across fork."""

from __future__ import annotations

from support.python import run_python


def test_many_calls_keep_memory_and_reference_counts_flat() -> None:
    printed = run_python(
        """
        import gc, sys
        import torch, assay

        torch.set_num_threads(1)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.log = torch.nn.Linear(4, 4), []

            def forward(self, x, flag=True):
                self.log.append(x)
                if len(self.log) > 3:
                    self.log.clear()
                result = {"a": self.linear(x), "b": [x + 1]}
                if flag:
                    result["c"] = (x, x)
                return result

        def with_a_break(x):
            y = x + 1
            total = float(y.sum())
            return y * 2, total

        def with_an_exception(x):
            try:
                raise ValueError(x.shape)
            except ValueError as error:
                return x * 2, str(error)

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        x, needs_grad = torch.ones(2, 4), torch.ones(2, 4, requires_grad=True)
        for function, argument, backend in [
            (Model(), x, "eager"),
            (with_a_break, x, "eager"),
            (with_an_exception, x, "eager"),
            (lambda x: (x * 2).sum(), needs_grad, "aot_eager"),
        ]:
            compiled = assay.compile(function, backend=backend)

            def counts():
                gc.collect()
                watched = (x, needs_grad, None, True, torch.Tensor, function, compiled)
                return len(gc.get_objects()), [sys.getrefcount(object) for object in watched]

            for _ in range(1000):
                compiled(argument)
            objects, references = counts()
            before = resident()
            for _ in range(100_000):
                compiled(argument)
            grown = resident() - before
            more_objects, more_references = counts()
            # Counting itself makes an object or two.
            assert abs(more_objects - objects) < 50, (function, objects, more_objects)
            for one, other in zip(references, more_references, strict=True):
                assert abs(one - other) < 50, (function, references, more_references)
            assert grown < 8 << 20, (function, grown)
        print("flat")
        """,
        timeout=300,
    )
    assert printed == "flat\n"


def test_two_threads_call_and_compile_at_once() -> None:
    printed = run_python(
        """
        import threading
        import torch, assay

        def make(scale):
            def function(x, flag):
                y = torch.relu(x) * scale
                if flag:
                    y = y + float(y.sum())  # a break
                return y, [y.shape[0]]
            return function

        shared = make(3)
        compiled = assay.compile(shared, backend="aot_eager")
        failures = []

        def work(number):
            try:
                generator = torch.Generator().manual_seed(number)
                for i in range(150):
                    if i % 10 == 0:
                        own = make(i)
                        own_compiled = assay.compile(own, backend="eager")
                    x = torch.randn(1 + (i + number) % 5, generator=generator)
                    for function, ours in ((shared, compiled), (own, own_compiled)):
                        expected, actual = function(x, i % 3 == 0), ours(x, i % 3 == 0)
                        torch.testing.assert_close(actual, expected)
                    if i % 50 == 49:
                        assay.reset()
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        print("done")
        """
    )
    assert printed == "done\n"


def test_a_forked_child_goes_on_with_what_was_compiled() -> None:
    printed = run_python(
        """
        import os
        import torch, assay

        torch.set_num_threads(1)

        def function(x):
            return torch.relu(x) + x.shape[0]

        compiled = assay.compile(function)
        compiled(torch.ones(2))
        child = os.fork()
        # Old sizes are replayed, new ones compiled, on both sides.
        for size in (2, 3, 4):
            x = torch.randn(size)
            torch.testing.assert_close(compiled(x), function(x))
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("done")
        """
    )
    assert printed == "done\n"


def test_data_loader_workers_run_compiled_functions_and_eager_ones() -> None:
    printed = run_python(
        """
        import torch, assay

        def prepare(x):
            return torch.relu(x) * 2

        compiled = assay.compile(prepare)
        compiled(torch.ones(3))

        class Data(torch.utils.data.Dataset):
            def __init__(self, function):
                self.function = function

            def __len__(self):
                return 8

            def __getitem__(self, index):
                return self.function(torch.full((3,), float(index) - 4))

        def batches(function):
            loader = torch.utils.data.DataLoader(Data(function), batch_size=2, num_workers=2)
            return torch.stack(list(loader))

        expected = batches(prepare)
        assert torch.equal(batches(compiled), expected)

        # A loader in a compiled training step: its workers are not captured.
        def total(loader):
            return sum(batch.sum() for batch in loader)

        loader = torch.utils.data.DataLoader(Data(prepare), batch_size=2, num_workers=2)
        step = assay.compile(total)
        for _ in range(2):
            assert torch.equal(step(loader), total(loader))
        print("done")
        """
    )
    assert printed == "done\n"


def test_functions_that_are_not_compiled_do_not_see_the_hook() -> None:
    """The frame hook is installed only while a compiled function runs."""
    printed = run_python(
        """
        import ctypes
        import torch, assay

        cpython = ctypes.pythonapi
        cpython.PyInterpreterState_Get.restype = ctypes.c_void_p
        cpython._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
        plain = ctypes.cast(cpython._PyEval_EvalFrameDefault, ctypes.c_void_p).value

        def is_hooked():
            interpreter = ctypes.c_void_p(cpython.PyInterpreterState_Get())
            return cpython._PyInterpreterState_GetEvalFrameFunc(interpreter) != plain

        inside = []

        @assay.disable
        def look():
            inside.append(is_hooked())

        def function(x):
            look()
            return x + 1

        compiled = assay.compile(function, backend="eager")
        assert not is_hooked()
        compiled(torch.ones(2))
        assert not is_hooked()
        try:
            compiled("a string")
        except TypeError:
            pass
        assert not is_hooked()
        print(inside)
        """
    )
    assert printed == "[True, True]\n"
