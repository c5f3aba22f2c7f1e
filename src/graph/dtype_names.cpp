#include "graph/dtype_names.h"

#include <algorithm>
#include <array>

#include "assay/error.h"

namespace assay::graph {

namespace {

using c10::ScalarType;

struct DtypeRow {
  ScalarType dtype;
  std::string_view name;
  std::string_view abbreviation;
};

constexpr std::array kDtypes = {
    DtypeRow{ScalarType::Byte, "uint8", "u8"},
    DtypeRow{ScalarType::Char, "int8", "i8"},
    DtypeRow{ScalarType::Short, "int16", "i16"},
    DtypeRow{ScalarType::Int, "int32", "i32"},
    DtypeRow{ScalarType::Long, "int64", "i64"},
    DtypeRow{ScalarType::Half, "float16", "f16"},
    DtypeRow{ScalarType::Float, "float32", "f32"},
    DtypeRow{ScalarType::Double, "float64", "f64"},
    DtypeRow{ScalarType::ComplexHalf, "complex32", "c32"},
    DtypeRow{ScalarType::ComplexFloat, "complex64", "c64"},
    DtypeRow{ScalarType::ComplexDouble, "complex128", "c128"},
    DtypeRow{ScalarType::Bool, "bool", "b8"},
    DtypeRow{ScalarType::BFloat16, "bfloat16", "bf16"},
    DtypeRow{ScalarType::UInt16, "uint16", "u16"},
    DtypeRow{ScalarType::UInt32, "uint32", "u32"},
    DtypeRow{ScalarType::UInt64, "uint64", "u64"},
    DtypeRow{ScalarType::Float8_e5m2, "float8_e5m2", "f8e5m2"},
    DtypeRow{ScalarType::Float8_e4m3fn, "float8_e4m3fn", "f8e4m3fn"},
    DtypeRow{ScalarType::Float8_e5m2fnuz, "float8_e5m2fnuz", "f8e5m2fnuz"},
    DtypeRow{ScalarType::Float8_e4m3fnuz, "float8_e4m3fnuz", "f8e4m3fnuz"},
    DtypeRow{ScalarType::Float8_e8m0fnu, "float8_e8m0fnu", "f8e8m0fnu"},
    DtypeRow{ScalarType::Float4_e2m1fn_x2, "float4_e2m1fn_x2", "f4e2m1fnx2"},
    DtypeRow{ScalarType::Bits1x8, "bits1x8", "b1x8"},
    DtypeRow{ScalarType::Bits2x4, "bits2x4", "b2x4"},
    DtypeRow{ScalarType::Bits4x2, "bits4x2", "b4x2"},
    DtypeRow{ScalarType::Bits8, "bits8", "b8x1"},
    DtypeRow{ScalarType::Bits16, "bits16", "b16x1"},
    DtypeRow{ScalarType::QInt8, "qint8", "qi8"},
    DtypeRow{ScalarType::QUInt8, "quint8", "qu8"},
    DtypeRow{ScalarType::QInt32, "qint32", "qi32"},
};

struct DtypeAlias {
  std::string_view name;
  ScalarType dtype;
};

constexpr std::array kAliases = {
    DtypeAlias{"float", ScalarType::Float},
    DtypeAlias{"double", ScalarType::Double},
    DtypeAlias{"half", ScalarType::Half},
    DtypeAlias{"long", ScalarType::Long},
    DtypeAlias{"int", ScalarType::Int},
    DtypeAlias{"short", ScalarType::Short},
    DtypeAlias{"cfloat", ScalarType::ComplexFloat},
    DtypeAlias{"cdouble", ScalarType::ComplexDouble},
    DtypeAlias{"chalf", ScalarType::ComplexHalf},
};

struct LayoutRow {
  c10::Layout layout;
  std::string_view name;
};

constexpr std::array kLayouts = {
    LayoutRow{c10::kStrided, "strided"},      LayoutRow{c10::kSparse, "sparse_coo"},
    LayoutRow{c10::kSparseCsr, "sparse_csr"}, LayoutRow{c10::kSparseCsc, "sparse_csc"},
    LayoutRow{c10::kSparseBsr, "sparse_bsr"}, LayoutRow{c10::kSparseBsc, "sparse_bsc"},
    LayoutRow{c10::kMkldnn, "_mkldnn"},       LayoutRow{c10::kJagged, "jagged"},
};

struct MemoryFormatRow {
  c10::MemoryFormat format;
  std::string_view name;
};

constexpr std::array kMemoryFormats = {
    MemoryFormatRow{c10::MemoryFormat::Contiguous, "contiguous_format"},
    MemoryFormatRow{c10::MemoryFormat::Preserve, "preserve_format"},
    MemoryFormatRow{c10::MemoryFormat::ChannelsLast, "channels_last"},
    MemoryFormatRow{c10::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
};

// The value of `wanted` in the first row whose `key` is `value`.
template <typename Rows, typename Key, typename Value, typename Wanted>
auto look_up(const Rows& rows, Key key, const Value& value, Wanted wanted) {
  auto found = std::ranges::find(rows, value, key);
  using Result = std::decay_t<decltype(rows.front().*wanted)>;
  return found == rows.end() ? std::nullopt : std::optional<Result>((*found).*wanted);
}

template <typename Found>
auto require(const Found& found, const char* what) {
  if (!found) throw InternalError(std::string("this ") + what + " has no name in Python");
  return *found;
}

}  // namespace

std::string_view dtype_name(ScalarType dtype) {
  return require(look_up(kDtypes, &DtypeRow::dtype, dtype, &DtypeRow::name), "dtype");
}

std::optional<ScalarType> dtype_from_name(std::string_view name) {
  if (auto found = look_up(kDtypes, &DtypeRow::name, name, &DtypeRow::dtype)) return found;
  return look_up(kAliases, &DtypeAlias::name, name, &DtypeAlias::dtype);
}

std::string_view dtype_abbreviation(ScalarType dtype) {
  return require(look_up(kDtypes, &DtypeRow::dtype, dtype, &DtypeRow::abbreviation), "dtype");
}

std::optional<ScalarType> dtype_from_abbreviation(std::string_view text) {
  return look_up(kDtypes, &DtypeRow::abbreviation, text, &DtypeRow::dtype);
}

std::string_view layout_name(c10::Layout layout) {
  return require(look_up(kLayouts, &LayoutRow::layout, layout, &LayoutRow::name), "layout");
}

std::optional<c10::Layout> layout_from_name(std::string_view name) {
  return look_up(kLayouts, &LayoutRow::name, name, &LayoutRow::layout);
}

std::string_view memory_format_name(c10::MemoryFormat format) {
  return require(look_up(kMemoryFormats, &MemoryFormatRow::format, format, &MemoryFormatRow::name),
                 "memory format");
}

std::optional<c10::MemoryFormat> memory_format_from_name(std::string_view name) {
  return look_up(kMemoryFormats, &MemoryFormatRow::name, name, &MemoryFormatRow::format);
}

}  // namespace assay::graph
