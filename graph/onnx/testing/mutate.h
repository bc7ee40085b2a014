// Random changes of models that stay protobufs: what byte-wise changes seldom do. One thread at a
// time.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace ag::testing {

// Returns the model with one to four random changes: a field set, taken away, added, doubled,
// swapped or copied from elsewhere, from `donor` too; a node of any operator of the default domain
// added; a tensor made anew. Names, sizes and numbers are mostly those that mean something. Bytes
// that are no model count as an empty one. The result may be larger than the model.
std::string MutatedModel(std::string_view model, std::string_view donor, Random& random);

}  // namespace ag::testing
