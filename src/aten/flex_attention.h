/// \file `torch.ops.higher_order.flex_attention` and its backward: attention whose scores and mask
/// are computed by subgraphs, from a score and its four indices. Called by aten/higher_order.cpp.
#pragma once

#include <functional>
#include <vector>

#include "aten/value.h"

namespace assay::aten {

/// Runs a subgraph that is an argument.
using RunSubgraph = std::function<Value(const Value& subgraph, std::vector<Value> inputs)>;

/// flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options={},
/// score_mod_other_buffers=(), mask_mod_other_buffers=()): (output, log2 of the sum of
/// exponentials, largest score). All scores are computed, as eager does: block_mask's blocks only
/// say which ones a GPU may skip.
Value flex_attention(const std::vector<Value>& arguments, const RunSubgraph& run);

/// flex_attention_backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph,
/// joint_graph, block_mask, scale, kernel_options, score_mod_other_buffers,
/// mask_mod_other_buffers): the gradients of query, key, value, and of the buffers.
Value flex_attention_backward(const std::vector<Value>& arguments, const RunSubgraph& run);

}  // namespace assay::aten
