#include "capture/trace_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/raised.h"
#include "capture/source.h"
#include "config/config.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::capture {

namespace {

using Listing = std::map<int, std::string>;  // by code unit: "LOAD_FAST x"

std::string attribute(PyObject* object, const char* name) {
  const Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  const char* text = value ? PyUnicode_AsUTF8(value.get()) : nullptr;
  return text == nullptr ? "" : text;
}

// What the module `dis` calls the instructions of a function.
Listing disassemble(PyCodeObject* code) {
  const NativeFramesScope native;
  Listing listing;
  const Ref module = Ref::steal(import_module("dis"));
  const Ref found = Ref::steal(
      module ? PyObject_CallMethod(module.get(), "get_instructions", "O", code) : nullptr);
  const Ref all = Ref::steal(found ? PySequence_List(found.get()) : nullptr);
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* instruction = PyList_GET_ITEM(all.get(), i);
    const Ref offset = Ref::steal(PyObject_GetAttrString(instruction, "offset"));
    if (!offset) break;
    const auto unit = PyLong_AsLong(offset.get()) / static_cast<long>(sizeof(_Py_CODEUNIT));
    const std::string argument = attribute(instruction, "argrepr");
    listing[static_cast<int>(unit)] =
        attribute(instruction, "opname") + (argument.empty() ? "" : " " + argument);
  }
  return listing;
}

const std::string& instruction_text(PyCodeObject* code, int instruction) {
  static auto* const known = new std::unordered_map<PyCodeObject*, Listing>;  // guarded by the GIL
  const auto [entry, is_new] = known->try_emplace(code);
  if (is_new) {
    Py_INCREF(code);  // so that its address stays its own
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    Listing listing = disassemble(code);
    if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
    PyErr_Restore(type, value, traceback);
    entry->second = std::move(listing);
  }
  return entry->second[instruction];
}

// As the module `dis` prints it.
std::string disassembly(PyCodeObject* code) {
  const NativeFramesScope native;
  const Ref pending = take_raised();
  const Ref module = Ref::steal(import_module("dis"));
  const Ref bytecode =
      Ref::steal(module ? PyObject_CallMethod(module.get(), "Bytecode", "O", code) : nullptr);
  const Ref text =
      Ref::steal(bytecode ? PyObject_CallMethod(bytecode.get(), "dis", nullptr) : nullptr);
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string made = characters == nullptr ? "" : characters;
  if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
  if (pending) set_raised(pending);
  return made;
}

std::string types_on_stack(const Activation& a) {
  std::string text;
  for (PyObject** slot = a.stack; slot < a.top; ++slot) {
    text += (text.empty() ? "" : ", ");
    text += *slot == nullptr ? "NULL" : Py_TYPE(*slot)->tp_name;
  }
  return text;
}

const char* op_name(graph::Op op) {
  switch (op) {
    case graph::Op::placeholder:
      return "placeholder";
    case graph::Op::get_attr:
      return "get_attr";
    case graph::Op::call_function:
      return "call_function";
    case graph::Op::call_method:
      return "call_method";
    case graph::Op::call_module:
      return "call_module";
    case graph::Op::output:
      return "output";
  }
  return "";
}

std::string joined(const graph::Node& node) {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  for (const graph::Argument& argument : node.args()) add(graph::print(argument));
  for (const graph::NamedArgument& named : node.kwargs()) {
    add(named.name + "=" + graph::print(named.value));
  }
  return text;
}

// From `outermost`, or all if it is null.
std::vector<CodeLine> lines(const Activation& root, const _PyInterpreterFrame* outermost) {
  std::vector<CodeLine> lines;
  const _PyInterpreterFrame* frame = root.thread->cframe->current_frame;
  for (; frame != nullptr; frame = frame->previous) {
    lines.push_back(line_of(frame->f_code, std::max(0, _PyInterpreterFrame_LASTI(frame))));
    if (frame == outermost) break;
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace

void log_step(const char* what, const CodeLine& place) {
  observe::log(observe::Component::dynamo, observe::Level::info, [&] {
    return std::string("Step 1: torchdynamo ") + what + " " + place.function + " " + place.file +
           ":" + std::to_string(place.line);
  });
}

void log_suppressed(const Ref& error, const CodeLine& place) {
  observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
    return "WON'T CONVERT " + place.function + " " + place.file + " line " +
           std::to_string(place.line) + "\ndue to:\n" +
           text_of_raised(error, config::get<"verbose">()) +
           "\nsuppress_errors is set, so it runs eagerly";
  });
}

void log_instruction(const Activation& a) {
  if (!observe::wants(observe::Artifact::trace_bytecode) &&
      !observe::wants(observe::Artifact::trace_source)) {
    return;
  }
  static thread_local std::pair<PyCodeObject*, int> last;  // only compared
  const int line = PyCode_Addr2Line(a.code, a.next * static_cast<int>(sizeof(_Py_CODEUNIT)));
  if (std::exchange(last, {a.code, line}) != std::pair{a.code, line}) {
    observe::artifact(observe::Artifact::trace_source, [&] {
      const CodeLine place = line_of(a.code, a.next);
      return "TRACE starts_line " + place.file + ":" + std::to_string(place.line) + " in " +
             place.function + "\n    " + place.text;
    });
  }
  observe::artifact(observe::Artifact::trace_bytecode, [&] {
    return "TRACE " + instruction_text(a.code, a.next) + " (" + PyUnicode_AsUTF8(a.code->co_name) +
           ":" + std::to_string(line) + ") [" + types_on_stack(a) + "]";
  });
}

void log_bytecode(PyCodeObject* code) {
  observe::artifact(observe::Artifact::bytecode, [&] {
    const CodeLine place = line_of(code, 0);
    return "ORIGINAL BYTECODE " + place.function + " " + place.file + " line " +
           std::to_string(code->co_firstlineno) + "\n" + disassembly(code);
  });
}

std::string graph_sizes(const graph::Graph& graph) {
  std::string text = "TRACED GRAPH TENSOR SIZES";
  for (const graph::Node& node : graph.nodes()) {
    const graph::TensorMeta* tensor = node.meta.value.tensor();
    if (tensor == nullptr) continue;
    std::string sizes;
    for (const auto& size : tensor->sizes) {
      sizes += (sizes.empty() ? "" : ", ") + graph::print(size);
    }
    text += "\n" + node.name() + ": (" + sizes + (tensor->sizes.size() == 1 ? ",)" : ")");
  }
  return text;
}

std::string line_of_effect() {
  if (!observe::wants(observe::Artifact::side_effects)) return "";
  const Activation* a = current_activation();
  const _PyInterpreterFrame* frame = a == nullptr ? nullptr : a->thread->cframe->current_frame;
  while (frame != nullptr && is_library_code(frame->f_code)) frame = frame->previous;
  if (frame == nullptr) return "an unknown line";
  const CodeLine place = line_of(frame->f_code, std::max(0, _PyInterpreterFrame_LASTI(frame)));
  return place.file + ":" + std::to_string(place.line) + " in " + place.function + ": " +
         place.text;
}

std::string describe_effect(Effect::Kind kind, std::string target, PyObject* key,
                            const std::string& line) {
  constexpr std::string_view kDict = ".__dict__";
  std::string name = target.empty() ? "an object made here" : target;
  const std::string item = key != nullptr && is_scalar(key) ? short_repr(key) : "...";
  if (name.ends_with(kDict) && key != nullptr && PyUnicode_Check(key)) {
    name = name.substr(0, name.size() - kDict.size()) + "." + to_string(key);
  } else if (kind == Effect::Kind::set_item || kind == Effect::Kind::delete_item) {
    name += "[" + item + "]";
  }
  const auto what = [&]() -> std::string {
    switch (kind) {
      case Effect::Kind::delete_item:
        return "del " + name;
      case Effect::Kind::append:
        return name + ".append(...)";
      case Effect::Kind::replace:
      case Effect::Kind::call_method:
        return name + " gets other contents";
      case Effect::Kind::set_member:
      case Effect::Kind::set_attribute:
        return "an attribute of " + name + " = ...";
      case Effect::Kind::call:
        return "a function that logs is called";
      case Effect::Kind::set_item:
      case Effect::Kind::set_contents:
      case Effect::Kind::set_grad_mode:
        break;
    }
    return name + " = ...";
  };
  return what() + "\n    " + line;
}

std::string graph_table(const graph::Graph& graph) {
  using Row = std::array<std::string, 4>;
  std::vector<Row> rows = {{"opcode", "name", "target", "args"}};
  for (const graph::Node& node : graph.nodes()) {
    rows.push_back({op_name(node.op()), node.name(), node.target().name(), joined(node)});
  }
  std::array<std::size_t, 3> widths = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += row[3];
  }
  return text;
}

std::vector<CodeLine> lines_since(const Activation& root) { return lines(root, root.frame); }

std::vector<CodeLine> whole_stack(const Activation& root) { return lines(root, nullptr); }

}  // namespace assay::capture
