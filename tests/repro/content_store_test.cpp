#include "repro/content_store.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "assay/error.h"
#include "support/temporary_directory.h"

namespace assay::repro {
namespace {

c10::Storage storage_of(const std::string& bytes) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes.size()),
                       c10::GetCPUAllocator(), true);
  if (!bytes.empty()) std::memcpy(storage.mutable_data(), bytes.data(), bytes.size());
  return storage;
}

TEST(ContentStore, WhatIsWrittenIsReadBackUnderItsSha1) {
  const testing::TemporaryDirectory directory;
  ContentStore store(directory.path());
  const std::string hash = store.write(storage_of("abc"));
  EXPECT_EQ(hash, "a9993e364706816aba3e25717850c26c9cd0d89d");
  const c10::Storage read = store.read(hash, 3);
  EXPECT_EQ(std::memcmp(read.data(), "abc", 3), 0);
  EXPECT_EQ(store.write(storage_of("abc")), hash) << "once is enough";
}

TEST(ContentStore, AnEmptyStorage) {
  const testing::TemporaryDirectory directory;
  ContentStore store(directory.path());
  const std::string hash = store.write(storage_of(""));
  EXPECT_EQ(hash, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(store.read(hash, 0).nbytes(), 0U);
}

TEST(ContentStore, ADamagedFileIsRefused) {
  const testing::TemporaryDirectory directory;
  ContentStore store(directory.path());
  const std::string hash = store.write(storage_of(std::string(1000, 'x')));
  EXPECT_THROW(store.read(hash, 999), UserError) << "another length than the graph file says";
  std::filesystem::resize_file(store.path(hash), 400);
  EXPECT_THROW(store.read(hash, 1000), UserError) << "cut off";
  std::ofstream(store.path(hash)) << "not a zip archive";
  EXPECT_THROW(store.read(hash, 1000), UserError);
}

}  // namespace
}  // namespace assay::repro
