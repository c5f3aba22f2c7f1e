#include "graph/stack_trace.h"

#include <functional>

namespace assay::graph {

namespace {

// Stacks of one program differ in lines; files and functions repeat.
std::size_t hash(const StackTrace& stack) {
  std::size_t result = stack.size();
  for (const StackFrame& frame : stack) {
    result = result * 31 + static_cast<std::size_t>(frame.line);
    result = result * 31 + std::hash<std::string>()(frame.function);
  }
  return result;
}

}  // namespace

StackTrace StackTable::intern(const StackTrace& stack) {
  if (stack.empty()) return stack;
  auto& bucket = buckets_[hash(stack) % buckets_.size()];
  for (const StackTrace& known : bucket) {
    if (known == stack) return known;
  }
  bucket.push_back(stack);
  return stack;
}

}  // namespace assay::graph
