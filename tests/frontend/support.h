/// \file What the tests of `assay::compile` have in common.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "observe/subscribe.h"

namespace assay {

/// Small numbers that differ from each other: 0.25, 0.5, ...
inline at::Tensor numbers(std::initializer_list<std::int64_t> sizes,
                          at::TensorOptions options = at::kFloat) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::arange(1, count + 1, options) * 0.25).to(options.dtype()).reshape(sizes);
}

inline at::Tensor leaf(std::initializer_list<std::int64_t> sizes) {
  return numbers(sizes).requires_grad_();
}

/// Bit for bit, and laid out alike.
inline void expect_same(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.defined(), expected.defined());
  if (!found.defined()) return;
  EXPECT_EQ(found.scalar_type(), expected.scalar_type());
  EXPECT_EQ(found.sizes(), expected.sizes());
  EXPECT_EQ(found.requires_grad(), expected.requires_grad());
  EXPECT_EQ(found.strides(), expected.strides());
  EXPECT_TRUE(at::equal(found.detach(), expected.detach())) << found << "\n" << expected;
}

/// The warnings given while it lives.
class Warnings {
 public:
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
  observe::Subscription subscription_ = observe::subscribe([this](const observe::Event& event) {
    if (event.level != observe::Level::warning || event.message.empty()) return;
    const std::lock_guard lock(mutex_);
    texts_.push_back(event.message);
  });
};

/// The message of the error of that type that `call` throws; fails the test if it throws none.
template <typename Error, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace assay
