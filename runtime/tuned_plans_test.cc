#include "runtime/tuned_plans.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "device/open_device.h"
#include "plan/format/plan_codec.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Sets an environment variable while this object lives; null unsets it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ~Variable() { Set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(TunedPlans, AreInTheUsersCacheByDefault) {
  const struct {
    const char* caches;
    const char* home;
    const char* folder;
  } kCases[] = {
      {"/caches", "/home/me", "/caches/autograph/tuned-plans"},
      {nullptr, "/home/me", "/home/me/.cache/autograph/tuned-plans"},
      {"", "/home/me", "/home/me/.cache/autograph/tuned-plans"},
      {"relative", "/home/me", "/home/me/.cache/autograph/tuned-plans"},
      {nullptr, nullptr, ""},
      {nullptr, "relative", ""},
  };
  for (const auto& c : kCases) {
    const Variable caches("XDG_CACHE_HOME", c.caches), home("HOME", c.home);
    EXPECT_EQ(DefaultTunedPlans(), c.folder);
  }
}

class TunedPlansFile : public ::testing::Test {
 protected:
  Plan Tuned(const Policy& policy = {}) const {
    RooflineTimes times(device_->spec());
    Plan plan = *MakePlan(graph_, device_->spec(), policy, times, {}, 1);
    plan.environment = device_->environment();
    return plan;
  }
  std::string Read() const { return ToString(ReadTunedPlan(path_, graph_, *device_).status()); }

  const Graph graph_ = GraphOf("input x f32[4,16]\noutput relu(x)\n");
  const std::unique_ptr<Device> device_ = *OpenDevice("sim:small");
  const TempDir folder_ = *TempDir::Make("tuned-plans-test");
  const std::string path_ = folder_.path() + "/new/folder/a.plan";
};

TEST_F(TunedPlansFile, ComeBackAsTheyWere) {
  ASSERT_EQ(ToString(WriteTunedPlan(path_, Tuned())), "OK");
  EXPECT_EQ(EncodePlan(*ReadTunedPlan(path_, graph_, *device_)), EncodePlan(Tuned()));
}

TEST_F(TunedPlansFile, WhatDoesNotFitIsNotTaken) {
  EXPECT_TRUE(Read().starts_with("NOT_FOUND: "));
  Plan foreign = Tuned();
  foreign.environment = "device=other";
  ASSERT_EQ(ToString(WriteTunedPlan(path_, foreign)), "OK");
  EXPECT_EQ(Read(), fmt::format("FAILED_PRECONDITION: {}: made for environment device=other, this "
                                "is {}",
                                path_, device_->environment()));
  ASSERT_EQ(ToString(WriteTunedPlan(path_, Tuned({.tolerance = 0.5}))), "OK");
  EXPECT_TRUE(Read().starts_with("FAILED_PRECONDITION: " + path_ + ": made for policy ")) << Read();
  Plan other_graph = Tuned();
  other_graph.graph = Sha256("other");
  ASSERT_EQ(ToString(WriteTunedPlan(path_, other_graph)), "OK");
  EXPECT_TRUE(Read().starts_with("INVALID_ARGUMENT: ")) << Read();
}

TEST_F(TunedPlansFile, CutBytesAreNotTaken) {
  const std::string bytes = EncodePlan(Tuned());
  ASSERT_EQ(ToString(WriteTunedPlan(path_, Tuned())), "OK");
  for (size_t n = 0; n < bytes.size(); n += 7) {
    ASSERT_EQ(ToString(WriteFileAtomically(path_, bytes.substr(0, n))), "OK");
    EXPECT_NE(Read(), "OK") << n;
  }
}

TEST_F(TunedPlansFile, AFolderThatCannotBeMadeIsAStatus) {
  EXPECT_EQ(WriteTunedPlan("/dev/null/plans/a.plan", Tuned()).code(),
            StatusCode::kFailedPrecondition);
}

Graph Layer() {
  return GraphOf(
      "input x f32[1,16,8,8]\nw = const f32[16,16,3,3] seed 1\nb = const f32[16] seed 2\n"
      "output relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n");
}

class TunedPlanTest : public ::testing::Test {
 protected:
  const Graph graph_ = Layer();
  const std::unique_ptr<Device> device_ = *OpenDevice("cpu:1");
  const TempDir folder_ = *TempDir::Make("tuned-plan-test");

  std::string StoredPath() const { return folder_.path() + "/" + ListDir(folder_.path())->front(); }
};

// On a simulated device, where what measures nothing is never faster: its plan names no kernels.
TEST_F(TunedPlanTest, NamesItsKernelsAndEnvironment) {
  const auto device = *OpenDevice("sim:small");
  const auto tuned = TunedPlan(graph_, *device, {});
  ASSERT_EQ(ToString(tuned.status()), "OK");
  EXPECT_EQ(tuned->environment, device->environment());
  for (const Group& group : tuned->groups) {
    EXPECT_EQ(group.kernel.empty(), group.pattern == kViewPattern) << group.pattern;
  }
}

TEST_F(TunedPlanTest, AFolderRemembersThem) {
  const TuningOptions options{.folder = folder_.path() + "/plans"};
  ASSERT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
  const std::string path = options.folder + "/" + ListDir(options.folder)->front();
  // The plan in the folder is taken, here one with another kernel than measuring chose.
  Plan other = *DecodePlan(*ReadFile(path));
  for (Group& group : other.groups) group.kernel = "marked";
  ASSERT_EQ(ToString(WriteFileAtomically(path, EncodePlan(other))), "OK");
  const auto again = TunedPlan(graph_, *device_, options);
  ASSERT_EQ(ToString(again.status()), "OK");
  EXPECT_EQ(EncodePlan(*again), EncodePlan(other));
  // Plans of several streams and of ungrouped operators have files of their own.
  for (const TuningOptions& more : {TuningOptions{.grouped = false, .folder = options.folder},
                                    TuningOptions{.streams = 2, .folder = options.folder}}) {
    ASSERT_EQ(ToString(TunedPlan(graph_, *device_, more).status()), "OK");
  }
  EXPECT_EQ(ListDir(options.folder)->size(), 3u);
}

TEST_F(TunedPlanTest, DamagedFilesAreMadeAnew) {
  const TuningOptions options{.folder = folder_.path()};
  ASSERT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
  const std::string path = StoredPath();
  ASSERT_EQ(ToString(WriteFileAtomically(path, "no plan")), "OK");
  ASSERT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
  EXPECT_EQ(ToString(DecodePlan(*ReadFile(path)).status()), "OK");
}

TEST_F(TunedPlanTest, PlansOfOtherMachinesAreMadeAnew) {
  const TuningOptions options{.folder = folder_.path()};
  ASSERT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
  Plan foreign = *DecodePlan(*ReadFile(StoredPath()));
  foreign.environment = "device=other";
  ASSERT_EQ(ToString(WriteFileAtomically(StoredPath(), EncodePlan(foreign))), "OK");
  EXPECT_EQ(TunedPlan(graph_, *device_, options)->environment, device_->environment());
  EXPECT_EQ(DecodePlan(*ReadFile(StoredPath()))->environment, device_->environment());
}

TEST_F(TunedPlanTest, RenewingLooksAtNothing) {
  TuningOptions options{.folder = folder_.path()};
  ASSERT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
  Plan other = *DecodePlan(*ReadFile(StoredPath()));
  for (Group& group : other.groups) group.kernel = "marked";
  ASSERT_EQ(ToString(WriteFileAtomically(StoredPath(), EncodePlan(other))), "OK");
  options.renew = true;
  EXPECT_NE(EncodePlan(*TunedPlan(graph_, *device_, options)), EncodePlan(other));
  EXPECT_NE(*ReadFile(StoredPath()), EncodePlan(other));
}

TEST_F(TunedPlanTest, AFolderThatCannotBeIsAnErrorWhereItWasAskedFor) {
  TuningOptions options{.folder = "/dev/null/plans"};
  EXPECT_EQ(TunedPlan(graph_, *device_, options).status().code(), StatusCode::kFailedPrecondition);
  options.must_keep = false;
  EXPECT_EQ(ToString(TunedPlan(graph_, *device_, options).status()), "OK");
}

}  // namespace
}  // namespace ag
