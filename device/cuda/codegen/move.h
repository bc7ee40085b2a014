// Moves: parts of tensors that are copied from one set of strides to another.
#pragma once

#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {

struct Move {
  TensorArgument from, to;
  Sizes sizes, from_strides, to_strides;  // By axis.
  int64_t from_offset = 0, to_offset = 0;
  // Of a move of a whole tensor: zeros behind its channels (axis 1) that may be written with them.
  int64_t padding = 0;

  Space space() const;  // Simplified, without padding; tensor 0 is what is written.
};

// The moves that the group is made of; those without elements are left out. BeginKernel has been
// called: their tensors become arguments of the kernel.
StatusOr<std::vector<Move>> MovesOf(GroupText* group);

// Whether a move reads along one axis and writes along another, so that only a tile in shared
// memory lets both go along their memory.
bool IsTransposing(const Move& move);

// Names "v<elements of a thread>/<threads>" of ways to make the moves by lanes, best first.
std::vector<std::string> MoveVariants(std::span<const Move> moves);

// One kernel, called "move", that makes all moves: vectors of `variant`'s width at most. Pixels of
// a single padded move are written as whole vectors.
Status MoveByLanes(GroupText* group, std::span<const Move> moves, const std::string& variant);

// The same for one transposing move, by tiles of 32 x 32.
Status MoveByTiles(GroupText* group, const Move& move);

}  // namespace ag::cuda
