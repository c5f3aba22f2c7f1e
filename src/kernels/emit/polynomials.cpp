#include "kernels/emit/polynomials.h"

#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "kernels/emit/math.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

// What differs between f32 and f64. Texts are literals without suffix.
struct Format {
  const char* shift;       // adding it leaves a number rounded to an integer in the low bits
  const char* shift_bits;  // its bits
  const char* bits;        // of the mantissa
  const char* bias;
  const char* log2e;
  const char* log2e_low;
  const char* ln2;
  const char* ln2_low;
  const char* log10e;
  const char* log10e_low;
  const char* log10_2;
  const char* log10_2_low;
  const char* exp_low;  // below, exp is 0
  const char* exp_high;
  const char* exp2_low;
  const char* exp2_high;
  const char* normal_low;   // exp of it is a normal number
  const char* tanh_high;    // tanh of it is 1
  const char* sqrt_half;    // its bits
  const char* smallest;     // normal number
  const char* scale;        // makes subnormal numbers normal
  const char* scale_power;  // its exponent
  std::vector<const char*> exp;
  std::vector<const char*> exp2;
  std::vector<const char*> log;
};

const Format& format_of(std::string_view element) {
  static const Format single = {
      "12582912.0",
      "0x4b400000",
      "23",
      "127",
      "1.44269502",
      "1.92596303e-8",
      "0.693147182",
      "-1.90465421e-9",
      "0.434294492",
      "-1.01030500e-8",
      "0.301030010",
      "-1.43209888e-8",
      "-104.0",
      "89.0",
      "-151.0",
      "129.0",
      "-87.0",
      "9.1",
      "0x3f3504f3",
      "1.17549435e-38",
      "33554432.0",
      "25.0",
      {"0.500000000", "0.166665770", "0.0416665547", "0.00836317307", "0.00139261761"},
      {"0.693147181", "0.240226509", "0.0555041088", "0.00961805668", "0.00133335024",
       "0.000154614447", "1.52973238e-5"},
      {"0.333333312", "-0.249999970", "0.200007157", "-0.166678023", "0.142490576", "-0.124256873",
       "0.116854199", "-0.114797338", "0.0697161147"}};
  static const Format twice = {
      "6755399441055744.0",
      "0x4338000000000000L",
      "52",
      "1023",
      "1.4426950408889634",
      "2.0355273740931033e-17",
      "0.69314718055994529",
      "2.3190468138462996e-17",
      "0.43429448190325182",
      "1.0983196502167651e-17",
      "0.3010299956639812",
      "-2.8037281277851704e-18",
      "-746.0",
      "710.0",
      "-1076.0",
      "1025.0",
      "-707.0",
      "20.0",
      "0x3fe6a09e667f3bcdL",
      "2.2250738585072014e-308",
      "18014398509481984.0",
      "54.0",
      {"0.50000000000000010", "0.16666666666666667", "0.041666666666624162",
       "0.0083333333333300644", "0.0013888888917196719", "0.00019841269863040545",
       "2.4801521322368693e-5", "2.7557268480310026e-6", "2.7620075879983367e-7",
       "2.5100375832561234e-8"},
      {"0.69314718055994531", "0.24022650695910071", "0.055504108664821627",
       "0.0096181291076284795", "0.0013333558146406471", "0.00015403530393370733",
       "1.5252733841556773e-5", "1.3215486808705563e-6", "1.0178057087733941e-7",
       "7.0548973041554993e-9", "4.4558179083360645e-10", "2.5729324177362304e-11"},
      {"0.66666666666666697", "0.39999999999898192", "0.28571428626570204", "0.22222211037816585",
       "0.18182896183483247", "0.15331487235861372", "0.14619343453558124"}};
  return element == "f32" ? single : twice;
}

constexpr std::array kErf = {
    "0.636619806",     "0.102770604",    "-0.019109996",   "-0.000280696957", "0.00184757588",
    "-0.000787643017", "0.000194215085", "-3.01562904e-5", "2.73686464e-6",   "-1.10842983e-7"};

// erf around the points 0.26 * k: row j has the coefficients of t^j, less 1 for j = 1.
constexpr std::array<std::string_view, 6> kErfTable = {
    "0.0, 0.286899716, 0.5378986, 0.73001039, 0.858649909, 0.934007943, 0.972628117, 0.989943147, "
    "0.996734381, 0.999064565, 0.999763966, 0.999947608, 0.999989748, 0.999998271, 0.999999762, "
    "1.0",
    "0.128379166, 0.0546218231, -0.138962954, -0.385912418, -0.617420077, -0.791791975, "
    "-0.901018023, -0.95889467, -0.985088408, -0.995274663, -0.998691976, -0.999683678, "
    "-0.999933183, -0.999987662, -0.999998033, -0.999999702",
    "0.0, -0.274194986, -0.447731346, -0.478984594, -0.397884488, -0.27067396, -0.154414624, "
    "-0.0748126879, -0.0310158972, -0.0110567762, -0.00340055046, -0.000904426503, "
    "-0.000208380763, -4.16462353e-05, -7.22723371e-06, -1.08992731e-06",
    "-0.376122087, -0.304009855, -0.131797194, 0.0443750173, 0.148336798, 0.165178105, "
    "0.127595246, 0.0770706311, 0.03803882, 0.0156742521, 0.00545882387, 0.00161928742, "
    "0.000411273097, 8.97696227e-05, 1.68853694e-05, 2.74270269e-06",
    "0.0, 0.129869342, 0.182268992, 0.141772941, 0.0557081178, -0.0165815372, -0.0476186462, "
    "-0.0450402573, -0.0292498209, -0.0147320805, -0.00602300838, -0.00204462069, -0.000583951478, "
    "-0.000141503362, -2.9261224e-05, -5.18515344e-06",
    "0.112158015, 0.0771982893, 0.00154414936, -0.0572510958, -0.067243211, -0.0406023338, "
    "-0.00843622163, 0.00964225084, 0.0128398351, 0.00901138131, 0.00458075013, 0.00183221907, "
    "0.000597566541, 0.00016198559, 3.69258014e-05, 7.13391182e-06"};

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
    "  if ($any_large) return $imported(x);\n"
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
    "  return __builtin_bit_cast($F, __builtin_bit_cast($I, result) ^ sign);\n";

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
  std::string name = std::string(to_string(op)) + std::to_string(copies) + "_" + type;
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
