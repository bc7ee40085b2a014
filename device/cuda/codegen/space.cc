#include "device/cuda/codegen/space.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ag::cuda {

int64_t Space::Count() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

void Space::Keep(const std::vector<size_t>& axes) {
  const auto take = [&](const Sizes& from) {
    Sizes to;
    for (const size_t axis : axes) to.push_back(from[axis]);
    if (to.empty()) to.push_back(1);
    return to;
  };
  for (Sizes& of : strides) of = take(of);
  sizes = take(sizes);
}

std::vector<size_t> Space::Sort() {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](size_t axis) { return sizes[axis] == 1; });
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t a) { return strides[0][a]; });
  Keep(order);
  return order;
}

void Space::Simplify() {
  Sort();
  const auto joins = [&](size_t outer, size_t inner) {
    return std::ranges::all_of(
        strides, [&](const Sizes& of) { return of[outer] == of[inner] * sizes[inner]; });
  };
  std::vector<size_t> kept;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (!kept.empty() && joins(kept.back(), axis)) {
      sizes[axis] *= sizes[kept.back()];
      kept.back() = axis;
    } else {
      kept.push_back(axis);
    }
  }
  Keep(kept);
}

void Space::CountVectors(int64_t vector) {
  sizes.back() /= vector;
  for (Sizes& of : strides) of.back() *= vector;
}

Sizes BroadcastTo(std::span<const int64_t> shape, std::span<const int64_t> strides,
                  std::span<const int64_t> as) {
  Sizes result(as.size(), 0);
  const size_t missing = as.size() - shape.size();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) result[missing + axis] = strides[axis];
  }
  return result;
}

bool IsWide(int64_t count) {
  // At most one block with its vectors is beyond the end.
  return count >= std::numeric_limits<int32_t>::max() - (1 << 16);
}

std::vector<std::string> Widened(std::vector<std::string> coordinates, int64_t count) {
  if (!IsWide(count)) return coordinates;
  for (std::string& at : coordinates) {
    if (at != "0") at = "(long long)(" + at + ")";
  }
  return coordinates;
}

std::string IndexType(const Space& space) {
  int64_t most = space.Count();
  for (const Sizes& of : space.strides) {
    int64_t extent = 1;
    for (size_t axis = 0; axis < space.sizes.size(); ++axis) {
      extent += (space.sizes[axis] - 1) * std::abs(of[axis]);
    }
    most = std::max(most, extent);
  }
  return IsWide(most) ? "long long" : "int";
}

std::vector<std::string> Coordinates(Text* text, const Sizes& sizes, const std::string& index,
                                     const std::string& prefix, const std::string& type) {
  std::vector<std::string> names(sizes.size(), "0");
  size_t first = 0;
  while (first < sizes.size() && sizes[first] == 1) ++first;
  int64_t below = 1;
  for (size_t axis = sizes.size(); axis-- > first;) {
    if (sizes[axis] == 1) continue;
    std::string value = below == 1 ? index : fmt::format("{} / {}", index, below);
    below *= sizes[axis];
    if (axis > first) value = fmt::format("{} % {}", value, sizes[axis]);
    if (value == index) {
      names[axis] = index;
      continue;
    }
    names[axis] = fmt::format("{}{}", prefix, axis);
    text->Line("const {} {} = {};", type, names[axis], value);
  }
  return names;
}

std::string Quotient(const std::string& x, int64_t by) {
  return by == 1 ? x : fmt::format("{} / {}", x, by);
}

std::string Remainder(const std::string& x, int64_t by) {
  return by == 1 ? "0" : fmt::format("{} % {}", x, by);
}

std::string Offset(const std::vector<std::string>& coordinates, std::span<const int64_t> strides) {
  std::string sum;
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (strides[axis] == 0 || coordinates[axis] == "0") continue;
    if (!sum.empty()) sum += " + ";
    const std::string& at = coordinates[axis];
    if (strides[axis] == 1) {
      sum += at;
    } else {
      const bool is_sum = at.find(' ') != std::string::npos;
      sum += is_sum ? fmt::format("({}) * {}", at, strides[axis])
                    : fmt::format("{} * {}", at, strides[axis]);
    }
  }
  return sum.empty() ? "0" : sum;
}

std::string Plus(const std::string& base, const std::string& offset) {
  if (offset == "0") return base;
  return base == "0" ? offset : base + " + " + offset;
}

int64_t VectorOf(const Space& space, int64_t most) {
  const auto fits = [&](int64_t vector) {
    if (space.sizes.back() % vector != 0) return false;
    return std::ranges::all_of(space.strides, [&](const Sizes& of) {
      if (of.back() != 1) return true;
      return std::all_of(of.begin(), of.end() - 1, [&](int64_t s) { return s % vector == 0; });
    });
  };
  int64_t vector = most;
  while (vector > 1 && !fits(vector)) vector /= 2;
  return vector;
}

}  // namespace ag::cuda
