// Facts about this build, as --version prints them. Never part of a key. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ag {

std::string_view Version();  // "0.1.0".
// Returns "autograph 0.1.0 (g++ 12.2.0, RelWithDebInfo, x86_64)", with `program` as the first word.
std::string BuildFacts(std::string_view program);

}  // namespace ag
