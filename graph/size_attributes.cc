#include "graph/size_attributes.h"

namespace ag {

bool HoldsSizes(OpKind op, std::string_view attribute) {
  switch (op) {
    case OpKind::kReshape:
    case OpKind::kExpand:
      return attribute == "shape";
    case OpKind::kSlice:
      return attribute == "starts" || attribute == "ends";
    case OpKind::kSplit:
    case OpKind::kResize:
      return attribute == "sizes";
    case OpKind::kPad:
      return attribute == "pads";
    default:
      return false;
  }
}

}  // namespace ag
