/// \file The loop IR: what an ATen graph is lowered to, and what is fused, scheduled and emitted as
/// C++. docs/kernels.md follows one graph through it.
///
/// A `LoopProgram` is a list of steps over buffers. A step is a kernel (loops around scalar
/// instructions) or a call of an ATen operator. Everything is addressed in one way: an affine
/// function of the loop variables into a buffer's memory. So a view needs no step and no copy: it
/// is a `TensorRef` with other strides, and whoever reads it computes another index.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace assay::kernels {

using Sizes = c10::SmallVector<std::int64_t, 6>;
using BufferId = std::uint32_t;
/// The number of an instruction in its kernel, counted over all passes.
using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = std::numeric_limits<ValueId>::max();
inline constexpr BufferId kNoBuffer = std::numeric_limits<BufferId>::max();

/// Memory that steps read and write.
struct Buffer {
  enum class Kind : std::uint8_t {
    input,  ///< A placeholder. Its pointer is the tensor's data_ptr(), so offsets count from there.
    intermediate,  ///< Written by a step; the memory plan gives it a place.
    result,        ///< Made by an extern call that allocates its own results.
    scratch,  ///< One row of values inside one kernel, made by fusion; indexed by inner loops only.
  };
  Kind kind = Kind::intermediate;
  std::string name = {};  ///< The node's name, or `buf3`.
  c10::ScalarType dtype = c10::ScalarType::Float;
  /// The layout of the tensor that the buffer was made for. For `intermediate`, eager's strides
  /// (dense); its storage has `elements` elements.
  Sizes sizes = {};
  Sizes strides = {};
  std::int64_t elements = 0;
  /// Of a `result`: the buffers that its memory may be part of, because the call that makes it may
  /// return a view. They must live as long as it does, and what is written to one changes the
  /// other.
  std::vector<BufferId> aliases = {};
};

/// A tensor of the graph: a view of a buffer's memory.
struct TensorRef {
  BufferId buffer = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  Sizes sizes;
  Sizes strides;
  std::int64_t offset = 0;  ///< In elements, from the buffer's start.
};

/// `offset + sum(coefficients[k] * variable[k])`. Variables are the kernel's outer loops, outermost
/// first, then the inner loops of the pass. Trailing zero coefficients may be left out.
struct Index {
  std::int64_t offset = 0;
  Sizes coefficients = {};

  std::int64_t coefficient(std::size_t variable) const {
    return variable < coefficients.size() ? coefficients[variable] : 0;
  }
};

/// `lower <= index < upper`.
struct Condition {
  Index index = {};
  std::int64_t lower = 0;
  std::int64_t upper = 0;
};

/// What an instruction computes. Operands have the instruction's own dtype unless it says
/// otherwise: a lowering inserts casts, so that later stages need not know ATen's rules of
/// promotion. `half` and `bfloat16` values are only loaded, stored and cast; arithmetic is in
/// float.
enum class Op : std::uint8_t {
  // Memory. `load` gives `otherwise` (operand 0) where `conditions` do not all hold, and then does
  // not touch memory. `load_indirect` adds operand 0 (int64, in elements, checked before) to the
  // index; a false operand 1 (bool, may be absent) means: do not load, give operand 2.
  load,
  load_indirect,
  store,           ///< Operand 0 is the value, of the buffer's dtype.
  store_indirect,  ///< Operand 1 (int64, elements) is added to the index.
  /// Adds operand 0 to what is there, at the index plus operand 1: half and bfloat16 in float,
  /// rounded each time; bools are or'ed. Kernels that have it run serially, in eager's order.
  add_indirect,
  // Values without operands.
  constant,
  index,      ///< The value of `index`, as int64.
  condition,  ///< True where all `conditions` hold.
  // Unary; the result has the operand's dtype unless noted.
  cast,     ///< To `dtype`, by ATen's rules: float to integer truncates, to bool is `!= 0`.
  bitcast,  ///< The same bits as another dtype of the same width.
  neg,
  abs,
  sign,
  reciprocal,
  sqrt,
  rsqrt,
  square,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  erfc,
  erfinv,
  lgamma,
  digamma,
  sigmoid,
  floor,
  ceil,
  round,
  trunc,
  frac,
  isnan,
  isinf,
  isfinite,
  signbit,      ///< Operand floating point, result bool.
  logical_not,  ///< bool to bool.
  bitwise_not,
  // Binary.
  add,
  sub,
  mul,
  div,        ///< Floating point only.
  div_floor,  ///< ATen's floor division; integers too (division by zero raises: see `check`).
  div_trunc,
  remainder,  ///< Python's sign.
  fmod,       ///< C's sign.
  maximum,
  minimum,  ///< NaN if either is.
  fmax,
  fmin,  ///< The other one if one is NaN.
  pow,
  atan2,
  hypot,
  copysign,
  nextafter,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  shift_left,
  shift_right,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  ///< Operands of one dtype, result bool.
  // Ternary.
  where,  ///< Operand 0 bool.
  fma,    ///< a * b + c, rounded once: only where ATen does that.
  // Reductions, over the inner loops of the pass they stand in. `axis` in eager's order.
  reduce_sum,
  reduce_prod,
  reduce_max,
  reduce_min,
  reduce_any,
  reduce_all,
  reduce_xor,
  /// Index (int64) of the first largest or smallest operand 0 (NaN counts as extreme); operand 1 is
  /// the int64 position that is compared for "first" and returned.
  reduce_argmax,
  reduce_argmin,
  /// Inclusive scan along the last inner loop; the value at each point of that loop (inner level).
  scan_sum,
  scan_prod,
  scan_max,
  scan_min,
  /// Raises "index out of range" unless operand 0 (bool) holds at every point; `message` is the
  /// text.
  check,
};

const char* to_string(Op op);

struct Instruction {
  Op op = Op::constant;
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< Of the result; of a store, the buffer's.
  c10::SmallVector<ValueId, 3> operands = {};
  BufferId buffer = 0;                     ///< Of loads and stores.
  Index index = {};                        ///< Of loads, stores and `index`.
  std::vector<Condition> conditions = {};  ///< Of `load` and `condition`.
  c10::Scalar constant = {};               ///< Of `constant`.
  std::string message = {};                ///< Of `check`.
};

/// A part of a kernel that runs once per point of the outer loops: its body at every point of the
/// inner loops, the last one fastest. Without inner loops it runs once. A later pass may use the
/// results of an earlier pass's reductions, and values of passes without inner loops; what was
/// computed inside inner loops it must load from a buffer (a scratch buffer, usually).
struct Pass {
  Sizes inner;
  std::vector<Instruction> body;
};

/// Loops around scalar instructions. Points of the outer loops are independent of each other
/// (unless there is an `add_indirect`), so that any range of them can run in another thread.
struct Kernel {
  std::string name;  ///< Made of the operators in it: `fused_add_relu_3`.
  Sizes outer;
  std::vector<Pass> passes;
  /// The graph's nodes it computes, for reports and messages; they outlive the program.
  std::vector<const graph::Node*> nodes;

  /// Which loop is made of vectors.
  enum class Vectorize : std::uint8_t {
    none,
    inner,  ///< The last inner loop of each pass that has one (or, without any, the last outer
            ///< loop).
    outer,  ///< The last outer loop: each lane is another point, inner loops run one by one.
  };
  Vectorize vectorize = Vectorize::none;
  bool is_parallel = false;  ///< Worth more than one thread.
};

/// One call of an ATen operator (or of whatever the aten room can run) on tensors.
struct ExternCall {
  const graph::Node* node = nullptr;
  /// For each node that the call mentions, in the order of Node::for_each_input: its tensor, or the
  /// node itself if its value is something else (a number, a list of tensors, a subgraph).
  std::vector<std::variant<TensorRef, const graph::Node*>> operands;
  /// The buffers of its results, one per tensor in order; kind `result`, or `intermediate` if the
  /// operator writes into memory it is given (`out=`). Empty if the value is something else (a
  /// number, a list of lists), which is then known by the node, or a tensor it was given (`add_`).
  std::vector<BufferId> results;
  /// The buffers it writes to besides its results: those of `add_`, of `copy_`. No read or write of
  /// them may be moved across the call.
  std::vector<BufferId> writes;
  std::string reason;  ///< Why it is not lowered, for `assay coverage`.
};

using Step = std::variant<Kernel, ExternCall>;

/// One leaf of the graph's output.
using ProgramOutput = std::variant<TensorRef, const graph::Node*, c10::IValue>;

struct LoopProgram {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  /// One per placeholder, in order; `kNoBuffer` for what is not a tensor on the CPU.
  std::vector<BufferId> inputs;
  std::vector<ProgramOutput> outputs;
  /// Keeps the nodes alive that steps mention.
  std::shared_ptr<const graph::Graph> graph;
  /// The graph before it was prepared for the libraries that it calls: what eager would run.
  std::shared_ptr<const graph::Graph> original;
};

}  // namespace assay::kernels
