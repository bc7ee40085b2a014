// Moves: copies of parts of tensors from one set of strides to another. One thread at a time for
// one GroupText.
#pragma once

#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {

struct Move {
  TensorArgument from, to;
  Sizes sizes, from_strides, to_strides;  // By axis.
  int64_t from_offset = 0, to_offset = 0;
  // For a move of a whole tensor: zeros behind its channels (axis 1) that may be written with them.
  int64_t padding = 0;

  Space space() const;  // Simplified, without padding; tensor 0 is the written one.
};

// Returns the moves of the group, without those that have no elements. Their tensors become
// arguments of the kernel. REQUIRES: BeginKernel was called.
StatusOr<std::vector<Move>> MovesOf(GroupText* group);

// Returns true when a move reads along one axis and writes along another, so that only a tile in
// shared memory lets both follow their memory.
bool IsTransposing(const Move& move);

// Returns the names "v<elements of a thread>/<threads>" of ways to make the moves by lanes, best
// guess first.
std::vector<std::string> MoveVariants(std::span<const Move> moves);

// Writes one kernel, called "move", that makes all moves by vectors of at most `variant`'s width.
// Pixels of a single padded move are written as whole vectors.
Status MoveByLanes(GroupText* group, std::span<const Move> moves, const std::string& variant);

// Does the same for one transposing move, by tiles of 32 x 32.
Status MoveByTiles(GroupText* group, const Move& move);

}  // namespace ag::cuda
