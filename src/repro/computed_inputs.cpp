#include "repro/computed_inputs.h"

#include <algorithm>
#include <memory>

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/parse.h"
#include "graph/tensor_syntax.h"
#include "repro/cpu_devices.h"
#include "repro/inputs.h"

namespace assay::repro {

namespace {

using graph::python::dotted_name;
using graph::python::Expression;
using Kind = Expression::Kind;

// Inputs that take more memory than this are not computed.
constexpr std::int64_t kMaxBytes = std::int64_t{256} << 20U;

bool is_small(const graph::TensorAttribute& tensor) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(tensor.meta.dtype));
  for (const graph::SizeExpr& size : tensor.meta.sizes) {
    const auto number = size.constant();
    if (number && __builtin_mul_overflow(bytes, *number, &bytes)) return false;
  }
  return bytes <= kMaxBytes;
}

bool is_name_of_module(std::string_view name) { return name == "torch" || name == "math"; }

}  // namespace

std::string ComputedInputs::text_of(const Expression& expression) const {
  return source_.text.substr(expression.offset, expression.end - expression.offset);
}

void ComputedInputs::top_level(const Statement& statement) {
  if (statement.value == nullptr) return;
  if (statement.kind == Statement::Kind::assign && statement.targets.size() == 1) {
    const Expression& target = *statement.targets[0];
    const Expression& value = *statement.value;
    if (target.kind == Kind::name) {
      assigned_.insert_or_assign(std::string(target.text), &value);
    } else if (target.kind == Kind::tuple && value.kind == Kind::tuple &&
               target.children.size() == value.children.size()) {
      for (std::size_t i = 0; i < target.children.size(); ++i) {
        assigned_.insert_or_assign(dotted_name(*target.children[i]), value.children[i]);
      }
    }
  }
  if (statement.kind == Statement::Kind::assign || statement.kind == Statement::Kind::expression) {
    find_calls(*statement.value);
  }
}

// `mod(x, y)`, `torch.compile(mod)(x, y)`, `mod(*args)`.
void ComputedInputs::find_calls(const Expression& expression) {
  if (expression.kind != Kind::call) return;
  const Expression& callee = *expression.children[0];
  find_calls(callee);
  for (const Expression* argument : expression.children.subspan(1)) find_calls(*argument);
  if (callee.kind != Kind::name && callee.kind != Kind::call) return;
  std::vector<const Expression*> arguments;
  for (const Expression* argument : expression.children.subspan(1)) {
    if (argument->kind == Kind::starred) {
      starred_.push_back(argument->children[0]);
      return;
    }
    arguments.push_back(argument);
  }
  calls_.push_back(std::move(arguments));
}

// What may be written where it is used: numbers, dtypes, sizes, and the device.
bool ComputedInputs::is_constant(const Expression& expression) const {
  switch (expression.kind) {
    case Kind::integer:
    case Kind::floating:
    case Kind::string:
    case Kind::none:
    case Kind::boolean:
    case Kind::attribute:
      return true;
    case Kind::name: {
      const auto found = assigned_.find(expression.text);
      return found != assigned_.end() && found->second != &expression &&
             is_constant(*found->second);
    }
    case Kind::call:
      return dotted_name(*expression.children[0]) == "torch.device";
    case Kind::tuple:
    case Kind::list:
    case Kind::unary:
    case Kind::binary:
      return std::ranges::all_of(expression.children,
                                 [&](const Expression* item) { return is_constant(*item); });
    default:
      return false;
  }
}

// The text of an expression in which every name is a node's or a constant's text; the statements
// that it needs are added to `body`. False if it needs what is not known.
bool ComputedInputs::write_operand(const Expression& expression,
                                   std::map<std::string, std::string>& nodes, std::string& body,
                                   std::string& into) const {
  if (expression.kind == Kind::call) {
    if (dotted_name(*expression.children[0]) == "torch.device") {
      into += "device(type='cpu')";
      return true;
    }
    const auto tensor = [&]() -> std::optional<graph::TensorAttribute> {
      try {
        return graph::tensor_from_syntax(source_, expression);
      } catch (const UserError&) {
        return std::nullopt;  // sizes that are names, and are known once they are written out
      }
    }();
    if (tensor && !is_small(*tensor)) return false;
  }
  if (expression.kind == Kind::name) {
    const std::string name(expression.text);
    if (is_name_of_module(name)) {
      into += name;
      return true;
    }
    if (const auto known = nodes.find(name); known != nodes.end()) {
      if (known->second.empty()) return false;  // it is being written: x = x + 1
      into += known->second;
      return true;
    }
    const auto found = assigned_.find(name);
    // `"cuda" if torch.cuda.is_available() else "cpu"`
    const bool is_chosen = found == assigned_.end() || found->second->kind == Kind::opaque;
    if (is_chosen && name.find("dev") != std::string::npos) {
      into += "device(type='cpu')";
      return true;
    }
    if (found == assigned_.end()) return false;
    std::string text;
    nodes[name];
    if (!write_operand(*found->second, nodes, body, text)) return false;
    if (is_constant(*found->second)) {
      nodes[name] = found->second->kind == Kind::binary ? "(" + text + ")" : text;
    } else {
      nodes[name] = name;
      body += "        " + name + " = " + text + "\n";
    }
    into += nodes[name];
    return true;
  }
  // Everything between the operands stays as it is.
  std::vector<const Expression*> operands(expression.children.begin(), expression.children.end());
  for (const auto& keyword : expression.keywords) operands.push_back(keyword.value);
  std::erase(operands, nullptr);
  std::ranges::sort(operands, {}, &Expression::offset);
  std::size_t at = expression.offset;
  for (const Expression* operand : operands) {
    into += source_.text.substr(at, operand->offset - at);
    if (!write_operand(*operand, nodes, body, into)) return false;
    at = operand->end;
  }
  into += source_.text.substr(at, expression.end - at);
  return true;
}

std::optional<std::vector<aten::Value>> ComputedInputs::compute(
    const std::vector<const Expression*>& arguments) const {
  std::map<std::string, std::string> nodes;
  std::string body;
  std::string results;
  for (const Expression* argument : arguments) {
    if (!write_operand(*argument, nodes, body, results)) return std::nullopt;
    results += ", ";
  }
  ReproFile file;
  file.source = std::make_unique<graph::python::Source>(graph::python::Source{
      source_.file, "class Repro(torch.nn.Module):\n    def forward(self):\n" + body +
                        "        return (" + results + ")\n"});
  try {
    const graph::python::Module module = graph::python::parse_module(*file.source);
    file.graph = graph::parse(*file.source, module);
    move_to_cpu(file);
    seed_generator(0);
    const aten::GraphRunner runner(*file.graph);
    std::vector<aten::Value> values = aten::unpack(runner.run({}));
    for (std::string& note : file.notes) {
      if (std::ranges::find(file_.notes, note) == file_.notes.end()) {
        file_.notes.push_back(std::move(note));
      }
    }
    return values;
  } catch (const UserError&) {
    return std::nullopt;  // the caller says which input is not described
  } catch (const aten::OperatorError&) {
    return std::nullopt;
  }
}

std::optional<std::vector<aten::Value>> ComputedInputs::take(std::size_t count) const {
  for (const Expression* name : starred_) {
    const auto list = assigned_.find(dotted_name(*name));
    if (list == assigned_.end() || list->second->children.size() != count) continue;
    const auto& items = list->second->children;
    if (auto values = compute({items.begin(), items.end()})) return values;
  }
  for (const auto& arguments : calls_) {
    if (arguments.size() != count) continue;
    if (auto values = compute(arguments)) return values;
  }
  return std::nullopt;
}

}  // namespace assay::repro
