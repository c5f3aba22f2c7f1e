#include "kernels/emit/vectors.h"

#include <array>
#include <utility>
#include <vector>

#include "assay/error.h"

namespace assay::kernels {

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

struct VectorFunction {
  std::string_view name;
  std::string_view text;
};

// $V is the vector, $e its element, $M the mask of the same width, $O a vector of i64 offsets, $n
// the number of lanes. `_part` are for the first `count` lanes; the others are zero.
constexpr auto kVectorFunctions = std::to_array<VectorFunction>({
    {"load", "inline_ $V load_$V(const $e* p) { return *(const $V_u*)p; }\n"},
    {"store", "inline_ void store_$V($e* p, $V v) { *($V_u*)p = v; }\n"},
    {"load_part",
     "inline_ $V load_part_$V(const $e* p, long count) {\n"
     "$masked_load"
     "  $V v = {};\n"
     "  __builtin_memcpy(&v, p, count * sizeof($e));\n"
     "  return v;\n"
     "$masked_end"
     "}\n"},
    {"store_part",
     "inline_ void store_part_$V($e* p, $V v, long count) {\n"
     "$masked_store"
     "  __builtin_memcpy(p, &v, count * sizeof($e));\n"
     "$masked_end"
     "}\n"},
    // Lanes are `stride` apart.
    {"load_strided",
     "inline_ $V load_strided_$V(const $e* p, long stride) {\n"
     "  return $V{$strided};\n"
     "}\n"},
    // Every second element; nothing behind the last one is read.
    {"load_second",
     "inline_ $V load_second_$V(const $e* p) {\n"
     "  return __builtin_shufflevector(*(const $V_u*)p, *(const $V_u*)(p + $n - 1), $evens);\n"
     "}\n"},
    {"load_strided_part",
     "inline_ $V load_strided_part_$V(const $e* p, long stride, long count) {\n"
     "  $V v = {};\n"
     "  for (long k = 0; k < count; ++k) v[k] = p[k * stride];\n"
     "  return v;\n"
     "}\n"},
    {"store_strided",
     "inline_ void store_strided_$V($e* p, long stride, $V v) {\n"
     "  for (int k = 0; k < $n; ++k) p[k * stride] = v[k];\n"
     "}\n"},
    {"store_strided_part",
     "inline_ void store_strided_part_$V($e* p, long stride, $V v, long count) {\n"
     "  for (long k = 0; k < count; ++k) p[k * stride] = v[k];\n"
     "}\n"},
    // Only the lanes of the mask are read.
    {"load_where",
     "static __attribute__((noinline)) $V load_where_$V(const $e* p, long stride, $M mask,\n"
     "                                                  $V otherwise) {\n"
     "  for (int k = 0; k < $n; ++k) {\n"
     "    if (mask[k]) otherwise[k] = p[k * stride];\n"
     "  }\n"
     "  return otherwise;\n"
     "}\n"},
    // The same where these lanes are neighbors, from `first` up to `last`, and so are their
    // elements.
    {"load_range",
     "inline_ $V load_range_$V(const $e* p, long first, long last, $V otherwise) {\n"
     "  first = first < 0 ? 0 : first;\n"
     "  last = last > $n ? $n : last;\n"
     "$masked_range"
     "  for (long k = first; k < last; ++k) otherwise[k] = p[k];\n"
     "  return otherwise;\n"
     "$masked_end"
     "}\n"},
    // Each lane at its own offset.
    {"lookup",
     "inline_ $V lookup_$V(const $e* p, $O at) {\n"
     "  return $V{$lookups};\n"
     "}\n"},
    {"lookup_where",
     "inline_ $V lookup_where_$V(const $e* p, $O at, $M mask, $V otherwise) {\n"
     "  for (int k = 0; k < $n; ++k) {\n"
     "    if (mask[k]) otherwise[k] = p[at[k]];\n"
     "  }\n"
     "  return otherwise;\n"
     "}\n"},
    {"scatter",
     "inline_ void scatter_$V($e* p, $O at, $V v, long count) {\n"
     "  for (long k = 0; k < count; ++k) p[at[k]] = v[k];\n"
     "}\n"},
    // A tile of rows and columns, transposed: row k of `tile` has p[k], p[k + stride], ...
    {"load_tile",
     "static void load_tile_$V($e* tile, long pitch, const $e* p, long stride, long rows,\n"
     "                          long columns) {\n"
     "  if (rows < $n || columns < $n) {\n"
     "    for (long c = 0; c < columns; ++c) {\n"
     "      for (long r = 0; r < rows; ++r) tile[r * pitch + c] = p[c * stride + r];\n"
     "    }\n"
     "    return;\n"
     "  }\n"
     "$transpose"
     "}\n"},
    // Lanes of a mask that are in use: the first `count`.
    {"first_lanes", "inline_ $M first_lanes_$V(long count) { return $iota < ($i)count; }\n"},
    {"any", "inline_ bool any_$V($V mask) {\n$any}\n"},
});

// Exchanges the off-diagonal blocks of every size, from half the tile down to single elements; each
// vector has a name, so that it stays in a register.
std::string transposition(const std::string& vector, int lanes) {
  std::string text;
  auto name = [](int step, int k) { return "v" + std::to_string(step) + "_" + std::to_string(k); };
  for (int c = 0; c < lanes; ++c) {
    text += "  const " + vector + " " + name(0, c) + " = *(const " + vector + "_u*)(p + " +
            std::to_string(c) + " * stride);\n";
  }
  int step = 0;
  for (int half = lanes / 2; half >= 1; half /= 2, ++step) {
    std::string low;
    std::string high;
    for (int k = 0; k < lanes; ++k) {
      const bool is_upper = (k / half) % 2 != 0;
      low += ", " + std::to_string(is_upper ? lanes + k - half : k);
      high += ", " + std::to_string(is_upper ? lanes + k : k + half);
    }
    for (int c = 0; c < lanes; ++c) {
      const bool is_upper = (c / half) % 2 != 0;
      const int first = is_upper ? c - half : c;
      text += "  const " + vector + " " + name(step + 1, c) + " = __builtin_shufflevector(" +
              name(step, first) + ", " + name(step, first + half) + (is_upper ? high : low) +
              ");\n";
    }
  }
  for (int r = 0; r < lanes; ++r) {
    text += "  *(" + vector + "_u*)(tile + " + std::to_string(r) + " * pitch) = " + name(step, r) +
            ";\n";
  }
  return text;
}

// Instructions that touch only the lanes of a mask, where the CPU and the compiler have them.
struct MaskedAccess {
  std::string load;
  std::string range;
  std::string store;
  std::string end;
};

MaskedAccess masked_access(Prelude& prelude, std::string_view element, int lanes) {
  const int width = byte_width(element);
  const int bytes = width * lanes;
  if (bytes < 16 || bytes > 64 || width == 1) return {};
  const std::string size = std::to_string(8 * bytes);
  constexpr std::array<std::string_view, 3> kNames = {"dquhi", "ups", "upd"};
  constexpr std::array<std::string_view, 3> kElements = {"i16", "f32", "f64"};
  constexpr std::array<std::string_view, 3> kPointers = {"short", "float", "double"};
  const std::size_t k = width == 2 ? 0 : width == 4 ? 1 : 2;
  const Names names = {
      {"test", "#if defined(__AVX512BW__) && defined(__AVX512VL__) && !defined(__clang__)\n"},
      {"V", prelude.type(element, lanes)},
      {"W", prelude.type(kElements[k], lanes)},
      {"name", std::string(kNames[k]) + size},
      {"P", std::string(kPointers[k])},
      {"mask", "(1ul << count) - 1"}};
  return {fill_in("$test  return __builtin_bit_cast($V, __builtin_ia32_load$name_mask("
                  "(const $P*)p, $W{}, $mask));\n#else\n",
                  names),
          fill_in("$test  if (first >= last) return otherwise;\n"
                  "  return __builtin_bit_cast($V, __builtin_ia32_load$name_mask((const $P*)p, "
                  "__builtin_bit_cast($W, otherwise), (~0ul >> (64 - last)) & (~0ul << first)));\n"
                  "#else\n",
                  names),
          fill_in("$test  __builtin_ia32_store$name_mask(($P*)p, __builtin_bit_cast($W, v), "
                  "$mask);\n#else\n",
                  names),
          "#endif\n"};
}

constexpr std::string_view kBfloat16ToFloat =
    "inline_ $F bfloat16_to_$F($H x) { return __builtin_bit_cast($F, $wide << 16); }\n";

constexpr std::string_view kFloatToBfloat16 =
    "inline_ $H bfloat16_from_$F($F x) {\n"
    "  $U bits = __builtin_bit_cast($U, x);\n"
    "  $U rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;\n"
    "  $U result = x != x ? $nan : rounded;\n"
    "  return $narrow;\n"
    "}\n";

constexpr std::string_view kHalfToFloat =
    "inline_ $F half_to_$F($H x) {\n"
    "  $I half = $wide;\n"
    "  $I magnitude = (half & 0x7fff) << 13;\n"
    "  $I bits = __builtin_bit_cast($I, __builtin_bit_cast($F, magnitude) * 0x1p112f);\n"
    "  bits |= magnitude >= 0x0f800000 ? $inf : $zero;  // infinity or NaN\n"
    "  return __builtin_bit_cast($F, bits | ((half & 0x8000) << 16));\n"
    "}\n";

constexpr std::string_view kFloatToHalf =
    "inline_ $H half_from_$F($F x) {\n"
    "  $I bits = __builtin_bit_cast($I, x);\n"
    "  $I sign = (bits >> 16) & 0x8000;\n"
    "  bits &= 0x7fffffff;\n"
    "  $I normal = (bits + 0xfff + ((bits >> 13) & 1) - 0x38000000) >> 13;\n"
    "  $I small = __builtin_bit_cast($I, __builtin_bit_cast($F, bits) + 0.5f) - 0x3f000000;\n"
    "  $I result = bits < 0x38800000 ? small : normal;\n"
    "  result = bits >= 0x47800000 ? $inf : result;\n"
    "  result = (bits > 0x7f800000 ? $nan : result) | sign;\n"
    "  return $narrow;\n"
    "}\n";

// For every lane k, `before` + k + `after`, as the initializer of a vector: in a loop over its
// lanes, the compiler would keep the vector in memory.
std::string for_each_lane(int lanes, const std::string& before, const std::string& after) {
  std::string text;
  for (int k = 0; k < lanes; ++k) text += (k == 0 ? "" : ", ") + before + std::to_string(k) + after;
  return text;
}

// The body of `any`: a mask of several registers' halves is folded until two words are left.
std::string fold_mask(Prelude& prelude, std::string_view element, int lanes) {
  const int words = byte_width(element) * lanes / 8;
  if (words < 2) {
    return "  " + std::string(element) + " found = 0;\n  for (int k = 0; k < " +
           std::to_string(lanes) + "; ++k) found |= mask[k];\n  return found != 0;\n";
  }
  const auto name = [](int count) { return "v" + std::to_string(count); };
  std::string text = "  const " + prelude.type("i64", words) + " " + name(words) +
                     " = __builtin_bit_cast(" + prelude.type("i64", words) + ", mask);\n";
  for (int half = words / 2; half >= 2; half /= 2) {
    const std::string whole = name(2 * half);
    std::string low;
    std::string high;
    for (int k = 0; k < half; ++k) {
      low += ", " + std::to_string(k);
      high += ", " + std::to_string(half + k);
    }
    const std::string halves = "__builtin_shufflevector(" + whole + ", " + whole;
    text += "  const " + prelude.type("i64", half) + " " + name(half) + " = " + halves + low +
            ") | " + halves + high + ");\n";
  }
  return text + "  return (v2[0] | v2[1]) != 0;\n";
}

// Elements 0, 2, ... of a vector, then elements 1, 3, ... of another.
std::string every_second(int lanes) {
  std::string numbers;
  for (int k = 0; k < lanes; ++k) {
    numbers += (k == 0 ? "" : ", ") + std::to_string(2 * k < lanes ? 2 * k : 2 * k + 1);
  }
  return numbers;
}

}  // namespace

std::string splat(Prelude& prelude, std::string_view element, int lanes,
                  const std::string& scalar) {
  if (lanes == 1) return scalar;
  const std::string vector = prelude.type(element, lanes);
  const std::string name = "splat_" + vector;
  if (prelude.is_new(name)) {
    // Subtracting keeps -0.
    prelude.add(fill_in("inline_ $V $N($e x) { return x - $V{}; }\n",
                        {{"V", vector}, {"N", name}, {"e", std::string(element)}}));
  }
  return name + "(" + scalar + ")";
}

std::string iota(Prelude& prelude, std::string_view element, int lanes) {
  if (lanes == 1) return "0";
  std::string text = prelude.type(element, lanes) + "{";
  for (int lane = 0; lane < lanes; ++lane) text += (lane == 0 ? "" : ", ") + std::to_string(lane);
  return text + "}";
}

std::string reinterpret(Prelude& prelude, const std::string& value, std::string_view to,
                        int lanes) {
  return "__builtin_bit_cast(" + prelude.type(to, lanes) + ", " + value + ")";
}

std::string convert(Prelude& prelude, const std::string& value, std::string_view from,
                    std::string_view to, int lanes) {
  if (from == to) return value;
  const int from_width = byte_width(from);
  const int to_width = byte_width(to);
  if (lanes == 1) {
    // As ATen: floats become small integers through a larger one.
    const bool through_integer = is_float(from) && !is_float(to) && to_width < 4;
    const std::string inner = through_integer ? (to == "u8" ? "(i64)" : "(i32)") : "";
    return "(" + std::string(to) + ")" + inner + "(" + value + ")";
  }
  auto step = [&](const std::string& from_value, std::string_view type) {
    return "__builtin_convertvector(" + from_value + ", " + prelude.type(type, lanes) + ")";
  };
  if (is_float(from) && is_float(to)) return step(value, to);
  if (is_float(to)) {
    if (from_width >= 4) return step(value, to);
    return step(convert(prelude, value, from, "i32", lanes), to);
  }
  if (is_float(from)) {
    if (to_width >= 4) return step(value, to);
    const char* through = from == "f64" && to == "u8" ? "i64" : "i32";
    return convert(prelude, step(value, through), through, to, lanes);
  }
  if (from_width == to_width) return reinterpret(prelude, value, to, lanes);
  // The compiler knows how to double and to halve the width in registers, and no more.
  std::string result = value;
  int width = from_width;
  while (width != to_width) {
    width = width < to_width ? width * 2 : width / 2;
    const std::string type = std::string(1, from[0]) + std::to_string(8 * width);
    result = step(result, type);
  }
  return from[0] == to[0] ? result : reinterpret(prelude, result, to, lanes);
}

std::string widen_half(Prelude& prelude, const std::string& value, c10::ScalarType from,
                       int lanes) {
  const bool is_half = from == c10::ScalarType::Half;
  const std::string vector = prelude.type("f32", lanes);
  const std::string name = (is_half ? "half_to_" : "bfloat16_to_") + vector;
  if (prelude.is_new(name)) {
    prelude.add(fill_in(is_half ? kHalfToFloat : kBfloat16ToFloat,
                        {{"F", vector},
                         {"H", prelude.type("u16", lanes)},
                         {"I", prelude.type("i32", lanes)},
                         {"wide", convert(prelude, "x", "u16", is_half ? "i32" : "u32", lanes)},
                         {"inf", splat(prelude, "i32", lanes, "0x7f800000")},
                         {"zero", splat(prelude, "i32", lanes, "0")}}));
  }
  return name + "(" + value + ")";
}

std::string narrow_to_half(Prelude& prelude, const std::string& value, c10::ScalarType to,
                           int lanes) {
  const bool is_half = to == c10::ScalarType::Half;
  const std::string vector = prelude.type("f32", lanes);
  const std::string name = (is_half ? "half_from_" : "bfloat16_from_") + vector;
  if (prelude.is_new(name)) {
    const std::string wide = is_half ? "i32" : "u32";
    prelude.add(fill_in(is_half ? kFloatToHalf : kFloatToBfloat16,
                        {{"F", vector},
                         {"H", prelude.type("u16", lanes)},
                         {"I", prelude.type("i32", lanes)},
                         {"U", prelude.type("u32", lanes)},
                         {"narrow", convert(prelude, "result", wide, "u16", lanes)},
                         {"inf", splat(prelude, "i32", lanes, "0x7c00")},
                         {"nan", splat(prelude, wide, lanes, is_half ? "0x7e00" : "0x7fc0u")}}));
  }
  return name + "(" + value + ")";
}

std::string vector_function(Prelude& prelude, std::string_view function, std::string_view element,
                            int lanes) {
  const std::string vector = prelude.type(element, lanes);
  std::string name = std::string(function) + "_" + vector;
  if (prelude.is_new(name)) {
    const std::string integer = integer_of(element);
    for (const VectorFunction& entry : kVectorFunctions) {
      if (entry.name != function) continue;
      const bool has_offsets = entry.text.find("$O") != std::string_view::npos;
      const bool has_masked = entry.text.find("$masked") != std::string_view::npos;
      const MaskedAccess masked =
          has_masked ? masked_access(prelude, element, lanes) : MaskedAccess{};
      prelude.add(
          fill_in(entry.text,
                  {{"V", vector},
                   {"e", std::string(element)},
                   {"M", prelude.type(integer, lanes)},
                   {"i", integer},
                   {"O", has_offsets ? prelude.type("i64", lanes) : ""},
                   {"iota", iota(prelude, integer, lanes)},
                   {"masked_load", masked.load},
                   {"masked_range", masked.range},
                   {"masked_store", masked.store},
                   {"masked_end", masked.end},
                   {"evens", every_second(lanes)},
                   {"transpose", transposition(vector, lanes)},
                   {"strided", for_each_lane(lanes, "p[", " * stride]")},
                   {"lookups", for_each_lane(lanes, "p[at[", "]]")},
                   {"any", function == "any" ? fold_mask(prelude, element, lanes) : std::string()},
                   {"n", std::to_string(lanes)}}));
      return name;
    }
    throw InternalError("no vector function " + std::string(function));
  }
  return name;
}

std::string convert_mask(Prelude& prelude, const std::string& mask, int from_width, int to_width,
                         int lanes) {
  return convert(prelude, mask, "i" + std::to_string(8 * from_width),
                 "i" + std::to_string(8 * to_width), lanes);
}

std::string any_lane(Prelude& prelude, const std::string& mask, int width, int lanes) {
  if (lanes == 1) return mask;
  return vector_function(prelude, "any", "i" + std::to_string(8 * width), lanes) + "(" + mask + ")";
}

}  // namespace assay::kernels
