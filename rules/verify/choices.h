// The decisions behind one random case, sampled from a seed or replayed from a list. So a case can
// be made again and made smaller (as in Hypothesis: MacIver, Donaldson, ECOOP 2020). One thread at
// a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace ag {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  // Replays `made`. After its end, and for answers out of range, the simplest answer is given.
  explicit Choices(std::vector<uint64_t> made) : random_(0), replay_(std::move(made)) {
    replaying_ = true;
  }

  // 0 is the simplest answer of each; cases shrink towards small numbers and "no".
  uint64_t Below(uint64_t n);                  // In [0, n). REQUIRES: n > 0.
  int64_t Between(int64_t low, int64_t high);  // In [low, high]. REQUIRES: low <= high.
  bool Chance(int percent);

  // Returns all answers so far, each as from Below.
  const std::vector<uint64_t>& made() const { return made_; }

 private:
  Random random_;
  bool replaying_ = false;
  std::vector<uint64_t> replay_;
  std::vector<uint64_t> made_;
};

}  // namespace ag
