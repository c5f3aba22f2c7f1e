#include "repro/inputs.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "assay/error.h"

namespace assay::repro {
namespace {

// A file with one input `x`, made by the given lines of load_args.
ReproFile file_with(const std::string& load_args, const std::string& head = "") {
  return parse_repro_file(head +
                              "class Repro(torch.nn.Module):\n"
                              "    def forward(self, x):\n"
                              "        return (x,)\n"
                              "def load_args(reader):\n" +
                              load_args,
                          "dir/f.py");
}

std::string refusal(const std::string& load_args) {
  try {
    load_inputs(file_with(load_args));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

at::Tensor only_input(const std::string& load_args, const std::string& head = "") {
  return load_inputs(file_with(load_args, head)).values.at(0).leaf.toTensor();
}

TEST(Inputs, MadeUpOnesAreTheSameEachTimeAndSaidToBeMadeUp) {
  const std::string lines = "    b = reader.storage(None, 80)\n    reader.tensor(b, (4, 5))\n";
  const Inputs first = load_inputs(file_with(lines));
  const Inputs second = load_inputs(file_with(lines));
  EXPECT_TRUE(first.values[0].leaf.toTensor().equal(second.values[0].leaf.toTensor()));
  EXPECT_EQ(first.made_up_storages, 1U);
  ASSERT_EQ(first.notes.size(), 1U);
  EXPECT_NE(first.notes[0].find("not the original ones"), std::string::npos);
}

TEST(Inputs, IntegersAreZero) {
  const at::Tensor tensor = only_input(
      "    b = reader.storage(None, 32, dtype_hint=torch.int64)\n"
      "    reader.tensor(b, (4,), dtype=torch.int64)\n");
  EXPECT_EQ(tensor.sum().item<std::int64_t>(), 0);
}

TEST(Inputs, StridesOffsetsGradAndLeaf) {
  const at::Tensor tensor = only_input(
      "    b = reader.storage(None, 80)\n"
      "    reader.tensor(b, (2, 3), (1, 2), storage_offset=3, requires_grad=True, "
      "is_leaf=False)\n");
  EXPECT_EQ(tensor.strides().vec(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(tensor.storage_offset(), 3);
  EXPECT_TRUE(tensor.requires_grad());
  EXPECT_FALSE(tensor.is_leaf());
}

TEST(Inputs, ConjugateAndNegativeBits) {
  const std::string storage = "    b = reader.storage(None, 16)\n";
  const at::Tensor plain = only_input(storage + "    reader.tensor(b, (4,))\n");
  const at::Tensor negative = only_input(storage + "    reader.tensor(b, (4,), neg=True)\n");
  EXPECT_TRUE(negative.is_neg());
  EXPECT_TRUE(negative.equal(plain.neg()));
  const at::Tensor conjugate = only_input(
      "    b = reader.storage(None, 16, dtype_hint=torch.complex64)\n"
      "    reader.tensor(b, (2,), dtype=torch.complex64, conj=True)\n");
  EXPECT_TRUE(conjugate.is_conj());
}

TEST(Inputs, SymbolsGiveSizes) {
  const at::Tensor tensor = only_input(
      "    b = reader.storage(None, 32*s77)\n    reader.tensor(b, (s77, 8))\n", "s77 = 4\n");
  EXPECT_EQ(tensor.sizes().vec(), (std::vector<std::int64_t>{4, 8}));
}

TEST(Inputs, TensorsMayShareAStorage) {
  const ReproFile file = parse_repro_file(
      "class Repro(torch.nn.Module):\n"
      "    def forward(self, x, y):\n"
      "        return (x, y)\n"
      "def load_args(reader):\n"
      "    b = reader.storage(None, 80)\n"
      "    reader.tensor(b, (4, 5))\n"
      "    reader.tensor(b, (5, 4), (1, 5))\n",
      "f.py");
  const Inputs inputs = load_inputs(file);
  EXPECT_TRUE(inputs.values[0].leaf.toTensor().is_alias_of(inputs.values[1].leaf.toTensor()));
}

TEST(Inputs, WhatCannotBeIsRefused) {
  const std::string storage = "    b = reader.storage(None, 80)\n";
  EXPECT_NE(refusal(storage + "    reader.tensor(b, (9223372036854775807, 2), (2, 2))\n")
                .find("beyond its storage"),
            std::string::npos);
  EXPECT_NE(refusal(storage + "    reader.tensor(b, (4,), secret=True)\n")
                .find("unknown argument 'secret'"),
            std::string::npos);
  EXPECT_NE(refusal(storage + "    reader.tensor(b, (-1,))\n").find("negative"), std::string::npos);
  EXPECT_NE(refusal("    b = reader.storage(None, 9000000000000000000)\n    reader.tensor(b, ())\n")
                .find("more than this machine has"),
            std::string::npos);
}

// Stock's minifier shrinks storages and leaves the offsets.
TEST(Inputs, ASynthesizedStorageIsAsLargeAsItsTensors) {
  const at::Tensor tensor = only_input(
      "    b = reader.storage(None, 4)\n    reader.tensor(b, (2, 3), storage_offset=5)\n");
  EXPECT_EQ(tensor.sizes().vec(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor.storage_offset(), 5);
  EXPECT_EQ(tensor.storage().nbytes(), 44U);
}

TEST(Inputs, ASymbolWithoutAValueIsFour) {
  const at::Tensor tensor =
      only_input("    b = reader.storage(None, 4*s9)\n    reader.tensor(b, (s9,))\n");
  EXPECT_EQ(tensor.sizes().vec(), (std::vector<std::int64_t>{4}));
}

}  // namespace
}  // namespace assay::repro
