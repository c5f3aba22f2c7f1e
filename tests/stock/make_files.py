"""Let stock PyTorch write the files our parser reads, and record what they compute.

For a model of `tests.stock.models` this runs ``torch.compile`` up to the point where inductor would
generate code, and there calls the functions with which PyTorch itself writes its debugging files:

    dynamo_launcher.py              minifier_launcher.py after dynamo, data in checkpoints/storages
    forward_runnable.py             fx_graph_runnable.py: no data, InputReader draws random inputs
    forward_launcher.py             minifier_launcher.py after aot, data in checkpoints/storages
    forward_symbolic_launcher.py    the same after a failed compilation: symbols instead of sizes
    backward_*.py, inference_*.py   likewise; inference_* instead of forward_* where no grad is on

Beside each stands ``<file>.expected.pt``: the outputs, a list of tensors, numbers and None, that
stock PyTorch gets when it runs the file in eager mode, in exactly this order (see `run_file`):

    torch.manual_seed(0); mod = Repro()
    torch.manual_seed(0); reader = InputReader(save_dir); load_args(reader)
    torch.manual_seed(0); mod(*reader.args)    # under no_grad, after dynamo with gradients on

``<file>.inputs_after.pt`` holds all inputs after the run, where the run changed one of them.
``manifest.json`` lists the files of a directory (`StockFile`).

From a shell:       python -m tests.stock.make_files --out DIR [--only NAME ...] [--large]
The checked-in set: python -m tests.stock.make_files --fixtures
From a test:        files = ensure_files("gpt2_small", some_directory)
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fcntl
import io
import json
import logging
import math
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._functorch.config as functorch_config
import torch.utils._pytree as pytree
from torch._dynamo.debug_utils import InputReader
from torch._dynamo.repro.after_aot import save_graph_repro
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string
from torch._inductor.compile_fx import compile_fx
from torch.fx import GraphModule

from .models import MODELS, build, call

FIXTURES = Path(__file__).parents[1] / "fixtures" / "stock"
SAVE_DIR = "checkpoints"

AFTER_DYNAMO = "after_dynamo"
AFTER_AOT = "after_aot"
RUNNABLE = "runnable"

# What we set that shows in the files: without it AOTAutograd may take a graph from its cache, and
# inductor, our writer in its place, would not see it.
OWN_SETTING = "torch._functorch.config.enable_autograd_cache = False\n"

# Names that stock PyTorch writes into its files without importing them. It cannot run such a file
# itself; we give it what it forgot, so that expected results exist all the same.
MISSING_NAMES = {
    "Max": max,
    "Min": min,
    "Mod": lambda a, b: a % b,
    "math_ceil": math.ceil,
    "math_floor": math.floor,
    "math_trunc": math.trunc,
    "nan": math.nan,
}


@dataclass(frozen=True)
class StockFile:
    """One line of a manifest. Paths are relative to the manifest's directory.

    ``kind`` is after_dynamo, after_aot or runnable; ``direction`` forward, backward or inference.
    ``save_dir`` is where the inputs' data lies, None if the file has none. A file that stock cannot
    run has an ``error`` in place of ``expected``: it is not Python (the subgraphs of higher-order
    operators are lost) or an operator refuses the inputs made up for it.
    """

    file: str
    kind: str
    direction: str
    nodes: int
    save_dir: str | None = None
    expected: str | None = None
    inputs_after: str | None = None
    error: str | None = None


# --- Writing --------------------------------------------------------------------------------------


class _Writer:
    """Writes the files of one model, as its graphs come along, and remembers them."""

    def __init__(self, directory: Path, relative: bool) -> None:
        self.directory = directory
        self.save_dir = str(directory / SAVE_DIR)
        self.relative = relative
        self.files: list[StockFile] = []

    def after_dynamo(self, gm: GraphModule, inputs: Sequence[Any], direction: str) -> None:
        text = generate_dynamo_fx_repro_string(
            gm, inputs, "inductor", save_dir=self.save_dir, command="minify"
        )
        self._add("dynamo_launcher.py", text, AFTER_DYNAMO, direction, gm, SAVE_DIR)

    def runnable(self, gm: GraphModule, inputs: Sequence[Any], direction: str) -> None:
        text = self._after_aot(gm, inputs, save_dir=None)
        self._add(f"{direction}_runnable.py", text, RUNNABLE, direction, gm, None)

    def launcher(
        self, gm: GraphModule, inputs: Sequence[Any], direction: str, *, symbolic: bool = False
    ) -> None:
        text = self._after_aot(gm, inputs, save_dir=self.save_dir, command="minify")
        file = f"{direction}_symbolic_launcher.py" if symbolic else f"{direction}_launcher.py"
        self._add(file, text, AFTER_AOT, direction, gm, SAVE_DIR)

    def _after_aot(self, gm: GraphModule, inputs: Sequence[Any], **options: Any) -> str:
        file = io.StringIO()
        # The stable hash (SHA-1) spares compiling the kernel with which stock hashes storages.
        save_graph_repro(file, gm, inputs, "inductor", stable_hash=True, **options)
        return file.getvalue()

    def _add(
        self,
        file: str,
        text: str,
        kind: str,
        direction: str,
        gm: GraphModule,
        save_dir: str | None,
    ) -> None:
        if any(file == other.file for other in self.files):
            raise RuntimeError(f"{file} would be written twice: the model has a graph break")
        text = text.replace(OWN_SETTING, "")
        if self.relative:
            text = _independent_of_machine(text.replace(self.save_dir, SAVE_DIR))
        (self.directory / file).write_text(text)
        self.files.append(StockFile(file, kind, direction, len(gm.graph.nodes), save_dir))


def _independent_of_machine(text: str) -> str:
    """The same file without the cache's path, its settings in one order whatever the hash seed."""
    text = re.sub(r"(?<='TORCHINDUCTOR_CACHE_DIR'\] = ).*", "'torchinductor_cache'", text)
    settings = re.compile(r"(?:^torch\.[\w.]+\.config\.[\w.]+ = .*\n)+", re.MULTILINE)
    return settings.sub(lambda lines: "".join(sorted(lines[0].splitlines(keepends=True))), text)


def _direction(*, is_backward: bool, is_inference: bool) -> str:
    if is_backward:
        return "backward"
    return "inference" if is_inference else "forward"


def _has_symbols(inputs: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.SymInt) for value in inputs)


def _backend(writer: _Writer, grad: bool) -> Callable[..., Any]:
    """A Dynamo backend: inductor's own, with the code generator replaced by our writer."""

    def inner_compile(
        gm: GraphModule,
        fake_inputs: Sequence[Any],
        *,
        is_backward: bool = False,
        is_inference: bool = False,
        **_: Any,
    ) -> Callable[[list[Any]], Any]:
        direction = _direction(is_backward=is_backward, is_inference=is_inference)
        writer.runnable(gm, fake_inputs, direction)
        if _has_symbols(fake_inputs):
            writer.launcher(gm, fake_inputs, direction, symbolic=True)

        def run(inputs: list[Any]) -> Any:
            writer.launcher(gm, inputs, direction)
            return gm(*inputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def backend(gm: GraphModule, inputs: Sequence[Any]) -> Any:
        try:
            direction = _direction(is_backward=False, is_inference=not grad)
            writer.after_dynamo(gm, inputs, direction)
        except torch._dynamo.debug_utils.UnsupportedNNModuleError:
            # Stock writes no such file for graphs with subgraphs (torch.cond and its like).
            pass
        return compile_fx(gm, inputs, inner_compile=inner_compile)

    return backend


def _compile_and_run(name: str, writer: _Writer) -> None:
    """Run the model once, forward and backward, with the writer listening."""
    model = MODELS[name]
    fn, inputs = build(name)
    torch._dynamo.reset()
    compiled = torch.compile(
        fn, backend=_backend(writer, model.grad), dynamic=model.dynamic or None, fullgraph=True
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(functorch_config.patch(enable_autograd_cache=False))
        stack.enter_context(torch.set_grad_enabled(model.grad))
        if model.dynamo_config:
            stack.enter_context(torch._dynamo.config.patch(dict(model.dynamo_config)))
        leaves = pytree.tree_leaves(call(compiled, inputs))
        outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if outputs:
            torch.autograd.backward(outputs, [torch.randn_like(output) for output in outputs])
    torch._dynamo.reset()


# --- Running --------------------------------------------------------------------------------------


def _definitions(text: str) -> dict[str, Any]:
    """Execute the imports and definitions of a file, and none of its settings and actions."""

    def wanted(statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            # The symbols' values, and the inputs of the old form.
            return re.fullmatch(r"[su]\d+|args", statement.targets[0].id) is not None
        return isinstance(statement, ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef)

    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if wanted(statement)]
    names: dict[str, Any] = dict(MISSING_NAMES)
    exec(compile(tree, "<stock file>", "exec"), names)
    return names


@dataclass(frozen=True)
class Results:
    """What a file computed; ``inputs_after`` is None if the run left its inputs as they were."""

    outputs: list[Any]
    inputs_after: list[Any] | None


def run_file(path: Path, kind: str, save_dir: str | None) -> Results:
    """Run a stock file eagerly.

    Works for the old form too, whose inputs are drawn by ``args = [...]``.
    """
    torch.manual_seed(0)
    names = _definitions(path.read_text())
    torch.manual_seed(0)
    module = names["Repro"]()
    if "args" in names:
        inputs = names["args"]
    else:
        torch.manual_seed(0)
        reader = InputReader(None if save_dir is None else str(path.parent / save_dir))
        if reader.store is not None:
            # Stock's reader hands out one storage for all inputs with equal contents, so that
            # inputs which were apart in the user's program change together. Assay keeps them apart.
            reader.store.storage_cache = None
        names["load_args"](reader)
        inputs = reader.args
    before = _copy(inputs)
    torch.manual_seed(0)
    with torch.set_grad_enabled(kind == AFTER_DYNAMO):
        outputs = module(*inputs)
    after = _copy(inputs)
    return Results(_copy(list(outputs)), None if _same(before, after) else after)


def _copy(values: list[Any]) -> list[Any]:
    """The same values; tensors without their history and the storage they share with others."""
    return [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in values]


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(before, after, strict=True)
    )


def _with_results(directory: Path, stock: StockFile) -> StockFile:
    """Run a file, save what came out beside it, and note where."""
    path = directory / stock.file
    made_up = "reader.storage(None" in path.read_text()
    try:
        results = run_file(path, stock.kind, stock.save_dir)
    except (SyntaxError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not made_up:
            raise
        return replace(stock, error=f"{type(error).__name__}: {str(error).splitlines()[0]}")
    expected = f"{path.stem}.expected.pt"
    torch.save(results.outputs, directory / expected)
    inputs_after = None
    if results.inputs_after is not None:
        inputs_after = f"{path.stem}.inputs_after.pt"
        torch.save(results.inputs_after, directory / inputs_after)
    return replace(stock, expected=expected, inputs_after=inputs_after)


# --- Whole directories ----------------------------------------------------------------------------


def make_files(name: str, directory: Path, *, relative: bool = False) -> list[StockFile]:
    """Write all files of the model ``name`` into ``directory``, anew, with their results.

    With ``relative`` the files name their save directory relative to themselves and no path of this
    machine, and come out the same in every run.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    writer = _Writer(directory.resolve(), relative)
    with _quiet():
        _compile_and_run(name, writer)
        files = [_with_results(directory, file) for file in writer.files]
    _write_manifest(directory, name, files)
    return files


def ensure_files(name: str, root: Path) -> list[StockFile]:
    """The files of the model in ``root / name``, written there unless this torch already did."""
    manifest = root / name / "manifest.json"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        if manifest.exists() and json.loads(manifest.read_text())["torch"] == torch.__version__:
            return read_manifest(root / name)
        return make_files(name, root / name)


def read_manifest(directory: Path) -> list[StockFile]:
    """The files that a directory's manifest lists."""
    manifest = json.loads((directory / "manifest.json").read_text())
    return [StockFile(**file) for file in manifest["files"]]


def _write_manifest(directory: Path, model: str, files: Sequence[StockFile]) -> None:
    manifest = {
        "model": model,
        "torch": torch.__version__,
        "files": [asdict(file) for file in files],
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence InputReader, which warns when it makes up a storage."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="could not load .*, generating random data")
            yield
    finally:
        logger.setLevel(level)


# --- The checked-in set ---------------------------------------------------------------------------

# What `tests/fixtures/stock` keeps of each model: few files, small enough to read in a review.
FIXTURE_FILES = {
    "linear_layernorm_relu": ("dynamo_launcher", "forward_runnable", "backward_runnable"),
    "dynamic_mlp": ("forward_symbolic_launcher",),
    "higher_order": ("inference_runnable",),
}

# Written by hand after the troubleshooting guide; only their results are made here.
OLD_FORM = (
    StockFile("after_aot.py", AFTER_AOT, "forward", nodes=4),
    StockFile("after_dynamo.py", AFTER_DYNAMO, "forward", nodes=3),
)


def make_fixtures(directory: Path = FIXTURES) -> None:
    """Write the checked-in files anew."""
    for name, kept in FIXTURE_FILES.items():
        files = make_files(name, directory / name, relative=True)
        files = [file for file in files if Path(file.file).stem in kept]
        _write_manifest(directory / name, name, files)
        _remove_unlisted(directory / name, files)
    old_form = directory / "old_form"
    files = [_with_results(old_form, file) for file in OLD_FORM]
    _write_manifest(old_form, "old_form", files)


def _remove_unlisted(directory: Path, files: Sequence[StockFile]) -> None:
    """Delete what none of the files needs, the storages included."""
    texts = "".join((directory / file.file).read_text() for file in files)
    listed = {"manifest.json"}
    for file in files:
        listed |= {file.file, file.expected or "", file.inputs_after or ""}
    for path in directory.rglob("*"):
        stored = path.parent.name == "storages" and path.name in texts
        if path.is_file() and path.name not in listed and not stored:
            path.unlink()
    for path in sorted(directory.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def main() -> None:
    """The command line: see the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory for one subdirectory per model")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(MODELS))
    parser.add_argument("--large", action="store_true", help="the large baselines as well")
    parser.add_argument("--fixtures", action="store_true", help="write tests/fixtures/stock anew")
    options = parser.parse_args()
    if options.fixtures:
        make_fixtures()
    elif options.out is None:
        parser.error("one of --out and --fixtures is needed")
    else:
        names = options.only or [m.name for m in MODELS.values() if options.large or not m.large]
        for name in names:
            start = time.monotonic()
            files = make_files(name, options.out / name)
            print(f"{name}: {len(files)} files in {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
