#include "plan/fusion/node_marks.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(NodeMarksTest, ASetReplacesTheOneBefore) {
  NodeMarks marks(4);
  EXPECT_FALSE(marks.Has(0));
  const NodeId first[] = {0, 2};
  marks.Set(first);
  EXPECT_TRUE(marks.Has(0));
  EXPECT_FALSE(marks.Has(1));
  EXPECT_EQ(marks.PlaceOf(0), 0);
  EXPECT_EQ(marks.PlaceOf(2), 1);
  EXPECT_EQ(marks.PlaceOf(1), -1);
  EXPECT_TRUE(marks.Add(1));
  EXPECT_FALSE(marks.Add(1));
  EXPECT_TRUE(marks.Has(1));
  EXPECT_EQ(marks.PlaceOf(1), 2);
  marks.Set({});
  for (NodeId id = 0; id < 4; ++id) EXPECT_FALSE(marks.Has(id)) << id;
}

}  // namespace
}  // namespace ag
