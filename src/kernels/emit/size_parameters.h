/// \file One text for several sizes: the numbers in which the texts of a kernel differ become
/// values that are passed when it is called. known_kernels.cpp uses it when a kernel comes again
/// with other sizes.
///
/// Nothing is inferred from the numbers. The general text with the values of one size is, number by
/// number, the text that was emitted for that size; a text that differs in anything else is another
/// kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::kernels {

/// A kernel's text with its numbers taken out: whole numbers, and floats with the suffix f. Sizes
/// and alignments of arrays stay, since C++ wants them to be constant.
struct KernelOutline {
  std::string outline;
  std::vector<std::string> numbers;    ///< As they are written, in order.
  std::vector<std::size_t> positions;  ///< In the outline, before which each of them stands.
};

KernelOutline outline_of(std::string_view text);

/// The text for all sizes that differ in the same numbers.
class GeneralKernel {
 public:
  /// From two texts with the same outline, but different numbers. `buffers`: how many the kernel
  /// has; the values are passed after them.
  GeneralKernel(const KernelOutline& first, const KernelOutline& second, std::size_t buffers);

  /// From `(void* const* buffers, long begin, long end) {` to the end of the function.
  const std::string& text() const { return text_; }
  /// What is to be passed for a text with the same outline: 8 bytes each, a float in the first 4 of
  /// them. Nothing if it differs from the first two in other numbers.
  std::optional<std::vector<std::int64_t>> values(const KernelOutline& other) const;

 private:
  std::vector<std::string> numbers_;  ///< Those that stay; empty for a parameter.
  std::vector<int> parameter_of_;     ///< By number: -1 if it stays.
  std::size_t parameters_ = 0;
  std::string text_;
};

}  // namespace assay::kernels
