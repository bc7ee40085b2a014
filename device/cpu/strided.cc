#include "device/cpu/strided.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

// Removes axes of size 1 and joins neighbouring axes that are one axis on both sides.
std::vector<CopyAxis> Joined(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> joined;
  for (const CopyAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!joined.empty() && joined.back().from == axis.from * axis.size &&
        joined.back().to == axis.to * axis.size) {
      joined.back() = {joined.back().size * axis.size, axis.from, axis.to};
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

template <class T>
void CopyStrided(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step,
                 int64_t n) {
  if (from_step == 0 && to_step == sizeof(T)) {
    std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<T*>(to + i * to_step) = *reinterpret_cast<const T*>(from + i * from_step);
  }
}

void CopyLine(const std::byte* from, const CopyAxis& axis, int64_t element_bytes, std::byte* to) {
  if (axis.from == element_bytes && axis.to == element_bytes) {
    std::memcpy(to, from, axis.size * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return CopyStrided<uint8_t>(from, axis.from, to, axis.to, axis.size);
    case 2:
      return CopyStrided<uint16_t>(from, axis.from, to, axis.to, axis.size);
    case 4:
      return CopyStrided<uint32_t>(from, axis.from, to, axis.to, axis.size);
    default:
      return CopyStrided<uint64_t>(from, axis.from, to, axis.to, axis.size);
  }
}

// Swaps two axes; the rows are dense in the source. Uses a tile that fits the first cache: lines a
// power of two apart share few of its sets, so each must be read once and whole.
template <class T>
void Transpose(const std::byte* from, const CopyAxis& rows, const CopyAxis& inner, std::byte* to) {
  constexpr int64_t kTile = 32;
  T tile[kTile][kTile];
  for (int64_t row = 0; row < rows.size; row += kTile) {
    const int64_t height = std::min(kTile, rows.size - row);
    for (int64_t column = 0; column < inner.size; column += kTile) {
      const int64_t width = std::min(kTile, inner.size - column);
      for (int64_t i = 0; i < width; ++i) {
        const auto* line =
            reinterpret_cast<const T*>(from + row * rows.from + (column + i) * inner.from);
        for (int64_t r = 0; r < height; ++r) tile[r][i] = line[r];
      }
      for (int64_t r = 0; r < height; ++r) {
        const auto* line = reinterpret_cast<const std::byte*>(tile[r]);
        CopyLine(line, {width, sizeof(T), inner.to}, sizeof(T),
                 to + (row + r) * rows.to + column * inner.to);
      }
    }
  }
}

// Eight 4-byte elements, at any address that suits one.
using Eight = uint32_t __attribute__((vector_size(32), aligned(4), may_alias));

// Swaps the axes of a block of 8 by 8 elements in registers: three steps exchange halves of 1, 2
// and 4 elements between pairs of lines.
AG_INLINE void TransposeBlock(const std::byte* from, int64_t from_line, std::byte* to,
                              int64_t to_line) {
  Eight a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Eight*>(from + i * from_line);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shuffle(a[i], a[i + 1], Eight{0, 8, 2, 10, 4, 12, 6, 14});
    b[i + 1] = __builtin_shuffle(a[i], a[i + 1], Eight{1, 9, 3, 11, 5, 13, 7, 15});
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const int i = k / 2 * 4 + k % 2;
    a[i] = __builtin_shuffle(b[i], b[i + 2], Eight{0, 1, 8, 9, 4, 5, 12, 13});
    a[i + 2] = __builtin_shuffle(b[i], b[i + 2], Eight{2, 3, 10, 11, 6, 7, 14, 15});
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[i] = __builtin_shuffle(a[i], a[i + 4], Eight{0, 1, 2, 3, 8, 9, 10, 11});
    b[i + 4] = __builtin_shuffle(a[i], a[i + 4], Eight{4, 5, 6, 7, 12, 13, 14, 15});
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) *reinterpret_cast<Eight*>(to + i * to_line) = b[i];
}

// Swaps the axes of whole blocks: `rows` and `inner` are multiples of 8. Blocks that share cache
// lines of the source follow each other.
AG_CLONES void TransposeBlocks(const std::byte* from, int64_t rows, int64_t from_line,
                               std::byte* to, int64_t inner, int64_t to_line) {
  constexpr int64_t kLineElements = 16;
  for (int64_t begin = 0; begin < rows; begin += kLineElements) {
    const int64_t end = std::min(begin + kLineElements, rows);
    for (int64_t column = 0; column < inner; column += 8) {
      for (int64_t row = begin; row < end; row += 8) {
        TransposeBlock(from + row * 4 + column * from_line, from_line,
                       to + row * to_line + column * 4, to_line);
      }
    }
  }
}

// Swaps two axes as Transpose; the rows are dense in the source.
void TransposeWords(const std::byte* from, const CopyAxis& rows, const CopyAxis& inner,
                    std::byte* to) {
  if (inner.to != 4) return Transpose<uint32_t>(from, rows, inner, to);
  const int64_t height = rows.size / 8 * 8, width = inner.size / 8 * 8;
  TransposeBlocks(from, height, inner.from, to, width, rows.to);
  const CopyAxis top = {height, rows.from, rows.to};
  const CopyAxis right = {inner.size - width, inner.from, inner.to};
  Transpose<uint32_t>(from + width * inner.from, top, right, to + width * inner.to);
  const CopyAxis bottom = {rows.size - height, rows.from, rows.to};
  Transpose<uint32_t>(from + height * rows.from, bottom, inner, to + height * rows.to);
}

}  // namespace

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

Copy::Copy(std::vector<CopyAxis> axes, int64_t from_offset, int64_t to_offset,
           int64_t element_bytes)
    : from_offset_(from_offset * element_bytes),
      to_offset_(to_offset * element_bytes),
      element_bytes_(element_bytes) {
  for (CopyAxis& axis : axes) {
    axis.from *= element_bytes;
    axis.to *= element_bytes;
  }
  outer_ = Joined(axes);
  inner_ = {1, element_bytes, element_bytes};
  rows_ = {1, 0, 0};
  const auto smallest_to = [](const CopyAxis& a, const CopyAxis& b) { return a.to < b.to; };
  if (!outer_.empty()) {
    const auto at = std::min_element(outer_.begin(), outer_.end(), smallest_to);
    inner_ = *at;
    outer_.erase(at);
  }
  // Reads a source that is not dense along the target's inner axis in tiles with the source's dense
  // axis, so that each cache line is used whole.
  const auto dense = [&](const CopyAxis& axis) { return axis.from == element_bytes; };
  const auto at = std::find_if(outer_.begin(), outer_.end(), dense);
  if (!dense(inner_) && inner_.from != 0 && at != outer_.end()) {
    rows_ = *at;
    outer_.erase(at);
  }
  outer_steps_ = 1;
  for (const CopyAxis& axis : outer_) outer_steps_ *= axis.size;
  if (inner_.size * rows_.size == 0) outer_steps_ = 0;
}

void Copy::Inner(const std::byte* from, std::byte* to) const {
  if (rows_.size == 1) return CopyLine(from, inner_, element_bytes_, to);
  switch (element_bytes_) {
    case 1:
      return Transpose<uint8_t>(from, rows_, inner_, to);
    case 2:
      return Transpose<uint16_t>(from, rows_, inner_, to);
    case 4:
      return TransposeWords(from, rows_, inner_, to);
    default:
      return Transpose<uint64_t>(from, rows_, inner_, to);
  }
}

void Copy::RunRange(int64_t begin, int64_t end, const std::byte* from, std::byte* to) const {
  // Steps along the last outer axis need no division; movements mostly copy short lines.
  const CopyAxis last = outer_.empty() ? CopyAxis{1, 0, 0} : outer_.back();
  for (int64_t step = begin; step < end;) {
    int64_t rest = step / last.size, from_at = from_offset_, to_at = to_offset_;
    for (size_t d = outer_.size(); d-- > 1;) {
      const int64_t at = rest % outer_[d - 1].size;
      rest /= outer_[d - 1].size;
      from_at += at * outer_[d - 1].from;
      to_at += at * outer_[d - 1].to;
    }
    const int64_t first = step % last.size;
    const int64_t count = std::min(last.size - first, end - step);
    for (int64_t i = first; i < first + count; ++i) {
      Inner(from + from_at + i * last.from, to + to_at + i * last.to);
    }
    step += count;
  }
}

void Copy::Run(int cores, const void* from, void* to) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const int64_t bytes = std::max<int64_t>(inner_.size * rows_.size * element_bytes_, 1);
  const int64_t grain = std::max<int64_t>(kLightGrain * 4 / bytes, 1);
  ParallelFor(cores, outer_steps_, grain,
              [&](int64_t begin, int64_t end, int) { RunRange(begin, end, source, target); });
}

}  // namespace ag::cpu
