#include "device/cuda/launch/launch_order.h"

#include <gtest/gtest.h>

namespace ag::cuda {
namespace {

// Returns e.g. "2<0,1!": group 2 after 0 (the more critical) and 1, on the critical path.
std::string TextOf(const std::vector<OrderedLaunch>& launches) {
  std::string text;
  for (const OrderedLaunch& launch : launches) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", launch.group);
    for (size_t i = 0; i < launch.parents.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "<" : ",", launch.parents[i]);
    }
    if (launch.priority > 0) text += "!";
  }
  return text;
}

TEST(LaunchOrder, ByHand) {
  const struct {
    const char* name;
    std::vector<Stream> streams;
    std::vector<double> group_ns;
    const char* order;
  } cases[] = {
      {"a chain", {{.launches = {{0, {}}, {1, {}}}}}, {1, 1}, "0! 1<0!"},
      {"side work stands before its join",
       {{.launches = {{0, {}}, {1, {}}, {3, {2}}}}, {.launches = {{2, {}}}}},
       {5, 5, 1, 1},
       "0! 1<0! 2 3<1,2!"},
      {"the longer side is the critical one",
       {{.launches = {{0, {}}, {1, {}}, {3, {2}}}}, {.launches = {{2, {}}}}},
       {1, 1, 9, 1},
       "2! 0 1<0 3<2,1!"},
      {"a stream's edge that a wait implies",
       {{.launches = {{0, {}}, {2, {1}}}}, {.launches = {{1, {0}}}}},
       {1, 1, 1},
       "0! 1<0! 2<1!"},
      {"two ends, the longer path first",
       {{.launches = {{0, {}}}}, {.launches = {{1, {}}}}},
       {1, 2},
       "1! 0"},
      {"nothing", {}, {}, ""},
  };
  for (const auto& c : cases) {
    Plan plan;
    plan.groups.resize(c.group_ns.size());
    plan.streams = c.streams;
    const auto ordered = OrderLaunches(plan, c.group_ns);
    ASSERT_EQ(ToString(ordered.status()), "OK") << c.name;
    EXPECT_EQ(TextOf(*ordered), c.order) << c.name;
  }
}

TEST(LaunchOrder, RefusesACircle) {
  Plan plan;
  plan.groups.resize(2);
  plan.streams = {{.launches = {{0, {1}}}}, {.launches = {{1, {0}}}}};
  EXPECT_EQ(OrderLaunches(plan, {1, 1}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ag::cuda
