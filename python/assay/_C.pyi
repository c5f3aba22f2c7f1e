from collections.abc import Callable, Iterable
from typing import Any, overload

version: str
torch_version: str

stages: tuple[str, ...]

def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

class Repro:
    code: str
    text: str
    stage: str
    def __len__(self) -> int: ...
    def inputs(
        self, seed: int = ..., save_dir: str | None = ...
    ) -> tuple[list[Any], list[str]]: ...
    def run(self, seed: int = ..., save_dir: str | None = ...) -> Any: ...
    def run_with(self, inputs: Iterable[Any]) -> Any: ...

def read_repro(path: str) -> Repro: ...
def parse_repro(text: str, name: str = ...) -> Repro: ...

class Graph:
    code: str
    def __init__(self, text: str, name: str = ...) -> None: ...
    def __call__(self, *inputs: Any) -> Any: ...

def capture_run_all_frames(
    enabled: bool, hand_over_after: int | None = ..., checked: bool = ...
) -> None: ...
def set_logs(text: str) -> None: ...
def compile_times() -> str: ...
def configure_from_environment() -> None: ...
def config_get(name: str) -> Any: ...
def config_set(name: str, value: Any) -> None: ...
def config_unset(name: str) -> None: ...
def config_describe() -> list[dict[str, Any]]: ...
def config_reload_environment() -> None: ...

class ConfigPatch:
    def __init__(self, values: dict[str, Any]) -> None: ...
    def enter(self) -> None: ...
    def exit(self) -> None: ...

class CompiledFunction:
    graphs: list[str]
    @overload
    def __init__(
        self,
        graph: str,
        backend: str,
        options: dict[str, bool | int | float | str],
        fallback: bool,
        cache_limit: int | None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        function: Callable[..., Any],
        recorded_as: Callable[..., Any],
        backend: str,
        options: dict[str, bool | int | float | str],
        name: str,
        fallback: bool,
        cache_limit: int | None,
    ) -> None: ...
    def __call__(self, *inputs: Any) -> Any: ...

class FastCall:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def set_fast(self, handle: CompiledFunction | None) -> None: ...

class Trace:
    captured: str
    joint: str
    forward: str
    backward: str
    saved_bytes: int
    nodes: int

def trace_function(
    function: Callable[..., Any], inputs: list[Any], partitioner: str, decompose: bool
) -> Trace: ...
def trace_text(text: str, inputs: list[Any], partitioner: str, decompose: bool) -> Trace: ...
def partition_text(joint: str, forward_outputs: int, partitioner: str) -> dict[str, Any]: ...
def list_backends() -> list[str]: ...
def check_backend(name: str) -> None: ...

class SameOptions:
    cos_similarity: bool
    tol: float
    equal_nan: bool
    exact_dtype: bool
    ignore_non_fp: bool
    use_larger_multiplier_for_smaller_tensor: bool
    force_max_multiplier: bool
    use_iou_for_bool: bool
    iou_threshold: float

class Comparison:
    same: bool
    kind: str | None
    where: str
    message: str
    error: float
    reference_error: float
    tolerance: float
    compiled_is_closer: bool
    not_compared: int
    def __bool__(self) -> bool: ...

class TwoModels:
    same: bool
    comparison: Comparison
    eager_failed: bool
    eager_error: str
    has_fp64_reference: bool
    fp64_error: str
    not_compared: str
    def __bool__(self) -> bool: ...

class Divergence:
    node: str
    call: str
    stack: list[tuple[str, int, str, str]]
    text_offset: int | None
    comparison: Comparison

def same(reference: Any, result: Any, fp64_reference: Any, options: SameOptions) -> Comparison: ...
def clone_inputs_retaining_gradness(inputs: Iterable[Any]) -> list[Any]: ...
def requires_bwd_pass(output: Any) -> bool: ...
def reduce_to_scalar_loss(output: Any) -> Any: ...
def collect_results(output: Any, inputs: Iterable[Any]) -> tuple[Any, list[Any], list[Any]]: ...
def run_fwd_maybe_bwd(
    program: Callable[..., Any], inputs: list[Any], only_forward: bool
) -> tuple[Any, list[Any], list[Any]]: ...
def cast_to_fp64(graph: str, inputs: list[Any]) -> tuple[str, list[Any]]: ...
def same_two_models(
    graph: str,
    compiled: Callable[..., Any],
    inputs: list[Any],
    only_forward: bool,
    use_fp64: bool,
    require_fp64: bool,
    same: SameOptions,
    seed: int | None,
) -> TwoModels: ...
def first_divergence(
    reference: str,
    suspect: str | Callable[[str, str, list[Any]], Any],
    inputs: list[Any],
    same: SameOptions,
    use_fp64: bool,
    relative: bool,
) -> Divergence | None: ...
