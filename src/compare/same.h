/// \file Are two results the same, up to what floating point may do? With PyTorch's rules.
///
/// `same_two_models` (compare/models.h) asks this about a compiled program and eager; tests and
/// tools ask it directly. docs/compare.md lists the rules, and where they differ from PyTorch's
/// `torch._dynamo.utils.same` on purpose.
#pragma once

#include <cstddef>
#include <string>

#include "aten/value.h"

namespace assay::compare {

/// PyTorch's options, with PyTorch's names and defaults.
struct SameOptions {
  /// Direction instead of size: cosine similarity of at least 0.99.
  bool cos_similarity = false;
  /// Absolute and relative, per element; a tenth of it is allowed on top of eager's own error.
  double tol = 1e-4;
  bool equal_nan = false;
  bool exact_dtype = true;
  /// Integers, bools, strings and None are not compared.
  bool ignore_non_fp = false;
  /// Error allowed in tensors of at most 10 (500) elements: 10 (8) times eager's own.
  bool use_larger_multiplier_for_smaller_tensor = false;
  /// 10 times eager's own error is allowed in every tensor.
  bool force_max_multiplier = false;
  /// Bool tensors are masks: intersection over union of at least `iou_threshold`.
  bool use_iou_for_bool = false;
  double iou_threshold = 0.99;
};

/// The answer, and for a difference the first one found. One in floating point comes before one in
/// integers: a mask made of a wrong number differs too, and the number is the cause.
struct Comparison {
  enum class Kind {
    values,       ///< Floating-point numbers are too far apart (or strings, devices, ... differ).
    integers,     ///< Integers or bools differ; floating point does not.
    nan,          ///< One has NaN where the other has none.
    dtype,        ///< Tensors of different dtypes.
    shape,        ///< Tensors of different sizes.
    structure,    ///< Lists of different lengths, different keys, a tensor where a list was, ...
    mutation,     ///< One changes an input in place, and the other does not.
    strides,      ///< Tensors of different strides, where eager's are a promise.
    aliasing,     ///< One returns memory that is shared, and the other does not.
    second_call,  ///< A first call is the same, but a second one is not.
    exception,    ///< Eager raises; the compiled program does not, or something else.
    reference,    ///< The float64 reference is NaN or does not fit: nothing can be said.
  };

  bool same = true;
  Kind kind = Kind::values;  ///< Of the difference, if not `same`.
  std::string where = {};    ///< As Python would index the results: `[0]['logits']`.
  std::string message = {};  ///< One sentence; empty if `same`.
  /// Of the tensor that decided: the result's distance from the float64 reference as a root mean
  /// square, and eager's; without reference the largest distance between the two, and 0. They are
  /// 0 where element by element comparison was enough.
  double error = 0;
  double reference_error = 0;
  double tolerance = 0;  ///< What `error` was allowed to be.
  /// There was a float64 reference to judge by, and the result is nearer to it than eager is.
  bool compiled_is_closer = false;
  /// How many integers, bools and other values `ignore_non_fp` left out, if all was walked.
  std::size_t not_compared = 0;

  explicit operator bool() const { return same; }
};

const char* to_string(Comparison::Kind kind);

/// Compares `result` with `reference`, which is what eager computed. `fp64_reference`, if not
/// nullptr, is what eager computes in float64: where results are not close, the result's distance
/// from it may be a few times eager's own. Throws nothing for values of any kind.
Comparison same(const aten::Value& reference, const aten::Value& result,
                const aten::Value* fp64_reference = nullptr, const SameOptions& options = {});

/// Adds the comparison of one part of two results to that of the parts before it. False once it is
/// decided: by anything but a difference in integers, after which one in floating point may follow.
bool keep_looking(Comparison& total, Comparison found);

}  // namespace assay::compare
