// torch.ops.fsdp: what FSDP does within one process before and after its collectives. PyTorch
// registers these operators in Python.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// (this rank's part of the buffer, the buffer), with the tensors one behind the other in the part.
Value copied_in(const std::vector<at::Tensor>& tensors, const at::Tensor& buffer,
                std::int64_t elements, std::int64_t rank) {
  const at::Tensor part = buffer.narrow(0, rank * elements, elements);
  std::int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    part.narrow(0, at, tensor.numel()).copy_(tensor.reshape({-1}));
    at += tensor.numel();
  }
  return tuple_of({Operand(part).value, Operand(buffer).value});
}

// Until PyTorch 2.8 the operator made the buffer itself, and had its dtype at the end.
Value all_gather_copy_in(const BoundArguments& arguments) {
  const std::vector<at::Tensor> tensors = tensors_of(arguments["all_gather_inputs"]);
  const Value& second = arguments["second"];
  if (second.is_leaf() && second.leaf.isTensor()) {
    return copied_in(tensors, second.leaf.toTensor(), arguments.integer("fourth"),
                     arguments.integer("fifth"));
  }
  const std::int64_t elements = arguments.integer("third");
  const std::vector<std::int64_t> size = {elements * arguments.integer("fourth")};
  const at::Tensor buffer = run_tensor("aten::zeros", {size}, {{"dtype", arguments["dtype"]}});
  return copied_in(tensors, buffer, elements, arguments.integer("fifth"));
}

Value split_with_sizes_copy(const BoundArguments& arguments) {
  const at::Tensor all = arguments.tensor("all_gather_output");
  const std::int64_t dim = arguments.integer("dim");
  std::int64_t at = 0;
  const std::vector<at::Tensor> outputs = tensors_of(arguments["out"]);
  const std::vector<std::int64_t> sizes = integers_of(arguments["all_gather_input_split_sizes"]);
  if (outputs.size() != sizes.size()) {
    throw UserError("torch.ops.fsdp.split_with_sizes_copy: expected as many outputs as sizes");
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    outputs[i].copy_(all.narrow(dim, at, sizes[i]));
    at += sizes[i];
  }
  return {};
}

Value chunk_cat(const BoundArguments& arguments) {
  run("aten::_chunk_cat", {arguments["tensors"], arguments["dim"], arguments["num_chunks"]},
      {{"out", arguments["out"]}});
  return {};
}

Value copy(const BoundArguments& arguments) {
  arguments.tensor("tensor").copy_(arguments.tensor("data"));
  return {};
}

constexpr std::array kFsdpFunctions = std::to_array<TorchFunction>({
    {"torch.ops.fsdp.all_gather_copy_in.default",
     "all_gather_inputs, second, third, fourth, fifth, dtype=None, device=None",
     all_gather_copy_in},
    {"torch.ops.fsdp.split_with_sizes_copy.default",
     "all_gather_output, all_gather_input_split_sizes, dim=0, *, out", split_with_sizes_copy},
    {"torch.ops.fsdp.chunk_cat.default", "tensors, dim, num_chunks, *, out", chunk_cat},
    {"torch.ops.fsdp.copy_.default", "tensor, data", copy},
});

}  // namespace

FunctionTable fsdp_functions() { return kFsdpFunctions; }

}  // namespace assay::aten
