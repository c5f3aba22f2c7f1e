"""Reading and writing parts of tensors, in every form of index."""

from __future__ import annotations

import torch

from capture.harness import call, data, program


@program(call(data(3, 4), 1), call(data(3, 4), 1), call(data(3, 4), -1), graphs=1)
def test_integers(x, i):
    return x[i], x[i, 2], x[0][i], x[-1, -1]


@program(
    call(data(5, 4), 1, 4),
    call(data(5, 4), 1, 4),
    call(data(5, 4), 0, 2),
    call(data(5, 4), -3, None),
    graphs=1,
)
def test_slices(x, start, stop):
    return x[start:stop], x[::2], x[start:stop, 1:], x[:, ::3], x[5:], x[:-1]


@program(call(data(2, 3)), call(data(2, 3)), call(data(4, 3)), graphs=1)
def test_none_and_ellipsis(x):
    return x[None], x[:, None, :], x[..., 0], x[..., None], x[None, ..., 1], x[...]


@program(call(data(4, 3), [0, 2]), call(data(4, 3), [0, 2]), call(data(4, 3), [3, 3, 1]), graphs=1)
def test_lists(x, rows):
    return x[rows], x[:, [0, 1]], x[rows, 0], x[[0, 1], [1, 2]]


@program(
    call(data(4, 3), torch.tensor([0, 2])),
    call(data(4, 3), torch.tensor([1, 1])),
    call(data(4, 3), torch.tensor([[0], [3]])),
    graphs=1,
)
def test_tensors(x, index):
    return x[index], x[:, index % 3], x[index, index % 3], x[index[0]]


@program(call(data(4)), call(data(4)), call(data(5)))
def test_masks(x):
    mask = x > 0
    return x[mask], x[~mask].sum(), x.masked_fill(mask, 0.0), torch.where(mask, x, -x)


@program(call(data(3), True), call(data(3), False), call(data(3), True))
def test_bool_index(x, flag):
    return x[flag], x[torch.tensor(flag)], x[flag, None]


@program(call(data(4, 4), 1.5), call(data(4, 4), 1.5), call(data(4, 4), -2.0))
def test_write_numbers(x, value):
    x[0] = value
    x[1, 2] = value * 2
    x[:, -1] = 0
    x[2:, 1:3] = -value
    return x.sum()


@program(call(data(4, 4), data(4)), call(data(4, 4), data(4)), call(data(4, 4), data(1)))
def test_write_tensors(x, row):
    x[1] = row
    x[:, 2] = row
    x[2:, :] += row
    return x


@program(
    call(data(4, 3), torch.tensor([0, 2])),
    call(data(4, 3), torch.tensor([1, 1])),
    call(data(4, 3), torch.tensor([3, 0])),
)
def test_write_at_tensor_index(x, index):
    x[index] = 1.0
    x[index, 0] = torch.tensor([5.0, 6.0])
    x.index_add_(0, index, torch.ones(2, 3))
    return x


@program(call(data(4), 2.0), call(data(4), 2.0), call(data(6), -1.0))
def test_write_at_mask(x, value):
    x[x > 0] = value
    x[torch.isnan(x)] = 0
    return x


@program(call(data(3, 4)), call(data(3, 4)), call(data(5, 4)))
def test_write_with_ellipsis_and_none(x):
    x[..., 0] = 1
    x[None, 0, 1:] = 2
    x[...] = x * 2
    return x


@program(call(data(4, 4), 2), call(data(4, 4), 2), call(data(4, 4), 3))
def test_slice_objects(x, n):
    window = slice(1, n)
    both = (window, slice(None, None, 2))
    return x[window], x[both], x[(0, slice(n))], window.stop


@program(call(data(6), 2), call(data(6), 2), call(data(6), 9), call(data(6), -9))
def test_out_of_range(x, i):
    y = x + 1
    return y[i], x[1:100]


@program(call(data(3, 3), 1), call(data(3, 3), 1), call(data(3, 3), 4))
def test_too_many_indices(x, n):
    y = x * 2
    return y[(0,) * n]


@program(call(data(2, 3, 4)), call(data(2, 3, 4)), call(data(3, 3, 4)))
def test_mixed_advanced_indexing(x):
    return x[:, [0, 2], 1], x[0, [1, 2], [0, 3]], x[[0, 1], :, 2], x[:, torch.tensor([1]), None]


@program(
    call(data(4, 3), torch.tensor([[0], [1], [2], [0]])),
    call(data(4, 3), torch.tensor([[2], [1], [0], [0]])),
    call(data(2, 3), torch.tensor([[1], [2]])),
)
def test_gather_and_scatter(x, index):
    return (
        x.gather(1, index),
        torch.zeros_like(x).scatter(1, index, 1.0),
        x.take_along_dim(index, 1),
    )


@program(
    call(data(4, 3), torch.tensor([1, 2])),
    call(data(4, 3), torch.tensor([0, 0])),
    call(data(4, 3), torch.tensor([3])),
)
def test_select_functions(x, index):
    return x.index_select(0, index), torch.take(x, index), x.select(1, 0), x.narrow(0, 1, 2)


@program(call(data(3, 3)), call(data(3, 3)), call(data(4, 4)))
def test_triangles_and_diagonals(x):
    return x.tril(), x.triu(1), x.diag(), torch.diag(x[0]), x.diagonal(1)


@program(call(data(3, 4)), call(data(3, 4)), call(data(2, 4)))
def test_delete_of_views_keeps_base(x):
    view = x[0]
    x[0] = 3.0
    del x
    return view


@program(
    call(data(3), torch.tensor(1)), call(data(3), torch.tensor(2)), call(data(3), torch.tensor(0))
)
def test_scalar_tensor_as_index(x, i):
    y = x[i]
    x[i] = 9.0
    return y, x


@program(call(data(2, 3)), call(data(2, 3)), call(data(2, 5)))
def test_swap_of_rows(x):
    x[0], x[1] = x[1].clone(), x[0].clone()
    x[[0, 1]] = x[[1, 0]]
    return x


@program(call(data(4), 0), call(data(4), 1), call(data(4), 2), call(data(4), 3))
def test_moving_index(x, i):
    x[i] += 10
    x[i:] *= 2
    return x[i]
