// The inner loop of softmax over rows that lie in memory, written for each instruction set. Pure
// functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ag::cpu {

struct SoftmaxLoops {
  // y = softmax(x) of each of `rows` rows of n elements, one after the other. y may be x. Where an
  // element of a row is NaN or infinite above, or all are -inf, its results are NaN. REQUIRES: n >
  // 0.
  void (*rows)(const float* x, float* y, int64_t rows, int64_t n) = nullptr;
};

// Returns the loops for an instruction set of InstructionSet().
const SoftmaxLoops& SoftmaxLoopsFor(std::string_view isa);

}  // namespace ag::cpu
