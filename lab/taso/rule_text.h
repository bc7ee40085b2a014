// A TASO rule in our rule language. Convolutions get a bias, as ours have one. The attributes of
// TASO's operators become labels: a rule for one stride and padding is written for all, and the
// verifier says whether it holds. What TASO leaves open becomes choices: biases, the group, and
// guards. Immutable; safe to share between threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/taso/format.h"

namespace ag {

// A guard that the rule or one of its source operators may need.
struct TasoGuard {
  std::string text;   // "same_shape(x1, x2)"; with a label: "group=1".
  std::string label;  // The label of the source operators that get the attribute; "": a guard.
};

// One way to write the rule.
struct TasoChoice {
  std::vector<std::string> biases;  // For each convolution of the target, in order.
  bool infer_group = false;         // Takes the group of target convolutions from their operands.
  std::vector<TasoGuard> guards;
};

class TasoRuleText {
 public:
  explicit TasoRuleText(const TasoRule& rule);

  // Returns "" or why our language cannot express the rule: operators without a form.
  const std::string& refusal() const { return refusal_; }
  // Returns the guards that may be needed: for a well-typed target, for operands that may
  // broadcast, for ranks and groups.
  const std::vector<TasoGuard>& guards() const { return guards_; }
  // Returns for each target convolution the biases that may be right, the likely ones first.
  const std::vector<std::vector<std::string>>& biases() const { return biases_; }

  // Returns "source => target if guards", without name and class.
  std::string Write(const TasoChoice& choice) const;

 private:
  struct Cut {
    std::vector<std::string> sizes;
    std::vector<Cut> parts;
  };
  // A tensor's sizes as expressions over the variables; "": unknown.
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
  // By the parameters that operators with the label share.
  std::map<std::string, std::string> labels_;
  std::vector<int> target_convs_;
};

}  // namespace ag
