#include "repro/symbol_values.h"

#include <algorithm>
#include <set>

#include "graph/annotation.h"

namespace assay::repro {

namespace {

using graph::SizeExpr;
using Written = InputReader::Written;

constexpr std::int64_t kFallback = 4;

std::optional<SizeExpr> parse_size_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    const graph::python::Source source{"expr", text};
    graph::python::Module module;
    return graph::size_from_syntax(*graph::python::parse_expression(source, module));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

class Settler {
 public:
  Settler(ReproFile& file, std::vector<Written>& inputs, const graph::ModuleConstants& constants)
      : file_(file), inputs_(inputs), constants_(constants) {}

  void run() {
    from_expressions();
    from_constants();
    from_storages();
    from_order();
    from_hints();
    from_storages();
    fall_back();
    fill_integers();
  }

 private:
  bool is_known(const std::string& symbol) const { return file_.symbols.contains(symbol); }

  // The symbols that an input's shape mentions, in order.
  std::vector<std::string> symbols_in(const Input& input) const {
    std::vector<std::string> found;
    const auto add = [&](const std::string& name) {
      if (std::ranges::find(found, name) == found.end()) found.push_back(name);
    };
    if (const auto* tensor = std::get_if<TensorInput>(&input)) {
      for (const SizeExpr& size : tensor->meta.sizes) size.for_each_symbol(add);
      for (const SizeExpr& stride : tensor->meta.strides) stride.for_each_symbol(add);
      tensor->storage_offset.for_each_symbol(add);
      file_.storages[tensor->storage].bytes.for_each_symbol(add);
    }
    return found;
  }
  std::vector<std::string> unknown_in(const Input& input) const {
    std::vector<std::string> found = symbols_in(input);
    std::erase_if(found, [&](const std::string& name) { return is_known(name); });
    return found;
  }

  // reader.symint(4, expr='s77'), and reader.symint(4)  # s77
  void from_expressions() {
    for (Written& written : inputs_) {
      auto* integer = std::get_if<IntegerInput>(&written.input);
      if (integer == nullptr) continue;
      // Dynamo calls the placeholder of a size by its symbol.
      if (integer->expression.empty() && is_symbol_name(written.name)) {
        integer->expression = written.name;
      }
      if (!written.has_unknown_integer && is_symbol_name(integer->expression)) {
        file_.symbols.emplace(integer->expression, integer->value);
      }
    }
  }

  // `bs = 128` at the top of the file.
  void from_constants() {
    for (const Written& written : inputs_) {
      for (const std::string& symbol : unknown_in(written.input)) {
        const auto found = constants_.find(symbol);
        if (found == constants_.end()) continue;
        if (const auto* value = found->second.get_if<std::int64_t>()) {
          file_.symbols.emplace(symbol, *value);
        }
      }
    }
  }

  // A contiguous tensor fills its storage: 1600 bytes of f32[s0, 20] are 20 rows.
  void from_storages() {
    for (const Written& written : inputs_) {
      const auto* tensor = std::get_if<TensorInput>(&written.input);
      if (tensor == nullptr) continue;
      const auto bytes = file_.storages[tensor->storage].bytes.constant();
      const auto unknown = unknown_in(written.input);
      if (!bytes || unknown.size() != 1) continue;
      std::int64_t others = static_cast<std::int64_t>(c10::elementSize(tensor->meta.dtype));
      std::size_t mentions = 0;
      for (const SizeExpr& size : tensor->meta.sizes) {
        if (size == SizeExpr::symbol(unknown[0])) {
          ++mentions;
          continue;
        }
        try {
          if (__builtin_mul_overflow(others, size.evaluate(file_.symbols), &others)) others = 0;
        } catch (const UserError&) {
          others = 0;  // an expression of the symbol
        }
      }
      if (mentions == 1 && others > 0 && *bytes % others == 0) {
        file_.symbols.emplace(unknown[0], *bytes / others);
      }
    }
  }

  // AOTAutograd passes the integers that a shape needs before the tensor that has it.
  void from_order() {
    std::vector<IntegerInput*> pending;
    std::vector<const Written*> pending_written;
    std::set<std::string> seen;
    const auto pair = [&](std::size_t at, const std::string& symbol) {
      pending[at]->expression = symbol;
      if (!pending_written[at]->has_unknown_integer) {
        file_.symbols.emplace(symbol, pending[at]->value);
      }
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(at));
      pending_written.erase(pending_written.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (Written& written : inputs_) {
      if (auto* integer = std::get_if<IntegerInput>(&written.input)) {
        if (!integer->expression.empty()) continue;
        pending.push_back(integer);
        pending_written.push_back(&written);
        continue;
      }
      for (const std::string& symbol : symbols_in(written.input)) {
        if (!seen.insert(symbol).second || pending.empty()) continue;
        const auto known = file_.symbols.find(symbol);
        if (known == file_.symbols.end()) {
          pair(0, symbol);
          continue;
        }
        for (std::size_t i = 0; i < pending.size(); ++i) {
          if (pending_written[i]->has_unknown_integer || pending[i]->value != known->second) {
            continue;
          }
          pair(i, symbol);
          break;
        }
      }
    }
  }

  // The graph's own comments: `# Symbol: s77 = 4, VR[2, int_oo]`.
  void from_hints() {
    for (const auto& [name, symbol] : file_.graph->symbols()) {
      if (symbol.hint && !is_known(name)) file_.symbols.emplace(name, *symbol.hint);
    }
  }

  void fall_back() {
    std::string names;
    const auto assume = [&](const std::string& name) {
      if (!file_.symbols.emplace(name, kFallback).second) return;
      names += (names.empty() ? "" : ", ") + name;
    };
    for (const Written& written : inputs_) {
      for (const std::string& symbol : unknown_in(written.input)) assume(symbol);
      const auto* integer = std::get_if<IntegerInput>(&written.input);
      if (integer == nullptr || !written.has_unknown_integer) continue;
      if (const auto size = parse_size_text(integer->expression)) size->for_each_symbol(assume);
    }
    if (!names.empty()) {
      file_.notes.push_back("the file gives no value for the sizes " + names + "; Assay uses " +
                            std::to_string(kFallback));
    }
  }

  void fill_integers() {
    bool has_note = false;
    for (Written& written : inputs_) {
      auto* integer = std::get_if<IntegerInput>(&written.input);
      if (integer == nullptr || !written.has_unknown_integer) continue;
      if (const auto size = parse_size_text(integer->expression)) {
        integer->value = size->evaluate(file_.symbols);
        continue;
      }
      integer->value = kFallback;
      if (has_note) continue;
      has_note = true;
      file_.notes.push_back("the file gives no value for an integer input; Assay uses " +
                            std::to_string(kFallback));
    }
  }

  ReproFile& file_;
  std::vector<Written>& inputs_;
  const graph::ModuleConstants& constants_;
};

}  // namespace

bool is_symbol_name(std::string_view name) {
  const auto digits = name.find_first_of("0123456789");
  return digits != std::string_view::npos && digits >= 1 && digits <= 2 &&
         std::ranges::all_of(name.substr(digits), [](char c) { return c >= '0' && c <= '9'; });
}

void settle_symbols(ReproFile& file, std::vector<Written>& inputs,
                    const graph::ModuleConstants& constants) {
  Settler(file, inputs, constants).run();
}

}  // namespace assay::repro
