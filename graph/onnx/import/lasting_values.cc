#include "graph/onnx/import/lasting_values.h"

#include "graph/onnx/import/importer.h"
#include "graph/onnx/import/sparse.h"
#include "graph/onnx/tensor_proto.h"

namespace ag {
namespace {

// All results that are kept: beside them stand the weights that they were made of.
constexpr int64_t kKeptBytesMax = int64_t{1} << 30;
// A loop that counts from a constant on makes such values in each iteration.
constexpr size_t kKeptMax = 1 << 16;

std::string PlaceOf(std::string_view form, const std::vector<int64_t>& operands) {
  std::string place(reinterpret_cast<const char*>(operands.data()),
                    operands.size() * sizeof(int64_t));
  place.push_back(static_cast<char>(operands.size()));
  return place.append(form);
}

}  // namespace

StatusOr<std::shared_ptr<ParsedSubgraph>> LastingValues::SubgraphOf(const OnnxNode& node,
                                                                    std::string_view name,
                                                                    const ImportLimits& limits,
                                                                    bool keeps) {
  const std::pair<const char*, std::string> place(node.proto.data(), name);
  if (keeps) {
    const auto found = subgraphs_.find(place);
    if (found != subgraphs_.end()) return found->second;
  }
  auto parsed = std::make_shared<ParsedSubgraph>();
  AG_LET(parsed->model, ParseSubgraph(node, name, limits.nodes_max));
  AG_TRY(Densify(parsed->model, limits), "{}", name);
  const StatusOr<std::vector<int>> order = OrderNodes(parsed->model.nodes);
  AG_TRY(order, "{}", name);
  parsed->order = *order;
  if (!keeps) return parsed;
  for (const OnnxTensor& weight : parsed->model.initializers) {
    const StatusOr<Tensor> tensor = ToTensor(weight);
    AG_TRY(tensor, "{}", name);
    parsed->weights.emplace_back(weight.name, GivenOperand{*tensor, ++last_});
  }
  subgraphs_[place] = parsed;
  return parsed;
}

const LastingValues::Values* LastingValues::Find(std::string_view form,
                                                 const std::vector<int64_t>& operands) const {
  const auto found = values_.find(PlaceOf(form, operands));
  return found == values_.end() ? nullptr : &found->second;
}

void LastingValues::Keep(std::string_view form, const std::vector<int64_t>& operands,
                         Values& results) {
  int64_t bytes = 0;
  for (const GivenOperand& result : results) {
    bytes += static_cast<int64_t>(result.tensor.bytes().size());
  }
  if (bytes_ + bytes > kKeptBytesMax || values_.size() >= kKeptMax) return;
  bytes_ += bytes;
  for (GivenOperand& result : results) {
    if (result.lasting == 0) result.lasting = ++last_;
  }
  values_.emplace(PlaceOf(form, operands), results);
}

}  // namespace ag
