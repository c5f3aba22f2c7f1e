#include "capture/unsupported.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "capture/hook.h"
#include "capture/ref.h"

namespace assay::capture {

namespace {

PyObject*& unsupported_class() {
  static PyObject* type = nullptr;
  return type;
}

struct Hint {
  std::string_view reason;    ///< What the reason contains,
  std::string_view function;  ///< or the name of a function on the way to the break.
  std::string_view text;
};

constexpr std::string_view kNotModelled =
    "nothing is known about this function's effects; call it outside of the compiled function, or "
    "use a function of torch instead";

// The first row that fits counts.
constexpr auto hints = std::to_array<Hint>({
    {"'builtins.print'", "",
     "print after the compiled function has returned, or log what it returns"},
    {"a branch depends on the value of a tensor", "",
     "select with torch.where(condition, a, b), or decide outside of the compiled function"},
    {"'item' depends on the values", "",
     "keep it a tensor, or call .item() outside of the compiled function"},
    {"'tolist' ", "", "keep it a tensor, or call .tolist() outside of the compiled function"},
    {"'numpy'", "", "use the function of torch that does what NumPy's does"},
    {"the value of an array", "",
     "keep it an array, or read its value outside of the compiled function"},
    {"'numpy.", "", "use the function of torch that does what NumPy's does"},
    {"depends on the values of tensors", "",
     "its size follows from the data; use a mask (torch.where), or call it outside of the compiled "
     "function"},
    {"follows from values", "",
     "its size follows from the data; use a mask (torch.where), or look at it outside of the "
     "compiled function"},
    {"the value of a tensor is read", "",
     "keep it a tensor, or read the value outside of the compiled function"},
    {"by a tensor's value", "",
     "index a tensor with it (torch.index_select), or read the value outside of the compiled "
     "function"},
    {"", "backward", "call .backward() outside of the compiled function"},
    {"requires_grad_", "", "call .requires_grad_() outside of the compiled function"},
    {"'time.", "", "measure time outside of the compiled function"},
    {"'Random.", "", "draw with torch.rand or torch.randint, or pass the number as an argument"},
    {"'io.open'", "", "read and write files outside of the compiled function"},
    {"warnings.warn'", "", "warn outside of the compiled function"},
    {"graph_break' is marked", "", "remove the call of graph_break()"},
    {"is marked to be run eagerly", "", "remove assay.disable from the function"},
    {"__build_class__", "", "define the class outside of the compiled function"},
    {"", "__init__", "make the object once, outside of the compiled function"},
    {"an import of a module", "", "import the module at the top of the file"},
    {"a loop over a set", "", "loop over a list, a tuple or sorted(...)"},
    {"which is not modelled", "", kNotModelled},
    {"which is not known", "", kNotModelled},
});

bool passes(const std::vector<CodeLine>& stack, std::string_view function) {
  return std::ranges::any_of(stack,
                             [&](const CodeLine& line) { return line.function == function; });
}

}  // namespace

void set_unsupported_class(PyObject* type) {
  Py_INCREF(type);
  unsupported_class() = type;
}

std::string hint_about(const BreakReason& reason, const std::vector<CodeLine>& stack) {
  for (const Hint& hint : hints) {
    const bool fits = hint.function.empty() ? reason.reason.find(hint.reason) != std::string::npos
                                            : passes(stack, hint.function);
    if (fits) return std::string(hint.text);
  }
  return "rewrite this line, or move it out of the compiled function";
}

std::string text_of(const std::vector<CodeLine>& stack) {
  std::string text;
  for (const CodeLine& line : stack) {
    text += "\n  File \"" + line.file + "\", line " + std::to_string(line.line) + ", in " +
            line.function;
    if (!line.text.empty()) text += "\n    " + line.text;
  }
  return text;
}

void raise_unsupported(const BreakReason& reason, const std::vector<CodeLine>& stack) {
  const std::string text = reason.reason + text_of(stack) +
                           "\n  hint: " + hint_about(reason, stack) +
                           "; fullgraph=True does not allow graph breaks, fullgraph=False does";
  // Made here and now: a handler on the way would make it while frames are captured, its __init__
  // among them.
  const NativeFramesScope natively;
  const Ref error = Ref::steal(PyObject_CallFunction(unsupported_class(), "s", text.c_str()));
  if (error) PyErr_SetObject(unsupported_class(), error.get());
}

}  // namespace assay::capture
