#include "rules/verify/choices.h"

#include <algorithm>

namespace ag {

uint64_t Choices::Below(uint64_t n) {
  uint64_t answer = 0;
  if (!replaying_) {
    answer = random_.Below(n);
  } else if (made_.size() < replay_.size()) {
    answer = std::min(replay_[made_.size()], n - 1);
  }
  made_.push_back(answer);
  return answer;
}

int64_t Choices::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
}

bool Choices::Chance(int percent) { return Below(100) >= static_cast<uint64_t>(100 - percent); }

}  // namespace ag
