// Makes inputs smaller, keeping the beginning of their contents. First a size everywhere it occurs,
// also in the arguments of calls (`view(2, 64, 256)`), alone or with its multiples; then single
// dimensions of single inputs.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>

#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

constexpr std::array<std::int64_t, 4> kTargets = {1, 2, 3, 4};
constexpr std::size_t kSteps = kTargets.size() + 1;  // and half

const repro::TensorInput* tensor_input(const repro::Input& input) {
  return std::get_if<repro::TensorInput>(&input);
}

// Every size there is, the largest first.
std::vector<std::int64_t> all_sizes(const Candidate& program) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const repro::Input& input : program.inputs) {
    if (const auto* tensor = tensor_input(input)) {
      for (std::int64_t size : sizes_of(*tensor)) {
        if (size > 1) sizes.insert(size);
      }
    }
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<std::pair<std::size_t, std::size_t>> all_dimensions(const Candidate& program) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto* tensor = tensor_input(program.inputs[i]);
    if (tensor == nullptr) continue;
    for (std::size_t d = 0; d < tensor->meta.sizes.size(); ++d) {
      if (*tensor->meta.sizes[d].constant() > 1) found.emplace_back(i, d);
    }
  }
  return found;
}

std::int64_t target(std::int64_t size, std::size_t step) {
  return step < kTargets.size() ? kTargets[step] : size / 2;
}

void resize(Candidate& program, std::size_t input, const std::vector<std::int64_t>& sizes,
            repro::ContentStore& store) {
  const auto* described = tensor_input(program.inputs[input]);
  if (sizes_of(*described) == sizes) return;
  at::Tensor contents = input_contents(program, input, store);
  if (!contents.defined()) {
    graph::TensorMeta meta = described->meta;
    meta.sizes.assign(sizes.begin(), sizes.end());
    set_made_up(program, input, std::move(meta));
    return;
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    contents = contents.narrow(static_cast<std::int64_t>(d), 0, sizes[d]);
  }
  set_contents(program, input, contents, store);
}

std::optional<Candidate> everywhere(const Candidate& program, std::int64_t size,
                                    std::int64_t smaller, bool multiples,
                                    repro::ContentStore& store) {
  const auto map = [&](std::int64_t number) {
    if (number == size) return smaller;
    const bool is_multiple = multiples && number > size && number % size == 0;
    return is_multiple ? number / size * smaller : number;
  };
  Edit edit(program);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto* tensor = tensor_input(program.inputs[i]);
    if (tensor == nullptr) continue;
    std::vector<std::int64_t> sizes = sizes_of(*tensor);
    std::ranges::transform(sizes, sizes.begin(), map);
    resize(edit.program(), i, sizes, store);
  }
  map_sizes(edit.graph(), map);
  return edit.finish(false);
}

std::optional<Candidate> propose_shapes(const Candidate& program, std::size_t round,
                                        std::size_t index, repro::ContentStore& store) {
  const std::size_t step = index % kSteps;
  if (round < 2) {
    const std::int64_t size = all_sizes(program)[index / kSteps];
    const std::int64_t smaller = target(size, step);
    if (smaller >= size) return std::nullopt;
    return everywhere(program, size, smaller, round == 0, store);
  }
  const auto [input, dimension] = all_dimensions(program)[index / kSteps];
  std::vector<std::int64_t> sizes = sizes_of(*tensor_input(program.inputs[input]));
  const std::int64_t smaller = target(sizes[dimension], step);
  if (smaller >= sizes[dimension]) return std::nullopt;
  sizes[dimension] = smaller;
  Edit edit(program);
  resize(edit.program(), input, sizes, store);
  return edit.finish(false);
}

}  // namespace

Proposals passes::shapes() {
  return {[](const Candidate&) { return std::size_t{3}; },
          [](const Candidate& program, std::size_t round) {
            return kSteps *
                   (round < 2 ? all_sizes(program).size() : all_dimensions(program).size());
          },
          &propose_shapes};
}

}  // namespace assay::reduce
