// Random changes of canonical graph bytes (docs/graph-bytes.md) that keep their form: what
// byte-wise changes, which break lengths and digests, seldom do. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace ag {

// Returns the bytes with one to four changes of attributes, operators, edges, types, constants, or
// of which nodes there are. Digests of changed constants are right. "": the bytes have not the form
// of a graph.
std::string MutatedGraph(std::string_view bytes, Random& random);

}  // namespace ag
