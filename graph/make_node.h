// The nodes that GraphBuilder and GraphPatch add.
#pragma once

#include <span>

#include "graph/graph.h"

namespace ag {

// The attributes of a node that has none: one object for all of them.
const std::shared_ptr<const Attributes>& NoAttributes();

// GraphBuilder::Constant's node. REQUIRES: CheckType(type) is OK.
Node MakeConstantNode(TensorType type, const Digest& digest, std::string_view bytes);

// GraphBuilder::Add's node, for operands of these types; its errors.
StatusOr<Node> MakeOperatorNode(OpKind op, std::span<const Edge> inputs,
                                std::span<const TensorType> types, Attributes attributes);

}  // namespace ag
