// Modules and optimizers of LibTorch around compiled programs. The one file with torch/torch.h.
#include <torch/torch.h>

#include "assay/compile.h"
#include "assay/error.h"
#include "support.h"

namespace assay {

namespace {

// Two equal modules.
template <typename Module>
std::pair<Module, Module> twins(const Module& made) {
  auto copy = std::dynamic_pointer_cast<typename Module::ContainedType>(made->clone());
  return {made, Module(copy)};
}

void expect_same_state(const torch::nn::Module& found, const torch::nn::Module& expected) {
  for (const auto& item : expected.named_parameters()) {
    expect_same(found.named_parameters()[item.key()], item.value());
  }
  for (const auto& item : expected.named_buffers()) {
    expect_same(found.named_buffers()[item.key()], item.value());
  }
}

}  // namespace

TEST(Training, TwentyStepsOfSgdAreThoseOfEager) {
  torch::manual_seed(0);
  auto [model, eager] = twins(torch::nn::Linear(5, 3));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD eager_optimizer(eager->parameters(),
                                    torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto loss_of = [](torch::nn::Linear& layer, const at::Tensor& x, const at::Tensor& y) {
    return torch::mse_loss(torch::relu(layer(x)), y);
  };
  const auto step = assay::compile(
      [&, model = model](const at::Tensor& x, const at::Tensor& y) mutable {
        return loss_of(model, x, y);
      },
      {.backend = "aot_eager"});
  for (int i = 0; i < 20; ++i) {
    const at::Tensor x = torch::randn({4, 5});
    const at::Tensor y = torch::randn({4, 3});
    optimizer.zero_grad();
    eager_optimizer.zero_grad();
    const at::Tensor loss = step(x, y);
    const at::Tensor expected = loss_of(eager, x, y);
    expect_same(loss, expected);
    loss.backward();
    expected.backward();
    optimizer.step();
    eager_optimizer.step();
  }
  expect_same_state(*model, *eager);
  EXPECT_EQ(step.compilations(), 1u);
}

TEST(Training, BatchNormKeepsItsStatistics) {
  torch::manual_seed(0);
  auto [model, eager] = twins(torch::nn::BatchNorm1d(3));
  const auto step = assay::compile(
      [model = model](const at::Tensor& x) mutable { return model(x); }, {.backend = "aot_eager"});
  for (int i = 0; i < 5; ++i) {
    const at::Tensor x = torch::randn({4, 3});
    const at::Tensor found = step(x);
    const at::Tensor expected = eager(x);
    expect_same(found, expected);
    found.pow(2).sum().backward();
    expected.pow(2).sum().backward();
    expect_same(model->weight.grad(), eager->weight.grad());
    expect_same_state(*model, *eager);
  }
  EXPECT_EQ(model->num_batches_tracked.item<std::int64_t>(), 5);
  EXPECT_EQ(step.compilations(), 1u);
}

TEST(Training, ConstantsOfTheTorchNamespace) {
  const auto program = [](const at::Tensor& x) {
    return x * torch::tensor({1.0, 2.0, 3.0}, torch::kFloat) + torch::ones({3}) + torch::arange(3) +
           torch::eye(3).sum(0);
  };
  const auto compiled = assay::compile(program);
  for (int i = 0; i < 2; ++i) expect_same(compiled(numbers({3}) + i), program(numbers({3}) + i));
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Training, RandomNumbersOfTheTorchNamespace) {
  const auto program = [](const at::Tensor& x) {
    return torch::dropout(x + torch::rand({3}) + torch::randn_like(x), 0.5, /*train=*/true);
  };
  const auto compiled = assay::compile(program);
  torch::manual_seed(5);
  const std::vector<at::Tensor> expected = {program(numbers({3})), program(numbers({3}))};
  torch::manual_seed(5);
  for (const at::Tensor& tensor : expected) expect_same(compiled(numbers({3})), tensor);
}

TEST(Training, CustomAutogradFunctionsAreRefused) {
  struct Twice : torch::autograd::Function<Twice> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
      return x * 2;
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list gradients) {
      return {gradients[0] * 7};
    }
  };
  const auto program = [](const at::Tensor& x) { return Twice::apply(x); };
  EXPECT_THROW(assay::compile(program)(leaf({2})), TraceError);
  const at::Tensor x = leaf({2});
  assay::compile(program, {.fallback = true})(x).sum().backward();
  expect_same(x.grad(), torch::full({2}, 7.0));
}

TEST(Training, ATrainedModelSeesReplacedValues) {
  torch::nn::Linear model(2, 2);
  const auto compiled = assay::compile([=](const at::Tensor& x) mutable { return model(x); });
  const at::Tensor x = numbers({1, 2});
  compiled(x);
  {
    const torch::NoGradGuard no_grad;
    model->weight.fill_(2);
    model->bias.zero_();
  }
  expect_same(compiled(x), model(x));
  EXPECT_EQ(compiled.compilations(), 1u);
}

}  // namespace assay
