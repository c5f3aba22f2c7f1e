"""with-blocks: torch's modes and the user's own context managers."""

from __future__ import annotations

import contextlib

import torch

from capture.harness import call, data, program


@program(call(data(2, grad=True)), call(data(2, grad=True)), call(data(2)), graphs=1)
def test_no_grad(x):
    y = x * 2
    with torch.no_grad():
        z = y + 1
        inside = torch.is_grad_enabled()
    return y * z, z, inside, torch.is_grad_enabled()


@program(call(data(2, grad=True)), call(data(2, grad=True)), call(data(3, grad=True)), graphs=1)
def test_enable_grad_inside_no_grad(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y, z


@program(
    call(data(2, grad=True), True), call(data(2, grad=True), False), call(data(2, grad=True), True)
)
def test_set_grad_enabled(x, mode):
    with torch.set_grad_enabled(mode):
        y = x * 2
    return y, y.requires_grad


@program(
    call(data(2, grad=True), True), call(data(2, grad=True), False), call(data(2, grad=True), True)
)
def test_set_grad_enabled_as_function(x, mode):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(mode)
    y = x * 2
    torch.set_grad_enabled(before)
    return y


@program(
    call(data(2, grad=True), False), call(data(2, grad=True), True), call(data(2, grad=True), False)
)
def test_grad_mode_left_changed(x, mode):
    y = x * 2
    torch.set_grad_enabled(mode)
    return y, x * 3


@program
def test_grad_mode_of_the_caller():
    def f(x):
        return x * 2, torch.is_grad_enabled()

    yield f
    yield call(data(2, grad=True))
    torch.set_grad_enabled(False)
    yield call(data(2, grad=True))
    torch.set_grad_enabled(True)
    yield call(data(2, grad=True))


@program
def test_no_grad_as_decorator():
    @torch.no_grad()
    def f(x, n):
        return x * n, torch.is_grad_enabled()

    yield f
    yield call(data(2, grad=True), 1)
    yield call(data(2, grad=True), 1)
    yield call(data(2, grad=True), 2)


@program
def test_helper_decorated_with_no_grad():
    @torch.no_grad()
    def statistics(x):
        return x.mean(), torch.is_grad_enabled()

    def f(x):
        mean, inside = statistics(x)
        return x - mean, inside

    yield f
    yield call(data(3, grad=True))
    yield call(data(3, grad=True))
    yield call(data(2, 3, grad=True))


@program(call(data(2)), call(data(2)), call(data(2, grad=True)), backward=False)
def test_inference_mode(x):
    with torch.inference_mode():
        y = x * 2
        inside = torch.is_inference_mode_enabled()
    return y, y.is_inference(), inside


@program(
    call(data(2, 3), data(3, 2)),
    call(data(2, 3), data(3, 2)),
    call(data(4, 3), data(3, 2)),
    tolerance=True,
)
def test_autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
        inside = torch.is_autocast_enabled("cpu")
    return z, z.dtype, inside, x @ y


@program(
    call(data(2, 3), data(3, 2), True),
    call(data(2, 3), data(3, 2), False),
    call(data(2, 3), data(3, 2), True),
    tolerance=True,
)
def test_autocast_enabled_by_flag(x, y, enabled):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
        with torch.autocast("cpu", enabled=not enabled):
            a = x @ y
        return a, x @ y


@program
def test_autocast_of_another_device():
    def f(x):
        enabled = torch.is_autocast_enabled("cuda"), torch._C._is_any_autocast_enabled()
        return x + 1, enabled, torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("xpu")

    yield f
    yield call(data(2))
    torch.set_autocast_enabled("cuda", True)
    yield call(data(2))
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    torch.set_autocast_dtype("xpu", torch.bfloat16)
    yield call(data(2))
    torch.set_autocast_enabled("cuda", False)
    torch.set_autocast_dtype("cuda", torch.float16)
    torch.set_autocast_dtype("xpu", torch.float16)
    yield call(data(2))


@program
def test_autocast_of_the_caller():
    linear = torch.nn.Linear(3, 3)

    def f(x):
        return linear(x).dtype, linear(x).float()

    yield f
    yield call(data(2, 3))
    torch.set_autocast_enabled("cpu", True)
    yield call(data(2, 3))
    torch.set_autocast_enabled("cpu", False)
    yield call(data(2, 3))


@program
def test_own_context_manager():
    class Scope:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            stack.append(self.name)
            return len(stack)

        def __exit__(self, kind, value, traceback):
            stack.append(f"-{stack.pop()}")
            return False

    stack = []

    def f(x, name):
        with Scope(name) as depth:
            x = x * depth
            with Scope("inner") as depth:
                x = x + depth
        return x

    yield f
    yield call(data(2), "a")
    yield call(data(2), "a")
    yield call(data(2), "b")


@program
def test_context_manager_swallows_exception():
    class Swallow:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            self.caught = kind.__name__ if kind else None
            return kind is ZeroDivisionError

    def f(x, n):
        with Swallow() as swallow:
            x = x * (6 // n)
            x = x + [1, 2, 3][n]
        return x, swallow.caught

    yield f
    yield call(data(2), 1)
    yield call(data(2), 0)
    yield call(data(2), 3)
    yield call(data(2), 1)


@program
def test_contextlib_contextmanager():
    log = []

    @contextlib.contextmanager
    def scope(n):
        log.append(("enter", n))
        try:
            yield n * 10
        finally:
            log.append(("exit", n))

    def f(x, n):
        with scope(n) as k:
            return x * k

    yield f
    yield call(data(2), 1)
    yield call(data(2), 1)
    yield call(data(2), 2)


@program
def test_contextmanager_with_exception_inside():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield
        except ValueError as error:
            log.append(error.args)
        finally:
            log.append("done")

    def f(x, n):
        with scope():
            if n == 1:
                raise ValueError("one")
            if n == 2:
                raise KeyError("two")
            x = x + 1
        return x

    yield f
    yield call(data(2), 0)
    yield call(data(2), 1)
    yield call(data(2), 2)
    yield call(data(2), 0)


@program
def test_contextmanager_that_sets_grad_mode():
    @contextlib.contextmanager
    def frozen(active):
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(not active)
        try:
            yield
        finally:
            torch.set_grad_enabled(before)

    def f(x, active):
        with frozen(active):
            y = x * 2
        return y, x * 3

    yield f
    yield call(data(2, grad=True), True)
    yield call(data(2, grad=True), True)
    yield call(data(2, grad=True), False)


@program
def test_attribute_restored_by_context():
    class Settings:
        scale = 1

    settings = Settings()

    @contextlib.contextmanager
    def scaled(k):
        old, settings.scale = settings.scale, k
        yield settings
        settings.scale = old

    def f(x, k):
        with scaled(k) as s:
            y = x * s.scale
        return y + settings.scale

    yield f
    yield call(data(2), 2)
    yield call(data(2), 2)
    settings.scale = 7
    yield call(data(2), 3)


@program
def test_exit_stack():
    log = []

    @contextlib.contextmanager
    def scope(name):
        log.append("+" + name)
        yield name
        log.append("-" + name)

    def f(x, names):
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(scope(name)) for name in names]
            stack.callback(log.append, "callback")
            y = x * len(opened)
        return y

    yield f
    yield call(data(2), ["a", "b"])
    yield call(data(2), ["a", "b"])
    yield call(data(2), [])


@program(
    call(data(2, grad=True), True), call(data(2, grad=True), False), call(data(2, grad=True), True)
)
def test_nullcontext_or_no_grad(x, frozen):
    with torch.no_grad() if frozen else contextlib.nullcontext():
        y = x * 2
    return y


@program(call(data(2, grad=True)), call(data(2, grad=True)), call(data(3, grad=True)))
def test_several_contexts_in_one_with(x):
    with torch.no_grad() as a, torch.enable_grad() as b, contextlib.nullcontext(5) as c:
        y = x * c
    return y, a, b


@program(call(data(2, grad=True), 0), call(data(2, grad=True), 1), call(data(2, grad=True), 0))
def test_exception_leaves_no_grad(x, n):
    try:
        with torch.no_grad():
            y = x * 2
            if n:
                raise ValueError
    except ValueError:
        y = x * 3
    return y, torch.is_grad_enabled()


@program(call(data(2, grad=True), 0), call(data(2, grad=True), 1), call(data(2, grad=True), 0))
def test_exception_from_within_no_grad_restores_mode(x, n):
    with torch.no_grad():
        y = x * 2
        return y, [1][n]


@program(call(data(2, grad=True), 3), call(data(2, grad=True), 3), call(data(2, grad=True), 2))
def test_with_in_loop(x, n):
    total = x
    for i in range(n):
        with torch.set_grad_enabled(i % 2 == 0):
            total = total + x * i
        if i == 5:
            break
    return total


@program(call(data(2, grad=True), 1), call(data(2, grad=True), 1), call(data(2, grad=True), 2))
def test_return_from_within_with(x, n):
    with torch.no_grad():
        if n == 1:
            return x * 2
        with torch.enable_grad():
            return x * 3


@program
def test_context_object_reused():
    guard = torch.no_grad()

    def f(x, n):
        for _ in range(n):
            with guard:
                x = x * 2
        return x

    yield f
    yield call(data(2, grad=True), 1)
    yield call(data(2, grad=True), 2)
    yield call(data(2, grad=True), 1)


@program(call(data(3)), call(data(3)), call(data(4)))
def test_record_function_and_profiler_scopes(x):
    with torch.profiler.record_function("block"), torch.autograd.profiler.record_function("inner"):
        return x * 2


@program(call(data(3)), call(data(3)), call(data(4)))
def test_default_dtype_changed_and_restored(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(x.shape)
    torch.set_default_dtype(torch.float32)
    return x + y, y.dtype, torch.zeros(1).dtype


@program
def test_default_dtype_of_the_caller():
    def f(x):
        return x + torch.ones(2), torch.tensor(1.5).dtype, torch.arange(3) / 2

    yield f
    yield call(data(2))
    torch.set_default_dtype(torch.float64)
    yield call(data(2))
    torch.set_default_dtype(torch.float32)
    yield call(data(2))


@program(call(data(3)), call(data(3)), call(data(4)))
def test_forked_random_state(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        y = torch.rand(2)
    return x + 1, y, torch.rand(1)


@program(call(data(2), "text"), call(data(2), "text"), call(data(2), "other"))
def test_redirected_output(x, text):
    import io

    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        print(text, x.shape)
    print("outside")
    return x * 2, stream.getvalue()


@program
def test_enter_that_raises():
    class Broken:
        def __init__(self, fail):
            self.fail = fail

        def __enter__(self):
            if self.fail:
                raise OSError("cannot enter")

        def __exit__(self, *details):
            log.append(len(details))

    log = []

    def f(x, fail):
        y = x + 1
        with Broken(fail):
            y = y * 2
        return y

    yield f
    yield call(data(2), False)
    yield call(data(2), False)
    yield call(data(2), True)


@program
def test_exit_that_raises():
    class Broken:
        def __enter__(self):
            return 3

        def __exit__(self, kind, value, traceback):
            raise RuntimeError("from exit")

    def f(x, n):
        try:
            with Broken() as k:
                x = x * k
                if n:
                    raise ValueError("from body")
        except RuntimeError as error:
            return x, str(error), type(error.__context__).__name__
        return x

    yield f
    yield call(data(2), 0)
    yield call(data(2), 1)
    yield call(data(2), 0)
