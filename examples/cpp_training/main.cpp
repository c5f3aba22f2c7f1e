// Trains a small transformer twice, from the same weights on the same batches: with the loss as it
// is written, and with the loss compiled by assay::compile. The losses must be equal.
//
//   cpp_training [--steps N] [--backend NAME]
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "assay/compile.h"
#include "assay/error.h"

namespace {

// The task: after a row of random letters and a separator, write the same letters again.
constexpr std::int64_t kLetters = 16;
constexpr std::int64_t kSeparator = kLetters;
constexpr std::int64_t kCopied = 8;
constexpr std::int64_t kLength = 2 * kCopied;  // letters, separator, letters but the last
constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kHeads = 4;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("projection", projection);
    register_module("output", output);
    register_module("up", up);
    register_module("down", down);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x + attend(norm1(x));
    return x + down(torch::gelu(up(norm2(x))));
  }

  torch::Tensor attend(const torch::Tensor& x) {
    const std::int64_t batch = x.size(0);
    const std::int64_t length = x.size(1);
    const auto parts = projection(x)
                           .view({batch, length, 3, kHeads, kWidth / kHeads})
                           .permute({2, 0, 3, 1, 4})
                           .unbind(0);
    const torch::Tensor mixed = torch::scaled_dot_product_attention(
        parts[0], parts[1], parts[2], /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    return output(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
  }

  torch::nn::LayerNorm norm1{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::LayerNorm norm2{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::Linear projection{kWidth, 3 * kWidth};
  torch::nn::Linear output{kWidth, kWidth};
  torch::nn::Linear up{kWidth, 4 * kWidth};
  torch::nn::Linear down{4 * kWidth, kWidth};
};
TORCH_MODULE(Block);

struct TransformerImpl : torch::nn::Module {
  TransformerImpl() {
    register_module("letters", letters);
    register_module("positions", positions);
    register_module("block1", block1);
    register_module("block2", block2);
    register_module("norm", norm);
    register_module("head", head);
  }

  torch::Tensor forward(const torch::Tensor& text) {
    torch::Tensor x = letters(text) + positions(torch::arange(text.size(1)));
    x = block2(block1(x));
    return head(norm(x));
  }

  torch::nn::Embedding letters{kLetters + 1, kWidth};
  torch::nn::Embedding positions{kLength, kWidth};
  Block block1;
  Block block2;
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::Linear head{kWidth, kLetters + 1};
};
TORCH_MODULE(Transformer);

torch::Tensor loss_of(Transformer model, const torch::Tensor& text, const torch::Tensor& next) {
  const torch::Tensor scores = model(text).slice(1, kCopied);  // the copied part only
  return torch::cross_entropy_loss(scores.reshape({-1, kLetters + 1}), next.reshape({-1}));
}

struct Batch {
  torch::Tensor text;
  torch::Tensor next;  // the letter after each position of the copied part
};

Batch make_batch() {
  const torch::Tensor letters = torch::randint(kLetters, {kBatch, kCopied}, torch::kLong);
  const torch::Tensor separator = torch::full({kBatch, 1}, kSeparator, torch::kLong);
  return {torch::cat({letters, separator, letters.slice(1, 0, kCopied - 1)}, 1), letters};
}

// One training: a model, its optimizer, and a way to compute the loss.
template <typename Loss>
class Training {
 public:
  Training(const Transformer& model, Loss loss)
      : optimizer_(model->parameters(), torch::optim::AdamWOptions(3e-3)), loss_(std::move(loss)) {}

  double step(const Batch& batch) {
    const auto begin = std::chrono::steady_clock::now();
    optimizer_.zero_grad();
    const torch::Tensor loss = loss_(batch.text, batch.next);
    loss.backward();
    optimizer_.step();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    last_ = time.count();
    return loss.item<double>();
  }
  double milliseconds() const { return last_; }

 private:
  torch::optim::AdamW optimizer_;
  Loss loss_;
  double last_ = 0;
};

int train(int steps, const std::string& backend) {
  torch::manual_seed(0);
  Transformer eager_model;
  torch::manual_seed(0);
  Transformer model;  // the same weights

  Training eager(eager_model, [=](const torch::Tensor& text, const torch::Tensor& next) {
    return loss_of(eager_model, text, next);
  });
  const auto loss = assay::compile(
      [=](const torch::Tensor& text, const torch::Tensor& next) {
        return loss_of(model, text, next);  // the model's parameters are inputs of the graph
      },
      {.backend = backend, .name = "loss"});
  Training compiled(model, loss);

  std::printf("%6s  %12s  %13s  %8s  %11s\n", "step", "loss eager", "loss compiled", "ms eager",
              "ms compiled");
  double eager_time = 0;
  double compiled_time = 0;
  double difference = 0;
  for (int i = 1; i <= steps; ++i) {
    const Batch batch = make_batch();
    const double expected = eager.step(batch);
    const double found = compiled.step(batch);
    difference = std::max(difference, std::abs(found - expected));
    if (i > 1) {  // the first step compiles
      eager_time += eager.milliseconds();
      compiled_time += compiled.milliseconds();
    }
    if (i <= 3 || i % 20 == 0 || i == steps) {
      std::printf("%6d  %12.6f  %13.6f  %8.2f  %11.2f\n", i, expected, found, eager.milliseconds(),
                  compiled.milliseconds());
    }
  }
  std::printf("graphs compiled: %zu\n", loss.compilations());
  if (steps > 1) std::printf("speed: %.2f times eager\n", eager_time / compiled_time);
  if (difference == 0) {
    std::printf("losses are equal in all %d steps\n", steps);
    return EXIT_SUCCESS;
  }
  // aot_eager runs eager's own operators; a backend with kernels of its own rounds otherwise.
  std::printf("losses differ by up to %g\n", difference);
  return difference < 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 200;
  std::string backend = "aot_eager";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--backend") == 0) backend = argv[i + 1];
  }
  if (argc % 2 == 0 || steps < 1) {
    std::fprintf(stderr, "usage: %s [--steps N] [--backend NAME]\n", argv[0]);
    return 2;
  }
  try {
    return train(steps, backend);
  } catch (const assay::UserError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
