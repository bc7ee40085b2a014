// The versions of the two files (docs/store.md): how each is made, and how one becomes the next.
// Private to server/store.
#pragma once

#include "server/store/sqlite.h"

namespace ag {

const Schema& JobsSchema();
const Schema& CacheSchema();

}  // namespace ag
