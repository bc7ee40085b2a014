// How a search went, as rows of the result's table. Pure functions.
#pragma once

#include <string>

#include "autograph/v1/optimizer.pb.h"

namespace ag {

// Returns the row of the counts and of why the search ended, and a table of the plans that were the
// fastest when they were timed whole, with what was predicted of each.
std::string SearchRows(const autograph::v1::Result& result);

}  // namespace ag
