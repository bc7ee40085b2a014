// The canonical decoder, by libFuzzer. Inputs change in their form, every fourth by its bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/mutate_graph.h"
#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ag::FuzzGraph({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  ag::Random random(seed);
  if (random.Below(4) > 0) {
    const std::string made = ag::MutatedGraph({reinterpret_cast<const char*>(data), size}, random);
    if (!made.empty() && made.size() <= max_size) {
      std::ranges::copy(made, data);
      return made.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
