// A set of small numbers, such as the nodes of a graph or the groups of a plan: one bit each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ag {

class IndexSet {
 public:
  // For the numbers below `size`. Both operands of Unite and Intersect must have one size.
  explicit IndexSet(size_t size = 0) : words_((size + 63) / 64) {}
  void Add(int index) { words_[index / 64] |= uint64_t{1} << index % 64; }
  bool Has(int index) const { return (words_[index / 64] >> index % 64 & 1) != 0; }
  void Unite(const IndexSet& other);
  void Intersect(const IndexSet& other);
  int Count() const;

 private:
  std::vector<uint64_t> words_;
};

}  // namespace ag
