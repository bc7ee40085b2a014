// Operators that choose, place or move elements.
#include "graph/onnx/operators/index_rows.h"

namespace ag::onnx_operators {

std::span<const OperatorRow> IndexOperators() {
  static const auto& rows = *new std::vector<OperatorRow>([] {
    std::vector<OperatorRow> all;
    for (const auto part : {MoveOperators(), FillOperators(), GatherOperators(), ScatterOperators(),
                            SortOperators()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }());
  return rows;
}

}  // namespace ag::onnx_operators
