#include "kernels/emit/polynomials.h"

#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "kernels/emit/coefficients.h"
#include "kernels/emit/math.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

// One vector holds a coefficient for all 16 points, and one instruction looks 16 of them up.
constexpr std::string_view kErfByTable =
    "  $I sign = __builtin_bit_cast($I, x) & $sign_bit;\n"
    "  $F a = __builtin_bit_cast($F, __builtin_bit_cast($I, x) ^ sign);\n"
    "  a = a > $four ? $four : a;\n"
    "  $F shifted = $madd(a, $per_step, $shift);\n"
    "  $I k = __builtin_bit_cast($I, shifted);\n"
    "  $F t = $madd(shifted - $shift, $minus_step, a);\n"
    "  $F q = $look_up($table5, k);\n"
    "  q = $madd(q, t, $look_up($table4, k));\n"
    "  q = $madd(q, t, $look_up($table3, k));\n"
    "  q = $madd(q, t, $look_up($table2, k));\n"
    "  q = $madd(q, t, $look_up($table1, k));\n"
    "  q = $madd(q, t, $look_up($table0, k) + t);\n"
    "  return __builtin_bit_cast($F, __builtin_bit_cast($I, q) | sign);\n";

// Turns y into n and p, for which exp(y) = 2^n * (1 + p).
constexpr std::string_view kExpCore =
    "  $F shifted = $madd(y, $log2e, $shift);\n"
    "  $I n = __builtin_bit_cast($I, shifted) - $shift_bits;\n"
    "  $F whole = shifted - $shift;\n"
    "  $F r = $madd(whole, -$ln2, y);\n"
    "  r = $madd(whole, -$ln2_low, r);\n"
    "$exp_q"
    "  $F p = $madd(r * r, q, r);\n";

// 2^n in two factors, so that the result may be subnormal or infinite.
constexpr std::string_view kScale =
    "  $I half = n >> 1;\n"
    "  $F first = __builtin_bit_cast($F, (half + $bias) << $bits);\n"
    "  $F second = __builtin_bit_cast($F, (n - half + $bias) << $bits);\n"
    "  return (p + $one) * first * second;\n";

// Turns x > 0 into e, f and rest, for which log(x) = e * log(2) + f + rest.
constexpr std::string_view kLogCore =
    "  $F y = x < $smallest ? x * $scale : x;\n"
    "  $I bits = __builtin_bit_cast($I, y);\n"
    "  $I exponent = (bits - $sqrt_half) >> $bits;\n"
    "  $F f = __builtin_bit_cast($F, bits - (exponent << $bits)) - $one;\n"
    "  $F e = $to_float;\n"
    "  e = x < $smallest ? e - $scale_power : e;\n"
    "$log_q";

constexpr std::string_view kLogEnd =
    "  result = x < $infinity ? result : x;\n"
    "  return x > $zero ? result : (x == $zero ? -$infinity : $nan);\n";

constexpr std::string_view kSinCore =
    "  $F shifted = $madd(x, $two_over_pi, $shift);\n"
    "  $I quadrant = __builtin_bit_cast($I, shifted)$plus;\n"
    "  $F whole = shifted - $shift;\n"
    "  $F r = $madd(whole, $c1, x);\n"
    "  r = $madd(whole, $c2, r);\n"
    "  r = $madd(whole, $c3, r);\n"
    "  $F z = r * r;\n"
    "  $F s = $madd($madd($s2, z, $s1), z, $s0);\n"
    "  s = $madd(s * z, r, r);\n"
    "  $F c = $madd($madd($k2, z, $k1), z, $k0);\n"
    "  c = $madd(c * z, z, $madd(z, $minus_half, $one));\n"
    "  $F result = (quadrant & 1) != 0 ? c : s;\n"
    "$keep_zero"
    "  $I sign = (quadrant & 2) << 30;\n"
    "  result = __builtin_bit_cast($F, __builtin_bit_cast($I, result) ^ sign);\n"
    // Only these lanes, so that a value does not depend on its neighbors.
    "  if ($any_large) result = $is_small ? result : $imported(x);\n"
    "  return result;\n";

struct FunctionText {
  Op op;
  bool is_single_only;
  std::string_view text;
};

const std::vector<FunctionText>& function_texts() {
  static const std::vector<FunctionText> texts = {
      {Op::exp, false,
       "  $F y = x < $exp_low ? $exp_low : x;\n"
       "  y = y > $exp_high ? $exp_high : y;\n"
       "$exp_core$scale_end"},
      {Op::exp2, false,
       "  $F y = x < $exp2_low ? $exp2_low : x;\n"
       "  y = y > $exp2_high ? $exp2_high : y;\n"
       "  $F shifted = y + $shift;\n"
       "  $I n = __builtin_bit_cast($I, shifted) - $shift_bits;\n"
       "  $F r = y - (shifted - $shift);\n"
       "$exp2_q"
       "  $F p = q * r;\n"
       "$scale_end"},
      {Op::expm1, false,
       "  $F y = x < $normal_low ? $normal_low : x;\n"
       "  y = y > $exp_high ? $exp_high : y;\n"
       "$exp_core"
       "  $F s = __builtin_bit_cast($F, (n + ($bias - 1)) << $bits);\n"
       "  $F result = $two * $madd(s, p, s - $one_half);\n"
       "  return x == $zero ? x : result;\n"},
      {Op::tanh, false,
       "  $I sign = __builtin_bit_cast($I, x) & $sign_bit;\n"
       "  $F a = __builtin_bit_cast($F, __builtin_bit_cast($I, x) ^ sign);\n"
       "  $F y = a > $tanh_high ? $two * $tanh_high : $two * a;\n"
       "$exp_core"
       "  $F s = __builtin_bit_cast($F, (n + $bias) << $bits);\n"
       "  $F t = $madd(s, p, s - $one);\n"
       "  return __builtin_bit_cast($F, __builtin_bit_cast($I, t / (t + $two)) | sign);\n"},
      {Op::sigmoid, false,
       "  $F y = -x < $normal_low ? $normal_low : -x;\n"
       "  y = y > $exp_high ? $exp_high : y;\n"
       "$exp_core"
       "  $F s = __builtin_bit_cast($F, (n + ($bias - 1)) << $bits);\n"
       "  return $one / ($one + $two * $madd(s, p, s));\n"},
      {Op::erf, true,
       "  $I sign = __builtin_bit_cast($I, x) & $sign_bit;\n"
       "  $F a = __builtin_bit_cast($F, __builtin_bit_cast($I, x) ^ sign);\n"
       "  a = a > $four ? $four : a;\n"
       "  // erf(a) = 1 - exp(-a * g(a))\n"
       "$erf_g"
       "  $F y = -$madd(a, $erf0, a * $madd(g, a, $erf0_low));\n"
       "$exp_core"
       "  $F s = __builtin_bit_cast($F, (n + $bias) << $bits);\n"
       "  $F t = $one - s;\n"
       "  t = $madd(-s, p, t);\n"
       "  return __builtin_bit_cast($F, __builtin_bit_cast($I, t) | sign);\n"},
      {Op::log, false,
       "$log_core"
       "  $F result = $madd(e, $ln2, f + $madd(e, $ln2_low, rest));\n"
       "$log_end"},
      {Op::log2, false,
       "$log_core"
       "  $F result = e + $madd(f, $log2e, $madd(rest, $log2e, f * $log2e_low));\n"
       "$log_end"},
      {Op::log10, false,
       "$log_core"
       "  $F result = $madd(rest, $log10e, $madd(f, $log10e_low, e * $log10_2_low));\n"
       "  result = $madd(e, $log10_2, $madd(f, $log10e, result));\n"
       "$log_end"},
      {Op::log1p, false,
       "  $F u = x + $one;\n"
       "  $F lost = x > $one ? $one - (u - x) : x - (u - $one);\n"
       "  $F result = $log(u) + lost / u;\n"
       "  result = (u > $zero) & (u < $infinity) ? result : $log(u);\n"
       "  return x == $zero ? x : result;\n"},
      {Op::sin, true, kSinCore},
      {Op::cos, true, kSinCore},
  };
  return texts;
}

}  // namespace

std::string multiply_add(Prelude& prelude, std::string_view element, int lanes) {
  const std::string type = prelude.type(element, lanes);
  std::string name = "madd_" + type;
  if (!prelude.is_new(name)) return name;
  const bool is_single = element == "f32";
  const std::string scalar = is_single ? "__builtin_fmaf" : "__builtin_fma";
  if (lanes == 1) {
    prelude.add(
        fill_in("inline_ $F $N($F a, $F b, $F c) {\n"
                "#if defined(__FMA__) || defined(__aarch64__)\n"
                "  return $fma(a, b, c);\n"
                "#else\n"
                "  return a * b + c;\n"
                "#endif\n"
                "}\n",
                {{"F", type}, {"N", name}, {"fma", scalar}}));
    return name;
  }
  // The loop becomes one instruction too, but takes the compiler twice as long.
  const int bytes = lanes * (is_single ? 4 : 8);
  const std::string kind = is_single ? "ps" : "pd";
  const std::string direct = bytes == 64
                                 ? "__builtin_ia32_vfmadd" + kind + "512_mask(a, b, c, -1, 4)"
                             : bytes == 32 ? "__builtin_ia32_vfmadd" + kind + "256(a, b, c)"
                                           : "__builtin_ia32_vfmadd" + kind + "(a, b, c)";
  const bool is_direct = bytes == 64 || bytes == 32 || bytes == 16;
  prelude.add(fill_in(std::string("inline_ $F $N($F a, $F b, $F c) {\n") +
                          (is_direct ? "#if defined($feature) && !defined(__clang__)\n"
                                       "  return $direct;\n"
                                       "#elif"
                                     : "#if") +
                          " defined(__FMA__) || defined(__aarch64__)\n"
                          "  $F v;\n"
                          "  for (int k = 0; k < $n; ++k) v[k] = $fma(a[k], b[k], c[k]);\n"
                          "  return v;\n"
                          "#else\n"
                          "  return a * b + c;\n"
                          "#endif\n"
                          "}\n",
                      {{"F", type},
                       {"N", name},
                       {"n", std::to_string(lanes)},
                       {"fma", scalar},
                       {"feature", bytes == 64 ? "__AVX512F__" : "__FMA__"},
                       {"direct", direct}}));
  return name;
}

namespace {

// The statements of a function of x; empty if there is no text for `op`.
std::string function_body(Prelude& prelude, Op op, std::string_view element, int lanes) {
  const FunctionText* found = nullptr;
  for (const FunctionText& entry : function_texts()) {
    if (entry.op == op) found = &entry;
  }
  const bool is_single = element == "f32";
  if (found == nullptr || (found->is_single_only && !is_single)) return {};
  const Format& format = format_of(element);
  const std::string suffix = is_single ? "f" : "";
  const std::string type = prelude.type(element, lanes);
  const std::string integer = prelude.type(integer_of(element), lanes);
  const std::string madd = multiply_add(prelude, element, lanes);
  auto constant = [&](const std::string& text) {
    const std::string literal = text + suffix;
    if (lanes == 1) return text[0] == '-' ? "(" + literal + ")" : literal;
    return splat(prelude, element, lanes, literal);
  };
  // q = c[0] + x * (c[1] + x * ...), line by line.
  auto horner = [&](const std::string& result, const std::string& x, auto&& coefficients) {
    std::string text = "  " + type + " " + result + " = " +
                       constant(coefficients[coefficients.size() - 1]) + ";\n";
    for (std::size_t k = coefficients.size() - 1; k-- > 0;) {
      text += "  " + result + " = " + madd + "(" + result + ", " + x + ", " +
              constant(coefficients[k]) + ");\n";
    }
    return text;
  };

  Names names = {
      {"F", type},
      {"I", integer},
      {"madd", madd},
      {"shift", constant(format.shift)},
      {"shift_bits", format.shift_bits},
      {"bits", format.bits},
      {"bias", format.bias},
      {"log2e", constant(format.log2e)},
      {"log2e_low", constant(format.log2e_low)},
      {"ln2", constant(format.ln2)},
      {"ln2_low", constant(format.ln2_low)},
      {"log10e", constant(format.log10e)},
      {"log10e_low", constant(format.log10e_low)},
      {"log10_2", constant(format.log10_2)},
      {"log10_2_low", constant(format.log10_2_low)},
      {"exp_low", constant(format.exp_low)},
      {"exp_high", constant(format.exp_high)},
      {"exp2_low", constant(format.exp2_low)},
      {"exp2_high", constant(format.exp2_high)},
      {"normal_low", constant(format.normal_low)},
      {"tanh_high", constant(format.tanh_high)},
      {"sqrt_half", format.sqrt_half},
      {"smallest", constant(format.smallest)},
      {"scale", constant(format.scale)},
      {"scale_power", constant(format.scale_power)},
      {"zero", constant("0.0")},
      {"one", constant("1.0")},
      {"one_half", constant("0.5")},
      {"two", constant("2.0")},
      {"four", constant("4.0")},
      {"infinity", splat(prelude, element, lanes, "__builtin_inf" + suffix + "()")},
      {"nan", splat(prelude, element, lanes, "__builtin_nan" + suffix + "(\"\")")},
      {"sign_bit", is_single ? "(-2147483647 - 1)" : "(-9223372036854775807L - 1)"},
      {"erf0", constant("1.12837923")},
      {"erf0_low", constant("-5.86353830e-8")},
      {"to_float", convert(prelude, "exponent", integer_of(element), element, lanes)},
  };
  auto fill_core = [&](const std::string& key, std::string_view text) {
    names.emplace_back(key, fill_in(text, names));
  };
  if (found->text.find("$exp_core") != std::string_view::npos) {
    names.emplace_back("exp_q", horner("q", "r", format.exp));
    fill_core("exp_core", kExpCore);
  }
  if (op == Op::exp2) names.emplace_back("exp2_q", horner("q", "r", format.exp2));
  fill_core("scale_end", kScale);
  if (op == Op::erf) names.emplace_back("erf_g", horner("g", "a", kErf));
  if (found->text.find("$log_core") != std::string_view::npos) {
    // f32: log(1 + f) = f - f^2 / 2 + f^3 * q(f). f64: with s = f / (2 + f), by atanh(s).
    names.emplace_back("log_q", is_single
                                    ? horner("q", "f", format.log) +
                                          fill_in("  $F z = f * f;\n"
                                                  "  $F rest = $madd(z, -$one_half, f * z * q);\n",
                                                  names)
                                    : fill_in("  $F s = f / (f + $two);\n"
                                              "  $F z = s * s;\n",
                                              names) +
                                          horner("q", "z", format.log) +
                                          fill_in("  $F square = $one_half * f * f;\n"
                                                  "  $F rest = s * (square + z * q) - square;\n",
                                                  names));
    fill_core("log_core", kLogCore);
    fill_core("log_end", kLogEnd);
  }
  if (op == Op::erf && lanes == 16) {
    const std::string look_up = "look_up_" + type;
    if (prelude.is_new(look_up)) {
      prelude.add(
          fill_in("inline_ $F $N($F table, $I k) {\n"
                  "#if defined(__clang__)\n"
                  "  $F v;\n"
                  "  for (int lane = 0; lane < 16; ++lane) v[lane] = table[k[lane] & 15];\n"
                  "  return v;\n"
                  "#else\n"
                  "  return __builtin_shuffle(table, k);\n"
                  "#endif\n"
                  "}\n",
                  {{"F", type}, {"I", integer}, {"N", look_up}}));
    }
    names.emplace_back("look_up", look_up);
    names.emplace_back("per_step", constant("3.84615385"));
    names.emplace_back("minus_step", constant("-0.26"));
    for (std::size_t k = 0; k < kErfTable.size(); ++k) {
      names.emplace_back("table" + std::to_string(k), type + "{" + std::string(kErfTable[k]) + "}");
    }
    return fill_in(kErfByTable, names);
  }
  if (op == Op::log1p) names.emplace_back("log", float_function(prelude, Op::log, element, lanes));
  if (op == Op::sin || op == Op::cos) {
    const std::string magnitude =
        "__builtin_bit_cast(" + type + ", __builtin_bit_cast(" + integer + ", x) & 0x7fffffff)";
    const std::string test = "(" + magnitude + " <= " + constant("30000.0") + ")";
    names.emplace_back("is_small", test);
    names.emplace_back("any_large",
                       lanes == 1 ? "!" + test : any_lane(prelude, "~" + test, 4, lanes));
    names.emplace_back("imported", imported_function(prelude, op, element, lanes));
    names.emplace_back(
        "keep_zero", op == Op::sin ? fill_in("  result = x == $zero ? x : result;\n", names) : "");
    names.emplace_back("plus", op == Op::cos ? " + 1" : "");
    names.emplace_back("two_over_pi", constant("0.636619772"));
    names.emplace_back("c1", constant("-1.57079637"));
    names.emplace_back("c2", constant("4.37113883e-8"));
    names.emplace_back("c3", constant("1.71512451e-15"));
    names.emplace_back("s0", constant("-0.166666647"));
    names.emplace_back("s1", constant("0.00833274827"));
    names.emplace_back("s2", constant("-0.000195878909"));
    names.emplace_back("k0", constant("0.0416666647"));
    names.emplace_back("k1", constant("-0.00138883030"));
    names.emplace_back("k2", constant("2.45479421e-5"));
    names.emplace_back("minus_half", constant("-0.5"));
  }
  return fill_in(found->text, names);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `line` with `suffix` behind each of the variables.
std::string with_suffix(std::string_view line, const std::set<std::string, std::less<>>& variables,
                        char suffix) {
  std::string result;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_word(line[at])) {
      result += line[at++];
      continue;
    }
    // A number may have a point, and an exponent with a sign.
    const bool is_number = std::isdigit(static_cast<unsigned char>(line[at])) != 0;
    const bool is_hexadecimal = line.substr(at, 2) == "0x";
    std::size_t end = at;
    while (end < line.size() &&
           (is_word(line[end]) || (is_number && line[end] == '.') ||
            (is_number && !is_hexadecimal && (line[end] == '-' || line[end] == '+') &&
             line[end - 1] == 'e'))) {
      ++end;
    }
    const std::string_view word = line.substr(at, end - at);
    result += word;
    if (variables.contains(word)) result += suffix;
    at = end;
  }
  return result;
}

}  // namespace

bool define_polynomial(Prelude& prelude, Op op, std::string_view element, int lanes,
                       const std::string& name) {
  const std::string body = function_body(prelude, op, element, lanes);
  if (body.empty()) return false;
  const std::string type = prelude.type(element, lanes);
  prelude.add("inline_ " + type + " " + name + "(" + type + " x) {\n" + body + "}\n");
  return true;
}

std::string define_side_by_side(Prelude& prelude, Op op, std::string_view element, int lanes,
                                int copies) {
  const std::string body = function_body(prelude, op, element, lanes);
  if (body.empty() || body.find("  if (") != std::string::npos) return {};
  const std::string type = prelude.type(element, lanes);
  // Not `exp2`, which is another function.
  std::string name = std::string(to_string(op)) + "_x" + std::to_string(copies) + "_" + type;
  if (!prelude.is_new(name)) return name;
  std::set<std::string, std::less<>> variables = {"x"};
  std::string text;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at);
    const std::string_view line = std::string_view(body).substr(at, end - at);
    at = end + 1;
    if (line.starts_with("  //")) {
      text += std::string(line) + "\n";
      continue;
    }
    for (const std::string& kind : {type, prelude.type(integer_of(element), lanes)}) {
      const std::string start = "  " + kind + " ";
      if (!line.starts_with(start)) continue;
      const std::string_view rest = line.substr(start.size());
      variables.emplace(rest.substr(0, rest.find(' ')));
    }
    constexpr std::string_view kReturn = "  return ";
    const std::string statement = line.starts_with(kReturn)
                                      ? "  x = " + std::string(line.substr(kReturn.size()))
                                      : std::string(line);
    for (int copy = 0; copy < copies; ++copy) {
      text += with_suffix(statement, variables, static_cast<char>('a' + copy)) + "\n";
    }
  }
  std::string parameters;
  for (int copy = 0; copy < copies; ++copy) {
    parameters += (copy == 0 ? "" : ", ") + type + "& x" + static_cast<char>('a' + copy);
  }
  prelude.add("inline_ void " + name + "(" + parameters + ") {\n" + text + "}\n");
  return name;
}

}  // namespace assay::kernels
