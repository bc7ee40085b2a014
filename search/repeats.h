// Runs of adjacent pieces that a graph repeats, such as the layers of a transformer: where one is
// cut at other places than the next, both are put together again. Pure functions.
#pragma once

#include <functional>
#include <vector>

#include "search/partition.h"

namespace ag {

struct RepeatOptions {
  // Operators of a run. Small ones repeat everywhere, and leave too little in which to search.
  int nodes_min = 20;
  int nodes_max = 120;
};

// Returns the pieces in their order, those of each run that repeats joined into one, marked as
// joined; all runs of the same nodes but for their places have equal `form`s. Takes the runs first
// that leave the fewest distinct operators: (copies - 1) x operators. `pieces` must be in an order
// in which none reads from a later one. A graph of very many pieces is left as it is.
struct JoinedPiece {
  Piece nodes;  // Ascending.
  bool is_joined = false;
};
std::vector<JoinedPiece> JoinRepeats(const Graph& graph, const std::vector<Piece>& pieces,
                                     const std::function<Digest(const Piece&)>& form,
                                     const RepeatOptions& options = {});

}  // namespace ag
