"""Compare a compiled program with eager by PyTorch's rules, and report what is wrong and where.

>>> assay.compare.same(model(x), compiled(x))
<values differ at [0]: 3 of 8 elements differ, by up to 0.5; the tolerance is 0.0001, ...>

>>> repro = assay.load("repro.py")
>>> inputs, _ = repro.inputs()
>>> found = assay.compare.same_two_models(repro, compiled, inputs)   # results, gradients, inputs
>>> found.same, found.comparison.where
(False, "gradient['primals_1']")

``docs/compare.md`` lists the rules, and the few that differ from PyTorch's on purpose.
"""

from __future__ import annotations

import collections
import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from assay import _C
from assay._C import Comparison, Divergence, SameOptions, TwoModels

__all__ = [
    "Comparison",
    "Divergence",
    "Results",
    "SameOptions",
    "TwoModels",
    "cast_to_fp64",
    "clone_inputs_retaining_gradness",
    "collect_results",
    "first_divergence",
    "reduce_to_scalar_loss",
    "requires_bwd_pass",
    "run_fwd_maybe_bwd",
    "same",
    "same_two_models",
]


class HasCode(Protocol):
    """An Assay graph: :class:`assay.Graph`, :class:`assay.Repro`."""

    @property
    def code(self) -> str: ...


class Results(NamedTuple):
    """The results of one run of a program."""

    output: Any
    gradients: list[Any]
    """One per input: zeros where one that requires grad got none, None where it does not."""
    inputs: list[Any]
    """The inputs as the program left them."""


def same(
    reference: Any,
    result: Any,
    fp64_reference: Any = None,
    *,
    relax_numpy_equality: bool = False,
    **options: Any,
) -> Comparison:
    """Compare the results of eager with those of a compiled program.

    Takes tensors, numbers, lists, dicts, dataclasses, numpy arrays and so on. ``fp64_reference`` is
    what eager computes in float64: where results are not close, the result may be a few times as
    far from it as eager is. The options are those of ``torch._dynamo.utils.same``: ``tol``,
    ``equal_nan``, ``exact_dtype``, ``cos_similarity``, ... (:class:`SameOptions`).

    >>> if not (found := same(eager, compiled, tol=1e-3)):
    ...     print(found.where, found.message)
    """
    if relax_numpy_equality:
        reference, result = _relaxed(reference, result), _relaxed(result, reference)
    return _C.same(
        _plain(reference), _plain(result), _plain(fp64_reference), _same_options(options)
    )


def same_two_models(
    graph: str | HasCode,
    compiled: Callable[..., Any],
    inputs: Sequence[Any],
    only_forward: bool = False,
    *,
    use_fp64: bool = True,
    require_fp64: bool = False,
    seed: int | None = None,
    tol: float = 1e-3,
    equal_nan: bool = True,
    **options: Any,
) -> TwoModels:
    """Run a graph eagerly and ``compiled`` on copies of the same inputs, and compare.

    Compares results, the gradients of the inputs (unless ``only_forward``), and mutated inputs. All
    runs see the same random numbers. An exception of ``compiled`` propagates: it is not an accuracy
    problem. Results that are not close are checked against the same graph in float64; with
    ``require_fp64`` it always runs, and it is an error if it cannot.

    >>> found = same_two_models(graph, torch.compile(model), [x])
    >>> assert found.same, found.comparison
    """
    return _C.same_two_models(
        _text(graph),
        _program(compiled),
        list(inputs),
        only_forward,
        use_fp64,
        require_fp64,
        _same_options({"tol": tol, "equal_nan": equal_nan, **options}),
        seed,
    )


def first_divergence(
    reference: str | HasCode,
    suspect: str | HasCode | Callable[[str, str, list[Any]], Any],
    inputs: Sequence[Any],
    *,
    use_fp64: bool = True,
    relative: bool = True,
    tol: float = 1e-4,
    equal_nan: bool = True,
    **options: Any,
) -> Divergence | None:
    """The first call of ``reference`` that ``suspect`` computes wrongly; None if there is none.

    Each call gets eager's values, so an error in its result comes from the call itself. The
    suspect is a graph with the same calls by name, or a function that runs one call:
    ``suspect(node, target, values)``, with the values of the nodes it reads in their order.

    >>> found = first_divergence(graph, faulty, inputs)
    >>> found.node, found.call, found.comparison.error
    ('relu_3', 'torch.relu(addmm_2)', 0.63)
    """
    return _C.first_divergence(
        _text(reference),
        suspect if callable(suspect) and not hasattr(suspect, "code") else _text(suspect),
        list(inputs),
        _same_options({"tol": tol, "equal_nan": equal_nan, **options}),
        use_fp64,
        relative,
    )


def run_fwd_maybe_bwd(
    program: Callable[..., Any], inputs: Sequence[Any], only_forward: bool = False
) -> Results:
    """Run a program on copies of the inputs, then backward if something requires grad.

    >>> run_fwd_maybe_bwd(torch.sin, [torch.zeros(2, requires_grad=True)]).gradients
    [tensor([0.5000, 0.5000])]
    """
    return Results(*_C.run_fwd_maybe_bwd(_program(program), list(inputs), only_forward))


def collect_results(output: Any, inputs: Sequence[Any]) -> Results:
    """An output with the current gradients of the inputs.

    >>> collect_results(y, [x]).gradients
    """
    return Results(*_C.collect_results(_plain(output), list(inputs)))


def requires_bwd_pass(output: Any) -> bool:
    """Whether a tensor of the output requires grad.

    >>> requires_bwd_pass({"loss": torch.ones(1, requires_grad=True)})
    True
    """
    return _C.requires_bwd_pass(_plain(output))


def reduce_to_scalar_loss(output: Any) -> torch.Tensor | None:
    """A scalar that depends on every tensor: means of tensors, averaged over lists and dicts.

    Of a language model's outputs only ``logits`` count, as in PyTorch. None if there is no tensor.

    >>> reduce_to_scalar_loss([torch.ones(3), torch.zeros(2)])
    tensor(0.5000)
    """
    if type(output).__name__ in _LOGITS_ONLY:
        output = output.logits
    return _C.reduce_to_scalar_loss(_plain(output))


def clone_inputs_retaining_gradness(inputs: Iterable[Any]) -> list[Any]:
    """Copies that alias each other and require grad the way the inputs do.

    >>> [copy] = clone_inputs_retaining_gradness([x])
    """
    return _C.clone_inputs_retaining_gradness(list(inputs))


def cast_to_fp64(graph: str | HasCode, inputs: Sequence[Any]) -> tuple[str, list[Any]]:
    """The graph's text and the inputs in float64.

    >>> text, values = cast_to_fp64(graph, [x])
    >>> assay.parse(text)(*values)
    """
    text, values = _C.cast_to_fp64(_text(graph), list(inputs))
    return text, values


_LOGITS_ONLY = ("MaskedLMOutput", "Seq2SeqLMOutput", "CausalLMOutputWithCrossAttentions")


def _same_options(given: Mapping[str, Any]) -> SameOptions:
    options = SameOptions()
    for name, value in given.items():
        if not hasattr(options, name):
            raise TypeError(f"unknown option '{name}'")
        setattr(options, name, value)
    return options


def _text(graph: Any) -> str:
    return graph if isinstance(graph, str) else graph.code


def _program(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program as a function of its inputs that returns what C++ can represent."""

    def call(*inputs: Any) -> Any:
        if getattr(program, "_boxed_call", False):
            return _plain(program(list(inputs)))
        return _plain(program(*inputs))

    return call


def _plain(value: Any) -> Any:
    """The value made of tensors, numbers, strings, lists and dicts with strings as keys."""
    if isinstance(value, torch.Tensor | bool | int | float | str | None):
        return value
    if isinstance(value, list | tuple | collections.deque | torch.nn.ParameterList):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return {repr(item): None for item in value}  # elements are all or nothing, as keys are
    if type(value).__module__ == "numpy":
        return _plain_numpy(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, types.SimpleNamespace) or _is_plain_object(value):
        return {name: _plain(item) for name, item in vars(value).items()}
    return value


def _plain_numpy(value: Any) -> Any:
    """An array as its tensor, a scalar as its text: both equal only to their own kind."""
    name = type(value).__name__
    return {name: torch.as_tensor(value)} if name == "ndarray" else {f"{name}({value})": None}


def _relaxed(value: Any, other: Any) -> Any:
    """A numpy scalar as a Python number if the other value is not a numpy scalar."""

    def is_scalar(candidate: Any) -> bool:
        kind = type(candidate)
        return kind.__module__ == "numpy" and kind.__name__ != "ndarray"

    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        rest = [None] * (len(value) - len(other))
        return [
            _relaxed(item, beside) for item, beside in zip(value, [*other, *rest], strict=False)
        ]
    if isinstance(value, dict) and isinstance(other, dict):
        return {key: _relaxed(item, other.get(key)) for key, item in value.items()}
    return value.item() if is_scalar(value) and not is_scalar(other) else value


def _key(key: Any) -> str:
    return key if isinstance(key, str) else repr(key)


def _is_plain_object(value: Any) -> bool:
    """An object of a class written in Python that only holds attributes, such as a distribution."""
    return type(value).__name__ in ("SquashedNormal", "Boxes", "Normal", "Instances")
