#include "base/build_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(BuildFactsTest, NamesProgramVersionAndCompiler) {
  EXPECT_THAT(BuildFacts("prog"),
              testing::MatchesRegex("prog [0-9.]+ \\((g|clang)\\+\\+ .+, .+, .+\\)"));
  EXPECT_THAT(std::string(Version()), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace ag
