// Index math: a box of elements that a kernel visits, and the places of each element in several
// tensors. Sizes and strides are numbers; the generated text has the expressions between them. Pure
// functions.
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
  // Orders the axes as tensor 0 has them in memory and removes those of size 1; at least one axis
  // stays. Returns the remaining axes, by their old numbers.
  std::vector<size_t> Sort();
  // Sorts, and joins neighbouring axes that are one run for every tensor.
  void Simplify();
  // Makes the innermost axis count vectors of `vector` elements. REQUIRES: `vector` divides its
  // size.
  void CountVectors(int64_t vector);

 private:
  void Keep(const std::vector<size_t>& axes);
};

// Returns the strides for reading a tensor of `shape` at positions of the numpy broadcast shape
// `as`.
Sizes BroadcastTo(std::span<const int64_t> shape, std::span<const int64_t> strides,
                  std::span<const int64_t> as);

// Returns "int" where all offsets of all tensors and the count fit, else "long long".
std::string IndexType(const Space& space);

// Declares the coordinates of `index` (the name of a number below the product of `sizes`) as
// constants <prefix>0, <prefix>1, ..., and returns the expression of each: "0" along axes of size
// 1.
std::vector<std::string> Coordinates(Text* text, const Sizes& sizes, const std::string& index,
                                     const std::string& prefix, const std::string& type);

// Returns true when numbers up to `count`, and those of threads beyond it, need 64 bits.
bool IsWide(int64_t count);

// Returns coordinates of type int for offsets below `count`, cast where these need 64 bits.
std::vector<std::string> Widened(std::vector<std::string> coordinates, int64_t count);

// Return "x / 5" and "x % 5"; "x" and "0" for `by` = 1.
std::string Quotient(const std::string& x, int64_t by);
std::string Remainder(const std::string& x, int64_t by);

// Returns the sum of coordinates times strides: "a0 * 35 + a1", "0".
std::string Offset(const std::vector<std::string>& coordinates, std::span<const int64_t> strides);

// Returns a pointer moved by an offset, or a longer sum: "i0 + 5"; "i0" without "+ 0".
std::string Plus(const std::string& base, const std::string& offset);

// Returns how many neighbours along the innermost axis of a simplified space, a power of two and at
// most `most`, every tensor with stride 1 there can access at once.
int64_t VectorOf(const Space& space, int64_t most);

}  // namespace ag::cuda
