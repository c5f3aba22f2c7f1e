#include "aten/trace_keys.h"

#include <ATen/Context.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "assay/error.h"
#include "aten/operator_watch.h"
#include "aten/recorder.h"
#include "aten/value_reads.h"

namespace assay::aten {

namespace {

using Stack = std::vector<c10::IValue>;

thread_local const CallListener* call_listener = nullptr;

c10::DispatchKeySet below(c10::DispatchKeySet keys, c10::DispatchKey key) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
}

// Takes an operator's arguments off the stack, where its caller's values may lie below them.
Stack take_arguments(const c10::OperatorHandle& op, Stack& stack) {
  const auto begin = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack arguments(std::make_move_iterator(begin), std::make_move_iterator(stack.end()));
  stack.erase(begin, stack.end());
  return arguments;
}

void put_results(Stack& stack, Stack& results) {
  stack.insert(stack.end(), std::make_move_iterator(results.begin()),
               std::make_move_iterator(results.end()));
}

bool is_meta(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_meta();
}

void record_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  Recorder* recorder = Recorder::active();
  const c10::DispatchKeySet rest = below(keys, kBelowAutograd);
  // Functionalization asks meta kernels for shapes, with the Python key excluded.
  const bool is_internal =
      c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Python);
  if (is_internal || std::ranges::any_of(*stack, is_meta)) {
    op.redispatchBoxed(rest, stack);
    return;
  }
  if (recorder == nullptr) {
    if (!OperatorWatch::notice(op, *stack)) RefuseValueReadsScope::check(op, *stack);
    const NotTracedScope guard;  // what a kernel does inside is its own affair
    op.redispatchBoxed(rest, stack);
    return;
  }
  Stack own = take_arguments(op, *stack);
  recorder->record(op, rest, own);
  put_results(*stack, own);
}

// oneDNN's recurrent kernels ask below autograd whether a gradient is needed, and keep what
// backward reads in an opaque workspace. Without oneDNN the layer is ordinary operators. Where no
// gradient is needed it stays: a call of its kernel is faster than the operators of every step.
class WithoutMkldnn {
 public:
  WithoutMkldnn() {
    const std::lock_guard lock(mutex());
    if (users()++ == 0) {
      was_enabled() = at::globalContext().userEnabledMkldnn();
      at::globalContext().setUserEnabledMkldnn(false);
    }
  }
  ~WithoutMkldnn() {
    const std::lock_guard lock(mutex());
    if (--users() == 0) at::globalContext().setUserEnabledMkldnn(was_enabled());
  }
  WithoutMkldnn(const WithoutMkldnn&) = delete;
  WithoutMkldnn& operator=(const WithoutMkldnn&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  static int& users() {
    static int count = 0;
    return count;
  }
  static bool& was_enabled() {
    static bool value = true;
    return value;
  }
};

// dropout is `x * noise`, with noise as large as x; native_dropout gives the same numbers and keeps
// a mask of one byte per element.
bool rewrite_dropout(const c10::OperatorHandle& op, Stack& stack) {
  if (op.operator_name().name != "aten::dropout") return false;
  const Stack arguments(stack.end() - 3, stack.end());
  const double probability = arguments[1].toDouble();
  if (!arguments[2].toBool() || probability <= 0 || probability >= 1) return false;
  static const c10::OperatorHandle native =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::native_dropout", "");
  Stack own = arguments;
  native.callBoxed(own);
  stack.resize(stack.size() - 3);
  stack.push_back(own[0]);
  return true;
}

// A tensor of zeros without memory, which derivative formulas make and functionalization does not
// know; the arguments are those of zeros.
bool rewrite_zero_tensor(const c10::OperatorHandle& op, Stack& stack) {
  if (op.operator_name().name != "aten::_efficientzerotensor") return false;
  static const c10::OperatorHandle zeros =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  Stack own = take_arguments(op, stack);
  zeros.callBoxed(own);
  put_results(stack, own);
  return true;
}

// Functionalization takes what `masked_fill` gives for the new value of the `self` of masked_fill_,
// and cannot write it back through the views that led to `self` if its strides are not those of
// `self`. copy_ keeps the strides. Pointwise operators do so by themselves; but of integers they
// may give floats, which eager refuses to write back and functionalization just casts.
bool rewrite_in_place(const c10::OperatorHandle& op, Stack& stack) {
  const std::string& name = op.operator_name().name;
  const auto& parameters = op.schema().arguments();
  if (!op.hasTag(at::Tag::inplace) || !name.ends_with('_') || name == "aten::copy_") return false;
  if (op.hasTag(at::Tag::inplace_view) || op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  const c10::IValue& self = *(stack.end() - static_cast<std::ptrdiff_t>(parameters.size()));
  if (!self.isTensor()) return false;
  const at::ScalarType dtype = self.toTensor().scalar_type();
  const bool is_pointwise = op.hasTag(at::Tag::pointwise);
  if (is_pointwise ? !c10::isIntegralType(dtype, true) : self.toTensor().is_contiguous()) {
    return false;
  }
  const auto functional = c10::Dispatcher::singleton().findSchema(
      {name.substr(0, name.size() - 1), op.operator_name().overload_name});
  if (!functional || functional->schema().arguments().size() != parameters.size()) return false;
  static const c10::OperatorHandle copy =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  Stack own = take_arguments(op, stack);
  Stack copied = {own[0]};
  functional->callBoxed(own);
  const at::ScalarType result = own[0].toTensor().scalar_type();
  TORCH_CHECK(!is_pointwise || c10::canCast(result, dtype), "result type ", result,
              " can't be cast to the desired output type ", dtype);
  copied.push_back(own[0]);
  copied.emplace_back(false);
  copy.callBoxed(copied);
  put_results(stack, copied);
  return true;
}

bool is_recurrent(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name == "aten::lstm" || name == "aten::gru" || name == "aten::rnn_tanh" ||
         name == "aten::rnn_relu";
}

bool requires_gradient(const c10::OperatorHandle& op, const Stack& stack) {
  if (!c10::GradMode::is_enabled()) return false;
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  return std::any_of(stack.end() - count, stack.end(), [](const c10::IValue& argument) {
    if (argument.isTensor()) return argument.toTensor().requires_grad();
    if (!argument.isTensorList()) return false;
    const auto list = argument.toTensorVector();
    return std::ranges::any_of(list, [](const at::Tensor& item) { return item.requires_grad(); });
  });
}

void see_above(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::DispatchKeySet rest = below(keys, kAboveAutograd);
  if (call_listener != nullptr) {
    const CallListener& listener = *call_listener;
    const c10::impl::ExcludeDispatchKeyGuard outermost_only(kAboveAutograd);
    Stack own = take_arguments(op, *stack);
    listener(op, own, [&] { op.redispatchBoxed(rest, &own); });
    put_results(*stack, own);
    return;
  }
  if (Recorder* recorder = Recorder::active()) recorder->overlapping_writes().refuse(op, *stack);
  if (rewrite_dropout(op, *stack) || rewrite_zero_tensor(op, *stack) ||
      rewrite_in_place(op, *stack)) {
    return;
  }
  if (is_recurrent(op) && requires_gradient(op, *stack)) {
    const WithoutMkldnn guard;
    op.redispatchBoxed(rest, stack);
    return;
  }
  op.redispatchBoxed(rest, stack);
}

template <void (*kernel)(const c10::OperatorHandle&, c10::DispatchKeySet, Stack*)>
c10::RegistrationHandleRAII register_key(c10::DispatchKey key) {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(key)) {
    throw UserError(std::string("another library of this process uses the dispatch key ") +
                        c10::toString(key) + ", by which Assay records operators",
                    "load Assay in a process without it");
  }
  return dispatcher.registerFallback(key, c10::KernelFunction::makeFromBoxedFunction<kernel>(),
                                     "assay");
}

}  // namespace

void register_trace_keys() {
  static const c10::RegistrationHandleRAII below_autograd =
      register_key<&record_below>(kBelowAutograd);
  static const c10::RegistrationHandleRAII above_autograd =
      register_key<&see_above>(kAboveAutograd);
}

TraceBelowAutogradScope::TraceBelowAutogradScope()
    : below_(kBelowAutograd), above_(kAboveAutograd) {}

NotTracedScope::NotTracedScope()
    : guard_(c10::DispatchKeySet({kBelowAutograd, kAboveAutograd, c10::DispatchKey::Functionalize,
                                  c10::DispatchKey::AutocastCPU}) |
             c10::autograd_dispatch_keyset_with_ADInplaceOrView) {}

TraceAboveAutogradScope::TraceAboveAutogradScope(const CallListener& listener)
    : above_(kAboveAutograd), saved_(call_listener) {
  call_listener = &listener;
}

TraceAboveAutogradScope::~TraceAboveAutogradScope() { call_listener = saved_; }

}  // namespace assay::aten
