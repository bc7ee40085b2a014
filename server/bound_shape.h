// A fixed shape for one model input whose dimensions the model leaves open. Plain data.
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
