#include "kernels/emit/prelude.h"

#include <algorithm>
#include <cctype>

#include "assay/error.h"

namespace assay::kernels {

std::string element_name(c10::ScalarType dtype) {
  using c10::ScalarType;
  switch (dtype) {
    case ScalarType::Bool:
      return "bool";
    case ScalarType::Byte:
      return "u8";
    case ScalarType::Char:
      return "i8";
    case ScalarType::Short:
      return "i16";
    case ScalarType::Int:
      return "i32";
    case ScalarType::Long:
      return "i64";
    case ScalarType::Half:
    case ScalarType::BFloat16:
      return "u16";
    case ScalarType::Float:
      return "f32";
    case ScalarType::Double:
      return "f64";
    default:
      throw InternalError(std::string("kernels have no dtype ") + c10::toString(dtype));
  }
}

std::string memory_name(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Bool ? "u8" : element_name(dtype);
}

int byte_width(c10::ScalarType dtype) { return static_cast<int>(c10::elementSize(dtype)); }

int byte_width(std::string_view element) {
  if (element == "bool") return 1;
  return std::stoi(std::string(element.substr(1))) / 8;
}

bool is_float(std::string_view element) { return element.starts_with('f'); }

std::string integer_of(std::string_view element) { return "i" + std::string(element.substr(1)); }

std::string Prelude::type(std::string_view element, int lanes) {
  if (lanes == 1) return std::string(element);
  std::pair<std::string, int> entry(element, lanes);
  if (std::ranges::find(types_, entry) == types_.end()) types_.push_back(std::move(entry));
  return std::string(element) + "x" + std::to_string(lanes);
}

std::string Prelude::import(const std::string& function) {
  auto found = std::ranges::find(imports_, function);
  const auto position = found - imports_.begin();
  if (found == imports_.end()) imports_.push_back(function);
  return "assay_imports[" + std::to_string(position) + "]";
}

std::string Prelude::text() const {
  // may_alias: a buffer's memory may be used with several dtypes in turn.
  std::string text =
      "typedef unsigned char u8 __attribute__((may_alias));\n"
      "typedef signed char i8 __attribute__((may_alias));\n"
      "typedef short i16 __attribute__((may_alias));\n"
      "typedef unsigned short u16 __attribute__((may_alias));\n"
      "typedef int i32 __attribute__((may_alias));\n"
      "typedef unsigned int u32 __attribute__((may_alias));\n"
      "typedef long i64 __attribute__((may_alias));\n"
      "typedef unsigned long u64 __attribute__((may_alias));\n"
      "typedef float f32 __attribute__((may_alias));\n"
      "typedef double f64 __attribute__((may_alias));\n"
      "#define inline_ static inline __attribute__((always_inline))\n";
  if (!types_.empty()) text += "// Vectors; those with _u may lie at any address.\n";
  for (const auto& [element, lanes] : types_) {
    text += fill_in(
        "typedef $e $v __attribute__((vector_size($b)));\n"
        "typedef $e $v_u __attribute__((vector_size($b), aligned($w), may_alias));\n",
        {{"e", element},
         {"v", element + "x" + std::to_string(lanes)},
         {"b", std::to_string(lanes * byte_width(element))},
         {"w", std::to_string(byte_width(element))}});
  }
  if (!imports_.empty()) {
    text += "// Functions from outside; whoever loads the library fills in their addresses.\n";
    text += "extern \"C\" {\nextern const char assay_import_names[] =";
    for (const std::string& name : imports_) text += "\n    \"" + name + "\\0\"";
    text += ";\nvoid* assay_imports[" + std::to_string(imports_.size()) + "];\n}\n";
  }
  return text + functions_;
}

std::string fill_in(std::string_view text,
                    const std::vector<std::pair<std::string, std::string>>& names) {
  std::string result;
  result.reserve(text.size() * 2);
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    const std::string_view rest = text.substr(at + 1);
    const std::pair<std::string, std::string>* best = nullptr;
    for (const auto& entry : names) {
      if (rest.starts_with(entry.first) &&
          (best == nullptr || entry.first.size() > best->first.size())) {
        best = &entry;
      }
    }
    internal_check(best != nullptr, "a template of generated code names something unknown");
    result += best->second;
    at += 1 + best->first.size();
  }
  return result;
}

}  // namespace assay::kernels
