/// \file What is known about an operator: one record each, the only place to ask.
///
/// A record is filled from the operator's schema and tags, corrected by one table of exceptions
/// (aten/operator_exceptions.h). Passes, the partitioners, the recorders, the comparison and the
/// debug backends all read it, so that they cannot disagree. Looking a record up costs a hash of a
/// pointer; it is made at the first question and dropped when the operator is deregistered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace c10 {
class OperatorHandle;
}

namespace assay::aten {

/// Whether a result shares memory with an argument.
enum class View : std::uint8_t {
  never,
  maybe,   ///< A view where that is possible, otherwise a copy (`reshape`, `to`).
  always,  ///< `view`, `t`, `split`.
};

/// How much an operator computes, and how it reads its inputs: what a compiler can fuse it with.
enum class Work : std::uint8_t {
  none,       ///< A view.
  pointwise,  ///< Element by element, a constant fill or a copy. Also questions about sizes.
  gather,     ///< Reads as much as it writes, from anywhere: indexing, embedding.
  join,       ///< Writes its inputs side by side: `cat`.
  reduction,  ///< Sums, maxima, moments: reads more than it writes.
  expensive,  ///< Everything else: matrix products, convolutions, attention, sorts, custom
              ///< operators.
};

/// Whether the sizes of the result depend on the values of the arguments.
enum class SizesFromValues : std::uint8_t {
  never,
  if_masked,   ///< Only if one of the indices is a mask (`index`).
  if_unsized,  ///< Only without an `output_size` (`repeat_interleave`).
  always,      ///< `nonzero`, `unique`.
};

/// The defaults are the cautious answers: those for a call nothing is known about.
struct OperatorRecord {
  /// False for a call that is not an operator, a prim or a function of Python's `operator` module.
  /// Then it may write to anything; what is set below still holds (`torch.rand` is random).
  bool is_known = false;
  /// Only computes its results from its arguments: writes to nothing, draws no random number,
  /// checks nothing. It may be removed if unused, repeated, or merged with an equal call.
  bool is_pure = false;
  /// Draws from a random generator.
  bool is_random = false;
  /// Draws floating-point numbers, whose stream depends on the dtype they are drawn in.
  bool draws_floats = false;
  /// The arguments it writes to, by position; declared in the schema or not.
  std::vector<std::size_t> writes;
  /// Writes to something that its schema does not declare as written.
  bool writes_undeclared = false;
  /// `add_`: writes to its first argument only, and returns it.
  bool is_in_place = false;
  /// Whether its (first) result is a view, of argument number `view_of`.
  View view = View::never;
  std::size_t view_of = 0;
  /// The schema declares the view.
  bool declares_view = false;
  /// A view of the whole argument, element by element: with the sizes, the strides and the offset
  /// of its argument it is the same tensor under another name. A permutation is one if its order is
  /// the identity. (Not `conj` and `_neg_view`, which change what is read.)
  bool keeps_elements = false;
  Work work = Work::expensive;
  /// The result's memory is not initialized: `empty` and its relatives.
  bool is_uninitialized = false;
  /// Gives a tensor of the default floating-point dtype unless another one is asked for.
  bool is_float_factory = false;
  /// Turns a tensor's value into a number or a bool, or chooses sizes by it: `item`, `equal`.
  bool reads_values = false;
  SizesFromValues sizes_from_values = SizesFromValues::never;
  /// Opens files, so that a graph from a stranger must not call it.
  bool opens_files = false;
  /// Has a tensor or a list among its results.
  bool returns_tensors = false;
  /// Its only result is one tensor.
  bool returns_one_tensor = false;

  bool writes_argument(std::size_t position) const;
  /// Writes to something, or may for all that is known.
  bool may_write() const { return !is_known || !writes.empty(); }
};

/// The record of an operator. The reference stays valid for the life of the process, but describes
/// the operator only while it is registered.
const OperatorRecord& operator_record(const c10::OperatorHandle& op);

/// The record of what a node calls: an operator, a prim (known without being registered), a
/// function of Python's `operator` module. For another function or method of torch it holds what is
/// true of some overload of the operator of that name. Nodes that are not calls have the cautious
/// record.
const OperatorRecord& operator_record(const graph::Node& node);

}  // namespace assay::aten
