#include "kernels/emit/math.h"

#include <vector>

#include "assay/error.h"
#include "kernels/emit/imports.h"
#include "kernels/emit/polynomials.h"
#include "kernels/emit/vectors.h"
#include "kernels/target.h"

namespace assay::kernels {

namespace {

int operand_count(Op op) {
  switch (op) {
    case Op::pow:
    case Op::atan2:
    case Op::hypot:
    case Op::nextafter:
    case Op::fmod:
      return 2;
    case Op::fma:
      return 3;
    default:
      return 1;
  }
}

// A function of the compiler's that is one instruction, on all lanes: the compiler makes one vector
// instruction of the loop.
std::string builtin_name(Op op) {
  switch (op) {
    case Op::sqrt:
      return "sqrt";
    case Op::floor:
      return "floor";
    case Op::ceil:
      return "ceil";
    case Op::round:  // half to even
      return "rint";
    case Op::trunc:
      return "trunc";
    case Op::fma:
      return "fma";
    default:
      return {};
  }
}

std::string parameters(const std::string& type, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) {
    text += (k == 0 ? "" : ", ") + type + " " + std::string(1, static_cast<char>('a' + k));
  }
  return text;
}

std::string arguments(int count, const std::string& subscript) {
  std::string text;
  for (int k = 0; k < count; ++k) {
    text += (k == 0 ? "" : ", ") + std::string(1, static_cast<char>('a' + k)) + subscript;
  }
  return text;
}

std::string lane_loop(const std::string& name, const std::string& type, const std::string& function,
                      int count, int lanes) {
  if (lanes == 1) {
    return "inline_ " + type + " " + name + "(" + parameters(type, count) + ") { return " +
           function + "(" + arguments(count, "") + "); }\n";
  }
  return "inline_ " + type + " " + name + "(" + parameters(type, count) + ") {\n  " + type +
         " v;\n  for (int k = 0; k < " + std::to_string(lanes) + "; ++k) v[k] = " + function + "(" +
         arguments(count, "[k]") + ");\n  return v;\n}\n";
}

void define_import(Prelude& prelude, const std::string& name, Op op, const std::string& element,
                   int lanes) {
  const int count = operand_count(op);
  const std::string type = prelude.type(element, lanes);
  // One by one as in vectors: what a backward computes again must be what the forward computed,
  // whatever the loops of either are (a gradient of `amax` looks for the elements that equal it).
  if (const int width = native_target().vector_bytes >= 32 ? 32 / byte_width(element) : 1;
      lanes == 1 && width > 1 && !import_name(op, element, width).empty()) {
    const std::string vectors = imported_function(prelude, op, element, width);
    std::string values;
    for (int k = 0; k < count; ++k) {
      const std::string value(1, static_cast<char>('a' + k));
      values += (k == 0 ? "" : ", ") + splat(prelude, element, width, value);
    }
    prelude.add("static inline " + type + " " + name + "(" + parameters(type, count) +
                ") { return " + vectors + "(" + values + ")[0]; }\n");
    return;
  }
  const std::string imported = import_name(op, element, lanes);
  if (imported.empty()) {
    internal_check(lanes > 1, "a function of floats has no implementation");
    const std::string scalar = imported_function(prelude, op, element, 1);
    prelude.add(lane_loop(name, type, scalar, count, lanes));
    return;
  }
  std::string types;
  for (int k = 0; k < count; ++k) types += (k == 0 ? "" : ", ") + type;
  prelude.add("static inline " + type + " " + name + "(" + parameters(type, count) +
              ") { return ((" + type + " (*)(" + types + "))" + prelude.import(imported) + ")(" +
              arguments(count, "") + "); }\n");
}

// Sleef's overflow before their results do. ATen's do so, too, but only in whole vectors.
void define_hyperbolic(Prelude& prelude, const std::string& name, Op op, std::string_view element,
                       int lanes) {
  const bool is_single = element == "f32";
  prelude.add(
      fill_in("inline_ $F $N($F x) {\n"
              "  $F root = $exp($half * (x < $zero ? -x : x));\n"
              "  $F far = $half * root * root;\n"
              "  $F near = $near(x);\n"
              "  return x > $limit ? far : x < -$limit ? $sign far : near;\n"
              "}\n",
              {{"F", prelude.type(element, lanes)},
               {"N", name},
               {"exp", float_function(prelude, Op::exp, element, lanes)},
               {"near", imported_function(prelude, op, element, lanes)},
               {"half", is_single ? "0.5f" : "0.5"},
               {"zero", is_single ? "0.0f" : "0.0"},
               {"limit", is_single ? "88.0f" : "709.0"},
               {"sign", op == Op::sinh ? "-" : ""}}));
}

}  // namespace

std::string imported_function(Prelude& prelude, Op op, std::string_view element, int lanes) {
  std::string name = "imported_" + std::string(to_string(op)) + "_" + prelude.type(element, lanes);
  if (prelude.is_new(name)) define_import(prelude, name, op, std::string(element), lanes);
  return name;
}

std::string float_function(Prelude& prelude, Op op, std::string_view element, int lanes) {
  const std::string type = prelude.type(element, lanes);
  std::string name = std::string(to_string(op)) + "_" + type;
  if (!prelude.is_new(name)) return name;
  if (const std::string builtin = builtin_name(op); !builtin.empty()) {
    prelude.add(lane_loop(name, type, "__builtin_" + builtin + (element == "f32" ? "f" : ""),
                          operand_count(op), lanes));
    return name;
  }
  if (op == Op::sinh || op == Op::cosh) {
    define_hyperbolic(prelude, name, op, element, lanes);
  } else if (!define_polynomial(prelude, op, element, lanes, name)) {
    define_import(prelude, name, op, std::string(element), lanes);
  }
  return name;
}

}  // namespace assay::kernels
