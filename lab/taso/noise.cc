// Properties of a rule that do not depend on shapes.
#include <algorithm>
#include <set>

#include "lab/taso/coverage.h"

namespace ag {
namespace {

class Walk {
 public:
  explicit Walk(const std::vector<TasoOperator>& side) : side_(side) {}

  // Collects everything on which `tensor` depends.
  void From(const TasoTensor& tensor) {
    if (tensor.op < 0) {
      variables.insert(tensor.op);
    } else if (operators.insert(tensor.op).second) {
      for (const TasoTensor& input : side_[tensor.op].inputs) From(input);
    }
  }

  std::set<int> operators, variables;

 private:
  const std::vector<TasoOperator>& side_;
};

std::string DeadOperator(const TasoRule& rule, bool target) {
  const auto& side = target ? rule.target : rule.source;
  Walk walk(side);
  for (const TasoMapping& mapping : rule.mappings) {
    walk.From(target ? mapping.target : mapping.source);
  }
  for (size_t at = 0; at < side.size(); ++at) {
    if (walk.operators.contains(static_cast<int>(at))) continue;
    return fmt::format("dead: no output reads operator {} ({}) of the {}", at,
                       TasoOpName(side[at].type), target ? "target" : "source");
  }
  return "";
}

// Roots without a common variable may be anywhere in a graph; a merge of them is useless as a rule.
std::string UnrelatedRoots(const TasoRule& rule) {
  std::vector<std::set<int>> components;
  for (const TasoMapping& mapping : rule.mappings) {
    Walk walk(rule.source);
    walk.From(mapping.source);
    std::set<int> joined = walk.variables;
    std::erase_if(components, [&](const std::set<int>& component) {
      const bool shares = std::any_of(component.begin(), component.end(),
                                      [&](int variable) { return joined.contains(variable); });
      if (shares) joined.insert(component.begin(), component.end());
      return shares;
    });
    components.push_back(joined);
  }
  if (components.size() < 2) return "";
  return fmt::format("{} roots that share no tensor", components.size());
}

std::string SameInputAndWeights(const std::vector<TasoOperator>& side) {
  for (const TasoOperator& op : side) {
    const bool contracts = op.type == TasoOpType::kConv;
    if (contracts && op.inputs[0] == op.inputs[1]) return "one tensor is input and weights";
  }
  return "";
}

std::string UnboundVariable(const TasoRule& rule) {
  const std::vector<int> bound = rule.Variables();
  for (const TasoOperator& op : rule.target) {
    for (const TasoTensor& input : op.inputs) {
      if (input.op >= 0 || std::find(bound.begin(), bound.end(), input.op) != bound.end()) continue;
      return fmt::format("the source has no {}", TasoVariableName(input.op));
    }
  }
  return "";
}

// Whether a tensor of the source and one of the target have the same text.
bool Same(const TasoRule& rule, const TasoTensor& source, const TasoTensor& target) {
  if (source.op < 0 || target.op < 0) return source == target;
  const TasoOperator& a = rule.source[source.op];
  const TasoOperator& b = rule.target[target.op];
  if (a.type != b.type || a.parameters != b.parameters || source.output != target.output) {
    return false;
  }
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    [&](const TasoTensor& x, const TasoTensor& y) { return Same(rule, x, y); });
}

}  // namespace

std::string TasoNoiseOf(const TasoRule& rule) {
  for (const std::string& reason :
       {SameInputAndWeights(rule.source), DeadOperator(rule, false), DeadOperator(rule, true),
        UnboundVariable(rule), UnrelatedRoots(rule)}) {
    if (!reason.empty()) return reason;
  }
  const bool same = std::all_of(
      rule.mappings.begin(), rule.mappings.end(),
      [&](const TasoMapping& mapping) { return Same(rule, mapping.source, mapping.target); });
  return same ? "both sides are the same" : "";
}

}  // namespace ag
