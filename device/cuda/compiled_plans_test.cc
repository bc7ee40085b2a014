#include "device/cuda/compiled_plans.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace ag::cuda {
namespace {

TEST(CompiledPlans, GivesBackWhatWasPut) {
  const TempDir dir = *TempDir::Make("plans");
  const CompiledPlans plans = *CompiledPlans::Open(dir.path() + "/new");
  EXPECT_EQ(plans.Get("a key"), std::nullopt);
  ASSERT_TRUE(plans.Put("a key", "a plan").ok());
  EXPECT_EQ(plans.Get("a key"), "a plan");
  EXPECT_EQ(plans.Get("another key"), std::nullopt);
  EXPECT_EQ(CompiledPlans::Open(dir.path() + "/new")->Get("a key"), "a plan");
}

TEST(CompiledPlans, DamageIsAMiss) {
  const TempDir dir = *TempDir::Make("plans");
  const CompiledPlans plans = *CompiledPlans::Open(dir.path());
  ASSERT_TRUE(plans.Put("a key", "a plan").ok());
  const std::vector<std::string> names = *ListDir(dir.path());
  ASSERT_EQ(names.size(), 1u);
  const std::string path = dir.path() + "/" + names[0];
  const std::string good = *ReadFile(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    EXPECT_EQ(plans.Get("a key"), std::nullopt) << i;
    ASSERT_TRUE(WriteFileAtomically(path, good.substr(0, i)).ok());
    EXPECT_EQ(plans.Get("a key"), std::nullopt) << i;
  }
}

TEST(CompiledPlans, AFolderThatHasGrownIsEmptied) {
  const TempDir dir = *TempDir::Make("plans");
  const CompiledPlans plans = *CompiledPlans::Open(dir.path());
  for (size_t i = 0; i <= CompiledPlans::kFilesMax; ++i) {
    std::FILE* file = std::fopen(fmt::format("{}/{}.cudnnplan", dir.path(), i).c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fclose(file);
  }
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/other", "kept").ok());
  ASSERT_TRUE(CompiledPlans::Open(dir.path()).ok());
  EXPECT_EQ(*ListDir(dir.path()), std::vector<std::string>{"other"});
}

TEST(CompiledPlans, AFolderThatCannotBeMade) {
  const TempDir dir = *TempDir::Make("plans");
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/file", "").ok());
  EXPECT_FALSE(CompiledPlans::Open(dir.path() + "/file/folder").ok());
}

}  // namespace
}  // namespace ag::cuda
