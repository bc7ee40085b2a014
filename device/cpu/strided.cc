#include "device/cpu/strided.h"

#include <algorithm>
#include <cstring>

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
      return Transpose<uint32_t>(from, rows_, inner_, to);
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
