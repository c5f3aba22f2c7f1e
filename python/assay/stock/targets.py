"""What a repro file from a stranger may name: functions on tensors, and nothing that leads out.

The tables are closed: a name is allowed because PyTorch lists it as an operator or because it is
written here, never because nothing speaks against it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
import torch._inductor.inductor_prims  # registers operators that stand in graphs


def words(text: str) -> frozenset[str]:
    """A table of names, as one reads it best."""
    return frozenset(text.split())


# Operators that read or write files, or reach memory beyond their tensors.
DENIED_OPERATORS = words(
    "from_file _from_blob from_blob save load _print _reinterpret_tensor _alloc_from_pool"
)

OPERATOR_NAMESPACES = words(
    "aten prims quantized _quantized quantized_decomposed onednn mkldnn mkl mkldnn_prepacked "
    "sparse inductor _inductor rngprims inductor_prims"
)
HIGHER_ORDER = words(
    "cond while_loop map map_impl scan associative_scan wrap wrap_with_set_grad_enabled "
    "wrap_with_autocast wrap_activation_checkpoint tag_activation_checkpoint flex_attention "
    "flex_attention_backward invoke_subgraph autograd_function_apply auto_functionalized "
    "auto_functionalized_v2"
)

# Python functions of the module torch that are no operators, but stand in graphs.
TORCH_FUNCTIONS = words(
    "tensor as_tensor cond sym_int sym_float sym_max sym_min sym_not sym_sum sym_sqrt sym_ite "
    "sym_fresh_size _sym_sqrt _sym_log2 _assert _check _check_is_size _check_value _check_index "
    "device Size finfo iinfo is_grad_enabled is_autocast_enabled"
)

# Namespaces below torch: which of their names may be called.
_EXPLICIT = {
    ("torch", "_C"): "_set_grad_enabled _set_fwd_grad_enabled _log_api_usage_once",
    ("torch", "amp", "autocast_mode"): "_enter_autocast _exit_autocast",
    ("torch", "_C", "_functorch"): (
        "_vmap_increment_nesting _vmap_decrement_nesting _grad_increment_nesting "
        "_grad_decrement_nesting _jvp_increment_nesting _jvp_decrement_nesting _add_batch_dim "
        "_remove_batch_dim _wrap_for_grad _unwrap_for_grad _unwrap_batched"
    ),
    ("torch", "_functorch", "predispatch"): (
        "_vmap_increment_nesting _vmap_decrement_nesting _add_batch_dim _remove_batch_dim "
        "_jvp_increment_nesting _jvp_decrement_nesting _enter_dual_level _exit_dual_level "
        "_make_dual _unpack_dual _unwrap_for_grad lazy_load_decompositions"
    ),
    ("torch", "_functorch", "vmap"): "lazy_load_decompositions _add_batch_dim _remove_batch_dim",
    ("torch", "autograd", "forward_ad"): "_maybe_load_decompositions",
    ("torch", "autograd", "function"): "FunctionCtx",
    ("torch", "nn"): "Parameter Buffer",
    ("torch", "nn", "parameter"): "Parameter Buffer",
}
EXPLICIT = {path: words(names) for path, names in _EXPLICIT.items()}

# operator.call, attrgetter, itemgetter and methodcaller reach what is named nowhere in the text.
OPERATOR_FUNCTIONS = words(
    "abs add and_ concat contains eq floordiv ge getitem gt iadd iand ifloordiv ilshift imatmul "
    "imod imul index inv invert ior ipow irshift isub itruediv ixor is_ is_not le lshift lt matmul "
    "mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor"
)
MATH_FUNCTIONS = frozenset(name for name in dir(math) if not name.startswith("_"))

# Methods of tensors that run a callable, or hand out memory.
DENIED_METHODS = words(
    "apply_ map_ map2_ register_hook register_post_accumulate_grad_hook numpy data_ptr storage "
    "untyped_storage set_ share_memory_ module_load tolist dim_order_unsafe"
)
METHOD_DUNDERS = frozenset(
    f"__{name}__"
    for name in words(
        "abs add and div eq floordiv ge getitem gt iadd iand idiv ifloordiv ilshift imod imul "
        "invert ior ipow irshift isub itruediv ixor le len lshift lt matmul mod mul ne neg or pos "
        "pow radd rand rdiv rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub "
        "rtruediv rxor setitem sub truediv xor"
    )
)
DATA_ATTRIBUTES = words(
    "shape dtype device layout ndim requires_grad is_leaf grad data T mT H mH real imag is_cuda "
    "is_cpu is_sparse is_quantized is_meta itemsize nbytes names type index values indices sign "
    "logabsdet eigenvalues eigenvectors Q R L U S V Vh P LU pivots info solution residuals rank "
    "singular_values mode count mantissa exponent hist bin_edges output inverse"
)


@functools.cache
def torch_functions() -> frozenset[str]:
    """The names below ``torch`` that are functions on tensors, and those that make tensors."""
    operators = {name for name in dir(torch._C._VariableFunctions) if not name.startswith("__")}
    return frozenset(operators | set(torch.functional.__all__) | TORCH_FUNCTIONS) - DENIED_OPERATORS


@functools.cache
def functional_functions() -> frozenset[str]:
    """The names below ``torch.nn.functional`` that are functions on tensors."""
    functional = torch.nn.functional
    overridable = torch.overrides.get_overridable_functions()[functional]
    names = {getattr(function, "__name__", "") for function in overridable}
    for name, value in vars(functional).items():
        kind = type(value).__name__
        is_own = kind == "function" and value.__module__ == functional.__name__
        # max_pool2d and the like: one name for two functions
        is_dispatched = getattr(value, "__module__", "") == "torch._jit_internal" and "pool" in name
        if kind == "builtin_function_or_method" or is_dispatched or (is_own and name[0] != "_"):
            names.add(name)
    return frozenset(name for name in names if callable(getattr(functional, name, None)))


@functools.cache
def builtins_of(path: tuple[str, ...]) -> frozenset[str]:
    """The compiled functions of one of torch's namespaces."""
    space: Any = torch
    for name in path[1:]:
        space = getattr(space, name)
    return frozenset(
        name
        for name, value in vars(space).items()
        if type(value).__name__ == "builtin_function_or_method" and not name.startswith("__")
    )


BUILTIN_SPACES = {
    ("torch", "_C", "_nn"),
    ("torch", "_C", "_linalg"),
    ("torch", "_C", "_fft"),
    ("torch", "_C", "_special"),
    ("torch", "_C", "_nested"),
    ("torch", "_C", "_sparse"),
    ("torch", "linalg"),
    ("torch", "fft"),
    ("torch", "special"),
}


@functools.cache
def module_classes() -> frozenset[str]:
    """The layers of ``torch.nn``."""
    return frozenset(torch.nn.modules.__all__) | {"Parameter"}


@functools.cache
def is_module_attribute(name: str) -> bool:
    """Whether every module has this attribute, so that it is not one the file has set."""
    return hasattr(torch.nn.Module, name) or name in vars(torch.nn.Module())


@functools.cache
def is_tensor_method(name: str) -> bool:
    """Whether ``x.name(...)`` may be called on a value."""
    if name in DENIED_METHODS:
        return False
    if name.startswith("_"):
        return name in METHOD_DUNDERS
    return name in dir(torch.Tensor) or name in {"conjugate", "is_integer", "as_integer_ratio"}


@functools.cache
def is_operator(path: tuple[str, ...]) -> bool:
    """Whether ``torch.ops....`` is an operator of the dispatcher that stays within tensors.

    TorchScript has more under the same names (``aten::save``); the dispatcher does not know them.
    """
    if len(path) == 4 and path[2] == "higher_order":
        return path[3] in HIGHER_ORDER
    if len(path) not in (4, 5) or path[2] not in OPERATOR_NAMESPACES:
        return False
    if path[3] in DENIED_OPERATORS:
        return False
    name = f"{path[2]}::{path[3]}"
    if len(path) == 4:
        return any(
            known.partition(".")[0] == name for known in torch._C._dispatch_get_all_op_names()
        )
    try:
        torch._C._dispatch_find_schema_or_throw(name, "" if path[4] == "default" else path[4])
    except RuntimeError:
        return False
    return True


def is_callable(path: tuple[str, ...]) -> bool:
    """Whether the function with this dotted name, from ``torch`` or ``math`` on, may be called."""
    space, name = path[:-1], path[-1]
    if path[0] in ("operator", "_operator"):
        return len(path) == 2 and name in OPERATOR_FUNCTIONS
    if path[0] == "math":
        return len(path) == 2 and name in MATH_FUNCTIONS
    if path[:2] == ("torch", "ops"):
        return is_operator(path)
    if space == ("torch",):
        return name in torch_functions()
    if space == ("torch", "functional"):  # where Dynamo finds torch.split and others
        return name in torch.functional.__all__
    if space == ("torch", "nn", "functional"):
        return name in functional_functions()
    if space in BUILTIN_SPACES:
        return name in builtins_of(space)
    if space == ("torch", "Tensor"):
        return is_tensor_method(name)
    if space in (("torch", "nn"), ("torch", "nn", "modules")) and name in module_classes():
        return True
    return name in EXPLICIT.get(space, ())


@functools.cache
def is_value(path: tuple[str, ...]) -> bool:
    """Whether this dotted name is a constant that may stand as an argument."""
    if path[:2] == ("torch", "ops"):
        return is_operator(path)
    if path[0] == "math":
        return path[1:] in (("inf",), ("nan",), ("pi",), ("e",), ("tau",))
    if path[0] != "torch" or len(path) != 2:
        return False
    constants = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)
    return isinstance(getattr(torch, path[1], None), constants)
