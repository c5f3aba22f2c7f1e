#include "random_kernel.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/instructions.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

constexpr std::array kDtypes = {ScalarType::Bool,  ScalarType::Byte,     ScalarType::Char,
                                ScalarType::Short, ScalarType::Int,      ScalarType::Long,
                                ScalarType::Half,  ScalarType::BFloat16, ScalarType::Float,
                                ScalarType::Double};
constexpr std::array<std::int64_t, 22> kSizes = {1,  2,  3,  4,  5,  7,  8,  9,  15, 16, 17,
                                                 24, 31, 32, 33, 47, 63, 64, 65, 80, 97, 130};

bool is_floating(ScalarType dtype) {
  return dtype == ScalarType::Float || dtype == ScalarType::Double;
}
bool is_half(ScalarType dtype) {
  return dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
}

class RandomKernel {
 public:
  RandomKernel(LoopProgram& program, std::mt19937& random, const RandomKernelOptions& options)
      : program_(program), random_(random), options_(options) {}

  Kernel make() {
    kernel_.name = "random_" + std::to_string(program_.steps.size());
    kernel_.vectorize = options_.vectorize;
    const int rank = pick(0, 3);
    for (int k = 0; k < rank; ++k) {
      kernel_.outer.push_back(k + 1 == rank || chance(25) ? size() : pick(1, 4));
    }
    const int passes = pick(0, 2) == 0 ? 1 : pick(1, 3);
    for (int k = 0; k < passes; ++k) make_pass(k + 1 == passes);
    return std::move(kernel_);
  }

 private:
  struct Known {
    ValueId id;
    ScalarType dtype;
    bool is_small;  // exact sums of it are no problem
  };

  int pick(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::int64_t size() {
    if (chance(3)) return 0;
    return kSizes[static_cast<std::size_t>(pick(0, static_cast<int>(kSizes.size()) - 1))];
  }
  ScalarType dtype() { return kDtypes[static_cast<std::size_t>(pick(0, 9))]; }

  void make_pass(bool is_last) {
    Pass pass;
    if (!scratch_.empty() && chance(60)) {
      pass.inner = scratch_.back().inner;
    } else if (chance(is_last ? 40 : 80)) {
      const int inner = pick(1, 2);
      for (int k = 0; k < inner; ++k) pass.inner.push_back(k + 1 == inner ? size() : pick(1, 3));
    }
    sizes_.assign(kernel_.outer.begin(), kernel_.outer.end());
    sizes_.insert(sizes_.end(), pass.inner.begin(), pass.inner.end());
    pass_ = &pass;
    const std::vector<Known> before = known_;
    for (const Scratch& row : scratch_) {
      if (row.inner == pass.inner) add_scratch_access(Op::load, row, kNoValue);
    }
    const int count = pick(2, options_.instructions);
    for (int k = 0; k < count; ++k) add_something();
    add_load(dtype(), false);
    std::vector<Known> results;
    if (!pass.inner.empty()) {
      if (chance(70)) add_reductions(results);
      if (chance(25)) add_scan();
    }
    for (int k = pick(1, 2); k > 0; --k) add_store(choose(any_dtype()));
    if (!is_last && !pass.inner.empty() && chance(60)) {
      const Known value = choose(any_dtype());
      std::int64_t elements = 1;
      for (const std::int64_t extent : pass.inner) elements *= extent;
      scratch_.push_back({pass.inner, buffer(value.dtype, elements, Buffer::Kind::scratch)});
      add_scratch_access(Op::store, scratch_.back(), value.id);
    }
    if (is_last && chance(20)) add_indirect_store();
    // Values computed in inner loops do not outlive them.
    if (!pass.inner.empty()) known_ = before;
    known_.insert(known_.end(), results.begin(), results.end());
    kernel_.passes.push_back(std::move(pass));
    pass_ = nullptr;
  }

  // A row that an earlier pass has left behind.
  struct Scratch {
    Sizes inner;
    BufferId buffer;
  };

  void add_scratch_access(Op op, const Scratch& row, ValueId value) {
    Instruction access;
    access.op = op;
    access.dtype = program_.buffers[row.buffer].dtype;
    access.buffer = row.buffer;
    access.index.coefficients.resize(sizes_.size());
    std::int64_t stride = 1;
    for (std::size_t k = sizes_.size(); k-- > kernel_.outer.size();) {
      access.index.coefficients[k] = stride;
      stride *= sizes_[k];
    }
    if (op == Op::store) access.operands = {value};
    append(std::move(access));
  }

  // Indices repeat: later points win, or everything is added up.
  void add_indirect_store() {
    ScalarType type = dtype();
    add_load(type, false);
    const ValueId value = known_.back().id;
    const Known position = choose(ScalarType::Long);
    const ValueId bound = add_constant(ScalarType::Long, pick(2, 9)).id;
    const std::int64_t size = pass_->body.back().constant.toLong();
    const ValueId legal = add_operation(Op::remainder, ScalarType::Long, {position.id, bound});
    Instruction store;
    store.op = chance(50) ? Op::store_indirect : Op::add_indirect;
    store.dtype = type;
    std::int64_t elements = 0;
    store.index = layout(elements, false);
    store.operands = {value, legal};
    store.buffer = buffer(type, elements + size, Buffer::Kind::intermediate);
    append(std::move(store));
  }

  ValueId append(Instruction instruction, bool is_small = false) {
    const ValueId id = next_++;
    if (!has_no_result(instruction.op) && !is_reduction(instruction.op)) {
      known_.push_back({id, instruction.dtype, is_small});
    }
    pass_->body.push_back(std::move(instruction));
    return id;
  }

  BufferId buffer(ScalarType dtype, std::int64_t elements, Buffer::Kind kind) {
    Buffer result;
    result.kind = kind;
    result.name = "x" + std::to_string(program_.buffers.size());
    result.dtype = dtype;
    result.elements = elements;
    result.sizes = {elements};
    result.strides = {1};
    program_.buffers.push_back(std::move(result));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // A random layout over the loops: contiguous, permuted, broadcast, strided, reversed.
  Index layout(std::int64_t& elements, bool is_store) {
    const std::size_t rank = sizes_.size();
    std::vector<std::size_t> order(rank);
    for (std::size_t k = 0; k < rank; ++k) order[k] = k;
    if (chance(30)) std::ranges::shuffle(order, random_);
    Index index;
    index.coefficients.resize(rank);
    std::int64_t stride = chance(15) ? pick(2, 3) : 1;
    for (std::size_t k = rank; k-- > 0;) {
      const std::size_t variable = order[k];
      if (!is_store && chance(20)) continue;
      const bool reversed = chance(8);
      index.coefficients[variable] = reversed ? -stride : stride;
      const std::int64_t extent = std::max<std::int64_t>(1, sizes_[variable]);
      if (reversed) index.offset += stride * (extent - 1);
      stride *= extent;
      if (chance(10)) stride += pick(1, 3);
    }
    index.offset += pick(0, 3);
    elements = stride + index.offset + 4;
    return index;
  }

  void add_load(ScalarType dtype, bool is_conditional) {
    Instruction load;
    load.op = Op::load;
    load.dtype = dtype;
    std::int64_t elements = 0;
    load.index = layout(elements, false);
    if (is_conditional && !sizes_.empty()) {
      const Known otherwise = choose(dtype);
      load.operands = {otherwise.id};
      Condition condition;
      const auto variable = static_cast<std::size_t>(pick(0, static_cast<int>(sizes_.size()) - 1));
      condition.index.coefficients.resize(sizes_.size());
      condition.index.coefficients[variable] = chance(20) ? -1 : 1;
      condition.index.offset = pick(-2, 2);
      condition.lower = pick(-3, 5);
      condition.upper = condition.lower + pick(0, static_cast<int>(sizes_[variable]) + 2);
      if (condition.index.coefficients[variable] < 0) {
        condition.index.offset += sizes_[variable] - 1;
      }
      load.conditions.push_back(condition);
    }
    load.buffer = buffer(dtype, elements, Buffer::Kind::input);
    append(std::move(load), true);
  }

  // An index is computed from data, made legal, checked, and used.
  void add_indirect_load(ScalarType dtype) {
    const Known position = choose(ScalarType::Long);
    const ValueId size = add_constant(ScalarType::Long, pick(5, 40)).id;
    const std::int64_t bound = pass_->body.back().constant.toLong();
    const ValueId legal = add_operation(Op::remainder, ScalarType::Long, {position.id, size});
    const ValueId good = add_operation(Op::lt, ScalarType::Bool, {legal, size});
    Instruction check;
    check.op = Op::check;
    check.dtype = ScalarType::Bool;
    check.operands = {good};
    check.message = "index out of range";
    append(std::move(check));
    Instruction load;
    load.op = Op::load_indirect;
    load.dtype = dtype;
    std::int64_t elements = 0;
    load.index = layout(elements, false);
    load.operands = {legal};
    if (chance(40)) {
      load.operands.push_back(choose(ScalarType::Bool).id);
      load.operands.push_back(choose(dtype).id);
    }
    load.buffer = buffer(dtype, elements + bound, Buffer::Kind::input);
    append(std::move(load), true);
  }

  Known add_constant(ScalarType dtype, int value) {
    Instruction constant;
    constant.op = Op::constant;
    constant.dtype = dtype;
    if (dtype == ScalarType::Bool) {
      constant.constant = value % 2 != 0;
    } else if (is_floating(dtype) || is_half(dtype)) {
      constant.constant = 0.25 * value;
    } else {
      constant.constant = static_cast<std::int64_t>(dtype == ScalarType::Byte ? value & 7 : value);
    }
    append(std::move(constant), true);
    return known_.back();
  }

  ScalarType any_dtype() {
    return known_.empty()
               ? dtype()
               : known_[static_cast<std::size_t>(pick(0, static_cast<int>(known_.size()) - 1))]
                     .dtype;
  }

  // A value of the dtype, made if there is none.
  Known choose(ScalarType dtype) {
    std::vector<Known> candidates;
    for (const Known& value : known_) {
      if (value.dtype == dtype) candidates.push_back(value);
    }
    if (!candidates.empty() && chance(90)) {
      return candidates[static_cast<std::size_t>(pick(0, static_cast<int>(candidates.size()) - 1))];
    }
    if (dtype == ScalarType::Long && chance(40)) {
      Instruction index;
      index.op = Op::index;
      index.dtype = ScalarType::Long;
      std::int64_t elements = 0;
      index.index = layout(elements, false);
      append(std::move(index), true);
    } else if (dtype == ScalarType::Bool && chance(40) && !sizes_.empty()) {
      Instruction condition;
      condition.op = Op::condition;
      condition.dtype = ScalarType::Bool;
      condition.conditions.resize(static_cast<std::size_t>(pick(1, 2)));
      for (Condition& entry : condition.conditions) {
        std::int64_t elements = 0;
        entry.index = layout(elements, false);
        entry.lower = pick(0, 5);
        entry.upper = pick(3, 60);
      }
      append(std::move(condition), true);
    } else if (chance(30)) {
      return add_constant(dtype, pick(-9, 9));
    } else {
      add_load(dtype, false);
    }
    return known_.back();
  }

  ValueId add_operation(Op op, ScalarType dtype, std::initializer_list<ValueId> operands) {
    Instruction instruction;
    instruction.op = op;
    instruction.dtype = dtype;
    instruction.operands.assign(operands.begin(), operands.end());
    return append(std::move(instruction));
  }

  void add_something() {
    const ScalarType type = dtype();
    const int kind = pick(0, 99);
    if (kind < 15) return add_load(type, false);
    if (kind < 23) return add_load(type, true);
    if (kind < 30) return add_indirect_load(type);
    if (kind < 45) {
      const Known source = choose(any_dtype());
      // Large floats do not fit into integers, and conversions of those are undefined.
      const bool is_safe = source.is_small || !is_floating(source.dtype) || is_floating(type);
      if (is_safe) {
        Instruction cast;
        cast.op = Op::cast;
        cast.dtype = type;
        cast.operands = {source.id};
        append(std::move(cast), source.is_small);
      }
      return;
    }
    if (kind < 52) {
      const Known condition = choose(ScalarType::Bool);
      const Known a = choose(type);
      const Known b = choose(type);
      add_operation(Op::where, type, {condition.id, a.id, b.id});
      return;
    }
    if (is_half(type)) return;
    if (kind < 62) {
      constexpr std::array kComparisons = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
      const Known a = choose(type);
      const Known b = choose(type);
      add_operation(kComparisons[static_cast<std::size_t>(pick(0, 5))], ScalarType::Bool,
                    {a.id, b.id});
      return;
    }
    add_arithmetic(type);
  }

  void add_arithmetic(ScalarType type) {
    const Known a = choose(type);
    const Known b = choose(type);
    auto one_of = [&](std::initializer_list<Op> list) {
      return list.begin()[pick(0, static_cast<int>(list.size()) - 1)];
    };
    if (type == ScalarType::Bool) {
      if (chance(20)) {
        add_operation(Op::logical_not, type, {a.id});
      } else {
        add_operation(
            one_of({Op::bitwise_and, Op::bitwise_or, Op::bitwise_xor, Op::maximum, Op::minimum}),
            type, {a.id, b.id});
      }
    } else if (is_floating(type)) {
      if (chance(40)) {
        const Op op = one_of({Op::neg, Op::abs, Op::sign, Op::reciprocal, Op::sqrt, Op::square,
                              Op::floor, Op::ceil, Op::round, Op::trunc, Op::frac, Op::isnan,
                              Op::isinf, Op::isfinite, Op::signbit});
        const bool is_test = op >= Op::isnan && op <= Op::signbit;
        add_operation(op, is_test ? ScalarType::Bool : type, {a.id});
      } else {
        add_operation(one_of({Op::add, Op::sub, Op::mul, Op::div, Op::maximum, Op::minimum,
                              Op::fmax, Op::fmin, Op::copysign, Op::div_trunc}),
                      type, {a.id, b.id});
      }
    } else if (chance(25)) {
      add_operation(one_of({Op::neg, Op::abs, Op::sign, Op::square, Op::bitwise_not}), type,
                    {a.id});
    } else {
      Op op = one_of({Op::add, Op::sub, Op::mul, Op::maximum, Op::minimum, Op::bitwise_and,
                      Op::bitwise_or, Op::bitwise_xor, Op::shift_left, Op::shift_right,
                      Op::div_floor, Op::div_trunc, Op::remainder, Op::fmod});
      ValueId right = b.id;
      if (op >= Op::div_floor && op <= Op::fmod) right = add_constant(type, pick(1, 7)).id;
      add_operation(op, type, {a.id, right});
    }
  }

  // Of values that were loaded, whose sums are exact.
  void add_reductions(std::vector<Known>& results) {
    for (int count = pick(1, 3); count > 0; --count) {
      ScalarType type = dtype();
      if (is_half(type)) type = ScalarType::Float;
      if (is_floating(type)) add_load(type, false);
      const Known source = is_floating(type) ? known_.back() : choose(type);
      constexpr std::array kNumbers = {Op::reduce_sum, Op::reduce_max, Op::reduce_min};
      constexpr std::array kBools = {Op::reduce_any, Op::reduce_all, Op::reduce_xor};
      Instruction reduce;
      reduce.dtype = type;
      reduce.operands = {source.id};
      if (type != ScalarType::Bool && chance(25)) {
        reduce.op = chance(50) ? Op::reduce_argmax : Op::reduce_argmin;
        Instruction position;
        position.op = Op::index;
        position.dtype = ScalarType::Long;
        position.index.coefficients.resize(sizes_.size());
        std::int64_t stride = 1;
        for (std::size_t k = sizes_.size(); k-- > kernel_.outer.size();) {
          position.index.coefficients[k] = stride;
          stride *= sizes_[k];
        }
        if (stride == 0) continue;
        reduce.operands.push_back(append(std::move(position)));
        reduce.dtype = ScalarType::Long;
      } else {
        reduce.op =
            (type == ScalarType::Bool ? kBools : kNumbers)[static_cast<std::size_t>(pick(0, 2))];
      }
      const ScalarType result = reduce.dtype;
      results.push_back({append(std::move(reduce)), result, false});
    }
  }

  void add_scan() {
    const ScalarType type = chance(50) ? ScalarType::Long : ScalarType::Float;
    add_load(type, false);
    Instruction scan;
    scan.op = chance(50) ? Op::scan_sum : chance(50) ? Op::scan_max : Op::scan_min;
    scan.dtype = type;
    scan.operands = {known_.back().id};
    append(std::move(scan));
  }

  void add_store(const Known& value) {
    Instruction store;
    store.op = Op::store;
    store.dtype = value.dtype;
    store.operands = {value.id};
    std::int64_t elements = 0;
    store.index = layout(elements, true);
    store.buffer = buffer(value.dtype, elements, Buffer::Kind::intermediate);
    append(std::move(store));
  }

  LoopProgram& program_;
  std::mt19937& random_;
  RandomKernelOptions options_;
  Kernel kernel_;
  Pass* pass_ = nullptr;
  std::vector<std::int64_t> sizes_;
  std::vector<Known> known_;
  std::vector<Scratch> scratch_;
  ValueId next_ = 0;
};

template <typename Element>
void fill(std::span<std::byte> bytes, std::mt19937& random, bool has_negative) {
  std::uniform_int_distribution<> numbers(has_negative ? -8 : 0, 8);
  for (std::size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
    const auto value = static_cast<Element>(static_cast<float>(numbers(random)));
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes) : size_(bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t used = (bytes + page - 1) / page * page;
  mapped_ = used + page;
  pages_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<std::byte*>(pages_) + used, page, PROT_NONE);
  data_ = static_cast<std::byte*>(pages_) + used - bytes;
}

GuardedMemory::~GuardedMemory() { munmap(pages_, mapped_); }

std::vector<std::unique_ptr<GuardedMemory>> make_memory(const LoopProgram& program, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  for (const Buffer& buffer : program.buffers) {
    memory.push_back(std::make_unique<GuardedMemory>(static_cast<std::size_t>(buffer.elements) *
                                                     c10::elementSize(buffer.dtype)));
    const std::span<std::byte> bytes = memory.back()->bytes();
    switch (buffer.dtype) {
      case ScalarType::Bool:
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 2);
        break;
      case ScalarType::Byte:
        fill<std::uint8_t>(bytes, random, false);
        break;
      case ScalarType::Char:
        fill<std::int8_t>(bytes, random, true);
        break;
      case ScalarType::Short:
        fill<std::int16_t>(bytes, random, true);
        break;
      case ScalarType::Int:
        fill<std::int32_t>(bytes, random, true);
        break;
      case ScalarType::Long:
        fill<std::int64_t>(bytes, random, true);
        break;
      case ScalarType::Half:
        fill<c10::Half>(bytes, random, true);
        break;
      case ScalarType::BFloat16:
        fill<c10::BFloat16>(bytes, random, true);
        break;
      case ScalarType::Float:
        fill<float>(bytes, random, true);
        break;
      default:
        fill<double>(bytes, random, true);
        break;
    }
  }
  return memory;
}

void add_random_kernel(LoopProgram& program, std::mt19937& random,
                       const RandomKernelOptions& options) {
  program.steps.emplace_back(RandomKernel(program, random, options).make());
}

}  // namespace assay::kernels
