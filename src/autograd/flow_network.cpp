#include "autograd/flow_network.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace assay::autograd {

namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::bidirectionalS>;

struct Edge {
  FlowNetwork::Capacity capacity = 0;
  FlowNetwork::Capacity residual = 0;
  Traits::edge_descriptor reverse;
};

using Network = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                      boost::no_property, Edge>;

// All vertices that a search from `start` reaches over the pairs of `next`.
std::vector<bool> reached_from(std::size_t start,
                               const std::vector<std::vector<std::size_t>>& next) {
  std::vector<bool> reached(next.size(), false);
  std::vector<std::size_t> open = {start};
  reached[start] = true;
  while (!open.empty()) {
    const std::size_t vertex = open.back();
    open.pop_back();
    for (const std::size_t neighbour : next[vertex]) {
      if (reached[neighbour]) continue;
      reached[neighbour] = true;
      open.push_back(neighbour);
    }
  }
  return reached;
}

void find_maximum_flow(Network& network) {
  const std::size_t vertices = boost::num_vertices(network);
  std::vector<Traits::edge_descriptor> predecessor(vertices);
  std::vector<boost::default_color_type> colour(vertices);
  std::vector<long> distance(vertices);
  const auto index = boost::get(boost::vertex_index, network);
  boost::boykov_kolmogorov_max_flow(network, boost::get(&Edge::capacity, network),
                                    boost::get(&Edge::residual, network),
                                    boost::get(&Edge::reverse, network),
                                    boost::make_iterator_property_map(predecessor.begin(), index),
                                    boost::make_iterator_property_map(colour.begin(), index),
                                    boost::make_iterator_property_map(distance.begin(), index),
                                    index, FlowNetwork::source, FlowNetwork::sink);
}

}  // namespace

bool FlowNetwork::is_unlimited() const {
  std::vector<std::vector<Vertex>> next(vertices_);
  for (const Pipe& pipe : pipes_) {
    if (pipe.capacity == kUnlimited) next[pipe.from].push_back(pipe.to);
  }
  return reached_from(source, next)[sink];
}

std::optional<std::vector<bool>> FlowNetwork::sink_side() const {
  // Checked first: the algorithm would add up unlimited flows beyond what a number holds.
  if (is_unlimited()) return std::nullopt;
  Network network(vertices_);
  for (const Pipe& pipe : pipes_) {
    const auto there = boost::add_edge(pipe.from, pipe.to, network).first;
    const auto back = boost::add_edge(pipe.to, pipe.from, network).first;
    network[there].capacity = pipe.capacity;
    network[there].reverse = back;
    network[back].reverse = there;
  }
  find_maximum_flow(network);
  // What can still send something to the sink is on its side.
  std::vector<std::vector<Vertex>> senders(vertices_);
  for (const auto edge : boost::make_iterator_range(boost::edges(network))) {
    if (network[edge].residual == 0) continue;
    senders[boost::target(edge, network)].push_back(boost::source(edge, network));
  }
  return reached_from(sink, senders);
}

}  // namespace assay::autograd
