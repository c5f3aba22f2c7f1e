# Written by tools/config_pages.py from src/config/settings.h; do not edit.
"""Every setting of Assay's, as attributes; see docs/config.md."""

from collections.abc import Mapping
from typing import Any, Literal

from assay._settings import Patch

class _Trace:
    enabled: bool
    debug_log: bool
    fx_graph: bool
    inputs: bool
    fx_graph_transformed: bool
    ir_pre_fusion: bool
    ir_post_fusion: bool
    output_code: bool

repro_after: Literal["dynamo", "aot"] | None
repro_level: int
repro_forward_only: bool
repro_ignore_non_fp: bool
repro_tolerance: float
repro_inputs: Literal["data", "shapes"]
reduce: Literal["now", "launcher"] | None
debug_dir_root: str
cache_size_limit: int
automatic_dynamic_shapes: bool
accumulated_cache_size_limit: int
paranoid: bool
debug_function: str
suppress_errors: bool
verbose: bool
replay_record_enabled: bool
disable_passes: str
pass_limit: int
inject_fault: str
kernel_fault: str
matmul: Literal["auto", "aten", "onednn"]
kernel_sizes: Literal["auto", "fixed", "passed"]
cxx: str
compile_timeout: int
cache_dir: str
kernel_cache_megabytes: int
logs: str
logs_format: str
logs_out: str
chrome_trace: str
plugins: str
binary: str
python: str
fallback_random: bool
trace: _Trace

def patch(values: Mapping[str, Any] | None = None, /, **named: Any) -> Patch:
    """Settings for the length of a ``with`` block, or of the calls of a decorated function.

    >>> with assay.config.patch(repro_after="aot", repro_level=4): ...
    """

def unset(name: str) -> None:
    """Take back an assignment: the environment's value or the default holds again."""

def to_dict() -> dict[str, Any]:
    """The value of every setting."""

def reload_environment() -> None:
    """Read the environment again, for settings that were not set otherwise.

    Logs and the trace stay as they are.
    """
