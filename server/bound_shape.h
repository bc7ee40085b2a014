// A shape for an input whose model leaves it open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ag {

struct BoundShape {
  std::string input;
  std::vector<int64_t> dims;
};

}  // namespace ag
