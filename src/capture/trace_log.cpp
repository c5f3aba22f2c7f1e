#include "capture/trace_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/raised.h"
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
  const Ref module = Ref::steal(PyImport_ImportModule("dis"));
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
  observe::log(observe::Component::dynamo, observe::Level::debug, [&] {
    const int line = PyCode_Addr2Line(a.code, a.next * static_cast<int>(sizeof(_Py_CODEUNIT)));
    return "TRACE " + instruction_text(a.code, a.next) + " (" + PyUnicode_AsUTF8(a.code->co_name) +
           ":" + std::to_string(line) + ")";
  });
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
