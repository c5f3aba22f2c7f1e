// Functions of NumPy that only compute from their arguments, methods of its arrays, and torch's
// functions between arrays and tensors.
#include <string>

#include "capture/models/table.h"

namespace assay::capture {

namespace {

PyObject* computes_array(Recorder& recorder, Activation& a, const Call& call) {
  return recorder.call_array_function(a, call);
}

void add_computing(ModelTable& table, const char* owner, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto* text = new std::string(std::string(owner) + "." + name);  // as long as the table lives
    table.push_back({text->c_str(), computes_array});
  }
}

}  // namespace

ModelTable array_models() {
  ModelTable table;
  add_computing(table, "torch", {"from_numpy", "Tensor.numpy", "Tensor.__array__"});
  // Types, of which each call makes a scalar.
  add_computing(table, "numpy", {"float16", "float32", "float64",     "int8",          "int16",
                                 "int32",   "int64",   "uint8",       "uint16",        "uint32",
                                 "uint64",  "bool_",   "complex64",   "complex128",    "dtype",
                                 "finfo",   "iinfo",   "result_type", "promote_types", "can_cast"});
  add_computing(
      table, "numpy",
      {"add",        "subtract",    "multiply",    "matmul",      "divide",        "floor_divide",
       "negative",   "positive",    "power",       "float_power", "remainder",     "fmod",
       "divmod",     "absolute",    "fabs",        "rint",        "sign",          "heaviside",
       "conjugate",  "exp",         "exp2",        "log",         "log2",          "log10",
       "expm1",      "log1p",       "sqrt",        "square",      "cbrt",          "reciprocal",
       "gcd",        "lcm",         "sin",         "cos",         "tan",           "arcsin",
       "arccos",     "arctan",      "arctan2",     "hypot",       "sinh",          "cosh",
       "tanh",       "arcsinh",     "arccosh",     "arctanh",     "degrees",       "radians",
       "deg2rad",    "rad2deg",     "bitwise_and", "bitwise_or",  "bitwise_xor",   "invert",
       "left_shift", "right_shift", "greater",     "less",        "greater_equal", "less_equal",
       "equal",      "not_equal",   "logical_and", "logical_or",  "logical_xor",   "logical_not",
       "maximum",    "minimum",     "fmax",        "fmin",        "isfinite",      "isinf",
       "isnan",      "signbit",     "copysign",    "nextafter",   "ldexp",         "frexp",
       "modf",       "floor",       "ceil",        "trunc",       "vecdot"});
  add_computing(table, "numpy",
                {"sum",         "prod",        "mean",     "std",       "var",
                 "min",         "max",         "amin",     "amax",      "argmin",
                 "argmax",      "nanmin",      "nanmax",   "nansum",    "nanmean",
                 "nanprod",     "nanstd",      "nanvar",   "median",    "average",
                 "percentile",  "quantile",    "ptp",      "cumsum",    "cumprod",
                 "diff",        "any",         "all",      "allclose",  "isclose",
                 "array_equal", "array_equiv", "where",    "nonzero",   "argwhere",
                 "flatnonzero", "sort",        "argsort",  "lexsort",   "searchsorted",
                 "unique",      "bincount",    "digitize", "histogram", "count_nonzero",
                 "clip",        "round",       "around",   "fix",       "real",
                 "imag",        "angle",       "dot",      "vdot",      "inner",
                 "outer",       "tensordot",   "einsum",   "kron",      "cross",
                 "trace",       "nan_to_num",  "i0",       "sinc",      "isreal",
                 "iscomplex",   "isin",        "interp",   "convolve",  "correlate",
                 "gradient",    "cov",         "corrcoef", "polyval",   "trapezoid"});
  add_computing(table, "numpy",
                {"reshape",
                 "ravel",
                 "transpose",
                 "permute_dims",
                 "swapaxes",
                 "moveaxis",
                 "rollaxis",
                 "roll",
                 "flip",
                 "fliplr",
                 "flipud",
                 "rot90",
                 "squeeze",
                 "expand_dims",
                 "broadcast_to",
                 "concatenate",
                 "stack",
                 "vstack",
                 "hstack",
                 "dstack",
                 "column_stack",
                 "split",
                 "array_split",
                 "hsplit",
                 "vsplit",
                 "dsplit",
                 "tile",
                 "repeat",
                 "pad",
                 "take",
                 "compress",
                 "choose",
                 "diag",
                 "diagonal",
                 "diagflat",
                 "tril",
                 "triu",
                 "vander",
                 "eye",
                 "identity",
                 "zeros",
                 "ones",
                 "empty",
                 "full",
                 "zeros_like",
                 "ones_like",
                 "empty_like",
                 "full_like",
                 "arange",
                 "linspace",
                 "logspace",
                 "geomspace",
                 "meshgrid",
                 "tri",
                 "indices",
                 "array",
                 "asarray",
                 "asanyarray",
                 "copy",
                 "insert",
                 "delete",
                 "append",
                 "resize",
                 "extract",
                 "ix_",
                 "atleast_1d",
                 "atleast_2d",
                 "atleast_3d",
                 "tril_indices",
                 "triu_indices",
                 "shape",
                 "ndim",
                 "size",
                 "take_along_axis",
                 "diag_indices",
                 "ascontiguousarray",
                 "asfortranarray",
                 "broadcast_arrays",
                 "unravel_index"});
  add_computing(
      table, "numpy.linalg",
      {"norm",  "inv",      "solve",     "det",     "svd",          "qr",          "cholesky",
       "eigh",  "eigvalsh", "eig",       "eigvals", "matrix_power", "matrix_rank", "pinv",
       "lstsq", "slogdet",  "multi_dot", "cond",    "tensorinv",    "tensorsolve"});
  add_computing(
      table, "numpy.fft",
      {"fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn",
       "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift"});
  add_computing(table, "numpy.ufunc", {"reduce", "accumulate", "outer"});
  for (const char* type : {"numpy.ndarray", "numpy.generic"}) {
    add_computing(
        table, type,
        {"all",       "any",      "argmax",  "argmin",    "argsort",  "astype",      "choose",
         "clip",      "compress", "conj",    "conjugate", "copy",     "cumprod",     "cumsum",
         "diagonal",  "dot",      "flatten", "item",      "max",      "mean",        "min",
         "nonzero",   "prod",     "ravel",   "repeat",    "reshape",  "round",       "searchsorted",
         "squeeze",   "std",      "sum",     "swapaxes",  "take",     "tolist",      "trace",
         "transpose", "var",      "view",    "__array__", "__copy__", "argpartition"});
  }
  return table;
}

}  // namespace assay::capture
