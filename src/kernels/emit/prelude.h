/// \file What kernels of one program share at the top of its text: types, and the functions they
/// use. Nothing that is not used is written. Everything is named by its element type and number of
/// lanes: `f32x16`, `load_f32x16`, `exp_f32x16`; scalars are the same with one lane: `f32`,
/// `exp_f32`.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::kernels {

/// What a value of this dtype is in the text: f32, i64, ...; `bool` for a scalar bool, u16 for the
/// bits of half and bfloat16.
std::string element_name(c10::ScalarType dtype);
/// The same in memory, where a bool is a u8.
std::string memory_name(c10::ScalarType dtype);
int byte_width(c10::ScalarType dtype);
/// Bytes of an element by its name.
int byte_width(std::string_view element);
bool is_float(std::string_view element);
/// `i32` for f32: the signed integer of the same width.
std::string integer_of(std::string_view element);

class Prelude {
 public:
  /// The type's name, which the text then defines.
  std::string type(std::string_view element, int lanes);

  /// Whether a function must be written: true once per name.
  bool is_new(const std::string& name) { return known_.emplace(name, 0).second; }
  /// Adds a definition, after those that it uses.
  void add(std::string text) { functions_ += text; }

  /// A function that is not in the text (see imports.h): an expression for its address, which the
  /// loader fills in.
  std::string import(const std::string& function);

  std::string text() const;

 private:
  std::vector<std::pair<std::string, int>> types_;
  std::unordered_map<std::string, int> known_;
  std::vector<std::string> imports_;
  std::string functions_;
};

/// `text` with `$name` replaced by what `names` says. Names are single letters or words; the
/// longest that fits is taken.
std::string fill_in(std::string_view text,
                    const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace assay::kernels
