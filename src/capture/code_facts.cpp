#include "capture/code_facts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "capture/hook.h"
#include "capture/ref.h"
#include "capture/source.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// The code unit that a jump leads to, or -1.
int jump_target(const CodeInstruction& instruction) {
  switch (instruction.opcode) {
    case JUMP_FORWARD:
    case FOR_ITER:
    case SEND:
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
      return instruction.next + instruction.argument;
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
      return instruction.next - instruction.argument;
    default:
      return -1;
  }
}

bool falls_through(int opcode) {
  switch (opcode) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case RETURN_VALUE:
    case RAISE_VARARGS:
    case RERAISE:
      return false;
    default:
      return true;
  }
}

struct Handler {
  int start;
  int end;
  int target;
};

// co_exceptiontable: varints of six bits, most significant first.
std::vector<Handler> handlers_of(PyCodeObject* code) {
  std::vector<Handler> handlers;
  const auto* next =
      reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const unsigned char* end = next + PyBytes_GET_SIZE(code->co_exceptiontable);
  const auto number = [&] {
    int value = 0;
    while (next < end) {
      const unsigned char byte = *next++;
      value = (value << 6) | (byte & 63);
      if ((byte & 64) == 0) break;
    }
    return value;
  };
  while (next < end) {
    const int start = number();
    const int length = number();
    const int target = number();
    number();  // depth and lasti
    handlers.push_back({start, start + length, target});
  }
  return handlers;
}

// Code that may ask for its own variables by name.
bool looks_at_frame(PyCodeObject* code) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
    const std::string name = to_string(PyTuple_GET_ITEM(code->co_names, i));
    for (const std::string_view suspect : {"locals", "vars", "eval", "exec", "dir", "_getframe",
                                           "currentframe", "breakpoint", "set_trace"}) {
      if (name == suspect) return true;
    }
  }
  return false;
}

class Liveness {
 public:
  explicit Liveness(PyCodeObject* code)
      : count_(static_cast<std::size_t>(code->co_nlocalsplus)),
        units_(static_cast<std::size_t>(Py_SIZE(code))),
        live_(units_ + 1, std::vector<bool>(count_)) {
    always_.assign(count_, looks_at_frame(code));
    for (std::size_t i = 0; i < count_; ++i) {
      const auto kind = PyBytes_AS_STRING(code->co_localspluskinds)[i];
      if ((kind & (CO_FAST_CELL | CO_FAST_FREE)) != 0) always_[i] = true;
    }
    solve(code);
  }

  const std::vector<bool>& at(int instruction) const {
    return live_[static_cast<std::size_t>(instruction)];
  }

 private:
  void solve(PyCodeObject* code) {
    std::vector<int> starts;
    for (int i = 0; i < static_cast<int>(units_);) {
      starts.push_back(i);
      i = instruction_at(code, i).next;
    }
    const std::vector<Handler> handlers = handlers_of(code);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t s = starts.size(); s-- > 0;) {
        const int start = starts[s];
        const CodeInstruction instruction = instruction_at(code, start);
        std::vector<bool> live = always_;
        const auto merge = [&](int target) {
          const std::vector<bool>& from = live_[static_cast<std::size_t>(target)];
          for (std::size_t i = 0; i < count_; ++i) live[i] = live[i] || from[i];
        };
        if (falls_through(instruction.opcode)) merge(instruction.next);
        if (const int target = jump_target(instruction); target >= 0) merge(target);
        const auto slot = static_cast<std::size_t>(instruction.argument);
        if (instruction.opcode == STORE_FAST) live[slot] = always_[slot];
        if (instruction.opcode == LOAD_FAST || instruction.opcode == DELETE_FAST) live[slot] = true;
        for (const Handler& handler : handlers) {
          if (start >= handler.start && start < handler.end) merge(handler.target);
        }
        if (live != live_[static_cast<std::size_t>(start)]) {
          live_[static_cast<std::size_t>(start)] = std::move(live);
          changed = true;
        }
      }
    }
  }

  std::size_t count_;
  std::size_t units_;
  std::vector<bool> always_;
  std::vector<std::vector<bool>> live_;  // by code unit
};

std::vector<std::string>& library_files() {
  static std::vector<std::string> prefixes;
  return prefixes;
}

}  // namespace

void set_library_files(std::vector<std::string> prefixes) { library_files() = std::move(prefixes); }

bool is_library_code(PyCodeObject* code) {
  static auto* const known = new std::unordered_map<PyObject*, bool>;  // by file name
  const auto [entry, is_new] = known->try_emplace(code->co_filename, false);
  if (is_new) {
    Py_INCREF(code->co_filename);
    const std::string file = to_string(code->co_filename);
    entry->second = file.starts_with("<frozen") ||
                    std::ranges::any_of(library_files(), [&](const std::string& prefix) {
                      return file.starts_with(prefix);
                    });
  }
  return entry->second;
}

bool is_code_of_optimizers(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  return file != nullptr && std::string_view(file).find("/torch/optim/") != std::string_view::npos;
}

CodeInstruction instruction_at(PyCodeObject* code, int index) {
  const _Py_CODEUNIT* units = _PyCode_CODE(code);
  int argument = 0;
  while (true) {
    const int opcode = _PyOpcode_Deopt[_Py_OPCODE(units[index])];
    argument = (argument << 8) | _Py_OPARG(units[index]);
    ++index;
    if (opcode != EXTENDED_ARG) return {opcode, argument, index + _PyOpcode_Caches[opcode]};
  }
}

const std::vector<bool>& live_locals(PyCodeObject* code, int instruction) {
  // Code objects are kept alive, so that an address always means the same code.
  static auto* const known = new std::unordered_map<PyCodeObject*, std::unique_ptr<Liveness>>;
  std::unique_ptr<Liveness>& found = (*known)[code];
  if (found == nullptr) {
    Py_INCREF(code);
    found = std::make_unique<Liveness>(code);
  }
  return found->at(instruction);
}

CodeLine line_of(PyCodeObject* code, int instruction) {
  CodeLine line;
  line.file = to_string(code->co_filename);
  line.function = to_string(code->co_name);
  line.line = PyCode_Addr2Line(code, instruction * static_cast<int>(sizeof(_Py_CODEUNIT)));
  if (line.line < 0) line.line = code->co_firstlineno;  // what sets the frame up has no line
  // linecache keeps whole files; asking it through Python for every node would be slow.
  static auto* const texts = new std::map<std::pair<std::string, int>, std::string>;
  const auto [known, is_new] = texts->try_emplace({line.file, line.line});
  if (is_new) {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    const NativeFramesScope native;
    static PyObject* const module = import_module("linecache");
    const Ref text =
        Ref::steal(module == nullptr ? nullptr
                                     : PyObject_CallMethod(module, "getline", "Oi",
                                                           code->co_filename, line.line));
    if (text && PyUnicode_Check(text.get())) {
      std::string found = to_string(text.get());
      const auto first = found.find_first_not_of(" \t");
      const auto last = found.find_last_not_of(" \t\r\n");
      known->second = first == std::string::npos ? "" : found.substr(first, last - first + 1);
    }
    PyErr_Restore(type, value, traceback);
  }
  line.text = known->second;
  return line;
}

bool is_code_of_ours(PyCodeObject* code) {
  static const std::string* const folder = [] {
    const Ref module = Ref::steal(import_module("assay"));
    const Ref file = Ref::steal(PyObject_GetAttrString(module.get(), "__file__"));
    const std::string name = to_string(file.get());
    return new std::string(name.substr(0, name.rfind('/') + 1));
  }();
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  return file != nullptr && std::string_view(file).starts_with(*folder);
}

}  // namespace assay::capture
