#include "repro/cpu_devices.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/device_names.h"

namespace assay::repro {

namespace {

using graph::Argument;
using graph::Node;

// Devices that a program computes on. A tensor on 'meta' has no values anywhere.
bool is_foreign(c10::Device device) { return !device.is_cpu() && !device.is_meta(); }

class Mover {
 public:
  explicit Mover(ReproFile& file) : file_(file) {}

  void run() {
    for (StorageSpec& storage : file_.storages) move(storage.device);
    for (Input& input : file_.inputs) {
      if (auto* tensor = std::get_if<TensorInput>(&input)) move(tensor->meta.device);
    }
    move_graph(*file_.graph);
    if (found_.empty()) return;
    file_.notes.push_back("the file is for the device '" + found_ + "'; Assay runs it on the CPU");
  }

 private:
  void move(c10::Device& device) {
    if (!is_foreign(device)) return;
    if (found_.empty()) found_ = name_of(device);
    device = c10::Device(c10::DeviceType::CPU);
  }

  // PyTorch has no name for a device that only another package knows; the file has.
  std::string name_of(c10::Device device) const {
    if (device.type() != c10::DeviceType::PrivateUse1) return device.str();
    for (const std::string_view mark : {"type='", "device='", "device=\"", ", '"}) {
      for (auto at = file_.source->text.find(mark); at != std::string::npos;
           at = file_.source->text.find(mark, at + 1)) {
        const auto begin = at + mark.size();
        const auto end = file_.source->text.find_first_of("'\":", begin);
        if (end == std::string::npos) break;
        const std::string name = file_.source->text.substr(begin, end - begin);
        const auto known = graph::device_from_name(name);
        if (known && known->type() == c10::DeviceType::PrivateUse1) return name;
      }
    }
    return device.str();
  }

  void move_graph(graph::Graph& graph) {
    for (graph::Attribute& attribute : graph.attributes()) {
      if (auto* tensor = std::get_if<graph::TensorAttribute>(&attribute.value)) {
        move(tensor->meta.device);
      } else if (const graph::Graph* subgraph = attribute.subgraph()) {
        std::shared_ptr<graph::Graph> body = subgraph->clone();
        move_graph(*body);
        attribute.value = std::shared_ptr<const graph::Graph>(std::move(body));
      }
    }
    for (Node& node : graph.nodes()) {
      move_value(node.meta.value);
      if (node.is_call()) move_call(node);
    }
  }

  void move_value(graph::ValueMeta& value) {
    if (auto* tensor = std::get_if<graph::TensorMeta>(&value.value)) move(tensor->device);
    if (auto* values = std::get_if<std::vector<graph::ValueMeta>>(&value.value)) {
      for (graph::ValueMeta& inner : *values) move_value(inner);
    }
  }

  void move_call(Node& node) {
    // x.cuda() and x.npu() are x.to('cpu') here.
    if (node.op() == graph::Op::call_method) {
      const auto device = graph::device_from_name(node.target().name());
      if (device && is_foreign(*device)) {
        if (found_.empty()) found_ = node.target().name();
        node.set_target(graph::Target("cpu"));
        node.set_arguments({node.args()[0]});
        return;
      }
    }
    const bool takes_names = takes_device_names(node);
    bool has_changed = false;
    std::vector<Argument> args;
    for (const Argument& argument : node.args()) {
      args.push_back(moved(argument, takes_names, has_changed));
    }
    std::vector<graph::NamedArgument> kwargs;
    for (const auto& [name, value] : node.kwargs()) {
      const bool is_device = takes_names || name == "device" || name == "device_type";
      kwargs.push_back({name, moved(value, is_device, has_changed)});
    }
    if (has_changed) node.set_arguments(std::move(args), std::move(kwargs));
  }

  // Calls whose strings are devices: x.to('cuda'), torch.device('cuda'), autocast.
  static bool takes_device_names(const Node& node) {
    static constexpr std::array<std::string_view, 8> kNames = {
        "to",
        "type",
        "torch.device",
        "torch.Tensor.to",
        "torch.amp.autocast_mode._enter_autocast",
        "torch.amp._enter_autocast",
        "torch.autocast",
        "torch.ops.higher_order.wrap_with_autocast"};
    const std::string& name = node.target().name();
    return std::ranges::find(kNames, name) != kNames.end();
  }

  Argument moved(const Argument& argument, bool takes_names, bool& has_changed) {
    if (const auto* device = argument.get_if<c10::Device>()) {
      c10::Device here = *device;
      move(here);
      has_changed |= here != *device;
      return here;
    }
    if (const auto* text = argument.get_if<std::string>(); text != nullptr && takes_names) {
      const auto device = graph::device_from_name(*text);
      if (!device || !is_foreign(*device)) return argument;
      if (found_.empty()) found_ = *text;
      has_changed = true;
      return "cpu";
    }
    if (const auto* list = argument.get_if<graph::List>()) {
      graph::List made;
      for (const Argument& item : list->items) {
        made.items.push_back(moved(item, false, has_changed));
      }
      return made;
    }
    if (const auto* tuple = argument.get_if<graph::Tuple>()) {
      graph::Tuple made;
      for (const Argument& item : tuple->items) {
        made.items.push_back(moved(item, false, has_changed));
      }
      return made;
    }
    return argument;
  }

  ReproFile& file_;
  std::string found_;
};

}  // namespace

void move_to_cpu(ReproFile& file) { Mover(file).run(); }

}  // namespace assay::repro
