// Where bytes go that are never in memory as a whole.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"

namespace ag {

// Takes the bytes of a model in pieces, in order. Writing ends at its first error.
using ByteSink = std::function<Status(std::string_view piece)>;

}  // namespace ag
