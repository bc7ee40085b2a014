// The compiled form of an element-wise chain and the loop that runs it (chain.h). RunPass is
// thread-safe for separate registers, pointers and outputs.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "device/cpu/block_ops.h"
#include "device/cpu/kernel.h"

namespace ag::cpu {

inline constexpr int64_t kBlock =
    1024;  // Elements; 4 KiB of floats: a dozen registers fit into L2.
inline constexpr int kSpaceRankMax = 32;

// The elements that a pass visits, in the order in which they lie in memory.
struct Space {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  // In a blocked layout the lanes from `lanes_used` on, in the last channel block of each image,
  // are padding. An image has `image` elements, its last block has `plane`, a block has `lanes`.
  int64_t lanes = 1, lanes_used = 1, plane = 0, image = 0;
};

// A tensor that the pass reads.
struct PassInput {
  const void* constant = nullptr;  // Null: inputs[slot].
  int slot = -1;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> strides;  // Elements per step of each axis of the space; 0 repeats.
  enum class Form {
    kDense,   // In the order of the space.
    kScalar,  // One element for all.
    kRepeat,  // A dense run of `period` elements, again and again; see Repeat.
    kWalk,    // Anything else, element by element.
  } form = Form::kWalk;
  // A run that repeats for `span` elements of the space, before the first `outer` axes step to the
  // next run: a vector over channels (span is the whole space), or blocks of it.
  struct Repeat {
    int64_t period = 1, span = 1;
    size_t outer = 0;
  } repeat;
  int value = -1;
};

struct PassOutput {
  int slot = -1;
  DType dtype = DType::kFloat32;
  int value = -1;
};

// True when memory holds elements of `dtype` as registers of T do: T itself, and int64_t where T is
// double (block_ops.h).
template <class T>
bool LiesAsHeld(DType dtype) {
  if (std::is_same_v<T, float>) return dtype == DType::kFloat32;
  return dtype == DType::kFloat64 || dtype == DType::kInt64;
}

// Values are numbered: inputs first, then one per instruction. Each value has a register or, when
// it is dense and lies as held, is used in memory.
template <class T>
struct Instruction {
  BlockOp<T> op;
  int read[3] = {0, 0, 0};  // The values that it reads, of which there are `reads`.
  int reads = 0;
  int out = 0;

  std::span<const int> operands() const { return {read, static_cast<size_t>(reads)}; }
};

template <class T>
struct Pass {
  Space space;
  std::vector<PassInput> inputs;
  std::vector<PassOutput> outputs;
  std::vector<Instruction<T>> code;
  std::vector<int> register_of;  // Per value; -1: it is in memory.
  int registers = 0;
  int64_t block =
      kBlock;  // At most; a multiple of the short runs' periods, so that every block has one phase.
};

// Runs of at least this length are read in memory; shorter ones are repeated in a register.
inline constexpr int64_t kLongPeriod = 256;

// Runs one pass on `cores` cores. REQUIRES: `registers` holds cores * pass.registers * kBlock
// elements, `pointers` cores * 2 * pass.register_of.size() entries.
template <class T>
void RunPass(const Pass<T>& pass, int cores, T* registers, T** pointers, Inputs inputs,
             Outputs outputs);

// Runs the elements [begin, end) of a pass as `worker` of such cores. REQUIRES: as RunPass; in
// blocked layouts both are multiples of the lanes.
template <class T>
void RunPart(const Pass<T>& pass, int64_t begin, int64_t end, int worker, T* registers,
             T** pointers, Inputs inputs, Outputs outputs);

}  // namespace ag::cpu
