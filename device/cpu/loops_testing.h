// What tests of loops for several instruction sets share.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "device/cpu/aligned.h"
#include "device/cpu/host.h"
#include "plan/spec/layout.h"

namespace ag::cpu {

// Returns the instruction sets of InstructionSet() that this machine has.
inline std::vector<std::string> UsableInstructionSets() {
  if (InstructionSet() == "avx512") return {"sse41", "avx2", "avx512"};
  if (InstructionSet() == "avx2") return {"sse41", "avx2"};
  return {"sse41"};
}

// Returns the layout whose blocks this machine's kernels work on.
inline Layout BlockedLayout() {
  return InstructionSet() == "avx512" ? Layout::kBlocked16 : Layout::kBlocked8;
}

// Numbers between -1 and 1 in aligned memory, others for another seed.
class Waves {
 public:
  Waves(int64_t count, int64_t seed)
      : buffer_(*AlignedBuffer::Make(static_cast<size_t>(count) * sizeof(float))) {
    for (int64_t i = 0; i < count; ++i) {
      data()[i] = static_cast<float>(std::sin(static_cast<double>((i + 1) * (2 * seed + 3))));
    }
  }
  float* data() const { return buffer_.As<float>(); }

 private:
  AlignedBuffer buffer_;
};

}  // namespace ag::cpu
