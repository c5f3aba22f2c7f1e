// Recurrent cells and layers as GPUs have them: fused cells, whose workspace keeps what their
// backward operators read, and the layers of cuDNN and MIOpen.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// The gates of one side, with their bias.
std::vector<at::Tensor> gates_of(const at::Tensor& gates, const Value& bias, std::int64_t count) {
  const std::optional<at::Tensor> given = optional_tensor(bias);
  return (given ? gates.add(*given) : gates).chunk(count, 1);
}

at::Tensor beside(const std::vector<at::Tensor>& parts) {
  return run_tensor("aten::cat", {parts, 1});
}

at::Tensor derivative_of_sigmoid(const at::Tensor& result) {
  return result.mul(result.neg().add(1));
}
at::Tensor derivative_of_tanh(const at::Tensor& result) { return result.mul(result).neg().add(1); }

// (hidden, cell, workspace); the workspace is the four gates.
Value lstm_cell(const BoundArguments& arguments) {
  const auto from_input = gates_of(arguments.tensor("input_gates"), arguments["input_bias"], 4);
  const auto from_hidden = gates_of(arguments.tensor("hidden_gates"), arguments["hidden_bias"], 4);
  const at::Tensor input = from_input[0].add(from_hidden[0]).sigmoid();
  const at::Tensor forget = from_input[1].add(from_hidden[1]).sigmoid();
  const at::Tensor candidate = from_input[2].add(from_hidden[2]).tanh();
  const at::Tensor output = from_input[3].add(from_hidden[3]).sigmoid();
  const at::Tensor cell = forget.mul(arguments.tensor("cx")).add(input.mul(candidate));
  return tuple_of({Operand(output.mul(cell.tanh())).value, Operand(cell).value,
                   Operand(beside({input, forget, candidate, output})).value});
}

struct LstmGradients {
  at::Tensor gates;
  at::Tensor cell;
  Value bias;
};

LstmGradients lstm_gradients(const BoundArguments& arguments) {
  const at::Tensor before = arguments.tensor("cx");
  const at::Tensor active = arguments.tensor("cy").tanh();
  const auto gates = arguments.tensor("workspace").chunk(4, 1);
  const at::Tensor &input = gates[0], &forget = gates[1], &candidate = gates[2], &output = gates[3];
  const auto of_hidden = optional_tensor(arguments["grad_hy"]);
  const auto of_cell = optional_tensor(arguments["grad_cy"]);
  const at::Tensor zeros = run_tensor("aten::zeros_like", {before});
  const at::Tensor hidden = of_hidden.value_or(zeros);
  const at::Tensor cell =
      hidden.mul(output).mul(derivative_of_tanh(active)).add(of_cell.value_or(zeros));
  LstmGradients found;
  found.gates = beside({cell.mul(candidate).mul(derivative_of_sigmoid(input)),
                        cell.mul(before).mul(derivative_of_sigmoid(forget)),
                        cell.mul(input).mul(derivative_of_tanh(candidate)),
                        hidden.mul(active).mul(derivative_of_sigmoid(output))});
  found.cell = cell.mul(forget);
  if (arguments.truth("has_bias")) found.bias = Operand(found.gates.sum(0)).value;
  return found;
}

Value lstm_cell_backward_impl(const BoundArguments& arguments) {
  const LstmGradients found = lstm_gradients(arguments);
  return tuple_of({Operand(found.gates).value, Operand(found.cell).value, found.bias});
}

Value lstm_cell_backward(const BoundArguments& arguments) {
  const LstmGradients found = lstm_gradients(arguments);
  const Value gates = Operand(found.gates).value;
  return tuple_of({gates, gates, Operand(found.cell).value, found.bias, found.bias});
}

// (hidden, workspace); the workspace is the gates, the state before, and the hidden candidate.
Value gru_cell(const BoundArguments& arguments) {
  const at::Tensor before = arguments.tensor("hx");
  const auto from_input = gates_of(arguments.tensor("input_gates"), arguments["input_bias"], 3);
  const auto from_hidden = gates_of(arguments.tensor("hidden_gates"), arguments["hidden_bias"], 3);
  const at::Tensor reset = from_input[0].add(from_hidden[0]).sigmoid();
  const at::Tensor update = from_input[1].add(from_hidden[1]).sigmoid();
  const at::Tensor candidate = from_input[2].add(reset.mul(from_hidden[2])).tanh();
  const at::Tensor hidden = before.sub(candidate).mul(update).add(candidate);
  return tuple_of({Operand(hidden).value,
                   Operand(beside({reset, update, candidate, before, from_hidden[2]})).value});
}

Value gru_cell_backward(const BoundArguments& arguments) {
  const at::Tensor gradient = arguments.tensor("grad_hy");
  const auto kept = arguments.tensor("workspace").chunk(5, 1);
  const at::Tensor &reset = kept[0], &update = kept[1], &candidate = kept[2];
  const at::Tensor of_update =
      gradient.mul(kept[3].sub(candidate)).mul(derivative_of_sigmoid(update));
  const at::Tensor of_candidate =
      gradient.mul(update.neg().add(1)).mul(derivative_of_tanh(candidate));
  const at::Tensor of_reset = of_candidate.mul(kept[4]).mul(derivative_of_sigmoid(reset));
  const at::Tensor inputs = beside({of_reset, of_update, of_candidate});
  const at::Tensor hiddens = beside({of_reset, of_update, of_candidate.mul(reset)});
  std::vector<Value> results = {Operand(inputs).value, Operand(hiddens).value,
                                Operand(gradient.mul(update)).value, Value(), Value()};
  if (arguments.truth("has_bias")) {
    results[3] = Operand(inputs.sum(0)).value;
    results[4] = Operand(hiddens.sum(0)).value;
  }
  return tuple_of(std::move(results));
}

// ---- layers of cuDNN and MIOpen ----

at::Tensor bytes() {
  return run_tensor("aten::empty", {std::vector<std::int64_t>{0}}, {{"dtype", at::kByte}});
}

// (output, hidden, cell, reserve, weights): the last two are the library's own.
Value recurrent_layers(const BoundArguments& arguments) {
  if (!integers_of(arguments["batch_sizes"]).empty()) {
    throw UserError(std::string(arguments.function()) +
                        " with sequences of several lengths has no counterpart on the CPU",
                    "--stack torch on a GPU runs the file");
  }
  const std::vector<at::Tensor> weights = tensors_of(arguments["weight"]);
  const std::int64_t layers = arguments.integer("num_layers");
  const bool is_bidirectional = arguments.truth("bidirectional");
  // Two weights for each layer and direction, besides two biases and a projection.
  const bool has_biases = arguments.integer("weight_stride0") >= 4;
  const Operand input = arguments["input"];
  const Operand train = arguments["train"];
  const Operand dropout = arguments["dropout"];
  const Operand batch_first = arguments["batch_first"];
  enum Mode { kRelu, kTanh, kLstm, kGru };
  const auto mode = arguments.integer("mode");
  std::vector<Value> results;
  if (mode == kLstm) {
    const std::vector<at::Tensor> state = {arguments.tensor("hx"), arguments.tensor("cx")};
    results = unpack(run("aten::lstm", {input, state, weights, has_biases, layers, dropout, train,
                                        is_bidirectional, batch_first}));
  } else if (mode == kRelu || mode == kTanh || mode == kGru) {
    const char* op = mode == kGru    ? "aten::gru"
                     : mode == kTanh ? "aten::rnn_tanh"
                                     : "aten::rnn_relu";
    results = unpack(run(op, {input, arguments["hx"], weights, has_biases, layers, dropout, train,
                              is_bidirectional, batch_first}));
    results.push_back(Operand(bytes()).value);
  } else {
    throw UserError(std::string(arguments.function()) + ": unknown mode " + std::to_string(mode));
  }
  results.push_back(Operand(bytes()).value);
  results.push_back(Operand(bytes()).value);
  return tuple_of(std::move(results));
}

constexpr std::string_view kLstmBackward = "grad_hy, grad_cy, cx, cy, workspace, has_bias";

constexpr std::array kGpuRecurrentFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten._thnn_fused_lstm_cell.default",
     "input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None", lstm_cell},
    {"torch.ops.aten._thnn_fused_lstm_cell_backward_impl.default", kLstmBackward,
     lstm_cell_backward_impl},
    {"torch.ops.aten._thnn_fused_lstm_cell_backward.default", kLstmBackward, lstm_cell_backward},
    {"torch.ops.aten._thnn_fused_gru_cell.default",
     "input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None", gru_cell},
    {"torch.ops.aten._thnn_fused_gru_cell_backward.default", "grad_hy, workspace, has_bias",
     gru_cell_backward},
    {"torch.ops.aten._cudnn_rnn.default",
     "input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers, "
     "batch_first, dropout, train, bidirectional, batch_sizes, dropout_state",
     recurrent_layers},
    {"torch.ops.aten.miopen_rnn.default",
     "input, weight, weight_stride0, hx, cx, mode, hidden_size, num_layers, batch_first, dropout, "
     "train, bidirectional, batch_sizes, dropout_state",
     recurrent_layers},
});

}  // namespace

FunctionTable gpu_recurrent_functions() { return kGpuRecurrentFunctions; }

}  // namespace assay::aten
