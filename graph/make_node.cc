#include "graph/make_node.h"

#include "graph/shapes.h"
#include "graph/structure_hash.h"

namespace ag {

const std::shared_ptr<const Attributes>& NoAttributes() {
  // It is never freed, so its copies, in most nodes of all threads, share no counter.
  static const auto& none =
      *new std::shared_ptr<const Attributes>(std::shared_ptr<const Attributes>(), new Attributes());
  return none;
}

void SetHashes(Node* node) {
  node->hash = HashOfNodeAlone(*node);
  node->order_hash = OrderHashOfNode(*node);
}

Node MakeConstantNode(TensorType type, const Digest& digest, std::string_view bytes) {
  auto data = std::make_shared<ConstantData>();
  data->digest = digest;
  if (static_cast<int64_t>(bytes.size()) == type.Bytes() &&
      type.Bytes() <= ConstantData::kInlineBytesMax) {
    data->inline_bytes = std::string(bytes);
  }
  Node node;
  node.op = OpKind::kConstant;
  node.SetFacts({NoAttributes(), {std::move(type)}, std::move(data)});
  SetHashes(&node);
  return node;
}

StatusOr<Node> MakeOperatorNode(OpKind op, std::span<const Edge> inputs,
                                std::span<const TensorType> types, Attributes attributes) {
  if (Has(op, kLeaf) || Has(op, kBarrier)) {
    return Err(StatusCode::kInvalidArgument, "{}: is not an operator that Add makes",
               Info(op).text_name);
  }
  AG_TRY(CompleteAttributes(op, types, &attributes));
  AG_LET(TensorTypes outputs, InferTypes(op, types, attributes));
  Node node;
  node.op = op;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.SetFacts({attributes.items().empty()
                     ? NoAttributes()
                     : std::make_shared<const Attributes>(std::move(attributes)),
                 std::move(outputs)});
  SetHashes(&node);
  return node;
}

}  // namespace ag
