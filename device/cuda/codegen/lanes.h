// Kernels whose threads each compute a few neighbouring elements ("lanes") of the output and share
// nothing: element-wise chains, copies, gathers. Pure functions.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

// The division of a space among threads.
struct Lanes {
  Space space;         // Innermost axis counted in vectors; `rest` elements follow the last one.
  int64_t vector = 1;  // Elements of a thread.
  int64_t rest = 0;    // Only where the space has a single axis.
  int64_t threads = 128;
  std::string type;  // Of the index.

  int64_t count() const { return space.Count(); }
  int64_t blocks() const { return CeilDiv(count() + (rest > 0 ? 1 : 0), threads); }
};

// Returns lanes of `vector` elements; fewer where the space (simplified) does not allow it.
Lanes MakeLanes(Space space, int64_t vector, int64_t threads);

// Returns the names "v<vector>/<threads>" to try for elements of `bytes`, best guess first.
std::vector<std::string> LaneVariants(const Space& space, int64_t bytes);
Lanes LanesOf(const Space& space, const std::string& variant);

// Declares the thread's place "at" and returns from the kernel when that is beyond the end; `block`
// is the block's number. Returns the coordinates along the space's axes.
std::vector<std::string> BeginLanes(Text* text, const Lanes& lanes, const std::string& block);

// Returns a pack of the thread's elements of a tensor, from the pointer expression of the first.
std::string LoadLanes(const Lanes& lanes, size_t tensor, const std::string& pointer);
// Sets the pack's lanes in padding to zero. A pixel's channels (of `of`) begin at multiples of the
// channels in memory, and `place` is the first lane's place along them.
void ZeroPadding(Text* text, const TensorArgument& of, const std::string& place, int64_t vector,
                 const std::string& pack);
void StoreLanes(Text* text, const Lanes& lanes, size_t tensor, const std::string& pointer,
                const std::string& pack);

}  // namespace ag::cuda
