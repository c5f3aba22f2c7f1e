#include "kernels/emit/imports.h"

#include <ATen/Parallel.h>
#include <ATen/native/Math.h>
#include <dlfcn.h>

#include <array>
#include <cmath>

namespace assay::kernels {

namespace {

struct ImportedFunction {
  Op op;
  std::string_view name;  // as in libm: `sin`
  // The suffix of the variant that ATen uses; `-` if it uses none (Sleef's asinh and acosh
  // overflow).
  std::string_view sleef;
  void* single;
  void* twice;
};

float digamma_f32(float x) { return calc_digamma(x); }
double digamma_f64(double x) { return calc_digamma(x); }
float erfinv_f32(float x) { return calc_erfinv(x); }
double erfinv_f64(double x) { return calc_erfinv(x); }

ImportedFunction unary_row(Op op, std::string_view name, std::string_view sleef,
                           float (*single)(float), double (*twice)(double)) {
  return {op, name, sleef, reinterpret_cast<void*>(single), reinterpret_cast<void*>(twice)};
}

ImportedFunction binary_row(Op op, std::string_view name, std::string_view sleef,
                            float (*single)(float, float), double (*twice)(double, double)) {
  return {op, name, sleef, reinterpret_cast<void*>(single), reinterpret_cast<void*>(twice)};
}

const auto& imported_functions() {
  static const auto table = std::to_array<ImportedFunction>({
      unary_row(Op::exp, "exp", "_u10", std::exp, std::exp),
      unary_row(Op::exp2, "exp2", "_u10", std::exp2, std::exp2),
      unary_row(Op::expm1, "expm1", "_u10", std::expm1, std::expm1),
      unary_row(Op::log, "log", "_u10", std::log, std::log),
      unary_row(Op::log2, "log2", "_u10", std::log2, std::log2),
      unary_row(Op::log10, "log10", "_u10", std::log10, std::log10),
      unary_row(Op::log1p, "log1p", "_u10", std::log1p, std::log1p),
      unary_row(Op::sin, "sin", "_u10", std::sin, std::sin),
      unary_row(Op::cos, "cos", "_u10", std::cos, std::cos),
      unary_row(Op::tan, "tan", "_u10", std::tan, std::tan),
      unary_row(Op::asin, "asin", "_u10", std::asin, std::asin),
      unary_row(Op::acos, "acos", "_u10", std::acos, std::acos),
      unary_row(Op::atan, "atan", "_u10", std::atan, std::atan),
      unary_row(Op::sinh, "sinh", "_u10", std::sinh, std::sinh),
      unary_row(Op::cosh, "cosh", "_u10", std::cosh, std::cosh),
      unary_row(Op::tanh, "tanh", "_u10", std::tanh, std::tanh),
      unary_row(Op::asinh, "asinh", "-", std::asinh, std::asinh),
      unary_row(Op::acosh, "acosh", "-", std::acosh, std::acosh),
      unary_row(Op::atanh, "atanh", "_u10", std::atanh, std::atanh),
      unary_row(Op::erf, "erf", "_u10", std::erf, std::erf),
      unary_row(Op::erfc, "erfc", "_u15", std::erfc, std::erfc),
      unary_row(Op::erfinv, "erfinv", "-", erfinv_f32, erfinv_f64),
      unary_row(Op::lgamma, "lgamma", "_u10", std::lgamma, std::lgamma),
      unary_row(Op::digamma, "digamma", "-", digamma_f32, digamma_f64),
      binary_row(Op::pow, "pow", "_u10", std::pow, std::pow),
      binary_row(Op::atan2, "atan2", "_u10", std::atan2, std::atan2),
      binary_row(Op::hypot, "hypot", "_u05", std::hypot, std::hypot),
      binary_row(Op::nextafter, "nextafter", "", std::nextafter, std::nextafter),
      binary_row(Op::fmod, "fmod", "-", std::fmod, std::fmod),
  });
  return table;
}

// libtorch_cpu, which may have been loaded for its users only.
void* libtorch() {
  static void* const handle = [] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) == 0) return (void*)nullptr;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return handle;
}

}  // namespace

std::string import_name(Op op, std::string_view element, int lanes) {
  const bool is_single = element == "f32";
  for (const ImportedFunction& entry : imported_functions()) {
    if (entry.op != op) continue;
    if (lanes == 1) return std::string(entry.name) + "_" + std::string(element);
    if (entry.sleef == "-") return {};
    const int bytes = lanes * (is_single ? 4 : 8);
    if (bytes != 64 && bytes != 32) return {};
    return "Sleef_" + std::string(entry.name) + (is_single ? "f" : "d") + std::to_string(lanes) +
           std::string(entry.sleef);
  }
  return {};
}

void* find_import(const std::string& name) {
  if (name.starts_with("Sleef_")) {
    return libtorch() == nullptr ? nullptr : dlsym(libtorch(), name.c_str());
  }
  for (const ImportedFunction& entry : imported_functions()) {
    if (name == std::string(entry.name) + "_f32") return entry.single;
    if (name == std::string(entry.name) + "_f64") return entry.twice;
  }
  return nullptr;
}

}  // namespace assay::kernels
