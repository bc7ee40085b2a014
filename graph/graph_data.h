// The data of a Graph. Private to graph.cc, graph_builder.cc and patch.cc. Immutable once built,
// except the digest, which is computed once; safe to share between threads.
#pragma once

#include <mutex>

#include "graph/graph.h"

namespace ag {

struct Graph::Data : Graph::Tables {
  mutable std::once_flag digest_once;
  mutable Digest digest;
};

inline const Graph::Data& Graph::data() const { return static_cast<const Data&>(*tables_); }

}  // namespace ag
