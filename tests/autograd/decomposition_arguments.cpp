// Makes the arguments of sample calls from their text.
#include <ATen/core/List.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "decomposition_samples.h"

namespace assay::autograd {

namespace {

using c10::IValue;
using Sizes = std::vector<std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor laid_out(const at::Tensor& values, Layout layout) {
  Sizes order(static_cast<std::size_t>(values.dim()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = values.dim() - 1 - std::int64_t(i);
  switch (layout) {
    case Layout::contiguous:
      return values;
    case Layout::reversed:
      return values.permute(order).contiguous().permute(order);
    case Layout::channels_last:
      if (values.dim() == 4) return values.contiguous(at::MemoryFormat::ChannelsLast);
      if (values.dim() == 5) return values.contiguous(at::MemoryFormat::ChannelsLast3d);
      return values;
    case Layout::gapped:
      break;
  }
  if (values.dim() == 0) return values;
  Sizes sizes = values.sizes().vec();
  sizes.back() *= 2;
  at::Tensor part = at::empty(sizes, values.options()).slice(-1, 0, sizes.back(), 2);
  part.copy_(values);
  return part;
}

at::Tensor starting_with(const at::Tensor& values, const std::vector<double>& special) {
  const at::Tensor first = values.view(-1).slice(0, 0, std::int64_t(special.size()));
  first.copy_(at::tensor(special, at::kDouble).slice(0, 0, first.numel()));
  return values;
}

at::Tensor with_corners(const at::Tensor& values) {
  return starting_with(values, {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 0.25});
}

at::Tensor with_edges(const at::Tensor& values) {
  return starting_with(values, {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 25.0, -25.0, kInfinity,
                                -kInfinity, kNan, 1e-30, 0.25, 100.0, -100.0});
}

class Reader {
 public:
  Reader(std::string_view text, at::ScalarType dtype, Layout layout)
      : text_(text), dtype_(dtype), layout_(layout) {}

  std::vector<IValue> values(char end) {
    std::vector<IValue> read;
    while (peek() != end) {
      read.push_back(value());
      if (peek() == ',') ++at_;
    }
    ++at_;
    return read;
  }

 private:
  // The next character that is no space; zero at the end.
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  IValue value() {
    const char next = peek();
    if (next == '[') {
      ++at_;
      return list(values(']'));
    }
    if (next == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      const std::string text(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return text;
    }
    const std::string word = read_word();
    if (peek() != '(') return constant(word);
    ++at_;
    return tensor(word, values(')'));
  }

  std::string read_word() {
    const std::size_t start = at_;
    const auto belongs = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == start) throw std::runtime_error("cannot read " + std::string(text_));
    return std::string(text_.substr(start, at_ - start));
  }

  IValue constant(const std::string& word) const {
    if (word == "True") return true;
    if (word == "False") return false;
    if (word == "None") return {};
    if (word == "inf") return kInfinity;
    if (word == "-inf") return -kInfinity;
    if (word == "dtype") return dtype_;
    if (word == "float64") return at::kDouble;
    if (word == "int32") return at::kInt;
    if (word == "bool") return at::kBool;
    if (word == "none") return std::int64_t{at::Reduction::None};
    if (word == "mean") return std::int64_t{at::Reduction::Mean};
    if (word == "sum") return std::int64_t{at::Reduction::Sum};
    if (word == "channels_last") return at::MemoryFormat::ChannelsLast;
    if (word.find_first_of(".e") != word.npos) return std::stod(word);
    return std::int64_t{std::stoll(word)};
  }

  static IValue list(const std::vector<IValue>& items) {
    const auto all = [&](auto is) { return std::all_of(items.begin(), items.end(), is); };
    if (all([](const IValue& item) { return item.isBool(); })) {
      c10::List<bool> flags;
      for (const IValue& item : items) flags.push_back(item.toBool());
      return flags;
    }
    if (all([](const IValue& item) { return item.isInt(); })) {
      c10::List<std::int64_t> numbers;
      for (const IValue& item : items) numbers.push_back(item.toInt());
      return numbers;
    }
    if (all([](const IValue& item) { return item.isTensor(); })) {
      c10::List<at::Tensor> tensors;
      for (const IValue& item : items) tensors.push_back(item.toTensor());
      return tensors;
    }
    c10::List<std::optional<at::Tensor>> holes;
    for (const IValue& item : items) holes.push_back(item.toOptional<at::Tensor>());
    return holes;
  }

  at::Tensor tensor(const std::string& kind, const std::vector<IValue>& arguments) const {
    if (kind == "number") return at::full({}, arguments.at(0).toScalar(), dtype_);
    Sizes sizes;
    for (const IValue& argument : arguments) sizes.push_back(argument.toInt());
    const auto make = [&](const at::Tensor& made) { return laid_out(made.to(dtype_), layout_); };
    const auto flags = [&] { return at::randint(0, 2, sizes, at::kLong); };
    const bool whole = dtype_ == at::kLong;

    if (kind == "index") return at::tensor(sizes, at::kLong);
    if (kind == "labels") {
      const at::IntArrayRef of(sizes);
      return at::randint(0, of.front(), of.slice(1), at::kLong);
    }
    const auto normal = [&] {
      return whole ? at::randint(-9, 10, sizes, at::kLong) : at::randn(sizes, at::kDouble);
    };
    if (kind == "normal" || (whole && kind == "edges")) return make(normal());
    if (kind == "dense" && layout_ != Layout::gapped) return make(normal());
    if (kind == "in_format" && layout_ == Layout::channels_last) return make(normal());
    if (kind == "dense" || kind == "in_format" || kind == "row_major") return normal().to(dtype_);
    if (kind == "corners") return make(with_corners(at::randn(sizes, at::kDouble)));
    if (kind == "edges") return make(with_edges(at::randn(sizes, at::kDouble)));
    if (kind == "unit") return make(at::rand(sizes, at::kDouble));
    if (kind == "single") return at::rand(sizes, at::kFloat);
    if (kind == "positive") {
      return make(whole ? at::randint(1, 10, sizes, at::kLong)
                        : at::rand(sizes, at::kDouble).add(0.1));
    }
    if (kind == "signs") return make(flags().mul(2).sub(1));
    if (kind == "nan") return make(at::full(sizes, kNan, at::kDouble));
    if (kind == "minus_infinity") return make(at::full(sizes, -kInfinity, at::kDouble));
    if (kind == "flags") return flags().to(at::kBool);
    if (kind == "bytes") return flags().to(at::kByte);
    throw std::runtime_error("no such tensor: " + kind);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  at::ScalarType dtype_;
  Layout layout_;
};

}  // namespace

std::vector<IValue> make_arguments(const Sample& sample, at::ScalarType dtype, Layout layout) {
  return Reader(sample.arguments, dtype, layout).values('\0');
}

}  // namespace assay::autograd
