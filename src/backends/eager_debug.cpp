// Runs a graph and holds every operator to its schema: what is not declared written must not
// change, and a result must not share memory with an argument it is not declared a view of. A
// custom operator that lies about this breaks functionalization, and so autograd and kernels.
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <stdexcept>

#include "aten/operator_record.h"
#include "aten/runner.h"
#include "aten/trace_keys.h"
#include "backends/backends.h"

namespace assay::backends {

namespace {

using at::Tensor;
using Stack = std::vector<c10::IValue>;

std::vector<Tensor> tensors_in(const c10::IValue& value) {
  std::vector<Tensor> found;
  const auto add = [&](const c10::IValue& item) {
    if (!item.isTensor()) return;
    const Tensor& tensor = item.toTensor();
    if (tensor.defined() && tensor.has_storage() && tensor.is_cpu()) found.push_back(tensor);
  };
  add(value);
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) add(item);
  }
  return found;
}

// A tensor among the arguments, and what it held before the call.
struct Snapshot {
  Snapshot(std::size_t position, bool may_be_written, const Tensor& held)
      : argument(position),
        is_written(may_be_written),
        tensor(held),
        storage(held.storage()),
        sizes(held.sizes().vec()),
        strides(held.strides().vec()),
        offset(held.storage_offset()),
        bytes(static_cast<const char*>(storage.data()),
              static_cast<const char*>(storage.data()) + (may_be_written ? 0 : storage.nbytes())) {}

  bool has_changed() const {
    return tensor.sizes() != sizes || tensor.strides() != strides ||
           tensor.storage_offset() != offset || !tensor.storage().is_alias_of(storage) ||
           storage.nbytes() != bytes.size() ||
           (!bytes.empty() && std::memcmp(storage.data(), bytes.data(), bytes.size()) != 0);
  }

  std::size_t argument;
  bool is_written;
  Tensor tensor;
  c10::Storage storage;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset;
  std::vector<char> bytes;
};

[[noreturn]] void report(const c10::OperatorHandle& op, std::size_t argument,
                         const std::string& what) {
  throw std::runtime_error("the operator " + toString(op.operator_name()) +
                           " violates its schema: " + what + " the argument '" +
                           op.schema().arguments()[argument].name() +
                           "'\n  schema: " + toString(op.schema()));
}

void check_call(const c10::OperatorHandle& op, Stack& stack, const std::function<void()>& run) {
  const aten::OperatorRecord& record = aten::operator_record(op);
  std::vector<Snapshot> before;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool is_written = record.writes_argument(i);
    for (const Tensor& tensor : tensors_in(stack[i])) before.emplace_back(i, is_written, tensor);
  }
  run();
  for (const Snapshot& argument : before) {
    const bool shares_written_memory = std::ranges::any_of(before, [&](const Snapshot& other) {
      return other.is_written && other.storage.is_alias_of(argument.storage);
    });
    if (!shares_written_memory && argument.has_changed()) {
      report(op, argument.argument, "undeclared mutation of");
    }
  }
  if (record.view == aten::View::always && !record.declares_view) return;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    for (const Tensor& result : tensors_in(stack[i])) {
      for (const Snapshot& argument : before) {
        if (result.storage().nbytes() == 0 || !result.storage().is_alias_of(argument.storage)) {
          continue;
        }
        const bool is_declared = std::ranges::any_of(before, [&](const Snapshot& other) {
          return other.storage.is_alias_of(argument.storage) &&
                 op.schema().may_contain_alias({c10::SchemaArgType::output, i},
                                               {c10::SchemaArgType::input, other.argument});
        });
        if (!is_declared) {
          report(op, argument.argument,
                 "result " + std::to_string(i) + " is an undeclared alias of");
        }
      }
    }
  }
}

// PyTorch's operators that are made of others may return their argument undeclared (dropout when
// not training); what they call is checked instead.
bool is_made_of_others(const c10::OperatorHandle& op) {
  return op.operator_name().name.starts_with("aten::") &&
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

void check_or_enter(const c10::OperatorHandle& op, Stack& stack, const std::function<void()>& run) {
  if (!is_made_of_others(op)) {
    check_call(op, stack, run);
    return;
  }
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  const c10::impl::ForceDispatchKeyGuard see_inside(keys.included_,
                                                    keys.excluded_.remove(aten::kAboveAutograd));
  run();
}

}  // namespace

CompiledPointer compile_eager_debug(const CompileRequest& request) {
  aten::register_trace_keys();
  return make_compiled_graph(
      [eager = compile_eager(request)](std::span<c10::IValue> inputs, Outputs& outputs) {
        static const aten::CallListener listener = &check_or_enter;
        const aten::TraceAboveAutogradScope seen(listener);
        eager->call(inputs, outputs);
      });
}

}  // namespace assay::backends
