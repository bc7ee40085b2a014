// Plans from metadata, by libFuzzer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ag::FuzzPlan({reinterpret_cast<const char*>(data), size});
  return 0;
}
