#include "kernels/local_rows.h"

#include <algorithm>
#include <map>

#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

// A longer row would not stay in the first cache, and does not fit on a thread's stack.
constexpr std::int64_t kLongestRow = 8192;

// How the kernel uses a buffer: stored once, then loaded at the same points.
struct RowUse {
  int stores = 0;
  bool is_row = true;
  const Index* index = nullptr;
  const Sizes* inner = nullptr;
};

std::map<BufferId, RowUse> find_rows(const Kernel& kernel) {
  std::map<BufferId, RowUse> rows;
  for (const Pass& pass : kernel.passes) {
    for (const Instruction& access : pass.body) {
      if (!reads_memory(access.op) && !writes_memory(access.op)) continue;
      RowUse& row = rows[access.buffer];
      if (access.op == Op::store) {
        ++row.stores;
        row.index = &access.index;
        row.inner = &pass.inner;
        continue;
      }
      row.is_row = row.is_row && access.op == Op::load && access.conditions.empty() &&
                   row.index != nullptr && *row.inner == pass.inner &&
                   same_index(*row.index, access.index);
    }
  }
  return rows;
}

Index row_index(const Kernel& kernel, const Pass& pass) {
  Index index;
  index.coefficients.resize(kernel.outer.size() + pass.inner.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = pass.inner.size(); i-- > 0;) {
    index.coefficients[kernel.outer.size() + i] = stride;
    stride *= pass.inner[i];
  }
  return index;
}

}  // namespace

void make_rows_local(Kernel& kernel, LoopProgram& program, const std::vector<bool>& is_shared) {
  for (const auto& [id, row] : find_rows(kernel)) {
    Buffer& buffer = program.buffers[id];
    if (row.stores != 1 || !row.is_row || is_shared[id] || row.inner->empty() ||
        buffer.kind != Buffer::Kind::intermediate || points(*row.inner) > kLongestRow) {
      continue;
    }
    buffer.kind = Buffer::Kind::scratch;
    buffer.sizes = *row.inner;
    buffer.elements = points(*row.inner);
    buffer.strides.assign(row.inner->size(), 1);
    for (std::size_t i = row.inner->size() - 1; i-- > 0;) {
      buffer.strides[i] = buffer.strides[i + 1] * (*row.inner)[i + 1];
    }
    for (Pass& pass : kernel.passes) {
      for (Instruction& access : pass.body) {
        const bool is_access = reads_memory(access.op) || writes_memory(access.op);
        if (is_access && access.buffer == id) access.index = row_index(kernel, pass);
      }
    }
  }
}

}  // namespace assay::kernels
