// The inner loops of element-wise chains: one operator over one block of consecutive elements.
// Loops over float are vectorized for each instruction set and chosen when the program starts;
// loops over double (integers and mixed types) are plain. In blocks of double a value of an integer
// type stands as an int64_t in the place of a double. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

// GCC compiles a function with this mark once per instruction set. Sanitizers crash in the
// resolvers.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define AG_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AG_CLONES
#endif

namespace ag::cpu {

// Computes out[i] = op(a[i], b[i], c[i]) for i in [0, n). `out` may be any of the operands. p and q
// are the operator's numbers.
template <class T>
using BlockFn = void (*)(const T* a, const T* b, const T* c, T* out, int64_t n, T p, T q);

// One operator made ready for blocks.
template <class T>
struct BlockOp {
  BlockFn<T> run = nullptr;
  T p = 0;
  T q = 0;
};

// Returns the block operator of an element-wise node, whose operands and results are numbers of
// type T. REQUIRES: Has(node.op, kElementwise).
template <class T>
BlockOp<T> BlockOpOf(const Node& node);

// Returns the operator that computes `second` of what `first` gives, in one loop, with equal
// results; nothing: there is none. Its operands are those of `first`, and then, where `second` has
// two, its other one.
template <class T>
std::optional<BlockOp<T>> JoinedOp(const BlockOp<T>& first, const BlockOp<T>& second);

// The steps of batch norm.
template <class T>
BlockOp<T> ScaleShiftOp();  // a * b + c
template <class T>
BlockOp<T> AddNumberOp(double number);  // a + number
template <class T>
BlockOp<T> SqrtOp();

// Returns the operator of a node whose operands (for a Where, those after the first) are of an
// integer type, in int64_t; what it gives has still to wrap (WrapOp). Null `run`: the node computes
// in doubles. REQUIRES: `node` is no Cast.
BlockOp<double> IntegerOpOf(const Node& node);

// From integers to numbers, which round as `dtype` does, and back: as Saturate of graph/tensor.h.
BlockOp<double> IntegerToNumberOp(DType dtype);
BlockOp<double> NumberToIntegerOp(DType dtype);
// Returns the operator that keeps of each integer what `dtype` holds, its last bits.
BlockOp<double> WrapOp(DType dtype);

// Returns the operator that rounds each value to one that `dtype` holds (RoundTo of
// graph/tensor.h).
BlockOp<double> RoundOp(DType dtype);

// Returns the operator that rounds each float to one that `dtype`, f16 or bf16, holds.
BlockOp<float> RoundToHalfOp(DType dtype);

}  // namespace ag::cpu
