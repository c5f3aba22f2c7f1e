"""Writes each graph with its inputs, as it is compiled, as a file that ``assay reduce`` takes.

At the time of compiling, a graph of Dynamo's has its real inputs; one from after AOTAutograd has
only fake ones, so its file is written again with those of its first call.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config
import torch.fx.experimental._config
from torch._subclasses.fake_tensor import FakeTensor

from assay import _C
from assay._backends import backend_name as name_of
from assay.diagnose import custom_operators, helpers
from assay.errors import Error
from assay.stock import sent_backend

CONFIGS = {
    "torch._dynamo.config": torch._dynamo.config,
    "torch._inductor.config": torch._inductor.config,
    "torch._functorch.config": torch._functorch.config,
    "torch.fx.experimental._config": torch.fx.experimental._config,
}
# Where kernels are kept and how many compilers run has nothing to do with a graph's failure.
NOT_OF_THE_GRAPH = re.compile(r"compile_threads|worker_start_method|.*cache.*|repro_.*|debug_dir.*")


class Saved:
    """A graph that was written; with which inputs is settled when it is called."""

    def __init__(self, writer: Writer, file: Path, stage: str, backend: str) -> None:
        self.writer = writer
        self.file = file
        self.stage = stage
        self.backend = backend
        self.graph: Any = None
        self.lines: list[str] = []
        self.problem: str | None = None
        self.notes: list[str] = []
        self.has_real_inputs = False
        self.is_accuracy = False
        self.last_inputs: Any = None
        self.calls_seen = 0
        self.threads = torch.get_num_threads()

    def calls(self) -> int:
        """The size of the graph."""
        return len(self.graph) if self.graph is not None else 0

    def summary(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "stage": self.stage,
            "backend": self.backend,
            "problem": self.problem,
            "notes": self.notes,
            "calls": self.calls(),
            "threads": self.threads,
        }

    def at_call(self, inputs: Sequence[Any], *, is_wanted: bool) -> None:
        """The graph is about to be called."""
        self.last_inputs = tuple(inputs)
        if is_wanted and (self.calls_seen > 0 or not self.has_real_inputs):
            self._write(inputs)
        self.calls_seen += 1

    def again(self) -> None:
        """The call failed: its inputs are those that matter."""
        if self.last_inputs is not None:
            self._write(self.last_inputs)

    def _write(self, inputs: Iterable[Any]) -> None:
        if self.graph is not None and self.problem is None:
            self.has_real_inputs = True
            self.writer.write(self, inputs)


class Writer:
    """The directory of a script's graphs."""

    def __init__(self, directory: str, before: dict[str, Any] | None = None) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.before = _settings() if before is None else before
        self.sent: set[str] = set()

    def save(
        self,
        name: str,
        gm: torch.fx.GraphModule,
        inputs: Sequence[Any],
        backend: str,
        stage: str,
        settings: dict[str, Any] | None,
    ) -> Saved:
        """Write a graph with the inputs that its compiler is given."""
        saved = self.prepare(name, gm, inputs, backend, stage, settings)
        if saved.problem is None:
            self.write(saved, inputs)
        return saved

    def prepare(
        self,
        name: str,
        gm: torch.fx.GraphModule,
        inputs: Sequence[Any],
        backend: str,
        stage: str,
        settings: dict[str, Any] | None,
    ) -> Saved:
        """Keep a graph as it is now, to write it later."""
        saved = Saved(self, self.directory / f"{name}.py", stage, backend)
        saved.has_real_inputs = not any(isinstance(value, FakeTensor) for value in inputs)
        saved.lines = [*self._setting_lines(settings or {}), *custom_operators.lines(gm)]
        gm = helpers.without_dynamos(gm)
        try:
            saved.graph = _C.graph_from_module(gm, list(inputs))
        except Error as error:
            saved.problem = str(error)
        if (function := helpers.unreachable(gm)) is not None:
            saved.problem = f"it calls the function '{function}', which nothing can import"
        return saved

    def write(self, saved: Saved, inputs: Iterable[Any]) -> None:
        """The file, and below it the data of the inputs."""
        try:
            with _plainly():
                values = [_as_input(value, saved.notes) for value in inputs]
        except Exception as error:  # of a tensor subclass; the script must not notice
            saved.problem = str(error)
            return
        try:
            _C.save_repro(
                saved.graph,
                values,
                str(saved.file),
                saved.backend,
                saved.stage,
                saved.is_accuracy,
                str(self.directory),
            )
        except Error as error:
            saved.problem = str(error)
            return
        text = saved.file.read_text()
        if torch.is_autocast_enabled("cpu"):
            text = text.replace("autocast=False", "autocast=True")
        lines = "".join(f"{line}\n" for line in saved.lines)
        # Before the comments that follow the imports.
        text = text.replace("\n\n# assay version", f"\n{lines}\n# assay version", 1)
        part = saved.file.with_suffix(".part")
        part.write_text(text)
        part.rename(saved.file)

    def save_backend(self, name: str, backend: Any) -> None:
        """A backend that is not PyTorch's own, by value, for the trials of a reduction."""
        if name in self.sent or is_stock(backend):
            return
        self.sent.add(name)
        file = self.directory / f"{file_name(name)}.pkl"
        try:
            sent_backend.save(_innermost(backend), file)
        except Exception as error:  # a pickler raises whatever the objects raise
            (self.directory / f"{file_name(name)}.txt").write_text(str(error))

    def _setting_lines(self, settings: dict[str, Any]) -> list[str]:
        """What the script has changed, and what it has passed to ``torch.compile``."""
        now = _settings()
        changed = {
            name: value
            for name, value in now.items()
            if name not in self.before or _differs(self.before[name], value)
        }
        changed.update({f"torch._inductor.config.{name}": v for name, v in settings.items()})
        return [
            f"{name} = {value!r}"
            for name, value in changed.items()
            if not NOT_OF_THE_GRAPH.match(name.rpartition("config.")[2]) and _is_literal(value)
        ]


def default_settings() -> dict[str, Any]:
    """The settings that nobody has changed, in this program or its environment."""
    return {
        name: value
        for name, value in _settings().items()
        if (found := re.match(r"(.*?config)\.(.+)", name))
        and CONFIGS[found[1]]._is_default(found[2])
    }


def _settings() -> dict[str, Any]:
    found = {}
    for module, config in CONFIGS.items():
        for name, value in config.get_config_copy().items():
            found[f"{module}.{name}"] = value
    return found


def _differs(left: Any, right: Any) -> bool:
    try:
        return bool(left != right)
    except Exception:  # settings may be objects of any kind
        return left is not right


def _is_literal(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_literal, value))
    return isinstance(value, bool | int | float | str | type(None))


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    """Without the modes and subclasses that the script or PyTorch has put around operators."""
    with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def _as_input(value: Any, notes: list[str]) -> Any:
    """A value that a file can hold; what it cannot is noted."""
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return _hint(value)
    if isinstance(value, FakeTensor):
        return _synthesized(value)
    if not isinstance(value, torch.Tensor):
        return value
    for kind in ("zerotensor", "conj", "neg"):
        if getattr(torch, f"_is_{kind}" if kind == "zerotensor" else f"is_{kind}")(value):
            _add(notes, f"an input has PyTorch's {kind} bit, which a file does not carry")
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        _add(
            notes, f"an input is a {type(value).__name__}, of which a file carries the values only"
        )
    if value._is_zerotensor() or value.is_conj() or value.is_neg():
        value = torch.clone(value).resolve_conj().resolve_neg()
    return value if torch.is_grad_enabled() else value.detach()


def _add(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)


def _hint(value: Any) -> Any:
    node = value.node
    return node.hint if node.has_hint() else 4


def _synthesized(fake: FakeTensor) -> torch.Tensor:
    """A real tensor of that size: while it compiles, an inner graph has no other inputs."""
    size = [_hint(n) if isinstance(n, torch.SymInt) else n for n in fake.size()]
    stride = [_hint(n) if isinstance(n, torch.SymInt) else n for n in fake.stride()]
    with torch._C._DisableTorchDispatch(), torch.utils._python_dispatch._disable_current_modes():
        made = torch.empty_strided(size, stride, dtype=fake.dtype)
        if fake.dtype.is_floating_point or fake.dtype.is_complex:
            made.copy_(torch.randn(size, dtype=torch.float32))
        else:
            made.zero_()
        return made.requires_grad_(fake.requires_grad)


def is_stock(backend: Any) -> bool:
    """Whether another process finds the backend by its name."""
    from torch._dynamo.backends.registry import list_backends

    innermost = _innermost(backend)
    if isinstance(innermost, torch._TorchCompileInductorWrapper):
        return True
    name = backend_name(backend)
    module = getattr(innermost, "__module__", "") or ""
    return name in list_backends(exclude_tags=()) and module.startswith("torch.")


def _innermost(backend: Any) -> Any:
    while (inner := getattr(backend, "_torchdynamo_orig_backend", None)) is not None:
        backend = inner
    if isinstance(backend, torch._TorchCompileWrapper):
        return backend.compiler_fn
    return backend


def backend_name(backend: Any) -> str:
    """What ``torch.compile(backend=...)`` calls it."""
    return name_of(_innermost(backend))


def backend_settings(backend: Any) -> dict[str, Any]:
    """The options and the mode that the script has given to ``torch.compile``."""
    return dict(getattr(_innermost(backend), "config", None) or {})


def file_name(name: str) -> str:
    """A backend's name as a file's."""
    return re.sub(r"\W+", "_", name).strip("_") or "backend"
