/// \file Where in the user's program a node comes from: a stack that many nodes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace assay::graph {

/// One line of the user's program.
struct StackFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
  std::string text;

  bool operator==(const StackFrame&) const = default;
};

/// Frames, outermost call first. Immutable: copies share the frames, and comparing two copies is
/// comparing pointers.
class StackTrace {
 public:
  StackTrace() = default;
  StackTrace(std::vector<StackFrame> frames)  // NOLINT: a stack is its frames
      : frames_(frames.empty()
                    ? nullptr
                    : std::make_shared<const std::vector<StackFrame>>(std::move(frames))) {}
  StackTrace(std::initializer_list<StackFrame> frames)
      : StackTrace(std::vector<StackFrame>(frames)) {}

  const std::vector<StackFrame>& frames() const {
    static const std::vector<StackFrame> none;
    return frames_ == nullptr ? none : *frames_;
  }
  operator const std::vector<StackFrame>&() const { return frames(); }  // NOLINT

  bool empty() const { return frames_ == nullptr; }
  std::size_t size() const { return frames().size(); }
  auto begin() const { return frames().begin(); }
  auto end() const { return frames().end(); }
  const StackFrame& operator[](std::size_t i) const { return frames()[i]; }

  friend bool operator==(const StackTrace& left, const StackTrace& right) {
    return left.frames_ == right.frames_ || left.frames() == right.frames();
  }

 private:
  std::shared_ptr<const std::vector<StackFrame>> frames_;  // null if there are none
};

/// Gives equal stacks the same frames; for whoever makes the stacks of many nodes.
class StackTable {
 public:
  StackTrace intern(const StackTrace& stack);

 private:
  std::vector<std::vector<StackTrace>> buckets_ = std::vector<std::vector<StackTrace>>(256);
};

}  // namespace assay::graph
