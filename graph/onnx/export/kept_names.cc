#include "graph/onnx/export/kept_names.h"

#include <algorithm>
#include <utility>

#include "graph/onnx/export/correspondence.h"

namespace ag {
namespace {

const std::string& NoName() {
  static const auto& name = *new std::string;
  return name;
}

// Of a node with more readers or operands only these many are looked at.
constexpr size_t kLookedAtMax = 64;

}  // namespace

KeptNames::KeptNames(const Graph& graph, const OnnxOrigin& origin, const Graph* imported)
    : graph_(graph), imported_(imported), names_(origin.names), notes_(origin.notes) {
  const bool fits = imported != nullptr && names_.size() == static_cast<size_t>(imported->size());
  if (!fits) {
    imported_ = nullptr;
    return;
  }
  old_ = Correspondence(*imported, graph);
  is_gone_.assign(names_.size(), true);
  for (const NodeId old : old_) {
    if (old >= 0) is_gone_[static_cast<size_t>(old)] = false;
  }
}

const NodeNames* KeptNames::Of(NodeId id) const {
  if (imported_ == nullptr || old_[static_cast<size_t>(id)] < 0) return nullptr;
  return &names_[static_cast<size_t>(old_[static_cast<size_t>(id)])];
}

bool KeptNames::IsNew(NodeId id) const {
  return imported_ != nullptr && old_[static_cast<size_t>(id)] < 0;
}

const std::string& KeptNames::NodeOf(NodeId id) const {
  const NodeNames* names = Of(id);
  return names == nullptr ? NoName() : names->node;
}

const std::string& KeptNames::ValueOf(Edge edge) const {
  const NodeNames* names = Of(edge.node);
  const auto i = static_cast<size_t>(edge.output);
  return names == nullptr || i >= names->values.size() ? NoName() : names->values[i];
}

const std::string& KeptNames::NotesOf(NodeId id) const {
  const NodeNames* names = Of(id);
  const bool has_notes = names != nullptr && names->notes > 0 && names->notes <= notes_.size();
  return has_notes ? notes_[names->notes - 1] : NoName();
}

std::vector<NodeId> KeptNames::WeightsBelow(NodeId id) const {
  std::vector<NodeId> weights, todo = {id};
  for (size_t i = 0; i < todo.size() && i < kLookedAtMax; ++i) {
    const Node& node = graph_.node(todo[i]);
    if (node.op == OpKind::kConstant) weights.push_back(todo[i]);
    for (const Edge& e : node.inputs) {
      if (graph_.is_constant(e.node)) todo.push_back(e.node);
    }
  }
  return weights;
}

const std::string& KeptNames::WeightOf(NodeId id) const {
  if (imported_ == nullptr) return NoName();
  for (const NodeId weight : WeightsBelow(id)) {
    const std::string& name = ValueOf({weight, 0});
    if (!name.empty()) return name;
  }
  return NoName();
}

void KeptNames::AddGoneReaders(NodeId old, std::vector<std::string>* names) const {
  const auto outputs = static_cast<int32_t>(imported_->node(old).outputs.size());
  for (int32_t i = 0; i < outputs; ++i) {
    const auto uses = imported_->uses({old, i});
    for (const Use& use : uses.first(std::min(uses.size(), kLookedAtMax))) {
      const std::string& name = names_[static_cast<size_t>(use.node)].node;
      const bool is_new = !name.empty() && is_gone_[static_cast<size_t>(use.node)] &&
                          std::ranges::count(*names, name) == 0;
      if (is_new && names->size() < kOriginsMax) names->push_back(name);
    }
  }
}

std::vector<std::string> KeptNames::OriginsOf(NodeId id) const {
  std::vector<std::string> of_shared_weights;
  for (size_t step = 0; step < kOriginsMax; ++step) {
    if (imported_ == nullptr || old_[static_cast<size_t>(id)] >= 0) break;
    Beside beside = GoneBeside(id);
    if (!beside.names.empty()) return beside.names;
    if (of_shared_weights.empty()) of_shared_weights = std::move(beside.of_shared_weights);
    // A new node that reads a new node: both stand in the place of the same.
    const auto& inputs = graph_.node(id).inputs;
    if (inputs.empty()) break;
    id = inputs[0].node;
  }
  return of_shared_weights;
}

KeptNames::Beside KeptNames::GoneBeside(NodeId id) const {
  Beside beside;
  for (const NodeId weight : WeightsBelow(id)) {
    const NodeId old = old_[static_cast<size_t>(weight)];
    if (old < 0) continue;
    std::vector<std::string> readers;
    AddGoneReaders(old, &readers);
    const bool is_shared = readers.size() > 1;
    AddGoneReaders(old, is_shared ? &beside.of_shared_weights : &beside.names);
  }
  const auto& inputs = graph_.node(id).inputs;
  for (size_t i = 0; beside.names.empty() && i < std::min(inputs.size(), kLookedAtMax); ++i) {
    const NodeId old = old_[static_cast<size_t>(inputs[i].node)];
    if (old >= 0 && !graph_.is_constant(inputs[i].node)) AddGoneReaders(old, &beside.names);
  }
  return beside;
}

}  // namespace ag
