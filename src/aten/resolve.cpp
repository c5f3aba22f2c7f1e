#include "aten/resolve.h"

#include <array>
#include <string>
#include <utility>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/operators.h"

namespace assay::aten {

namespace {

// Python modules whose functions are bindings of operators, and how the operators are named.
struct ModuleRule {
  std::string_view module;
  std::string_view operator_prefix;
};

constexpr std::array kModules = {
    ModuleRule{"torch.linalg.", "aten::linalg_"},
    ModuleRule{"torch.special.", "aten::special_"},
    ModuleRule{"torch.fft.", "aten::fft_"},
    ModuleRule{"torch._C._linalg.", "aten::"},
    ModuleRule{"torch._C._special.", "aten::"},
    ModuleRule{"torch._C._fft.", "aten::"},
    ModuleRule{"torch._C._nn.", "aten::"},
    ModuleRule{"torch._C._TensorBase.", "aten::"},
    ModuleRule{"torch.Tensor.", "aten::"},
    ModuleRule{"torch._VF.", "aten::"},
    ModuleRule{"torch._C._VariableFunctions.", "aten::"},
    ModuleRule{"torch.", "aten::"},
};

std::vector<c10::OperatorHandle> overloads_by_rule(std::string_view name) {
  for (const ModuleRule& rule : kModules) {
    if (!name.starts_with(rule.module)) continue;
    const std::string_view rest = name.substr(rule.module.size());
    if (rest.find('.') != std::string_view::npos) continue;
    auto found = overloads(std::string(rule.operator_prefix) + std::string(rest));
    if (!found.empty()) return found;
  }
  return {};
}

UserError needs_python(const std::string& name, const char* kind) {
  return UserError(
      std::string("the ") + kind + " '" + name.substr(0, 200) + "' needs a Python process",
      "it has no equivalent among the operators that run without Python; --stack torch runs the "
      "file with stock PyTorch, or reproduce after AOTAutograd (TORCHDYNAMO_REPRO_AFTER=aot), "
      "where only operators are left");
}

Resolution resolve_operator(const graph::Target& target) {
  const std::string& name = target.name();
  if (const TorchFunction* function = find_torch_function(name)) return {function, {}, {}};
  if (target.is_operator()) {
    const auto handle = find_operator(target);
    if (!handle) throw unknown_operator(name);
    return {nullptr, {*handle}, Dialect::operator_call};
  }
  // `torch.ops.aten.add`: an overload is to be chosen.
  constexpr std::string_view kOps = "torch.ops.";
  std::string qualified = name.substr(kOps.size());
  const auto dot = qualified.find('.');
  if (dot != std::string::npos) qualified.replace(dot, 1, "::");
  auto all = overloads(qualified);
  if (all.empty()) throw unknown_operator(name);
  return {nullptr, std::move(all), Dialect::operator_call};
}

Resolution find_resolution(graph::Op op, const graph::Target& target) {
  const std::string& name = target.name();
  if (op == graph::Op::call_method) {
    if (const TorchFunction* method = find_torch_method(name)) return {method, {}, {}};
    auto found = overloads("aten::" + name);
    if (found.empty() || is_python_method(name)) throw needs_python("Tensor." + name, "method");
    return {nullptr, std::move(found), Dialect::method};
  }
  if (name.starts_with("torch.ops.")) return resolve_operator(target);
  if (const TorchFunction* function = find_torch_function(name)) return {function, {}, {}};
  auto found = overloads_by_rule(name);
  if (found.empty() || is_python_function(name)) throw needs_python(name, "function");
  const bool is_method =
      name.starts_with("torch.Tensor.") || name.starts_with("torch._C._TensorBase.");
  return {nullptr, std::move(found), is_method ? Dialect::method : Dialect::function};
}

}  // namespace

Resolution resolve(graph::Op op, const graph::Target& target) {
  Resolution found = find_resolution(op, target);
  for (const c10::OperatorHandle& overload : found.overloads) check_is_harmless(overload);
  return found;
}

Value call(const Resolution& resolution, const Arguments& arguments, const std::string& name) {
  if (resolution.function != nullptr) {
    return resolution.function->run(
        BoundArguments(resolution.function->name, resolution.function->parameters, arguments));
  }
  return call(match_overload(resolution.overloads, arguments, resolution.dialect, name));
}

}  // namespace assay::aten
