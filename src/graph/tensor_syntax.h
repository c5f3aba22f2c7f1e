/// \file Tensors as a file spells them: `torch.randn([2, 3]).cuda()`, `tensor([1, 2])`,
/// `rand_strided((2, 3), (3, 1), torch.float32, 'cuda')`. Used by graph/module_syntax.h for
/// attributes and by the repro room for inputs that were written by hand.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// The tensor that an expression makes; nothing if it is something else. Throws `UserError` for a
/// call of a known function whose arguments cannot be read.
std::optional<TensorAttribute> tensor_from_syntax(const python::Source& source,
                                                  const python::Expression& expression);

/// The dtype that a conversion behind a tensor or module gives: `.half()`, `.to(torch.float64)`,
/// `.to('cuda', torch.bfloat16)`; nothing for any other call.
std::optional<c10::ScalarType> dtype_of_conversion(const python::Expression& call);

/// True for a call that only moves something to another device: `.cuda()`, `.to('cuda:0')`,
/// `.npu()`.
bool only_moves(const python::Source& source, const python::Expression& call);

}  // namespace assay::graph
