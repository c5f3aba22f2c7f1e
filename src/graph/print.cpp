#include "graph/print.h"

#include <algorithm>
#include <unordered_map>

#include "assay/error.h"
#include "graph/annotation.h"
#include "graph/dtype_names.h"
#include "graph/python_names.h"
#include "graph/python_operators.h"
#include "graph/python_strings.h"
#include "graph/stack_comments.h"

namespace assay::graph {

namespace {

using Form = PythonOperator::Form;

void append(std::string& out, const Argument& argument);

void append_items(std::string& out, const std::vector<Argument>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append(out, items[i]);
  }
}

std::string complex_text(std::complex<double> value) {
  // `complex(re, im)` keeps signed zeros and infinities, which `re+imj` does not.
  return "complex(" + python::float_text(value.real()) + ", " + python::float_text(value.imag()) +
         ")";
}

std::string device_text(c10::Device device) {
  std::string text = "device(type='" + c10::DeviceTypeName(device.type(), true) + "'";
  if (device.has_index()) text += ", index=" + std::to_string(device.index());
  return text + ")";
}

struct ArgumentPrinter {
  std::string& out;

  void operator()(const None&) const { out += "None"; }
  void operator()(bool value) const { out += value ? "True" : "False"; }
  void operator()(std::int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const { out += python::float_text(value); }
  void operator()(std::complex<double> value) const { out += complex_text(value); }
  void operator()(const std::string& value) const { out += python::quote(value); }
  void operator()(c10::ScalarType value) const { (out += "torch.") += dtype_name(value); }
  void operator()(c10::Device value) const { out += device_text(value); }
  void operator()(c10::Layout value) const { (out += "torch.") += layout_name(value); }
  void operator()(c10::MemoryFormat value) const { (out += "torch.") += memory_format_name(value); }
  void operator()(const Ellipsis&) const { out += "..."; }
  void operator()(const QualifiedName& value) const { out += value.name; }
  void operator()(Node* value) const { out += value->name(); }
  void operator()(const List& value) const {
    out += "[";
    append_items(out, value.items);
    out += "]";
  }
  void operator()(const Tuple& value) const {
    out += "(";
    append_items(out, value.items);
    out += value.items.size() == 1 ? ",)" : ")";
  }
  void operator()(const Slice& value) const {
    out += "slice(";
    append_items(out, value.items);
    out += ")";
  }
  void operator()(const SizeExpr& value) const { out += value.str(SizeExpr::Style::python); }
  void operator()(const Dict& value) const {
    out += "{";
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out += ", ";
      out += python::quote(value.keys[i]) + ": ";
      append(out, value.items[i]);
    }
    out += "}";
  }
};

void append(std::string& out, const Argument& argument) {
  std::visit(ArgumentPrinter{out}, argument.value());
}

void append_arguments(std::string& out, const std::vector<Argument>& args, std::size_t first,
                      const std::vector<NamedArgument>& kwargs) {
  out += "(";
  for (std::size_t i = first; i < args.size(); ++i) {
    if (i > first) out += ", ";
    append(out, args[i]);
  }
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (i > 0 || args.size() > first) out += ", ";
    (out += kwargs[i].name) += " = ";
    append(out, kwargs[i].value);
  }
  out += ")";
}

// `self.layer.weight`, or getattr() where a part is not an identifier (`self.layers."0"`).
std::string attribute_path(std::string_view target) {
  std::string path = "self";
  for (std::string_view rest = target; !rest.empty();) {
    const auto dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    if (is_python_identifier(part)) {
      (path += ".") += part;
    } else {
      path.insert(0, "getattr(");
      ((path += ", ") += python::quote(part)) += ")";
    }
  }
  return path;
}

// The operand of an operator; a negative number needs parentheses, `(-2) ** x`, and so does a size.
void append_operand(std::string& out, const Argument& argument) {
  const std::size_t begin = out.size();
  append(out, argument);
  if (out[begin] == '-' || argument.get_if<SizeExpr>() != nullptr) {
    out.insert(begin, "(");
    out += ")";
  }
}

// True if the node can be written with Python's operator syntax; then writes it.
bool append_as_operator(std::string& out, const Node& node) {
  if (!node.kwargs().empty()) return false;
  const auto& args = node.args();
  const std::string& name = node.target().name();
  if (name == "operator.getitem" && args.size() == 2 && args[0].node() != nullptr) {
    append(out, args[0]);
    out += "[";
    append(out, args[1]);
    out += "]";
    return true;
  }
  if (name == "getattr" && args.size() == 2 && args[0].node() != nullptr) {
    const auto* attribute = args[1].get_if<std::string>();
    if (attribute == nullptr || !is_python_identifier(*attribute)) return false;
    append(out, args[0]);
    (out += ".") += *attribute;
    return true;
  }
  const PythonOperator* found = operator_of_function(name);
  if (found == nullptr || found->form == Form::in_place) return false;
  if (found->form == Form::unary) {
    // On a constant the parser would read `-3` as the constant.
    if (args.size() != 1 || args[0].node() == nullptr) return false;
    out += found->symbol;
    append(out, args[0]);
    return true;
  }
  if (args.size() != 2) return false;
  append_operand(out, args[0]);
  ((out += " ") += found->symbol) += " ";
  append_operand(out, args[1]);
  return true;
}

void append_call(std::string& out, const Node& node) {
  switch (node.op()) {
    case Op::call_function:
      if (append_as_operator(out, node)) return;
      out += node.target().name();
      append_arguments(out, node.args(), 0, node.kwargs());
      return;
    case Op::call_method:
      internal_check(!node.args().empty(), "a method call has its object as first argument");
      append(out, node.args()[0]);
      (out += ".") += node.target().name();
      append_arguments(out, node.args(), 1, node.kwargs());
      return;
    case Op::call_module:
      out += attribute_path(node.target().name());
      append_arguments(out, node.args(), 0, node.kwargs());
      return;
    case Op::get_attr:
      out += attribute_path(node.target().name());
      return;
    case Op::placeholder:
      out += node.target().name();
      return;
    case Op::output:
      out += "return ";
      append(out, node.args()[0]);
      return;
  }
}

// In-place forms are statements, after which the node is a second name for the object.
bool append_in_place(std::string& out, const Node& node) {
  if (node.op() != Op::call_function || !node.kwargs().empty()) return false;
  const auto& args = node.args();
  if (args.empty() || args[0].node() == nullptr) return false;
  if (node.target().name() == "operator.setitem" && args.size() == 3) {
    append(out, args[0]);
    out += "[";
    append(out, args[1]);
    out += "] = ";
    append(out, args[2]);
  } else {
    const PythonOperator* found = operator_of_function(node.target().name());
    if (found == nullptr || found->form != Form::in_place || args.size() != 2) return false;
    append(out, args[0]);
    ((out += " ") += found->symbol) += " ";
    append(out, args[1]);
  }
  out += ";  ";
  return true;
}

// A comment must stay on its line, whatever the user's file is called.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, const PrintOptions& options, std::string& out)
      : graph_(graph), options_(options), out_(out) {}

  void run() {
    for (const Attribute& attribute : graph_.attributes()) {
      if (const Graph* subgraph = attribute.subgraph()) {
        GraphPrinter(*subgraph, options_, out_).run();
        out_ += "\n\n";
      }
    }
    out_ += "class " + graph_.name() + "(torch.nn.Module):\n";
    constructor();
    out_ += "\n    def forward(self";
    for (const Node* placeholder : graph_.placeholders()) parameter(*placeholder);
    out_ += "):\n";
    symbols();
    tangents();
    find_last_uses();
    for (const Node& node : graph_.nodes()) statement(node);
  }

 private:
  void constructor() {
    out_ += "    def __init__(self) -> None:\n        super().__init__()\n";
    for (const Attribute& attribute : graph_.attributes()) {
      std::visit([&](const auto& value) { attribute_line(attribute.name, value); },
                 attribute.value);
    }
  }

  void attribute_line(const std::string& name, const std::shared_ptr<const Graph>& value) {
    out_ += "        self." + name + " = " + value->name() + "()\n";
  }
  void attribute_line(const std::string& name, const MissingSubgraph& value) {
    out_ += "        self." + name + " = " + value.text + "\n";
  }
  void attribute_line(const std::string& name, const ModuleAttribute& value) {
    out_ += "        self." + name + " = " + module_text(value) + "\n";
  }
  // Members are written as repr() does: by name, so that gaps and repeats need no words.
  static std::string module_text(const ModuleAttribute& value) {
    std::string text = value.constructor;
    append_arguments(text, value.args, 0, value.kwargs);
    if (value.members != nullptr) {
      text.pop_back();
      for (const ModuleMember& member : *value.members) {
        if (!text.ends_with('(')) text += " ";
        text += "(" + member.name + "): " + module_text(member.module);
      }
      text += ")";
    }
    if (value.dtype) text += ".to(torch." + std::string(dtype_name(*value.dtype)) + ")";
    return value.is_training ? text : text + ".eval()";
  }
  void attribute_line(const std::string& name, const TensorAttribute& value) {
    std::string tensor = tensor_text(value);
    if (value.is_parameter) {
      tensor = "torch.nn.Parameter(" + tensor +
               (value.meta.requires_grad ? ")" : ", requires_grad=False)");
      out_ += "        self." + name + " = " + tensor + "\n";
    } else {
      out_ += "        self.register_buffer('" + name + "', " + tensor + ")\n";
    }
  }
  static std::string tensor_text(const TensorAttribute& value) {
    std::string sizes = "[";
    for (std::size_t i = 0; i < value.meta.sizes.size(); ++i) {
      sizes += (i > 0 ? ", " : "") + value.meta.sizes[i].str();
    }
    sizes += "]";
    const std::string dtype = ", dtype=torch." + std::string(dtype_name(value.meta.dtype)) + ")";
    const std::string device =
        value.meta.device.is_cpu() ? "" : ".to('" + value.meta.device.str() + "')";
    switch (value.fill) {
      case TensorAttribute::Fill::values:
        return "torch.tensor(" + print(value.values) + dtype + device;
      case TensorAttribute::Fill::randn:
        return "torch.randn(" + sizes + dtype + device;
      case TensorAttribute::Fill::zeros:
        return "torch.zeros(" + sizes + dtype + device;
      case TensorAttribute::Fill::constant:
        return "torch.full(" + sizes + ", " + python::float_text(value.low) + dtype + device;
      case TensorAttribute::Fill::uniform:
        if (!c10::isFloatingType(value.meta.dtype)) {
          return "torch.randint(" + std::to_string(static_cast<std::int64_t>(value.low)) + ", " +
                 std::to_string(static_cast<std::int64_t>(value.high)) + ", " + sizes + dtype +
                 device;
        }
        return "torch.empty(" + sizes + dtype + ".uniform_(" + python::float_text(value.low) +
               ", " + python::float_text(value.high) + ")" + device;
    }
    throw InternalError("unknown fill of a tensor attribute");
  }

  void parameter(const Node& node) {
    (out_ += ", ") += node.target().name();
    annotation(node);
    if (!node.args().empty()) {
      out_ += " = ";
      append(out_, node.args()[0]);
    }
  }

  void symbols() {
    for (const auto& [name, symbol] : graph_.symbols()) {
      (out_ += "        # Symbol: ") += symbol_text(name, symbol) + "\n";
    }
  }

  // Stock knows a tangent by its name; only where that is wrong the text has to say it.
  void tangents() {
    const auto placeholders = graph_.placeholders();
    const auto is_clear = [](const Node* node) {
      return is_tangent_name(node->target().name()) == (node->meta.role == InputRole::tangent);
    };
    if (std::ranges::all_of(placeholders, is_clear)) return;
    out_ += "        # Tangents:";
    for (const Node* node : placeholders) {
      if (node->meta.role == InputRole::tangent) (out_ += " ") += node->target().name();
    }
    out_ += "\n";
  }

  void annotation(const Node& node) {
    if (!options_.metadata || !node.meta.value.known()) return;
    ((out_ += ": \"") += annotation_text(node.meta.value)) += "\"";
  }

  // FX releases a value in the statement of its last use.
  void find_last_uses() {
    if (!options_.releases) return;
    std::unordered_map<const Node*, bool> seen;
    for (auto node = graph_.nodes().rbegin(); node != graph_.nodes().rend(); ++node) {
      std::vector<const Node*>& last = released_by_[&*node];
      node->for_each_input([&](const Node& input) {
        if (seen.emplace(&input, true).second) last.push_back(&input);
      });
      if (node->users().empty() && node->is_call()) last.push_back(&*node);
    }
  }

  void comments(const Node& node) {
    if (!options_.stacks) return;
    if (node.meta.stack == current_stack_ && node.meta.provenance == current_provenance_) return;
    out_ += "\n";
    for (const StackFrame& frame : node.meta.stack) {
      out_ += "        # File: " + one_line(frame.file) + ":" + std::to_string(frame.line) +
              " in " + one_line(frame.function);
      if (!frame.text.empty()) out_ += ", code: " + one_line(frame.text);
      out_ += "\n";
    }
    if (node.meta.stack.empty()) {
      out_ += "        # No stacktrace found for following nodes\n";
    }
    if (const auto names = node.meta.provenance.names(); !names.empty()) {
      out_ += "        # From:";
      for (const std::string& name : names) out_ += " " + one_line(name);
      out_ += "\n";
    }
    current_stack_ = node.meta.stack;
    current_provenance_ = node.meta.provenance;
  }

  void statement(const Node& node) {
    if (node.op() == Op::placeholder) {
      if (node.name() != node.target().name()) {
        out_ += "        " + node.name() + " = " + node.target().name() + "\n";
      }
      return;
    }
    comments(node);
    out_ += "        ";
    if (node.op() == Op::output) {
      append_call(out_, node);
      out_ += "\n";
      return;
    }
    if (append_in_place(out_, node)) {
      out_ += node.name();
      annotation(node);
      out_ += " = ";
      append(out_, node.args()[0]);
    } else {
      out_ += node.name();
      annotation(node);
      out_ += " = ";
      append_call(out_, node);
    }
    releases(node);
    out_ += "\n";
  }

  void releases(const Node& node) {
    auto found = released_by_.find(&node);
    if (found == released_by_.end() || found->second.empty()) return;
    out_ += ";  ";
    for (const Node* released : found->second) (out_ += released->name()) += " = ";
    out_ += "None";
  }

  const Graph& graph_;
  const PrintOptions& options_;
  std::string& out_;
  std::unordered_map<const Node*, std::vector<const Node*>> released_by_;
  StackTrace current_stack_;
  Provenance current_provenance_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  out.reserve(graph.size() * 128 + 256);
  GraphPrinter(graph, options, out).run();
  return out;
}

std::string print(const Argument& argument) {
  std::string out;
  append(out, argument);
  return out;
}

std::string print_call(const Node& node) {
  std::string out;
  append_call(out, node);
  return out;
}

}  // namespace assay::graph
