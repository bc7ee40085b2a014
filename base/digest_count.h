// The number of SHA-256 digests that this process has computed, for tests that count them.
// Thread-safe.
#pragma once

#include <cstdint>

namespace ag {

uint64_t DigestsComputed();

}  // namespace ag
