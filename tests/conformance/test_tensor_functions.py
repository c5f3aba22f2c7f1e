"""Functions and methods whose Python form is more than an operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from assay import UserError
from conformance.eager import call, check, difference

X = torch.arange(12.0).view(3, 4)


def method(name: str, *args: Any, **kwargs: Any) -> None:
    check(f".{name}", getattr(torch.Tensor, name), *args, **kwargs)


def function(name: str, *args: Any, **kwargs: Any) -> None:
    check(f"torch.{name}", getattr(torch, name), *args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((torch.float64,), {}),
        ((torch.float64, True), {}),
        ((torch.float64, False, True), {}),
        (("cpu",), {}),
        (("cpu", torch.int32), {}),
        ((torch.device("cpu"), torch.int32, False, True), {}),
        ((torch.ones(1, dtype=torch.bool),), {}),
        ((), {"dtype": torch.float16}),
        ((), {"device": "cpu", "dtype": torch.bool, "copy": True}),
        ((), {"tensor": torch.ones(1, dtype=torch.int8)}),
        ((), {"memory_format": torch.contiguous_format}),
        ((None, torch.float64), {}),
        ((), {}),
        ((3,), {}),
    ],
    ids=str,
)
def test_to(args: Any, kwargs: Any) -> None:
    method("to", X.t(), *args, **kwargs)


def test_to_returns_the_tensor_itself_where_eager_does() -> None:
    assert call(".to", X, torch.float32) is X
    assert call(".to", X, torch.float32, copy=True) is not X
    assert call(".float", X) is X


@pytest.mark.parametrize(
    "name", "float double half bfloat16 int long short char byte bool cpu cfloat cdouble".split()
)
def test_casts(name: str) -> None:
    method(name, X)


def test_type() -> None:
    method("type", X)
    method("type", X, torch.int32)
    method("type", X, "torch.DoubleTensor")


@pytest.mark.parametrize("name", "size stride dim ndimension numel nelement element_size".split())
def test_properties(name: str) -> None:
    found = call(f".{name}", X)
    expected = getattr(X, name)()
    assert found == (tuple(expected) if isinstance(expected, tuple) else expected)


def test_properties_of_dimensions() -> None:
    assert (call(".size", X, 1), call(".size", X, dim=-2), call(".stride", X, 0)) == (4, 3, 4)
    assert call(".is_contiguous", X) is True
    assert call(".is_contiguous", X.t()) is False
    assert call(".item", torch.tensor(3)) == 3
    assert call(".tolist", X) == X.tolist()


@pytest.mark.parametrize(
    "data",
    [
        1,
        2.5,
        True,
        1 + 2j,
        [],
        [[], []],
        [1, 2],
        [True, False],
        [True, 2],
        [1, 2.5],
        [1, 2j],
        [[1, 2], [3, 4]],
        [(1, 2), (3.5, 4)],
        [float("inf"), float("nan")],
        [1e300],
        [2**62 + 1],
        [torch.tensor(1), 2.5],
        [torch.tensor(2, dtype=torch.float64), torch.tensor(1)],
        torch.ones(2, 3),
        [[1, 2], [3]],
        [[1], 2],
        ["a"],
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_tensor_from_data(data: Any) -> None:
    function("tensor", data)
    function("as_tensor", data)
    method("new_tensor", torch.ones(1, dtype=torch.float64), data)
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool):
        function("tensor", data, dtype=dtype)
    function("tensor", data, dtype=torch.float64, requires_grad=True)


def test_tensor_from_data_follows_the_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        function("tensor", [1, 2.5])
        function("full", (2,), 2.5)
    finally:
        torch.set_default_dtype(torch.float32)


def test_factories() -> None:
    function("zeros", 2, 3)
    function("zeros", (2, 3), dtype=torch.int64, requires_grad=False)
    function("ones", size=(2,), requires_grad=True, device="cpu")
    function("full", (2, 2), 3)
    function("full", (2,), True, dtype=torch.float16)
    function("arange", 5)
    function("arange", 1, 10, 2.5, dtype=torch.float64)
    function("linspace", 0, 1, 5, requires_grad=True)
    function("eye", 3, 4)
    function("randn", 2, 3, generator=None)
    function("randint", 0, 9, (4,))
    function("randint", 9, (4,))
    function("full_like", X, 7, dtype=torch.int32)
    function("randint_like", X.clone().requires_grad_(), 9)
    method("new_zeros", X, 2, 3)
    method("new_full", X, (2,), 7, dtype=torch.int64, requires_grad=False)
    method("new_ones", X, (2,), device="cpu", requires_grad=True)


def test_torch_functional() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    function("einsum", "bij,bjk->bik", a, b)
    function("einsum", "bij,bjk->bik", [a, b])
    function("einsum", a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3])
    function("einsum", a, [..., 0, 1], [..., 1, 0])
    function("einsum", "bij,bjk,bkl->bil", a, b, torch.randn(2, 5, 3))
    for size in (2, [1, 3], (2, 2)):
        function("split", X, size, 1)
        method("split", X, size, dim=-1)
    function("split", X, split_size_or_sections=2)
    function("meshgrid", torch.arange(2), torch.arange(3), indexing="ij")
    function("meshgrid", [torch.arange(2), torch.arange(3)], indexing="xy")
    for dims in (1, ([2], [1]), [[1], [0]], 0):
        function("tensordot", a, b if dims == ([2], [1]) else torch.randn(4, 3), dims=dims)
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "other"):
        function("cdist", a, a, compute_mode=mode)
    function("broadcast_tensors", X, torch.ones(4))
    function("cartesian_prod", torch.arange(2), torch.arange(3))
    function("block_diag", X, torch.ones(2, 2))
    function("atleast_2d", torch.tensor(1.0))
    function("atleast_3d", torch.tensor(1.0), X)
    function("unravel_index", torch.tensor([[5, 11]]), (3, 4))
    assert call("torch.broadcast_shapes", (3, 1), (4,), 1) == (3, 4)


@pytest.mark.parametrize("p", ["fro", "nuc", 2, 1, float("inf"), 0.5, None])
@pytest.mark.parametrize("dim", [None, 0, (0, 1), [1]])
def test_norm(p: Any, dim: Any) -> None:
    function("norm", X, p, dim)
    method("norm", X, p, dim, True, torch.float64)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("dim", [None, 0])
def test_unique(inverse: bool, counts: bool, dim: int | None) -> None:
    x = torch.tensor([[1, 2], [1, 2], [0, 2]])
    kwargs = {"return_inverse": inverse, "return_counts": counts, "dim": dim}
    function("unique", x, **kwargs)
    function("unique_consecutive", x, **kwargs)
    method("unique", x, **kwargs)


def test_methods_with_another_order() -> None:
    mask = X > 4
    method("where", X, mask, X * 2)
    method("where", X, mask, 1.5)
    function("where", mask, X, 1.5)
    method("polygamma", X.abs() + 1, 2)
    method("nonzero", X, as_tuple=True)
    function("nonzero", X, as_tuple=True)
    method("hsplit", X, 2)
    method("hsplit", X, 1, 3)
    method("unflatten", X, 1, (2, 2))
    method("requires_grad_", X)


def test_dtypes_as_results() -> None:
    assert call("torch.result_type", X, torch.ones(1, dtype=torch.float64)) is torch.float64
    assert call("torch.promote_types", torch.int8, torch.float16) is torch.float16


def test_gradient_mode() -> None:
    try:
        call("torch._C._set_grad_enabled", False)
        assert not torch.is_grad_enabled()
    finally:
        call("torch._C._set_grad_enabled", True)
    assert torch.is_grad_enabled()


def test_autocast() -> None:
    enter, leave = (f"torch.amp.autocast_mode._{word}_autocast" for word in ("enter", "exit"))
    a = torch.randn(4, 4)
    token = call(enter, "cpu", torch.bfloat16, True, None)
    inner = call(enter, "cpu", None, False, None)
    try:
        assert call("torch.matmul", a, a).dtype is torch.float32
        call(leave, inner)
        assert call("torch.matmul", a, a).dtype is torch.bfloat16
    finally:
        call(leave, token)
    assert call("torch.matmul", a, a).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_checks() -> None:
    call("torch._check", True)
    call("torch._check_is_size", 3)
    call("torch.ops.aten._assert_scalar.default", True, "message")
    with pytest.raises(UserError, match="message"):
        call("torch._check", False, "message")
    with pytest.raises(RuntimeError, match="message"):
        call("torch.ops.aten._assert_scalar.default", False, "message")


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("convert_element_type", (X.t(), torch.float64), {}),
        ("convert_element_type", (X[:, ::2], torch.int32), {}),
        ("fma", (X, X, X), {}),
        ("fma", (X, 2.5, X), {}),
        ("device_put", (X, torch.device("cpu")), {}),
        ("inductor_seeds", (3, torch.device("cpu")), {}),
        ("inductor_seed", (torch.device("cpu"),), {}),
        ("inductor_lookup_seed", (torch.arange(3), 1), {}),
        ("inductor_random", ([3, 4], torch.tensor(1), "rand"), {}),
        ("inductor_random", ([3, 4], torch.tensor(1), "randn"), {}),
        ("inductor_randint", (0, 10, [5], torch.tensor(1)), {}),
        ("inductor_force_stride_order", (X, [1, 3]), {}),
        ("inductor_force_stride_order", (X, [4, 1]), {}),
        ("prepare_softmax_online", (X, 1), {}),
        ("broadcast_in_dim", (torch.ones(4), [3, 4], [1]), {}),
        ("view_of", (X,), {}),
        ("div", (torch.tensor([-7, 7]), torch.tensor([2, 2])), {}),
        ("div", (X, X + 1), {}),
        ("where", (X > 3, X, -X), {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore")
def test_prims(name: str, args: Any, kwargs: Any) -> None:
    import torch._inductor.inductor_prims

    with torch.no_grad():
        operator = getattr(torch.ops.prims, name).default
        check(f"torch.ops.prims.{name}.default", operator, *args, **kwargs)


def test_iota() -> None:
    kwargs = {"start": 2, "step": 3, "dtype": torch.int64, "device": torch.device("cpu")}
    operator = torch.ops.prims.iota.default
    check("torch.ops.prims.iota.default", operator, 5, requires_grad=False, **kwargs)


@pytest.mark.parametrize("dims", [2, 3])
def test_prims_of_max_pooling(dims: int) -> None:
    import torch._inductor.inductor_prims

    x = torch.randn(2, 3, *range(7, 7 + dims))
    lists = [[3, 2, 3][:dims], [2, 2, 1][:dims], [1, 0, 1][:dims], [1, 2, 1][:dims]]
    pool = torch.ops.prims._low_memory_max_pool_with_offsets.default
    check("torch.ops.prims._low_memory_max_pool_with_offsets.default", pool, x, *lists, True)
    _, offsets = pool(x, *lists, True)
    back = torch.ops.prims._low_memory_max_pool_offsets_to_indices.default
    name = "torch.ops.prims._low_memory_max_pool_offsets_to_indices.default"
    check(name, back, offsets, lists[0], list(x.shape[2:]), *lists[1:])


def test_stft() -> None:
    window = torch.hann_window(8)
    signal = torch.randn(2, 32)
    function("stft", signal, 8, 4, window=window, return_complex=True)
    function("stft", signal[0], 8, 4, 8, window, False, return_complex=True)
    spectrum = torch.stft(signal, 8, window=window, return_complex=True)
    method("istft", spectrum, 8, window=window)
    assert (
        difference(
            call("torch.istft", spectrum, 8, window=window), torch.istft(spectrum, 8, window=window)
        )
        == ""
    )
