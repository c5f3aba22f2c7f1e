/// \file Generated code alone: kernels written in the loop IR, compiled and timed. Prints the time
/// of the compiler, and of one call with one thread, beside the time of a plain copy of the same
/// bytes.
///
///     bench_emit [--show NAME]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/emit.h"
#include "kernels/kernel_cache.h"

namespace {

using namespace assay::kernels;  // NOLINT: a small program
using c10::ScalarType;
using Clock = std::chrono::steady_clock;

/// Writes kernels over a matrix of rows and columns.
class Writer {
 public:
  Writer(std::string name, std::int64_t rows, std::int64_t columns) : rows_(rows), cols_(columns) {
    kernel_.name = std::move(name);
  }

  BufferId buffer(const std::string& name, std::int64_t elements,
                  ScalarType dtype = ScalarType::Float) {
    Buffer buffer;
    buffer.name = name;
    buffer.dtype = dtype;
    buffer.elements = elements;
    program_.buffers.push_back(buffer);
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }
  void pass(Sizes inner) { kernel_.passes.push_back({std::move(inner), {}}); }
  ValueId load(BufferId buffer, Sizes coefficients, ScalarType dtype = ScalarType::Float) {
    Instruction load;
    load.op = Op::load;
    load.dtype = dtype;
    load.buffer = buffer;
    load.index.coefficients = std::move(coefficients);
    return add(std::move(load));
  }
  void store(BufferId buffer, Sizes coefficients, ValueId value) {
    Instruction store;
    store.op = Op::store;
    store.dtype = program_.buffers[buffer].dtype;
    store.buffer = buffer;
    store.index.coefficients = std::move(coefficients);
    store.operands = {value};
    add(std::move(store));
  }
  ValueId op(Op op, std::initializer_list<ValueId> operands, ScalarType dtype = ScalarType::Float) {
    Instruction instruction;
    instruction.op = op;
    instruction.dtype = dtype;
    instruction.operands.assign(operands.begin(), operands.end());
    return add(std::move(instruction));
  }
  ValueId constant(double value) {
    Instruction constant;
    constant.op = Op::constant;
    constant.constant = value;
    return add(std::move(constant));
  }
  LoopProgram finish(Sizes outer, Kernel::Vectorize vectorize) {
    kernel_.outer = std::move(outer);
    kernel_.vectorize = vectorize;
    program_.steps.emplace_back(std::move(kernel_));
    return std::move(program_);
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }

 private:
  ValueId add(Instruction instruction) {
    kernel_.passes.back().body.push_back(std::move(instruction));
    return next_++;
  }

  std::int64_t rows_;
  std::int64_t cols_;
  LoopProgram program_;
  Kernel kernel_;
  ValueId next_ = 0;
};

LoopProgram pointwise(const std::string& name, std::int64_t count,
                      ValueId (*body)(Writer&, ValueId)) {
  Writer w(name, 1, count);
  const BufferId x = w.buffer("x", count);
  const BufferId y = w.buffer("y", count);
  w.pass({});
  w.store(y, {1}, body(w, w.load(x, {1})));
  return w.finish({count}, Kernel::Vectorize::inner);
}

ValueId gelu(Writer& w, ValueId x) {
  const ValueId half = w.op(Op::mul, {x, w.constant(0.5)});
  const ValueId erf = w.op(Op::erf, {w.op(Op::mul, {x, w.constant(0.70710678118654752)})});
  return w.op(Op::mul, {half, w.op(Op::add, {erf, w.constant(1)})});
}

ValueId gelu_tanh(Writer& w, ValueId x) {
  const ValueId cube = w.op(Op::mul, {w.op(Op::mul, {x, x}), x});
  const ValueId sum = w.op(Op::add, {x, w.op(Op::mul, {cube, w.constant(0.044715)})});
  const ValueId tanh = w.op(Op::tanh, {w.op(Op::mul, {sum, w.constant(0.79788456)})});
  return w.op(Op::mul, {w.op(Op::mul, {x, w.constant(0.5)}), w.op(Op::add, {tanh, w.constant(1)})});
}

ValueId chain(Writer& w, ValueId x) {
  for (int k = 0; k < 10; ++k) {
    x = w.op(Op::mul, {x, w.constant(1.01 + k)});
    x = w.op(Op::add, {x, w.constant(0.5)});
    x = k % 3 == 0   ? w.op(Op::sigmoid, {x})
        : k % 3 == 1 ? w.op(Op::tanh, {x})
                     : w.op(Op::maximum, {x, w.constant(0)});
  }
  return x;
}

ValueId silu(Writer& w, ValueId x) { return w.op(Op::mul, {x, w.op(Op::sigmoid, {x})}); }
ValueId logexp(Writer& w, ValueId x) { return w.op(Op::log1p, {w.op(Op::exp, {x})}); }
ValueId sincos(Writer& w, ValueId x) {
  return w.op(Op::add, {w.op(Op::sin, {x}), w.op(Op::cos, {x})});
}

LoopProgram softmax(std::int64_t rows, std::int64_t cols) {
  Writer w("softmax", rows, cols);
  const BufferId x = w.buffer("x", rows * cols);
  const BufferId y = w.buffer("y", rows * cols);
  w.pass({cols});
  const ValueId max = w.op(Op::reduce_max, {w.load(x, {cols, 1})});
  w.pass({cols});
  const ValueId e = w.op(Op::exp, {w.op(Op::sub, {w.load(x, {cols, 1}), max})});
  w.store(y, {cols, 1}, e);
  const ValueId sum = w.op(Op::reduce_sum, {e});
  w.pass({cols});
  w.store(y, {cols, 1}, w.op(Op::div, {w.load(y, {cols, 1}), sum}));
  return w.finish({rows}, Kernel::Vectorize::inner);
}

LoopProgram layer_norm(std::int64_t rows, std::int64_t cols) {
  Writer w("layer_norm", rows, cols);
  const BufferId x = w.buffer("x", rows * cols);
  const BufferId r = w.buffer("residual", rows * cols);
  const BufferId g = w.buffer("weight", cols);
  const BufferId b = w.buffer("bias", cols);
  const BufferId y = w.buffer("y", rows * cols);
  BufferId row = w.buffer("row", cols);
  w.pass({cols});
  const ValueId s = w.op(Op::add, {w.load(x, {cols, 1}), w.load(r, {cols, 1})});
  const ValueId sum = w.op(Op::reduce_sum, {s});
  w.store(row, {0, 1}, s);
  w.pass({});
  const ValueId mean = w.op(Op::mul, {sum, w.constant(1.0 / static_cast<double>(cols))});
  w.pass({cols});
  const ValueId d = w.op(Op::sub, {w.load(row, {0, 1}), mean});
  const ValueId squares = w.op(Op::reduce_sum, {w.op(Op::mul, {d, d})});
  w.pass({});
  const ValueId variance = w.op(Op::mul, {squares, w.constant(1.0 / static_cast<double>(cols))});
  const ValueId scale = w.op(Op::rsqrt, {w.op(Op::add, {variance, w.constant(1e-5)})});
  w.pass({cols});
  const ValueId n = w.op(Op::mul, {w.op(Op::sub, {w.load(row, {0, 1}), mean}), scale});
  w.store(y, {cols, 1}, w.op(Op::add, {w.op(Op::mul, {n, w.load(g, {0, 1})}), w.load(b, {0, 1})}));
  LoopProgram program = w.finish({rows}, Kernel::Vectorize::inner);
  program.buffers[row].kind = Buffer::Kind::scratch;
  return program;
}

LoopProgram row_sums(std::int64_t rows, std::int64_t cols) {
  Writer w("row_sums", rows, cols);
  const BufferId x = w.buffer("x", rows * cols);
  const BufferId y = w.buffer("y", rows);
  w.pass({cols});
  const ValueId sum = w.op(Op::reduce_sum, {w.load(x, {cols, 1})});
  w.pass({});
  w.store(y, {1}, sum);
  return w.finish({rows}, Kernel::Vectorize::inner);
}

LoopProgram column_sums(std::int64_t rows, std::int64_t cols) {
  Writer w("column_sums", rows, cols);
  const BufferId x = w.buffer("x", rows * cols);
  const BufferId y = w.buffer("y", cols);
  w.pass({rows});
  const ValueId sum = w.op(Op::reduce_sum, {w.load(x, {1, cols})});
  w.pass({});
  w.store(y, {1}, sum);
  return w.finish({cols}, Kernel::Vectorize::outer);
}

LoopProgram transpose_add(std::int64_t size) {
  Writer w("transpose_add", size, size);
  const BufferId x = w.buffer("x", size * size);
  const BufferId t = w.buffer("t", size * size);
  const BufferId b = w.buffer("bias", size);
  const BufferId y = w.buffer("y", size * size);
  w.pass({});
  const ValueId sum = w.op(Op::add, {w.load(x, {size, 1}), w.load(t, {1, size})});
  w.store(y, {size, 1}, w.op(Op::add, {sum, w.load(b, {0, 1})}));
  return w.finish({size, size}, Kernel::Vectorize::inner);
}

LoopProgram argmax(std::int64_t rows, std::int64_t cols) {
  Writer w("argmax", rows, cols);
  const BufferId x = w.buffer("x", rows * cols);
  const BufferId y = w.buffer("y", rows, ScalarType::Long);
  w.pass({cols});
  const ValueId value = w.load(x, {cols, 1});
  LoopProgram program;
  const ValueId position = w.op(Op::index, {}, ScalarType::Long);
  const ValueId arg = w.op(Op::reduce_argmax, {value, position}, ScalarType::Long);
  w.pass({});
  w.store(y, {1}, arg);
  program = w.finish({rows}, Kernel::Vectorize::inner);
  std::get<Kernel>(program.steps[0]).passes[0].body[1].index.coefficients = {0, 1};
  return program;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void run(const LoopProgram& program, const std::string& show) {
  const auto& kernel = std::get<Kernel>(program.steps[0]);
  const EmittedProgram emitted = emit(program, native_target());
  if (show == kernel.name) std::puts(emitted.code.c_str());
  // A comment of its own makes the text new to the cache.
  const auto start = Clock::now();
  const std::string unique =
      emitted.code + "\n// " + std::to_string(start.time_since_epoch().count()) + "\n";
  const auto library = compile_and_load(unique);
  const double compile = seconds_since(start);
  std::vector<std::vector<float>> memory;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  double bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    const auto words =
        static_cast<std::size_t>(buffer.elements) * c10::elementSize(buffer.dtype) / sizeof(float);
    std::vector<float>& block = memory.emplace_back(words);
    for (float& value : block) value = normal(random);
    if (buffer.kind != Buffer::Kind::scratch) bytes += 4.0 * static_cast<double>(words);
  }
  std::vector<void*> arguments;
  for (const BufferId buffer : emitted.kernels[0].buffers) {
    arguments.push_back(memory[buffer].data());
  }
  auto function = reinterpret_cast<int (*)(void* const*, long, long)>(
      library->symbol(emitted.kernels[0].symbol));
  std::vector<char> from(static_cast<std::size_t>(bytes / 2));
  std::vector<char> to(static_cast<std::size_t>(bytes / 2));
  double best = 1e9;
  double copy = 1e9;
  for (int round = 0; round < 30; ++round) {
    auto begin = Clock::now();
    function(arguments.data(), 0, emitted.kernels[0].points);
    best = std::min(best, seconds_since(begin));
    begin = Clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    copy = std::min(copy, seconds_since(begin));
  }
  std::printf("%-16s compile %6.1f ms   run %8.1f us   %6.2f GB/s   copy %8.1f us   %5.2fx\n",
              kernel.name.c_str(), 1e3 * compile, 1e6 * best, bytes / best / 1e9, 1e6 * copy,
              best / copy);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string show = argc > 2 ? argv[2] : "";
  run(pointwise("copy", 1 << 20, [](Writer&, ValueId x) { return x; }), show);
  run(pointwise("gelu", 1 << 20, gelu), show);
  run(pointwise("gelu_tanh", 1 << 20, gelu_tanh), show);
  run(pointwise("silu", 1 << 20, silu), show);
  run(pointwise("log1p_exp", 1 << 20, logexp), show);
  run(pointwise("sin_cos", 1 << 20, sincos), show);
  run(pointwise("chain", 1 << 20, chain), show);
  run(softmax(1024, 1024), show);
  run(softmax(4096, 77), show);
  run(layer_norm(1024, 768), show);
  run(row_sums(1024, 1024), show);
  run(row_sums(1, 1 << 20), show);
  run(column_sums(1024, 1024), show);
  run(transpose_add(1024), show);
  run(argmax(1024, 1000), show);
  return 0;
}
