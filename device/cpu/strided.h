// Copies between boxes of strided memory, the basis of every movement operator. Immutable once
// made, so thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ag::cpu {

// One axis of a copy: `size` steps of `from` and `to` elements. A source stride of 0 repeats, a
// negative one walks backwards.
struct CopyAxis {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// A copy made ready: axes joined and ordered. Offsets are in elements from the tensors' first.
class Copy {
 public:
  Copy() = default;
  Copy(std::vector<CopyAxis> axes, int64_t from_offset, int64_t to_offset, int64_t element_bytes);

  // Copies with `cores` cores. REQUIRES: source and target do not overlap.
  void Run(int cores, const void* from, void* to) const;

 private:
  void RunRange(int64_t begin, int64_t end, const std::byte* from, std::byte* to) const;
  void Inner(const std::byte* from, std::byte* to) const;

  std::vector<CopyAxis> outer_;  // In bytes; outermost first.
  CopyAxis rows_, inner_;        // In bytes; inner_ last. rows_ is size 1 unless it transposes.
  int64_t outer_steps_ = 0;
  int64_t from_offset_ = 0, to_offset_ = 0;
  int64_t element_bytes_ = 1;
};

// Returns the strides of a dense row-major tensor.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& dims);

}  // namespace ag::cpu
