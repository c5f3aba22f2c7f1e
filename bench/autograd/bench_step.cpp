// One training step of the guide's MLP (five times Linear(200, 200) and ReLU) from C++, eagerly and
// compiled with aot_eager, in turns; prints the fastest of each as JSON.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "assay/compile.h"

namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

Tensors mlp(Tensors in) {
  at::Tensor x = in[0];
  for (std::size_t i = 1; i < in.size(); i += 2) x = at::relu(at::linear(x, in[i], in[i + 1]));
  return {x};
}

template <typename Program>
double step(const Program& program, Tensors& inputs) {
  for (at::Tensor& input : inputs) input.mutable_grad().reset();
  const auto begin = Clock::now();
  program(inputs)[0].sum().backward();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t batch = argc > 1 ? std::atoll(argv[1]) : 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2000;
  at::set_num_threads(1);
  Tensors inputs = {at::randn({batch, 200})};
  for (int i = 0; i < 5; ++i) {
    inputs.push_back(at::randn({200, 200}).mul(0.07).requires_grad_());
    inputs.push_back(at::randn({200}).requires_grad_());
  }
  const auto compiled = assay::compile(mlp, {.backend = "aot_eager"});
  double eager = std::numeric_limits<double>::infinity();
  double ours = eager;
  for (int i = 0; i < rounds; ++i) {
    eager = std::min(eager, step(mlp, inputs));
    ours = std::min(ours, step(compiled, inputs));
  }
  std::printf("{\"eager_us\": %.1f, \"assay_us\": %.1f, \"ratio\": %.3f}\n", eager * 1e6,
              ours * 1e6, ours / eager);
  return 0;
}
