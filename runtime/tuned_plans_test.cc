#include "runtime/tuned_plans.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "device/open_device.h"
#include "plan/testing.h"

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

}  // namespace
}  // namespace ag
