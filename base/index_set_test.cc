#include "base/index_set.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

IndexSet Of(std::initializer_list<int> indices) {
  IndexSet set(130);
  for (const int index : indices) set.Add(index);
  return set;
}

TEST(IndexSet, HasWhatWasAdded) {
  const IndexSet set = Of({0, 63, 64, 129});
  EXPECT_EQ(set.Count(), 4);
  for (const int index : {0, 63, 64, 129}) EXPECT_TRUE(set.Has(index)) << index;
  for (const int index : {1, 62, 65, 128}) EXPECT_FALSE(set.Has(index)) << index;
}

TEST(IndexSet, UniteAndIntersect) {
  IndexSet both = Of({1, 100});
  both.Unite(Of({2, 100}));
  EXPECT_EQ(both.Count(), 3);
  both.Intersect(Of({2, 3, 100}));
  EXPECT_EQ(both.Count(), 2);
  EXPECT_FALSE(both.Has(1));
}

}  // namespace
}  // namespace ag
