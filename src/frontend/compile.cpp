// The part of include/assay/compile.h that knows nothing of signatures.
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "assay/compile.h"
#include "assay/error.h"
#include "aten/trace_keys.h"
#include "frontend/compiled_function.h"
#include "frontend/cpp_stack.h"
#include "graph/print.h"

namespace assay::detail {

namespace {

using aten::Value;

bool is_being_recorded() { return c10::impl::tls_is_dispatch_key_included(aten::kAboveAutograd); }

Value to_value(std::vector<at::Tensor> results) {
  std::vector<Value> items;
  items.reserve(results.size());
  for (at::Tensor& result : results) items.emplace_back(c10::IValue(std::move(result)));
  return Value::sequence(Value::Kind::tuple, std::move(items));
}

aten::Function as_function(const Program& program) {
  return [program](const std::vector<Value>& values) {
    std::vector<c10::IValue> inputs;
    inputs.reserve(values.size());
    for (const Value& value : values) inputs.push_back(value.leaf);
    if (!is_being_recorded()) return to_value(program(inputs));
    const frontend::UserProgramScope
        frames;  // walks the stack: only where a place may be asked for
    std::vector<at::Tensor> results = program(inputs);
    if (!std::ranges::all_of(results, [](const at::Tensor& result) { return result.defined(); })) {
      throw TraceError("the program returns an undefined tensor, which a graph cannot return",
                       "return only tensors that were computed");
    }
    return to_value(std::move(results));
  };
}

frontend::FunctionOptions to_function_options(CompileOptions options) {
  frontend::FunctionOptions made;
  made.backend = find_backend(options.backend);
  made.name = std::move(options.name);
  made.fallback = options.fallback;
  made.cache_limit = options.cache_limit;
  made.backend_options = std::move(options.options);
  made.where = &frontend::cpp_stack;
  return made;
}

}  // namespace

struct CompiledProgram::State {
  Program program;
  frontend::CompiledFunction function;
};

CompiledProgram::CompiledProgram(Program program, CompileOptions options) {
  aten::Function function = as_function(program);
  // Not copied into place: a compiled function has a mutex.
  state_.reset(new State{std::move(program),
                         {std::move(function), to_function_options(std::move(options))}});
}

void CompiledProgram::call(std::span<c10::IValue> inputs, Outputs& outputs) const {
  // Part of the graph that is being recorded; a graph inside of it would hide its operators.
  if (is_being_recorded()) {
    for (at::Tensor& result : state_->program(inputs)) outputs.emplace_back(std::move(result));
    return;
  }
  const std::size_t first = outputs.size();
  if (state_->function.call(inputs, outputs).is_tuple()) return;
  // It ran eagerly, and its results are one value.
  const Value result = aten::unpack_value(std::move(outputs[first]));
  outputs.resize(first);
  for (const Value& item : result.items) outputs.push_back(item.leaf);
}

std::size_t CompiledProgram::compilations() const {
  const auto& entries = state_->function.entries();
  return static_cast<std::size_t>(
      std::ranges::count_if(entries, [](const auto& entry) { return entry->graph != nullptr; }));
}

std::vector<std::string> CompiledProgram::graphs() const {
  std::vector<std::string> texts;
  for (const auto& entry : state_->function.entries()) {
    if (entry->graph != nullptr) texts.push_back(graph::print(*entry->graph));
  }
  return texts;
}

}  // namespace assay::detail
