#include "compare/same.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <sstream>

#include "compare/tensors.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;
using Kind = Comparison::Kind;

bool is_none(const Value& value) {
  return value.is_none() || (value.is_tensor() && !value.leaf.toTensor().defined());
}

bool is_list(const Value& value) {
  return value.is_sequence() || value.kind == Value::Kind::slice ||
         (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple()));
}

std::vector<Value> items_of(const Value& value) {
  return value.kind == Value::Kind::slice ? value.items : aten::unpack(value);
}

const Value* find_key(const Value& dict, const std::string& key) {
  for (std::size_t i = 0; i < dict.keys.size(); ++i) {
    if (dict.keys[i] == key) return &dict.items[i];
  }
  return nullptr;
}

// A float or complex number is a tensor of no dimensions; floats in the dtype that
// torch.tensor(1.0) has beside tensors, in their own among themselves.
Tensor as_tensor(const Value& value, at::ScalarType floats) {
  if (value.is_tensor()) return value.leaf.toTensor();
  const c10::Scalar scalar = value.leaf.toScalar();
  const Tensor tensor = at::scalar_tensor(scalar, at::TensorOptions().dtype(scalar.type()));
  return scalar.isFloatingPoint() ? tensor.to(floats) : tensor;  // infinite beyond float's range
}

bool is_tensor_or_number(const Value& value) {
  return value.is_number() || (value.is_tensor() && value.leaf.toTensor().defined());
}

std::string inside(std::string where, const std::string& index) {
  where.append("[").append(index).append("]");
  return where;
}

class Walk {
 public:
  explicit Walk(const SameOptions& options) : options_(options) {}

  Comparison compare(const Value& reference, const Value& result, const Value* fp64,
                     const std::string& where) {
    if (fp64 != nullptr && is_none(*fp64)) fp64 = nullptr;
    if (is_list(reference)) return compare_lists(reference, result, fp64, where);
    if (reference.kind == Value::Kind::dict) return compare_dicts(reference, result, fp64, where);
    if (is_none(reference)) {
      if (is_none(result)) return {};
      if (options_.ignore_non_fp) return skipped();
      return type_difference(reference, result, where);
    }
    if (reference.is_tensor() || reference.is_float() || reference.leaf.isComplexDouble()) {
      return compare_numbers(reference, result, fp64, where);
    }
    return compare_others(reference, result, where);
  }

  std::size_t not_compared() const { return not_compared_; }

 private:
  Comparison skipped() {
    ++not_compared_;
    return {};
  }

  static Comparison at_place(Comparison found, const std::string& where) {
    if (!found.same) found.where = where;
    return found;
  }

  static Comparison type_difference(const Value& reference, const Value& result,
                                    const std::string& where) {
    return at_place(different(Kind::structure, "eager returns " + aten::type_name(reference) +
                                                   ", the result is " + aten::type_name(result)),
                    where);
  }

  Comparison compare_lists(const Value& reference, const Value& result, const Value* fp64,
                           const std::string& where) {
    if (!is_list(result)) return type_difference(reference, result, where);
    const std::vector<Value> left = items_of(reference);
    const std::vector<Value> right = items_of(result);
    if (left.size() != right.size()) {
      return at_place(
          different(Kind::structure, "eager returns " + std::to_string(left.size()) +
                                         " values, the result has " + std::to_string(right.size())),
          where);
    }
    std::vector<Value> judges;
    if (fp64 != nullptr) {
      if (is_list(*fp64)) judges = items_of(*fp64);
      if (!is_list(*fp64) || judges.size() != left.size()) return unlike_reference(where);
    }
    Comparison total;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Value* judge = fp64 == nullptr ? nullptr : &judges[i];
      const std::string place = inside(where, std::to_string(i));
      if (!keep_looking(total, compare(left[i], right[i], judge, place))) break;
    }
    return total;
  }

  Comparison compare_dicts(const Value& reference, const Value& result, const Value* fp64,
                           const std::string& where) {
    if (result.kind != Value::Kind::dict) return type_difference(reference, result, where);
    for (const std::string& key : result.keys) {
      if (find_key(reference, key) != nullptr) continue;
      return at_place(different(Kind::structure, "the result has '" + key + "', eager does not"),
                      where);
    }
    if (fp64 != nullptr && fp64->kind != Value::Kind::dict) return unlike_reference(where);
    Comparison total;
    for (std::size_t i = 0; i < reference.items.size(); ++i) {
      const std::string& key = reference.keys[i];
      const Value* other = find_key(result, key);
      if (other == nullptr) {
        return at_place(
            different(Kind::structure, "eager returns '" + key + "', the result does not have it"),
            where);
      }
      const Value* judge = fp64 == nullptr ? nullptr : find_key(*fp64, key);
      if (fp64 != nullptr && judge == nullptr) return unlike_reference(where);
      const std::string place = inside(where, "'" + key + "'");
      if (!keep_looking(total, compare(reference.items[i], *other, judge, place))) break;
    }
    return total;
  }

  Comparison compare_numbers(const Value& reference, const Value& result, const Value* fp64,
                             const std::string& where) {
    if (!is_tensor_or_number(result)) return type_difference(reference, result, where);
    if (fp64 != nullptr && !is_tensor_or_number(*fp64)) return unlike_reference(where);
    const Tensor tensor = reference.is_tensor() ? reference.leaf.toTensor() : Tensor();
    const bool is_fp = !tensor.defined() || tensor.is_floating_point() || tensor.is_complex() ||
                       tensor.is_quantized();
    if (options_.ignore_non_fp && !is_fp) ++not_compared_;  // but for its dtype and size
    const bool are_numbers = reference.is_float() && result.is_float();
    const at::ScalarType floats = are_numbers ? at::kDouble : at::kFloat;
    // A Python number is not a float64 reference: it may come from rounded values.
    Tensor judge;
    if (fp64 != nullptr) {
      judge = as_tensor(*fp64, at::kFloat);
    } else if (are_numbers) {
      judge = as_tensor(reference, at::kFloat);
    }
    return at_place(
        same_tensors(as_tensor(reference, floats), as_tensor(result, floats), judge, options_),
        where);
  }

  // Strings, integers, bools, devices, dtypes.
  Comparison compare_others(const Value& reference, const Value& result, const std::string& where) {
    if (options_.ignore_non_fp) return skipped();
    const bool are_numbers = reference.is_number() && is_tensor_or_number(result);
    bool equal = false;
    if (are_numbers) {
      const Tensor right = as_tensor(result, at::kDouble);
      if (right.numel() != 1) return type_difference(reference, result, where);
      equal = right.eq(reference.leaf.toScalar()).item<bool>();
    } else {
      if (reference.kind != result.kind || aten::type_name(reference) != aten::type_name(result)) {
        return type_difference(reference, result, where);
      }
      equal = reference.kind == Value::Kind::ellipsis || reference.graph != nullptr
                  ? reference.graph == result.graph
                  : reference.leaf == result.leaf;
    }
    if (equal) return {};
    std::ostringstream text;
    text << "eager returns " << reference.leaf << ", the result is " << result.leaf;
    return at_place(different(reference.is_number() ? Kind::integers : Kind::values, text.str()),
                    where);
  }

  static Comparison unlike_reference(const std::string& where) {
    return at_place(
        different(Kind::reference, "the float64 reference has a different structure than eager"),
        where);
  }

  const SameOptions& options_;
  std::size_t not_compared_ = 0;
};

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::values:
      return "values";
    case Kind::integers:
      return "integers";
    case Kind::nan:
      return "nan";
    case Kind::dtype:
      return "dtype";
    case Kind::shape:
      return "shape";
    case Kind::structure:
      return "structure";
    case Kind::mutation:
      return "mutation";
    case Kind::strides:
      return "strides";
    case Kind::aliasing:
      return "aliasing";
    case Kind::second_call:
      return "second_call";
    case Kind::exception:
      return "exception";
    case Kind::reference:
      return "reference";
  }
  return "";
}

Comparison same(const Value& reference, const Value& result, const Value* fp64_reference,
                const SameOptions& options) {
  Walk walk(options);
  Comparison found = walk.compare(reference, result, fp64_reference, "");
  found.not_compared = walk.not_compared();
  return found;
}

bool keep_looking(Comparison& total, Comparison found) {
  const auto is_about_integers = [](const Comparison& one) {
    return !one.same && one.kind == Kind::integers;
  };
  const bool go_on = found.same || is_about_integers(found);
  const bool was_judged = found.tolerance > 0 || found.compiled_is_closer;
  if (!go_on || (total.same && (!found.same || was_judged))) total = std::move(found);
  return go_on;
}

}  // namespace assay::compare
