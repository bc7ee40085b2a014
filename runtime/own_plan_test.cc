#include "runtime/own_plan.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "device/open_device.h"
#include "plan/testing.h"

namespace ag {
namespace {

Graph TestGraph() {
  return GraphOf(
      "input x f32[1,16,8,8]\nw = const f32[16,16,3,3] seed 1\nb = const f32[16] seed 2\n"
      "output relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n");
}

class OwnPlan : public ::testing::Test {
 protected:
  const Graph graph_ = TestGraph();
  const std::unique_ptr<Device> device_ = *OpenDevice("cpu:1");
  const TempDir folder_ = *TempDir::Make("own-plan-test");

  std::string StoredPath() const { return folder_.path() + "/" + ListDir(folder_.path())->front(); }
};

TEST_F(OwnPlan, TunedOnesNameTheirKernelsAndEnvironment) {
  const auto estimated = MakeOwnPlan(graph_, *device_, {});
  const auto tuned = MakeOwnPlan(graph_, *device_, {.tune = true});
  ASSERT_EQ(ToString(estimated.status()), "OK");
  ASSERT_EQ(ToString(tuned.status()), "OK");
  EXPECT_EQ(estimated->environment, "");
  EXPECT_EQ(tuned->environment, device_->environment());
  for (const Group& group : estimated->groups) EXPECT_EQ(group.kernel, "");
  for (const Group& group : tuned->groups) {
    EXPECT_EQ(group.kernel.empty(), group.pattern == kViewPattern) << group.pattern;
  }
}

TEST_F(OwnPlan, AFolderRemembersThem) {
  const OwnPlanOptions options{.tune = true, .folder = folder_.path() + "/plans"};
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
  const std::string path = options.folder + "/" + ListDir(options.folder)->front();
  // The plan in the folder is taken, here one with another kernel than measuring chose.
  Plan other = *DecodePlan(*ReadFile(path));
  for (Group& group : other.groups) group.kernel = "marked";
  ASSERT_EQ(ToString(WriteFileAtomically(path, EncodePlan(other))), "OK");
  const auto again = MakeOwnPlan(graph_, *device_, options);
  ASSERT_EQ(ToString(again.status()), "OK");
  EXPECT_EQ(EncodePlan(*again), EncodePlan(other));
  // Plans of several streams and of ungrouped operators have files of their own.
  for (const OwnPlanOptions& more :
       {OwnPlanOptions{.grouped = false, .tune = true, .folder = options.folder},
        OwnPlanOptions{.streams = 2, .tune = true, .folder = options.folder}}) {
    ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, more).status()), "OK");
  }
  EXPECT_EQ(ListDir(options.folder)->size(), 3u);
}

TEST_F(OwnPlan, DamagedFilesAreMadeAnew) {
  const OwnPlanOptions options{.tune = true, .folder = folder_.path()};
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
  const std::string path = StoredPath();
  ASSERT_EQ(ToString(WriteFileAtomically(path, "no plan")), "OK");
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
  EXPECT_EQ(ToString(DecodePlan(*ReadFile(path)).status()), "OK");
}

TEST_F(OwnPlan, PlansOfOtherMachinesAreMadeAnew) {
  const OwnPlanOptions options{.tune = true, .folder = folder_.path()};
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
  Plan foreign = *DecodePlan(*ReadFile(StoredPath()));
  foreign.environment = "device=other";
  ASSERT_EQ(ToString(WriteFileAtomically(StoredPath(), EncodePlan(foreign))), "OK");
  EXPECT_EQ(MakeOwnPlan(graph_, *device_, options)->environment, device_->environment());
  EXPECT_EQ(DecodePlan(*ReadFile(StoredPath()))->environment, device_->environment());
}

TEST_F(OwnPlan, RenewingLooksAtNothing) {
  OwnPlanOptions options{.tune = true, .folder = folder_.path()};
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
  Plan other = *DecodePlan(*ReadFile(StoredPath()));
  for (Group& group : other.groups) group.kernel = "marked";
  ASSERT_EQ(ToString(WriteFileAtomically(StoredPath(), EncodePlan(other))), "OK");
  options.renew = true;
  EXPECT_NE(EncodePlan(*MakeOwnPlan(graph_, *device_, options)), EncodePlan(other));
  EXPECT_NE(*ReadFile(StoredPath()), EncodePlan(other));
}

TEST_F(OwnPlan, UntunedOnesLookNowhere) {
  ASSERT_EQ(ToString(MakeOwnPlan(graph_, *device_, {.folder = folder_.path()}).status()), "OK");
  EXPECT_TRUE(ListDir(folder_.path())->empty());
}

TEST_F(OwnPlan, AFolderThatCannotBeIsAnErrorWhereItWasAskedFor) {
  OwnPlanOptions options{.tune = true, .folder = "/dev/null/plans"};
  EXPECT_EQ(MakeOwnPlan(graph_, *device_, options).status().code(),
            StatusCode::kFailedPrecondition);
  options.must_keep = false;
  EXPECT_EQ(ToString(MakeOwnPlan(graph_, *device_, options).status()), "OK");
}

}  // namespace
}  // namespace ag
