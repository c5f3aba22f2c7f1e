// Random prims. Inductor's, run eagerly by stock PyTorch they ignore the seed and draw from the
// global generator, and they draw twice: a prim first calls its shape function, which for these is
// the function itself. Equal numbers need the same two draws.
#include <array>
#include <limits>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

constexpr std::int64_t kLargestSeed = std::numeric_limits<std::int64_t>::max();

Value draw_seeds(const std::vector<std::int64_t>& size, const Value& device) {
  run("aten::randint", {kLargestSeed, size}, {{"device", device}});
  return run("aten::randint", {kLargestSeed, size}, {{"device", device}});
}

Value inductor_seeds(const BoundArguments& arguments) {
  return draw_seeds({arguments.integer("count")}, arguments["device"]);
}

Value inductor_seed(const BoundArguments& arguments) { return draw_seeds({}, arguments["device"]); }

Value inductor_lookup_seed(const BoundArguments& arguments) {
  return Operand(arguments.tensor("seeds").select(0, arguments.integer("index")).clone()).value;
}

Value inductor_random(const BoundArguments& arguments) {
  const std::string mode = arguments.text("mode");
  if (mode != "rand" && mode != "randn") {
    throw UserError("inductor_random: expected the mode 'rand' or 'randn', found '" + mode + "'");
  }
  const std::string op = "aten::" + mode;
  const c10::Device device = arguments.tensor("seed").device();
  run(op, {arguments["size"]}, {{"dtype", at::kFloat}, {"device", device}});
  return run(op, {arguments["size"]}, {{"dtype", at::kFloat}, {"device", device}});
}

Value inductor_randint(const BoundArguments& arguments) {
  const c10::Device device = arguments.tensor("seed").device();
  const Value& low = arguments["low"];
  const Value& high = arguments["high"];
  run("aten::randint", {low, high, arguments["size"]}, {{"device", device}});
  return run("aten::randint", {low, high, arguments["size"]}, {{"device", device}});
}

// Not one of Inductor's: it draws once, and its shape function draws nothing.
Value normal(const BoundArguments& arguments) {
  const at::Tensor result =
      run_tensor("aten::empty", {arguments["shape"]},
                 {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
  run("aten::normal_", {result, arguments["mean"], arguments["std"]},
      {{"generator", arguments["generator"]}});
  return Operand(result.requires_grad_(arguments.truth("requires_grad"))).value;
}

constexpr std::array kRandomPrimFunctions = std::to_array<TorchFunction>({
    {"torch.ops.prims.inductor_seed.default", "device", inductor_seed},
    {"torch.ops.prims.inductor_seeds.default", "count, device", inductor_seeds},
    {"torch.ops.prims.inductor_lookup_seed.default", "seeds, index", inductor_lookup_seed},
    {"torch.ops.prims.inductor_random.default", "size, seed, mode, *, align_dtype=None",
     inductor_random},
    {"torch.ops.prims.inductor_randint.default", "low, high, size, seed", inductor_randint},
    {"torch.ops.prims.normal.default",
     "shape, *, mean, std, dtype, device, requires_grad, generator=None", normal},
});

}  // namespace

FunctionTable random_prim_functions() { return kRandomPrimFunctions; }

}  // namespace assay::aten
