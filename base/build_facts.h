// What --version prints: facts about this build. Never part of a key.
#pragma once

#include <string>
#include <string_view>

namespace ag {

std::string_view Version();  // "0.1.0"
// "autograph 0.1.0 (g++ 12.2.0, RelWithDebInfo, x86_64)", with `program` first.
std::string BuildFacts(std::string_view program);

}  // namespace ag
