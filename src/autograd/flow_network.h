/// \file A network of pipes and its minimum cut; the one place that knows a maximum-flow algorithm.
/// Used by the min-cut partitioner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::autograd {

class FlowNetwork {
 public:
  using Vertex = std::size_t;
  using Capacity = std::int64_t;
  /// Never cut. Finite capacities must sum up to less.
  static constexpr Capacity kUnlimited = std::int64_t{1} << 62;

  static constexpr Vertex source = 0;
  static constexpr Vertex sink = 1;

  explicit FlowNetwork(std::size_t vertices) : vertices_(vertices) {}

  void add_pipe(Vertex from, Vertex to, Capacity capacity) {
    pipes_.push_back({from, to, capacity});
  }

  /// For each vertex whether it is on the sink's side of a minimum cut. Of all minimum cuts it is
  /// the one nearest to the sink. Nothing if only unlimited pipes lead from source to sink.
  std::optional<std::vector<bool>> sink_side() const;

 private:
  struct Pipe {
    Vertex from;
    Vertex to;
    Capacity capacity;
  };

  bool is_unlimited() const;

  std::size_t vertices_;
  std::vector<Pipe> pipes_;
};

}  // namespace assay::autograd
