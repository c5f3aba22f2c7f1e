// Suggestions for misspelled names.
#include "base/nearest_names.h"

#include <gtest/gtest.h>

namespace assay::base {
namespace {

using Names = std::vector<std::string>;
const Names kKnown = {"relu", "gelu", "selu", "softmax", "graph_breaks", "graph_code"};

TEST(NearestNames, TheBestComesFirst) {
  EXPECT_EQ(nearest_names("rleu", kKnown).front(), "relu");
  EXPECT_EQ(nearest_names("elu", kKnown), Names({"relu", "gelu", "selu"}));
  EXPECT_EQ(nearest_names("elu", kKnown, 1), Names({"relu"})) << "equally near: in their order";
}

TEST(NearestNames, ABeginningIsEnough) {
  EXPECT_EQ(nearest_names("graph_br", kKnown), Names({"graph_breaks"}));
  EXPECT_EQ(nearest_names("graph", kKnown), Names({"graph_breaks", "graph_code"}));
}

TEST(NearestNames, WhatDoesNotResembleTheNameIsLeftOut) {
  EXPECT_TRUE(nearest_names("completely_different", kKnown).empty());
  EXPECT_TRUE(nearest_names("", kKnown).empty());
  EXPECT_TRUE(nearest_names("xy", Names{"ab"}).empty()) << "nothing in common";
  EXPECT_TRUE(nearest_names(std::string(100'000, 'x'), kKnown).empty());
}

TEST(EditDistance, CountsSingleCharacterEdits) {
  EXPECT_EQ(edit_distance("relu", "relu"), 0U);
  EXPECT_EQ(edit_distance("relu", "elu"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
}

}  // namespace
}  // namespace assay::base
