// Resizing and sampling of torch.nn.functional: interpolate, grid_sample, affine_grid.
#include <algorithm>
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// A mode and the number of spatial dimensions name the operator.
struct Mode {
  std::string_view name;
  std::size_t dims;
  bool antialias;
  bool interpolates;  // takes align_corners
  const char* op;
};

constexpr std::array kModes = std::to_array<Mode>({
    {"nearest", 1, false, false, "aten::upsample_nearest1d"},
    {"nearest", 2, false, false, "aten::upsample_nearest2d"},
    {"nearest", 3, false, false, "aten::upsample_nearest3d"},
    {"nearest-exact", 1, false, false, "aten::_upsample_nearest_exact1d"},
    {"nearest-exact", 2, false, false, "aten::_upsample_nearest_exact2d"},
    {"nearest-exact", 3, false, false, "aten::_upsample_nearest_exact3d"},
    {"linear", 1, false, true, "aten::upsample_linear1d"},
    {"bilinear", 2, false, true, "aten::upsample_bilinear2d"},
    {"bilinear", 2, true, true, "aten::_upsample_bilinear2d_aa"},
    {"trilinear", 3, false, true, "aten::upsample_trilinear3d"},
    {"bicubic", 2, false, true, "aten::upsample_bicubic2d"},
    {"bicubic", 2, true, true, "aten::_upsample_bicubic2d_aa"},
    {"lanczos", 2, true, true, "aten::_upsample_lanczos2d_aa"},
});

constexpr std::array kAreaPools = {"aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d",
                                   "aten::adaptive_avg_pool3d"};

struct Request {
  at::Tensor input;
  Value size;
  Value scale_factor;
  std::string mode;
  Value align_corners;
  bool recompute = false;
  bool antialias = false;
};

// One number for every spatial dimension, or one each.
std::vector<Value> spread(const Value& value, std::size_t dims) {
  if (!holds_sequence(value)) return std::vector<Value>(dims, value);
  std::vector<Value> items = unpack(value);
  if (items.size() != dims) {
    throw UserError("Input and output must have the same number of spatial dimensions");
  }
  return items;
}

std::vector<Value> scaled_sizes(const at::Tensor& input, const std::vector<Value>& factors) {
  std::vector<Value> sizes;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const Value size = Operand(input.size(static_cast<std::int64_t>(i) + 2)).value;
    sizes.push_back(
        Operand(number_to_integer(calculate(BinaryOperation::multiply, size, factors[i]))).value);
  }
  return sizes;
}

Value interpolate(const Request& request) {
  const at::Tensor& input = request.input;
  const bool area = request.mode == "area";
  const auto dims = static_cast<std::size_t>(std::max<std::int64_t>(input.dim() - 2, 0));
  const bool by_size = !request.size.is_none();
  if (by_size != request.scale_factor.is_none()) {
    throw UserError(by_size ? "only one of size or scale_factor should be defined"
                            : "either size or scale_factor should be defined");
  }
  if (by_size && request.recompute) {
    throw UserError("recompute_scale_factor is not meaningful with an explicit size.");
  }
  Value output_size;
  Value scale_factors;
  if (by_size) {
    output_size = list_of(spread(request.size, dims));
  } else {
    std::vector<Value> factors = spread(request.scale_factor, dims);
    if (area || request.recompute) {
      output_size = list_of(scaled_sizes(input, factors));
    } else {
      scale_factors = list_of(std::move(factors));
    }
  }
  if (request.antialias &&
      !(dims == 2 &&
        (request.mode == "bilinear" || request.mode == "bicubic" || request.mode == "lanczos"))) {
    throw UserError(
        "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a "
        "4-D tensor as input");
  }
  if (area && dims >= 1 && dims <= kAreaPools.size()) {
    if (!request.align_corners.is_none())
      throw UserError("align_corners is not supported in area mode");
    return run(kAreaPools[dims - 1], {input, output_size});
  }
  for (const Mode& mode : kModes) {
    if (mode.name != request.mode || mode.dims != dims || mode.antialias != request.antialias)
      continue;
    if (!mode.interpolates) {
      if (!request.align_corners.is_none()) {
        throw UserError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear");
      }
      return run(mode.op, {input, output_size, scale_factors});
    }
    const bool align = !request.align_corners.is_none() && truth_of(request.align_corners);
    if (align && request.mode == "lanczos") {
      throw UserError("Lanczos mode does not support align_corners=True");
    }
    return run(mode.op, {input, output_size, align, scale_factors});
  }
  throw UserError("interpolate: mode '" + request.mode + "' does not support " +
                  std::to_string(input.dim()) + "-D inputs");
}

Value run_interpolate(const BoundArguments& arguments) {
  return interpolate({arguments.tensor("input"), arguments["size"], arguments["scale_factor"],
                      arguments.text("mode"), arguments["align_corners"],
                      arguments.truth("recompute_scale_factor"), arguments.truth("antialias")});
}

Value run_upsample(const BoundArguments& arguments) {
  return interpolate({arguments.tensor("input"), arguments["size"], arguments["scale_factor"],
                      arguments.text("mode"), arguments["align_corners"]});
}

Value upsample_nearest(const BoundArguments& arguments) {
  return interpolate({arguments.tensor("input"), arguments["size"], arguments["scale_factor"],
                      "nearest", Value()});
}

Value upsample_bilinear(const BoundArguments& arguments) {
  return interpolate({arguments.tensor("input"), arguments["size"], arguments["scale_factor"],
                      "bilinear", Operand(true).value});
}

// The place of a word in a list, which is the operator's number for it.
template <std::size_t count>
std::int64_t number_of(const std::array<std::string_view, count>& words, const std::string& word,
                       const char* parameter) {
  const auto* found = std::ranges::find(words, word);
  if (found == words.end()) {
    throw UserError("grid_sample(): unexpected " + std::string(parameter) + " '" + word + "'");
  }
  return found - words.begin();
}

Value grid_sample(const BoundArguments& arguments) {
  constexpr std::array<std::string_view, 3> kSampling = {"bilinear", "nearest", "bicubic"};
  constexpr std::array<std::string_view, 3> kPadding = {"zeros", "border", "reflection"};
  return run(
      "aten::grid_sampler",
      {arguments["input"], arguments["grid"], number_of(kSampling, arguments.text("mode"), "mode"),
       number_of(kPadding, arguments.text("padding_mode"), "padding_mode"),
       arguments.truth("align_corners")});
}

Value affine_grid(const BoundArguments& arguments) {
  const at::Tensor theta = arguments.tensor("theta");
  const auto size = integers_of(arguments["size"]);
  if (!theta.is_floating_point()) throw UserError("Expected theta to have floating point type");
  if (size.size() != 4 && size.size() != 5) {
    throw UserError("affine_grid only supports 4D and 5D sizes");
  }
  const auto spatial = static_cast<std::int64_t>(size.size()) - 2;
  if (theta.dim() != 3 || theta.size(-2) != spatial || theta.size(-1) != spatial + 1) {
    throw UserError("Expected a batch of affine matrices that fits the size");
  }
  const bool align = arguments.truth("align_corners");
  const bool is_unit = *std::min_element(size.begin() + 2, size.end()) == 1;
  if (!(align && is_unit) && *std::ranges::min_element(size) <= 0) {
    throw UserError("Expected non-zero, positive output size");
  }
  return run("aten::affine_grid_generator", {theta, size, align});
}

constexpr std::string_view kUpsample = "input, size=None, scale_factor=None";

constexpr std::array kResizeFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.interpolate",
     "input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
     "recompute_scale_factor=None, antialias=False",
     run_interpolate},
    {"torch.nn.functional.upsample",
     "input, size=None, scale_factor=None, mode='nearest', align_corners=None", run_upsample},
    {"torch.nn.functional.upsample_nearest", kUpsample, upsample_nearest},
    {"torch.nn.functional.upsample_bilinear", kUpsample, upsample_bilinear},
    {"torch.nn.functional.grid_sample",
     "input, grid, mode='bilinear', padding_mode='zeros', align_corners=None", grid_sample},
    {"torch.nn.functional.affine_grid", "theta, size, align_corners=None", affine_grid},
});

}  // namespace

FunctionTable resize_functions() { return kResizeFunctions; }

}  // namespace assay::aten
