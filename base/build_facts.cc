#include "base/build_facts.h"

#include <fmt/format.h>

namespace ag {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang++ " __clang_version__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

std::string_view Version() { return AG_VERSION; }

std::string BuildFacts(std::string_view program) {
  return fmt::format("{} {} ({}, {}, {})", program, Version(), kCompiler, AG_BUILD_TYPE,
                     AG_PROCESSOR);
}

}  // namespace ag
