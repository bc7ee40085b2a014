#include "base/index_set.h"

#include <bit>

namespace ag {

void IndexSet::Unite(const IndexSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void IndexSet::Intersect(const IndexSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
}

int IndexSet::Count() const {
  int count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

}  // namespace ag
