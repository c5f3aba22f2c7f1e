#include "kernels/image_regions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aten/operator_record.h"
#include "kernels/lower.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using graph::Node;
using graph::TensorMeta;

// ATen computes smaller ones itself, and best in its own order.
constexpr std::int64_t kSmallestWork = 200000;
// oneDNN reorders the weights at every call; with more of them per result this takes too long.
constexpr std::int64_t kMostWeightsPerResult = 4;

// Multiplications that gain what copying an element costs: about 0.6 ns, at 1 to 10 ps each.
constexpr std::int64_t kWorkPerCopiedElement = 200;

// Operators besides pointwise ones that give the order of their input to their result.
constexpr std::array<std::string_view, 4> kFollowers = {
    "torch.ops.aten.avg_pool2d.default",
    "torch.ops.aten.max_pool2d_with_indices.default",
    "torch.ops.aten.upsample_bilinear2d.default",
    "torch.ops.aten.upsample_nearest2d.default",
};

// Of an image batch in row-major order with more than one channel and more than one pixel: only
// then there are two orders.
std::optional<Sizes> image_sizes(const TensorMeta* meta) {
  if (meta == nullptr || !meta->device.is_cpu() || meta->sizes.size() != 4) return std::nullopt;
  auto layout = layout_of(*meta);
  if (!layout || layout->strides != row_major_strides(layout->sizes)) return std::nullopt;
  const Sizes& sizes = layout->sizes;
  if (sizes[0] == 0 || sizes[1] < 2 || sizes[2] * sizes[3] < 2) return std::nullopt;
  return sizes;
}

// Multiplications of a convolution that computes faster in the other order; 0 of any other node.
std::int64_t reordered_work(const Node& node) {
  if (!node.calls("torch.ops.aten.convolution.default") || node.args().size() != 9) return 0;
  const Node* input = node.args()[0].node();
  const Node* weight = node.args()[1].node();
  const bool* is_transposed = node.args()[6].get_if<bool>();
  if (input == nullptr || weight == nullptr || is_transposed == nullptr || *is_transposed) {
    return 0;
  }
  const TensorMeta* weight_meta = weight->meta.value.tensor();
  const auto result = image_sizes(node.meta.value.tensor());
  if (!result || !image_sizes(input->meta.value.tensor()) || weight_meta == nullptr ||
      weight_meta->dtype != c10::ScalarType::Float) {
    return 0;
  }
  const auto weights = layout_of(*weight_meta);
  if (!weights) return 0;
  const std::int64_t results = element_count(*result);
  const std::int64_t work = results * element_count(weights->sizes) / (*result)[1];
  const bool gains =
      work >= kSmallestWork && element_count(weights->sizes) <= kMostWeightsPerResult * results;
  return gains ? work : 0;
}

bool has_images(const graph::ValueMeta& value) {
  if (const auto* items = std::get_if<std::vector<graph::ValueMeta>>(&value.value)) {
    return std::ranges::all_of(*items, [](const graph::ValueMeta& item) {
      return image_sizes(item.tensor()).has_value();
    });
  }
  return image_sizes(value.tensor()).has_value();
}

bool is_pointwise(const Node& node) {
  const aten::OperatorRecord& record = aten::operator_record(node);
  return record.is_pure && record.work == aten::Work::pointwise &&
         record.view == aten::View::never && node.meta.value.tensor() != nullptr &&
         has_lowering(node);
}

bool is_grouped(const Node& convolution) {
  const std::int64_t* groups = convolution.args()[8].get_if<std::int64_t>();
  return groups != nullptr && *groups > 1;
}

// Goes through the graph as the pass will, and changes nothing.
class RegionFinder {
 public:
  explicit RegionFinder(const graph::Graph& graph) {
    const auto is_reordered = [this](const Node& node) { return region_of_.contains(&node); };
    for (const Node& node : graph.nodes()) {
      if (const std::int64_t work = reordered_work(node); work != 0) {
        add_convolution(node, work);
      } else if (takes_order(node, is_reordered)) {
        join_inputs(node);
      } else if (!reads_any_order(node)) {
        node.for_each_input([&](const Node& input) {
          if (is_reordered(input)) note_copy(region_of_.at(&input), input);
        });
      }
    }
  }

  std::unordered_set<const Node*> worthwhile() {
    std::unordered_map<std::size_t, Cost> costs;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      Cost& cost = costs[find(i)];
      cost.work += costs_[i].work;
      cost.has_grouped = cost.has_grouped || costs_[i].has_grouped;
      cost.copied.insert(costs_[i].copied.begin(), costs_[i].copied.end());
    }
    std::unordered_set<const Node*> found;
    for (const auto& [convolution, region] : convolutions_) {
      const Cost& cost = costs.at(find(region));
      // Eager's order is so slow for convolutions in groups that they pay for all copies.
      if (cost.has_grouped || cost.work >= kWorkPerCopiedElement * copied_elements(cost)) {
        found.insert(convolution);
      }
    }
    return found;
  }

 private:
  struct Cost {
    std::int64_t work = 0;
    bool has_grouped = false;
    std::set<const Node*> copied;  // once each, into the region or out of it
  };

  static std::int64_t copied_elements(const Cost& cost) {
    std::int64_t count = 0;
    for (const Node* node : cost.copied) {
      if (const auto sizes = image_sizes(node->meta.value.tensor())) count += element_count(*sizes);
    }
    return count;
  }

  void add_convolution(const Node& node, std::int64_t work) {
    const std::size_t region = costs_.size();
    costs_.push_back({work, is_grouped(node), {}});
    parents_.push_back(region);
    region_of_.emplace(&node, region);
    convolutions_.emplace_back(&node, region);
    const Node& input = *node.args()[0].node();
    if (const auto found = region_of_.find(&input); found != region_of_.end()) {
      join(region, found->second);
    } else {
      note_copy(region, input);
    }
  }

  void join_inputs(const Node& node) {
    node.for_each_input([&](const Node& input) {
      const auto found = region_of_.find(&input);
      if (found == region_of_.end()) return;
      const auto [known, is_new] = region_of_.emplace(&node, found->second);
      if (!is_new) join(known->second, found->second);
    });
  }

  void note_copy(std::size_t region, const Node& node) { costs_[region].copied.insert(&node); }

  std::size_t find(std::size_t region) const {
    while (parents_[region] != region) region = parents_[region];
    return region;
  }

  void join(std::size_t one, std::size_t other) { parents_[find(one)] = find(other); }

  std::unordered_map<const Node*, std::size_t> region_of_;
  std::vector<std::pair<const Node*, std::size_t>> convolutions_;
  std::vector<Cost> costs_;
  std::vector<std::size_t> parents_;
};

}  // namespace

bool takes_order(const Node& node, const IsReordered& is_reordered) {
  if (!node.is_call() || node.args().empty()) return false;
  const Node* first = node.args()[0].node();
  const bool reads_first = first != nullptr && is_reordered(*first);
  if (node.calls("operator.getitem")) return reads_first;
  const bool is_listed = std::ranges::find(kFollowers, node.target().name()) != kFollowers.end();
  if (!is_listed && !is_pointwise(node)) return false;
  if (!has_images(node.meta.value)) return false;
  if (is_listed) return reads_first;
  bool reads = false;
  bool is_same = true;
  node.for_each_input([&](const Node& input) {
    if (!is_reordered(input)) return;
    reads = true;
    const TensorMeta* meta = input.meta.value.tensor();
    is_same = is_same && meta != nullptr && meta->sizes == node.meta.value.tensor()->sizes;
  });
  return reads && is_same;
}

// Kernels read by strides, whatever they are.
bool reads_any_order(const Node& node) {
  return node.op() == graph::Op::call_function &&
         aten::operator_record(node).view == aten::View::never && has_lowering(node);
}

std::unordered_set<const Node*> convolutions_to_reorder(const graph::Graph& graph) {
  return RegionFinder(graph).worthwhile();
}

}  // namespace assay::kernels
