// What the user's model states of values that are still there: types, comments, annotations.
#include <algorithm>

#include "graph/onnx/export/exporter.h"

namespace ag {

void Exporter::ReadStated(const OnnxOrigin& origin) {
  for (const auto& [place, name] : origin.dim_names) symbols_.insert(name);
  for (const auto& [name, proto] : origin.stated) {
    StatusOr<OnnxValueInfo> info = ParseValueInfo(proto);
    if (!info.ok()) continue;  // The origin crossed processes.
    info->proto = proto;
    stated_.emplace(name, *std::move(info));
  }
}

void Exporter::ReserveStatedNames() {
  for (const auto& [name, info] : stated_) taken_.insert(name);
  for (const QuantAnnotation& annotation : annotations_) taken_.insert(annotation.tensor);
  for (const DynamicPart::Weight& weight : annotation_weights_) taken_.insert(weight.name);
}

// Takes comment, metadata and denotations, and the symbols of open sizes that have no other name.
void Exporter::TakeStated(OnnxValueInfo& info) const {
  const auto stated = stated_.find(info.name);
  if (stated == stated_.end()) return;
  info.proto = stated->second.proto;
  const std::vector<OnnxDim>& dims = stated->second.dims;
  for (size_t i = 0; i < dims.size() && dims.size() == info.dims.size(); ++i) {
    OnnxDim& dim = info.dims[i];
    if (dim.size < 0 && dim.name.empty() && !symbols_.contains(dims[i].name)) {
      dim.name = dims[i].name;
    }
  }
}

bool Exporter::IsStillRight(const OnnxValueInfo& stated, const OnnxValueInfo& now) const {
  if (stated.kind != OnnxKind::kTensor || stated.data_type != now.data_type) return false;
  if (!stated.has_shape) return true;
  if (stated.dims.size() != now.dims.size()) return false;
  for (size_t i = 0; i < now.dims.size(); ++i) {
    const OnnxDim &before = stated.dims[i], &after = now.dims[i];
    if (before.size >= 0 && before.size != after.size) return false;
    const bool is_symbol = before.size < 0 && symbols_.contains(before.name);
    if (is_symbol && !open_.empty() && before.name != after.name) return false;
  }
  return true;
}

bool Exporter::IsModelOutput(Edge edge, const std::string& name) const {
  if (dynamic_.empty()) return graph_.is_output(edge);
  return std::ranges::any_of(dynamic_.outputs, [&](const auto& o) { return o.first == name; });
}

// A kept node of another domain is read back by its stated types only.
void Exporter::WriteTypes(NodeId id) {
  const Node& node = graph_.node(id);
  for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
    const Edge edge{id, i};
    const std::string& name = names_[edge];
    const auto stated = stated_.find(name);
    const bool is_kept = stated != stated_.end() && kept_.ValueOf(edge) == name;
    if (node.op == OpKind::kOpaque ? graph_.is_output(edge)
                                   : !is_kept || IsModelOutput(edge, name)) {
      continue;
    }
    AddValueInfo(edge, name, model_.value_infos);
    OnnxValueInfo& info = model_.value_infos.back();
    if (node.op == OpKind::kOpaque) continue;
    info.has_shape = stated->second.has_shape;
    if (!IsStillRight(stated->second, info)) model_.value_infos.pop_back();
  }
}

void Exporter::WriteDynamicTypes(const OnnxNode& node) {
  for (const std::string& name : node.outputs) {
    const auto stated = stated_.find(name);
    const bool is_output = std::ranges::any_of(
        dynamic_.outputs, [&](const auto& output) { return output.first == name; });
    if (stated == stated_.end() || is_output) continue;
    model_.value_infos.push_back({.name = name, .proto = stated->second.proto});
  }
}

Status Exporter::WriteAnnotations() {
  if (annotations_.empty()) return OkStatus();
  std::set<std::string> there;
  for (const OnnxValueInfo& input : model_.inputs) there.insert(input.name);
  for (const OnnxTensor& tensor : model_.initializers) there.insert(tensor.name);
  for (const OnnxNode& node : model_.nodes) there.insert(node.outputs.begin(), node.outputs.end());
  std::set<std::string> wanted;
  for (const QuantAnnotation& annotation : annotations_) {
    if (!there.contains(annotation.tensor)) continue;
    for (const auto& [key, name] : annotation.parameters) wanted.insert(name);
    model_.annotations.push_back(annotation);
  }
  for (const auto& [name, type, digest] : annotation_weights_) {
    if (!wanted.contains(name) || !there.insert(name).second) continue;
    AG_LET(Tensor tensor, ag::ConstantOf(weights_, digest, type));
    AddInitializer(tensor, name);
  }
  return OkStatus();
}

}  // namespace ag
