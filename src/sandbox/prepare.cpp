#include "sandbox/prepare.h"

#include <malloc.h>

#include "backends/compile.h"
#include "compare/models.h"
#include "observe/quiet.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::sandbox {

namespace {

// The operators that most models have, forward and backward.
constexpr const char* kUsualOperators = R"(import torch
class Repro(torch.nn.Module):
    def forward(self, x: "f32[4, 4][4, 1]cpu", w: "f32[4, 4][4, 1]cpu", b: "f32[4][1]cpu"):
        sin = torch.sin(x)
        cos = torch.cos(sin)
        tanh = torch.tanh(cos)
        sigmoid = torch.sigmoid(tanh)
        relu = torch.relu(sigmoid)
        gelu = torch.nn.functional.gelu(relu)
        absolute = torch.abs(gelu)
        mul = absolute * 0.5
        add = mul + 1
        sub = add - 0.25
        div = sub / 2
        added = div + x
        multiplied = added * x
        linear = torch.nn.functional.linear(multiplied, w, b)
        normed = torch.nn.functional.layer_norm(linear, (4,), b, b, 1e-05)
        viewed = normed.view(2, 2, 4)
        transposed = viewed.transpose(1, 2)
        product = torch.matmul(viewed, transposed)
        soft = torch.softmax(product, -1)
        weighted = torch.matmul(soft, viewed)
        flat = weighted.reshape(4, 4)
        return (flat,)
)";

// A trial lives for milliseconds: memory that it gives back to the system, only to ask for it
// again, costs it page faults.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most there is
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 4 << 20);
#endif
}

}  // namespace

void prepare_for_trials() {
  keep_freed_memory();
  const observe::QuietScope quiet;
  const repro::ReproFile file = repro::parse_repro_file(kUsualOperators, "usual.py");
  const std::vector<aten::Value> inputs = repro::load_inputs(file, {}).values;
  for (const aten::Value& input : inputs) input.leaf.toTensor().requires_grad_();
  const std::shared_ptr<const graph::Graph> graph(file.graph.get(), [](const void*) {});
  // Not by compile_graph, which would give it the faults that the environment asks for.
  const compare::Callable compiled = backends::as_value_function(
      find_backend("aot_eager")
          ->compile(backends::request_for_values(graph, inputs, file.source.get())),
      *graph);
  (void)compare::same_two_models(*graph, compiled, inputs, {}, nullptr);
}

}  // namespace assay::sandbox
