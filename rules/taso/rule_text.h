// A TASO rule in our rule language. Convolutions get a bias (ours have one), the attributes of
// TASO's operators become labels (what holds for one stride and padding is written for all, and the
// verifier says if it holds), and what TASO leaves open becomes choices: of biases, of the group,
// and of guards.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rules/taso/format.h"

namespace ag {

// What may stand in the "if" of the rule, or in one of its source's operators.
struct TasoGuard {
  std::string text;   // "same_shape(x1, x2)"; with a label: the attribute "group=1".
  std::string label;  // The label whose source operators carry the attribute; "": a guard.
};

// One way to write the rule.
struct TasoChoice {
  std::vector<std::string> biases;  // Of each convolution of the target, in order.
  bool infer_group = false;         // The group of the target's convolutions from its operands.
  std::vector<TasoGuard> guards;
};

class TasoRuleText {
 public:
  explicit TasoRuleText(const TasoRule& rule);

  // "" or why our language cannot say it: operators it has no form for.
  const std::string& refusal() const { return refusal_; }
  // The guards that may be needed, from what the target needs to be well-typed, from what operands
  // may broadcast, from ranks and groups.
  const std::vector<TasoGuard>& guards() const { return guards_; }
  // For each convolution of the target the biases that may be right, the likely ones first.
  const std::vector<std::vector<std::string>>& biases() const { return biases_; }

  // "source => target if guards", without name and class.
  std::string Write(const TasoChoice& choice) const;

 private:
  struct Cut {
    std::vector<std::string> sizes;
    std::vector<Cut> parts;
  };
  // A tensor's sizes as expressions over the variables; "" where there is none.
  struct Sizes {
    std::vector<std::string> dims;
    std::vector<Cut> cuts;
    std::string dim(size_t axis) const { return axis < dims.size() ? dims[axis] : ""; }
    Cut cut(size_t axis) const { return axis < cuts.size() ? cuts[axis] : Cut{}; }
  };

  void CollectSource();
  void CollectTarget();
  void GuardSiblings();
  void AddGuard(const std::string& text, const std::string& label = "");
  void GuardConcat(const TasoOperator& op, bool target);
  Sizes SizesOf(const TasoTensor& tensor, bool target) const;
  Sizes JoinedSizes(const TasoOperator& op, bool target) const;
  std::string BiasOf(const TasoTensor& weights, bool target) const;
  std::string LabelOf(const TasoOperator& op) const;
  std::string Name(const TasoTensor& tensor) const;
  std::string WriteTensor(const TasoTensor& tensor, bool target, const TasoChoice& choice) const;
  std::string WriteOperator(int at, int output, bool target, const TasoChoice& choice) const;
  std::string WriteConv(int at, bool target, const TasoChoice& choice) const;

  const TasoRule& rule_;
  std::string refusal_;
  std::vector<TasoGuard> guards_;
  std::vector<std::vector<std::string>> biases_;
  std::map<TasoTensor, std::string> source_bias_;  // By the weights of source convolutions.
  std::map<std::string, std::string> labels_;      // By what operators with that label agree in.
  std::vector<int> target_convs_;
};

}  // namespace ag
