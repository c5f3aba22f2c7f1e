"""`python -m assay`: how a script is run, and that what it calls is Assay's."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from support.command import BINARY, environment


def run(
    tmp_path: Path, text: str, *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-m", "assay", "script.py", *arguments],
        cwd=tmp_path,
        env=environment(ASSAY_BINARY=str(BINARY), **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def output(tmp_path: Path, text: str, *arguments: str) -> str:
    done = run(tmp_path, text, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_sees_itself(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    text = """
        import sys, __main__, beside
        def text(): return "defined"
        print(sys.argv, __name__, __file__, beside.value, __main__.text())
    """
    assert (
        output(tmp_path, text, "-x", "1")
        == "['script.py', '-x', '1'] __main__ script.py 7 defined\n"
    )


def test_exit_codes_are_those_of_the_script(tmp_path: Path) -> None:
    assert run(tmp_path, "raise SystemExit(3)").returncode == 3
    failed = run(tmp_path, "1 / 0")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[1].strip() == 'File "script.py", line 1, in <module>'


def test_a_missing_script(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assay", "missing.py"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "there is no file 'missing.py'" in done.stderr


def test_dynamo_is_imported_only_by_the_script(tmp_path: Path) -> None:
    text = """
        import sys, torch
        print("torch._dynamo" in sys.modules)
    """
    assert output(tmp_path, text) == "False\n"


def test_torch_compile_and_the_names_of_dynamo_are_routed(tmp_path: Path) -> None:
    text = """
        import torch, assay
        import torch._dynamo as dynamo
        from torch._dynamo.utils import CompileProfiler, compile_times

        @torch.compile(backend="eager")
        def f(x):
            dynamo.graph_break()
            return x * 2

        print(type(f) is assay._C.CapturedFunction, f(torch.ones(2)).tolist())
        print(dynamo.explain(f)(torch.ones(2)).graph_break_count)
        print(CompileProfiler is assay.CompileProfiler, "Assay" in compile_times())
        print(dynamo.optimize("eager")(lambda x: x - 1)(torch.ones(1)).item())
        print(dynamo.run(f)(torch.ones(1)).item())
        dynamo.reset()
        torch.compiler.reset()
        dynamo.mark_dynamic(torch.ones(2), 0)
        try:
            torch.compile(lambda x: print(x), backend="eager", fullgraph=True)(torch.ones(1))
        except dynamo.exc.Unsupported as error:
            print("Unsupported", "script.py" in str(error))
    """
    assert output(tmp_path, text).splitlines() == [
        "True [2.0, 2.0]", "1", "True True", "0.0", "2.0", "Unsupported True"
    ]  # fmt: skip


def test_module_compile_is_in_place(tmp_path: Path) -> None:
    text = """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        graphs = []
        def backend(gm, inputs):
            graphs.append([node.op for node in gm.graph.nodes].count("call_function"))
            return gm
        x = torch.ones(1, 2)
        expected = model(x)
        model.compile(backend=backend)
        print(torch.equal(model(x), expected), graphs)
    """
    assert output(tmp_path, text) == "True [2]\n"


def test_settings_of_dynamo_are_those_of_assay(tmp_path: Path) -> None:
    text = """
        import assay, torch._dynamo
        from torch._dynamo import config
        torch._dynamo.config.repro_after = "dynamo"
        config.repro_level = 3
        config.base_dir = "elsewhere"
        print(assay.config.repro_after, assay.config.repro_level, assay.config.debug_dir_root)
        config.repro_after = None
        print(repr(assay.config.repro_after))
        config.automatic_dynamic_shapes = False
        config.a_name_of_tomorrow = 1
        print(config.automatic_dynamic_shapes, config.a_name_of_tomorrow)
        with config.patch(cache_size_limit=3, specialize_int=True):
            print(assay.config.cache_size_limit, config.specialize_int)
        print(assay.config.cache_size_limit, config.recompile_limit)
    """
    assert output(tmp_path, text).splitlines() == [
        "dynamo 3 elsewhere", "None", "False 1", "3 True", "8 8"
    ]  # fmt: skip


def test_an_unknown_backend_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    done = run(tmp_path, "import torch\ntorch.compile(lambda x: x, backend='aot_eagr')\n")
    assert done.returncode == 1
    assert "aot_eagr" in done.stderr
    assert "aot_eager" in done.stderr


def test_set_logs(tmp_path: Path) -> None:
    text = """
        import logging, torch
        torch._logging.set_logs(dynamo=logging.INFO, graph_code=True)
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    """
    errors = run(tmp_path, text).stderr
    assert "Step 1: torchdynamo start tracing <lambda>" in errors
    assert "class GraphModule(torch.nn.Module)" in errors


def test_every_routed_function_takes_what_stocks_takes(tmp_path: Path) -> None:
    text = """
        import inspect, torch, torch._dynamo, torch.compiler

        def taken(function):
            try:
                return list(inspect.signature(function).parameters.values())
            except (TypeError, ValueError):
                return []  # a C function

        kinds = inspect.Parameter
        from assay import _route
        for module, routed in ((torch, {"compile": _route.compile}),
                               (torch.compiler, _route._COMPILER),
                               (torch._dynamo, _route._DYNAMO)):
            for name, ours in routed.items():
                original = getattr(module, name, None)
                if original is None:
                    continue
                wanted, given = taken(original), taken(ours)
                takes_any = any(p.kind == kinds.VAR_KEYWORD for p in given)
                for parameter in wanted:
                    if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
                        continue
                    if parameter.name not in [p.name for p in given] and not takes_any:
                        print(module.__name__, name, parameter.name)
    """
    # Not routed itself: it compares the tables with what stock has.
    (tmp_path / "script.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # A record is trusted explicitly here.
    assert done.stdout == "torch._dynamo replay filename\n"


def test_functions_of_torch_that_disable_dynamo(tmp_path: Path) -> None:
    text = """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.AdamW(model.parameters())

        @torch.compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(torch.ones(2, 3)).item() for _ in range(3)]
        print(losses[0] > losses[1] > losses[2])
    """
    assert output(tmp_path, text) == "True\n"


def test_stances(tmp_path: Path) -> None:
    text = """
        import torch

        calls = []
        def backend(gm, inputs):
            calls.append(gm)
            return gm.forward

        @torch.compile(backend=backend)
        def f(x):
            return x + 1

        with torch.compiler.set_stance("force_eager"):
            f(torch.ones(2))
        print(len(calls))
        f(torch.ones(2))
        print(len(calls))
        with torch.compiler.set_stance("eager_on_recompile"):
            print(f(torch.ones(3)).tolist(), len(calls))
        torch.compiler.set_stance("fail_on_recompile")
        print(f(torch.ones(2)).tolist())
        try:
            f(torch.ones(3))
        except RuntimeError as error:
            print("fail_on_recompile" in str(error), "size" in str(error))

        @torch.compiler.set_stance("default")
        def compile_it():
            f(torch.ones(3))

        compile_it()
        print(len(calls))
        torch.compiler.set_stance("default")
        f(torch.ones(4))
        print(len(calls))
    """
    expected = "0\n1\n[2.0, 2.0, 2.0] 1\n[2.0, 2.0]\nTrue True\n2\n2\n"
    assert output(tmp_path, text) == expected


def test_a_backend_registered_with_dynamo(tmp_path: Path) -> None:
    text = """
        import torch
        from torch._dynamo.backends.registry import register_backend

        @register_backend
        def mine(gm, inputs):
            print("compiling", [node.target for node in gm.graph.nodes][1])
            return gm.forward

        print(torch.compile(lambda x: torch.relu(x), backend="mine")(torch.ones(1)).item())
        try:
            torch.compile(lambda x: x, backend="nobodys")
        except Exception as error:
            print(error)
    """
    printed = output(tmp_path, text).splitlines()
    assert printed[0].startswith("compiling <built-in method relu")
    assert printed[1] == "1.0"
    assert "unknown backend 'nobodys'" in printed[2]


def test_counters_exceptions_and_hooks_of_dynamo(tmp_path: Path) -> None:
    """What test programs in the style of Dynamo's own look at."""
    text = """
        import torch
        import torch._dynamo
        from torch._dynamo.callback import callback_handler, on_compile_end, on_compile_start
        from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException, Unsupported
        from torch._dynamo.utils import counters

        def f(x):
            x = x + 1
            torch._dynamo.graph_break()
            return x * 2 + 1

        events = []
        on_compile_start(lambda args: events.append("start"))
        on_compile_end(lambda args: events.append("end"))
        counters.clear()
        torch.compile(f, backend="eager")(torch.ones(3))
        print(events[:2], sum(counters["graph_break"].values()), dict(counters["stats"]))
        print(dict(counters["frames"]))
        callback_handler.clear()

        def fails(module, inputs):
            raise ValueError("no")

        for backend, wanted in (("eager", Unsupported), (fails, BackendCompilerFailed)):
            try:
                torch.compile(f, backend=backend, fullgraph=backend == "eager")(torch.ones(3))
            except TorchDynamoException as error:
                print(isinstance(error, wanted), type(error).__name__)

        reasons = []
        told = torch._dynamo.optimize("eager", guard_fail_fn=lambda why: reasons.append(why.reason))
        g = told(lambda x: x + 1)
        g(torch.ones(3))
        g(torch.ones(3, dtype=torch.float64))
        print(len(reasons), "dtype" in reasons[0])
        with torch._dynamo.config.patch(error_on_recompile=True):
            try:
                g(torch.ones(3, dtype=torch.int32))
            except torch._dynamo.exc.RecompileError:
                print("recompile")
        with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True, recompile_limit=1):
            h = torch.compile(lambda x: x - 1, backend="eager")
            h(torch.ones(3))
            try:
                h(torch.ones(4))
            except torch._dynamo.exc.FailOnRecompileLimitHit:
                print("limit")
        print(torch._dynamo.eval_frame.innermost_fn(torch.compile(f)) is f)
        """
    lines = output(tmp_path, text).splitlines()
    assert lines[0] == "['start', 'end'] 1 {'calls_captured': 3, 'unique_graphs': 2}"
    assert lines[1] == "{'total': 2, 'ok': 2}"
    assert lines[2:4] == ["True Unsupported", "True BackendCompilerFailed"]
    assert lines[4:] == ["1 True", "recompile", "limit", "True"]


def test_control_flow_outside_of_a_compiled_function(tmp_path: Path) -> None:
    text = """
        import torch
        layer = torch.nn.Linear(2, 2)

        def choose(x):
            return torch.cond(x.sum() > 0, lambda v: layer(v), lambda v: layer(v) - 1, (x,))

        for x in (torch.ones(2), -torch.ones(2)):
            eager, compiled = choose(x), torch.compile(choose, backend="eager")(x)
            print(torch.equal(eager, compiled), eager.requires_grad, compiled.requires_grad)
    """
    assert output(tmp_path, text) == "True True True\n" * 2


def test_a_compiled_module_looks_like_pytorchs(tmp_path: Path) -> None:
    text = """
        import copy, torch, torch._dynamo
        inner = torch.nn.Linear(2, 2)
        model = torch.compile(inner, backend="eager")
        print(list(model.state_dict()), isinstance(model, torch._dynamo.OptimizedModule))
        model.eval()
        model.scale = 3
        print(inner.training, model.training, inner.scale, model.in_features)
        print(model._orig_mod is inner)
        model.register_forward_hook(lambda module, args, result: result * 0)
        print(model(torch.ones(2)).sum().item(), inner(torch.ones(2)).sum().item() != 0)
        other = copy.deepcopy(model)
        other.load_state_dict(model.state_dict())
        print(other._orig_mod is inner, torch.equal(other.weight, inner.weight))
        print(torch.compile(model, backend="eager")._orig_mod is inner)
    """
    assert output(tmp_path, text).splitlines() == [
        "['_orig_mod.weight', '_orig_mod.bias'] True",
        "False False 3 2",
        "True",
        "0.0 True",
        "False True",
        "True",
    ]


def test_what_a_program_says_of_its_functions(tmp_path: Path) -> None:
    text = """
        import functools, torch, torch._dynamo
        from torch._dynamo.testing import CompileCounter

        @torch._dynamo.allow_in_graph
        def opaque(x, scale):
            torch._dynamo.graph_break()
            return {"result": (x + 1) * scale}

        @torch._dynamo.assume_constant_result
        def constant():
            return int(torch.tensor(5).item())

        def f(x):
            return opaque(x, 2.0)["result"] * constant()

        counter = CompileCounter()
        compiled = torch.compile(f, backend=counter, fullgraph=True)
        for value in (1.0, 2.0):
            print(compiled(torch.tensor(value)).item())
        print(counter.frame_count, counter.op_count)
        print(torch.compile(f, backend="aot_eager")(torch.tensor(1.0)).item())
    """
    assert output(tmp_path, text).split() == ["20.0", "30.0", "1", "2", "20.0"]


def test_which_sizes_stay_open(tmp_path: Path) -> None:
    text = """
        import torch, torch._dynamo
        from torch._dynamo.testing import CompileCounter

        def count(mark=lambda x: None, **settings):
            torch._dynamo.reset()
            counter = CompileCounter()
            compiled = torch.compile(lambda x: x * 2, backend=counter, **settings)
            for size in (2, 3, 4):
                x = torch.ones(size)
                mark(x)
                compiled(x)
            return counter.frame_count

        print(count(dynamic=True), count(torch._dynamo.mark_static, dynamic=True))
        print(count(lambda x: torch._dynamo.decorators.mark_unbacked(x, 0)))
        with torch._dynamo.config.patch(assume_static_by_default=False):
            print(count())
        with torch._dynamo.config.patch(recompile_limit=1):
            try:
                count(dynamic=False, fullgraph=True)
            except torch._dynamo.exc.FailOnRecompileLimitHit:
                print("limit")
    """
    assert output(tmp_path, text).split() == ["1", "3", "1", "1", "limit"]


def test_functions_that_log_do_not_cut_a_graph(tmp_path: Path) -> None:
    text = """
        import torch, torch._dynamo
        from torch._dynamo.testing import CompileCounter
        def log(*values, **named): print("log", *values, named)
        def quiet(*values): raise RuntimeError
        torch._dynamo.config.reorderable_logging_functions.add(log)
        counter = CompileCounter()
        @torch.compile(backend=counter, fullgraph=True)
        def f(x):
            y = x + 1
            log("sum", y, size=x.shape[0])
            quiet(y)
            return y * 2
        with torch._dynamo.config.patch(ignore_logging_functions={quiet}):
            for value in (1, 2, 3):
                print(f(torch.tensor([value])))
        print(counter.frame_count, counter.op_count)
    """
    assert output(tmp_path, text).splitlines() == [
        line
        for value in (1, 2, 3)
        for line in (
            f"log sum tensor([{value + 1}]) {{'size': 1}}",
            f"tensor([{2 * (value + 1)}])",
        )
    ] + ["1 2"]
