// Index math: a box of elements that a kernel walks, and where in memory several tensors have each
// of them. Sizes and strides are numbers; what is generated are the expressions between them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/cuda/codegen/text.h"
#include "graph/types.h"

namespace ag::cuda {

using Sizes = std::vector<int64_t>;

struct Space {
  Sizes sizes;                 // Outermost first.
  std::vector<Sizes> strides;  // By tensor, then axis; elements. 0: the tensor repeats along it.

  int64_t Count() const;
  // Puts the axes into the order in which tensor 0 has them in memory and drops those of size 1.
  // One axis at least is left. Returns which are left, by their old numbers.
  std::vector<size_t> Sort();
  // Sorts, and joins neighbours that are one run for every tensor.
  void Simplify();
  // The innermost axis counts vectors of `vector` elements from now on. REQUIRES: it divides.
  void CountVectors(int64_t vector);

 private:
  void Keep(const std::vector<size_t>& axes);
};

// Strides of a tensor of `shape` for reading it at positions of the numpy broadcast shape `as`.
Sizes BroadcastTo(std::span<const int64_t> shape, std::span<const int64_t> strides,
                  std::span<const int64_t> as);

// "int" where all offsets of all tensors and the count fit, else "long long".
std::string IndexType(const Space& space);

// Declares where `index` (the name of a number below the product of `sizes`) lies along each axis,
// as constants <prefix>0, <prefix>1, ..., and returns how to write each: "0" along axes of size 1.
std::vector<std::string> Coordinates(Text* text, const Sizes& sizes, const std::string& index,
                                     const std::string& prefix, const std::string& type);

// Whether numbers up to `count`, and those of threads beyond it, need 64 bits.
bool IsWide(int64_t count);

// Coordinates, of type int, for offsets below `count`: cast where these need 64 bits.
std::vector<std::string> Widened(std::vector<std::string> coordinates, int64_t count);

// "x / 5" and "x % 5"; "x" and "0" by 1.
std::string Quotient(const std::string& x, int64_t by);
std::string Remainder(const std::string& x, int64_t by);

// The sum of coordinates times strides: "a0 * 35 + a1", "0".
std::string Offset(const std::vector<std::string>& coordinates, std::span<const int64_t> strides);

// "i0 + 5", "i0": a pointer moved by an offset or a sum extended, without "+ 0".
std::string Plus(const std::string& base, const std::string& offset);

// The most neighbours along the innermost axis of a simplified space, a power of two and at most
// `most`, that every tensor with stride 1 there can access at once.
int64_t VectorOf(const Space& space, int64_t most);

}  // namespace ag::cuda
