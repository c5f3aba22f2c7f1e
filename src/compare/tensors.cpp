#include "compare/tensors.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <sstream>

namespace assay::compare {

namespace {

using at::Tensor;
using Kind = Comparison::Kind;

std::string number(double value) {
  std::ostringstream text;
  text.precision(4);
  text << value;
  return text.str();
}

std::string shape_text(const Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

bool has_any(const Tensor& mask) { return mask.any().item<bool>(); }

bool is_fp64(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble || tensor.scalar_type() == at::kComplexDouble;
}

bool is_fp(const Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

// As a vector of real numbers; the parts of a complex number are two.
Tensor as_vector(const Tensor& tensor, bool is_complex) {
  if (!is_complex) return tensor.flatten().to(at::kFloat);
  return at::view_as_real(tensor.to(at::kComplexFloat).resolve_conj()).flatten();
}

Tensor widened(const Tensor& tensor) {
  return tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

bool all_close(const Tensor& reference, const Tensor& result, double tolerance, bool equal_nan) {
  if (at::equal(reference, result)) return true;
  return at::allclose(reference, result, tolerance, tolerance, equal_nan);
}

double rms(const Tensor& difference) {
  if (difference.numel() == 0) return 0;
  return std::sqrt(at::abs(difference).square().mean().item<double>());
}

// Eager's own error grows with noise, and noise weighs more in small tensors.
double multiplier(const Tensor& reference, const Tensor& result, const SameOptions& options) {
  if (options.force_max_multiplier) return 10;
  const std::int64_t count = reference.numel();
  if (options.use_larger_multiplier_for_smaller_tensor && count <= 10) return 10;
  if (options.use_larger_multiplier_for_smaller_tensor && count <= 500) return 8;
  const bool is_one_by_one =
      reference.dim() == 4 && reference.size(-1) == 1 && reference.size(-2) == 1;
  const bool is_small_float =
      result.scalar_type() == at::kHalf || result.scalar_type() == at::kBFloat16;
  const bool is_noisy = count < 1000 || is_one_by_one || options.tol >= 0.02;
  return is_small_float || is_noisy ? 3 : 2;
}

// What is not close by element; the largest distance is for the message.
Comparison far_apart(const Tensor& reference, const Tensor& result, const SameOptions& options) {
  const Tensor reference_nan = reference.isnan();
  const Tensor result_nan = result.isnan();
  if (!at::equal(reference_nan, result_nan)) {
    const auto count = [](const Tensor& mask) { return mask.sum().item<std::int64_t>(); };
    return different(Kind::nan, "the result has " + std::to_string(count(result_nan)) +
                                    " NaN, eager has " + std::to_string(count(reference_nan)) +
                                    ", of " + std::to_string(result.numel()) + " elements");
  }
  if (!options.equal_nan && has_any(reference_nan)) {
    return different(Kind::nan, "both have NaN, which is not equal to itself");
  }
  const Tensor close = at::isclose(reference, result, options.tol, options.tol, options.equal_nan);
  const Tensor distance = at::abs(widened(reference).sub(widened(result)))
                              .masked_fill(close.logical_or(reference_nan), 0);
  const double largest = distance.max().item<double>();
  Comparison found = different(
      Kind::values, std::to_string(close.logical_not().sum().item<std::int64_t>()) + " of " +
                        std::to_string(result.numel()) + " elements differ, by up to " +
                        number(largest) + "; the tolerance is " + number(options.tol) +
                        ", absolute plus relative");
  found.error = largest;
  found.tolerance = options.tol;
  return found;
}

// Three tensors of one shape that were not close by element, judged by their distances from the
// float64 reference.
class FarFromReference {
 public:
  FarFromReference(const Tensor& reference, const Tensor& result, const Tensor& fp64, bool is_given,
                   const SameOptions& options)
      : reference_(reference),
        result_(result),
        fp64_(fp64),
        is_given_(is_given),
        options_(options) {}

  Comparison judge() const {
    if (is_given_ && has_any(fp64_.isnan())) {
      return different(Kind::reference,
                       "the float64 reference has NaN, and the result is not close to eager");
    }
    if (is_better_than_nan()) return closer();
    // Where eager is not finite its distance says nothing. There the result must be as eager or
    // near the reference; the other elements are judged by their distances.
    const Tensor by_itself = at::isfinite(reference_).logical_not();
    if (has_any(by_itself.logical_and(is_settled().logical_not()))) {
      return far_apart(reference_, result_, options_);
    }
    return compare_errors(by_itself);
  }

 private:
  static constexpr double kLoose = 4e-2;

  Tensor is_near_reference() const {
    return at::isclose(fp64_.to(result_.scalar_type()), result_, kLoose, kLoose,
                       options_.equal_nan);
  }

  Tensor is_settled() const {
    return at::isclose(reference_, result_, 0, 0, options_.equal_nan)
        .logical_or(is_near_reference());
  }

  bool is_better_than_nan() const {
    return has_any(reference_.isnan()) && !has_any(result_.isnan()) && !has_any(fp64_.isnan()) &&
           is_near_reference().all().item<bool>();
  }

  static Comparison closer() {
    Comparison found;
    found.compiled_is_closer = true;
    return found;
  }

  Comparison compare_errors(const Tensor& by_itself) const {
    const auto distance = [&](const Tensor& tensor) {
      return rms(widened(fp64_).sub(widened(tensor)).masked_fill(by_itself, 0));
    };
    Comparison found;
    found.reference_error = distance(reference_);
    found.error = distance(result_);
    found.tolerance =
        multiplier(reference_, result_, options_) * found.reference_error + options_.tol / 10;
    found.compiled_is_closer = is_given_ && found.error < found.reference_error;
    if (!std::isfinite(found.tolerance)) {
      return different(Kind::reference, "the float64 reference is infinite where eager is not");
    }
    if (found.error <= found.tolerance) return found;
    found.same = false;
    found.kind =
        has_any(result_.isnan()) && !has_any(reference_.isnan()) ? Kind::nan : Kind::values;
    found.message =
        is_given_
            ? "the result is " + number(found.error) +
                  " (root mean square) from the float64 "
                  "reference, eager " +
                  number(found.reference_error) + "; the tolerance is " + number(found.tolerance)
            : "the result is " + number(found.error) +
                  " (root mean square) from eager; the tolerance is " + number(found.tolerance);
    return found;
  }

  const Tensor& reference_;
  const Tensor& result_;
  const Tensor& fp64_;
  bool is_given_;
  const SameOptions& options_;
};

// Dense, and of a dtype that operators compute with.
Tensor comparable(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  Tensor plain = tensor.detach();
  if (plain.is_quantized()) plain = plain.dequantize();
  if (plain.layout() != at::kStrided) plain = plain.to_dense();
  if (c10::isFloat8Type(plain.scalar_type())) plain = plain.to(at::kFloat);
  if (plain.scalar_type() == at::kComplexHalf) plain = plain.to(at::kComplexFloat);
  return plain;
}

// Integers and bools: rounding cannot explain a difference, however small beside the number.
Comparison same_integers(const Tensor& reference, const Tensor& result) {
  if (at::equal(reference, result)) return {};
  const Tensor left = reference.to(at::kDouble);
  const Tensor right = result.to(at::kDouble);
  const double largest = left.sub(right).abs().max().item<double>();
  const auto count = at::ne(reference, result).sum().item<std::int64_t>();
  const bool are_bools = reference.scalar_type() == at::kBool;
  Comparison found =
      different(Kind::integers, std::to_string(count) + " of " + std::to_string(result.numel()) +
                                    (are_bools ? " bools differ" : " integers differ, by up to ") +
                                    (are_bools ? "" : number(largest)));
  found.error = largest;
  return found;
}

Comparison same_masks(const Tensor& reference, const Tensor& result, const SameOptions& options) {
  const double both = reference.logical_and(result).sum().item<double>();
  const double either = reference.logical_or(result).sum().item<double>();
  const double overlap = either == 0 ? 1 : both / either;
  if (overlap >= options.iou_threshold) return {};
  Comparison found = different(Kind::integers, "the masks overlap by " + number(overlap) +
                                                   " (intersection over union); the threshold is " +
                                                   number(options.iou_threshold));
  found.error = 1 - overlap;
  found.tolerance = 1 - options.iou_threshold;
  return found;
}

Comparison same_direction(const Tensor& reference, const Tensor& result,
                          const SameOptions& options) {
  constexpr double kSimilar = 0.99;
  const Tensor left = as_vector(reference, result.is_complex());
  const Tensor right = as_vector(result, result.is_complex());
  // Zeros and NaN have no direction.
  if (all_close(left, right, options.tol, /*equal_nan=*/true)) return {};
  const double score = at::cosine_similarity(left, right, 0, 1e-6).item<double>();
  if (score >= kSimilar) return {};
  Comparison found = different(
      std::isnan(score) ? Kind::nan : Kind::values,
      "the cosine similarity is " + number(score) + "; the threshold is " + number(kSimilar));
  found.error = 1 - score;
  found.tolerance = 1 - kSimilar;
  return found;
}

}  // namespace

Comparison different(Kind kind, std::string message) {
  Comparison found;
  found.same = false;
  found.kind = kind;
  found.message = std::move(message);
  return found;
}

Comparison same_tensors(const Tensor& given_reference, const Tensor& given_result,
                        const Tensor& given_fp64, const SameOptions& options) {
  const c10::AutoGradMode no_grad(false);
  if (given_reference.layout() != given_result.layout()) {
    std::ostringstream text;
    text << "eager returns a tensor of layout " << given_reference.layout() << ", the result is "
         << given_result.layout();
    return different(Kind::structure, text.str());
  }
  const Tensor eager = comparable(given_reference);
  const Tensor result = comparable(given_result);
  const Tensor fp64 = comparable(given_fp64);
  // Complex numbers made real have lost something, whatever dtypes are allowed.
  const bool is_exact = options.exact_dtype || (eager.is_complex() && !result.is_complex());
  if (is_exact && given_reference.scalar_type() != given_result.scalar_type()) {
    std::ostringstream text;
    text << "eager returns " << given_reference.scalar_type() << ", the result is "
         << given_result.scalar_type();
    return different(Kind::dtype, text.str());
  }
  if (eager.sizes() != result.sizes()) {
    return different(Kind::shape, "eager returns a tensor of size " + shape_text(eager) +
                                      ", the result has size " + shape_text(result));
  }
  if (options.ignore_non_fp && !is_fp(eager)) return {};
  const bool are_masks = options.exact_dtype && eager.scalar_type() == at::kBool;
  if (are_masks && options.use_iou_for_bool) return same_masks(eager, result, options);
  if (options.cos_similarity && !are_masks) return same_direction(eager, result, options);
  const Tensor reference = eager.to(result.scalar_type());
  if (!is_fp(eager) && !is_fp(result)) return same_integers(reference, result);
  if (all_close(reference, result, options.tol, options.equal_nan)) return {};
  const Tensor& judge = fp64.defined() ? fp64 : eager;  // as it was before it was rounded
  if (is_fp64(judge)) {
    if (judge.sizes() != reference.sizes()) {
      return different(Kind::reference, "the float64 reference has size " + shape_text(judge) +
                                            ", eager's tensor " + shape_text(reference));
    }
    return FarFromReference(reference, result, judge, fp64.defined(), options).judge();
  }
  return far_apart(reference, result, options);
}

}  // namespace assay::compare
