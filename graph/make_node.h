// Makes the nodes that GraphBuilder and GraphPatch add. Thread-safe.
#pragma once

#include <span>

#include "graph/graph.h"

namespace ag {

// Returns the shared attributes of all nodes that have none.
const std::shared_ptr<const Attributes>& NoAttributes();

// Sets the hashes of a node that is complete but for them.
void SetHashes(Node* node);

// Returns the node of GraphBuilder::Constant. REQUIRES: CheckType(type) is OK.
Node MakeConstantNode(TensorType type, const Digest& digest, std::string_view bytes);

// Returns the node of GraphBuilder::Add for operands of these types, or its errors.
StatusOr<Node> MakeOperatorNode(OpKind op, std::span<const Edge> inputs,
                                std::span<const TensorType> types, Attributes attributes);

}  // namespace ag
