// Seeded random numbers, the same on every machine and with every library; the distributions of std
// are not. One thread at a time.
#pragma once

#include <cstdint>

namespace ag {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64 bits of state, passes BigCrush, cheap to seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint64_t Below(uint64_t n);                  // Uniform in [0, n). REQUIRES: n > 0.
  int64_t Between(int64_t low, int64_t high);  // Uniform in [low, high]. REQUIRES: low <= high.
  double Unit();                               // Uniform in [0, 1).
  double Normal();  // Mean 0, variance 1 (Box-Muller, Marsaglia's polar form).

 private:
  uint64_t state_;
};

}  // namespace ag
