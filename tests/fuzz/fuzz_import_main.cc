// Import, by libFuzzer. Inputs change by the fields of their messages, every eighth by its bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/onnx/testing/mutate.h"
#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace ag {
namespace {

std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Copies the model to `out`, unless it is too large. Returns its size.
size_t Put(const std::string& model, uint8_t* out, size_t max_size) {
  if (model.size() > max_size) return 0;
  std::ranges::copy(model, out);
  return model.size();
}

}  // namespace
}  // namespace ag

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ag::FuzzImport(ag::TextOf(data, size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  ag::Random random(seed);
  if (random.Below(8) > 0) {
    const std::string model = ag::testing::MutatedModel(ag::TextOf(data, size), "", random);
    if (const size_t made = ag::Put(model, data, max_size); made > 0) return made;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* donor,
                                            size_t donor_size, uint8_t* out, size_t out_size_max,
                                            unsigned int seed) {
  ag::Random random(seed);
  return ag::Put(
      ag::testing::MutatedModel(ag::TextOf(data, size), ag::TextOf(donor, donor_size), random), out,
      out_size_max);
}
