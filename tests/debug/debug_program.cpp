// A small program for test_levels.py, which makes its compiler fail:
//   debug_program PROGRAM [BACKEND]
// Prints "done" if all went well, else the type and the message of what was thrown.
//   debug_program bundle FILE
// Prints the file with its inputs in it.
#include <ATen/ATen.h>

#include <cstdio>
#include <map>
#include <string>

#include "assay/compile.h"
#include "assay/error.h"
#include "repro/accuracy_error.h"
#include "repro/bundle.h"

namespace {

using at::Tensor;

Tensor numbers(std::initializer_list<std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::arange(count, at::kFloat) * 0.5 - 2).reshape(sizes);
}

// A loss and its gradients.
void train(const assay::CompileOptions& options) {
  const auto loss = assay::compile(
      [](const Tensor& x, const Tensor& w) { return at::relu(at::mm(x, w)).sum(); }, options);
  const Tensor w = numbers({3, 2}).requires_grad_();
  for (int step = 0; step < 2; ++step) loss(numbers({4, 3}) + step, w).backward();
  if (!w.grad().defined()) throw std::runtime_error("no gradient");
}

void infer(const assay::CompileOptions& options) {
  const auto program = assay::compile(
      [](const Tensor& x, double scale, int power) { return at::relu(x * scale).pow(power) + 1; },
      options);
  program(numbers({4, 3}), 0.5, 2);
}

// The input is changed before the operator that fails.
void mutate(const assay::CompileOptions& options) {
  const auto program =
      assay::compile([](const Tensor& x) { return at::relu(x.add_(100)) + x; }, options);
  program(numbers({5}));
}

// One compiled function runs inside of another's failure handling.
void nest(const assay::CompileOptions& options) {
  const auto inner = assay::compile([](const Tensor& x) { return at::relu(x); }, options);
  const auto outer = assay::compile([=](const Tensor& x) { return inner(x) * 2; }, options);
  outer(numbers({3}));
}

// Many steps with other weights each time.
void steps(const assay::CompileOptions& options) {
  const auto program = assay::compile([](const Tensor& x) { return at::relu(x) * 3; }, options);
  for (int step = 0; step < 20; ++step) program(numbers({100}) + step);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 2 && std::string(arguments[1]) == "bundle") {
    std::printf("%s", assay::repro::bundle(arguments[2]).c_str());
    return 0;
  }
  const std::map<std::string, void (*)(const assay::CompileOptions&)> programs = {
      {"train", &train},
      {"infer", &infer},
      {"mutate", &mutate},
      {"nest", &nest},
      {"steps", &steps}};
  const auto program = programs.find(count > 1 ? arguments[1] : "");
  if (program == programs.end()) return 2;
  assay::CompileOptions options;
  if (count > 2) options.backend = arguments[2];
  try {
    program->second(options);
  } catch (const assay::repro::AccuracyError& error) {
    std::printf("AccuracyError: %s\n", error.what());
    return 1;
  } catch (const assay::UserError& error) {
    std::printf("UserError: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::printf("exception: %s\n", error.what());
    return 1;
  }
  std::printf("done\n");
  return 0;
}
