// Moves: parts of tensors that are copied from one set of strides to another.
#pragma once

#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {

struct Move {
  TensorArgument from, to;
  Sizes sizes, from_strides, to_strides;  // By axis.
  int64_t from_offset = 0, to_offset = 0;

  Space space() const;  // Simplified; tensor 0 is what is written.
};

// The moves that the group is made of; those without elements are left out. BeginKernel has been
// called: their tensors become arguments of the kernel.
StatusOr<std::vector<Move>> MovesOf(GroupText* group);

// Whether a move reads along one axis and writes along another, so that only a tile in shared
// memory lets both go along their memory.
bool IsTransposing(const Move& move);

// One kernel, called "move", that makes all moves: vectors of `variant`'s width at most.
Status MoveByLanes(GroupText* group, std::span<const Move> moves, const std::string& variant);

// The same for one transposing move, by tiles of 32 x 32.
Status MoveByTiles(GroupText* group, const Move& move);

}  // namespace ag::cuda
