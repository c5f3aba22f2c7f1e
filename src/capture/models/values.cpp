// Functions that compute a value from values: numbers, strings, math.
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// Every public callable of a type or module, by name.
void add_all(ModelTable& table, const char* owner, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto* text = new std::string(std::string(owner) + "." + name);  // as long as the table lives
    table.push_back({text->c_str(), pure_model});
  }
}

}  // namespace

ModelTable value_models() {
  ModelTable table;
  add_all(table, "builtins", {"pow", "ord", "chr", "hex", "oct", "bin", "ascii"});
  add_all(table, "math",
          {"acos",      "acosh",    "asin",   "asinh",   "atan",      "atan2",     "atanh", "cbrt",
           "comb",      "copysign", "cos",    "cosh",    "degrees",   "dist",      "erf",   "erfc",
           "exp",       "exp2",     "expm1",  "fabs",    "factorial", "fmod",      "frexp", "fsum",
           "gamma",     "gcd",      "hypot",  "isclose", "isfinite",  "isinf",     "isnan", "isqrt",
           "lcm",       "ldexp",    "lgamma", "log",     "log10",     "log1p",     "log2",  "modf",
           "nextafter", "perm",     "pow",    "prod",    "radians",   "remainder", "sin",   "sinh",
           "sqrt",      "tan",      "tanh",   "ulp"});
  add_all(table, "cmath",
          {"sqrt", "exp", "log", "phase", "polar", "rect", "sin", "cos", "isnan", "isinf",
           "isfinite", "isclose"});
  add_all(table, "builtins.str",
          {"capitalize",  "casefold",   "center",       "count",        "encode",   "endswith",
           "expandtabs",  "find",       "format",       "index",        "isalnum",  "isalpha",
           "isascii",     "isdecimal",  "isdigit",      "isidentifier", "islower",  "isnumeric",
           "isprintable", "isspace",    "istitle",      "isupper",      "ljust",    "lower",
           "lstrip",      "partition",  "removeprefix", "removesuffix", "replace",  "rfind",
           "rindex",      "rjust",      "rpartition",   "rsplit",       "rstrip",   "split",
           "splitlines",  "startswith", "strip",        "swapcase",     "title",    "translate",
           "upper",       "zfill",      "__len__",      "__contains__", "__add__",  "__mul__",
           "__eq__",      "__ne__",     "__getitem__",  "__mod__",      "__hash__", "__str__",
           "__lt__",      "__le__",     "__gt__",       "__ge__",       "__rmul__", "__repr__",
           "__format__"});
  add_all(table, "builtins.bytes",
          {"decode",       "hex",     "__len__",     "center",     "count",      "endswith",
           "find",         "index",   "isalnum",     "isalpha",    "isdigit",    "islower",
           "isspace",      "isupper", "join",        "ljust",      "lower",      "lstrip",
           "partition",    "replace", "rfind",       "rindex",     "rjust",      "rpartition",
           "rsplit",       "rstrip",  "split",       "splitlines", "startswith", "strip",
           "swapcase",     "title",   "translate",   "upper",      "zfill",      "__add__",
           "__contains__", "__eq__",  "__getitem__", "__hash__",   "__mul__"});
  add_all(table, "builtins.bytes", {"fromhex"});
  add_all(
      table, "builtins.int",
      {"bit_length",    "bit_count",    "conjugate",  "as_integer_ratio", "__add__",  "__sub__",
       "__mul__",       "__floordiv__", "__mod__",    "__neg__",          "__abs__",  "__eq__",
       "__lt__",        "__le__",       "__gt__",     "__ge__",           "__ne__",   "__index__",
       "__int__",       "__float__",    "__bool__",   "__hash__",         "__repr__", "to_bytes",
       "__truediv__",   "__pow__",      "__and__",    "__or__",           "__xor__",  "__invert__",
       "__lshift__",    "__rshift__",   "__divmod__", "__radd__",         "__rsub__", "__rmul__",
       "__pos__",       "__round__",    "__trunc__",  "__floor__",        "__ceil__", "__format__",
       "__rfloordiv__", "__rmod__",     "__rpow__",   "__rtruediv__"});
  add_all(table, "builtins.float",
          {"is_integer", "as_integer_ratio", "hex",       "conjugate", "__add__",   "__sub__",
           "__mul__",    "__truediv__",      "__eq__",    "__lt__",    "__le__",    "__gt__",
           "__ge__",     "__neg__",          "__abs__",   "__int__",   "__float__", "__bool__",
           "__repr__",   "__pow__",          "__round__", "__ne__",    "__mod__",   "__floordiv__",
           "__divmod__", "__hash__",         "__radd__",  "__rsub__",  "__rmul__",  "__rtruediv__",
           "__pos__",    "__trunc__",        "__floor__", "__ceil__",  "__format__"});
  add_all(table, "builtins.complex",
          {"conjugate", "__abs__", "__add__", "__sub__", "__mul__", "__truediv__", "__eq__",
           "__ne__", "__neg__", "__hash__", "__repr__"});
  add_all(table, "builtins.slice", {"indices"});
  add_all(table, "builtins.tuple", {"index", "count", "__len__", "__contains__", "__eq__"});
  add_all(table, "builtins.range", {"index", "count", "__len__", "__contains__"});
  add_all(table, "builtins", {"slice"});
  add_all(table, "torch.Size", {"numel"});
  add_all(table, "builtins.str", {"maketrans"});
  add_all(table, "builtins.float", {"fromhex"});
  add_all(table, "builtins.int", {"from_bytes"});
  add_all(table, "sys", {"intern"});
  add_all(table, "struct", {"pack", "unpack", "calcsize"});
  return table;
}

}  // namespace assay::capture
