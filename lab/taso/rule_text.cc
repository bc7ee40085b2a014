#include "lab/taso/rule_text.h"

#include <algorithm>
#include <set>

namespace ag {
namespace {

bool IsBinary(const TasoOperator& op) {
  return op.type == TasoOpType::kAdd || op.type == TasoOpType::kMul;
}

// Whether the target takes the operator's attributes from the source.
bool IsLabelled(const TasoOperator& op) {
  return op.type == TasoOpType::kConv || op.type == TasoOpType::kMaxPool ||
         op.type == TasoOpType::kAveragePool || op.type == TasoOpType::kBatchNorm;
}

// Returns the parameters that operators with one label share.
std::string KindOf(const TasoOperator& op) {
  std::string kind = std::string(TasoOpName(op.type));
  for (const auto& [key, value] : op.parameters) {
    if (key != TasoKey::kActivation) kind += fmt::format(" {}={}", static_cast<int>(key), value);
  }
  return kind;
}

const char* TextName(TasoOpType type) {
  switch (type) {
    case TasoOpType::kConv:
      return "conv";
    case TasoOpType::kMaxPool:
      return "max_pool";
    case TasoOpType::kAveragePool:
      return "average_pool";
    case TasoOpType::kRelu:
      return "relu";
    case TasoOpType::kSigmoid:
      return "sigmoid";
    case TasoOpType::kTanh:
      return "tanh";
    case TasoOpType::kBatchNorm:
      return "batch_norm";
    case TasoOpType::kConcat:
      return "concat";
    case TasoOpType::kSplit:
      return "split";
    case TasoOpType::kTranspose:
      return "transpose";
    case TasoOpType::kAdd:
      return "add";
    case TasoOpType::kMul:
    case TasoOpType::kScalarMul:
      return "mul";
    case TasoOpType::kMatMul:
      return "matmul";
    case TasoOpType::kReshape:
    case TasoOpType::kEnlarge:
    case TasoOpType::kMergeGroups:
    case TasoOpType::kConstantIdentity:
    case TasoOpType::kConstantConv:
    case TasoOpType::kConstantOne:
    case TasoOpType::kConstantPool:
    case TasoOpType::kFoldedWeights:
    case TasoOpType::kFoldedBias:
      return nullptr;
  }
  return nullptr;
}

// Returns the text with brackets if it is a sum.
std::string Bracketed(const std::string& text) {
  return text.find(" + ") == std::string::npos ? text : "(" + text + ")";
}

}  // namespace

TasoRuleText::TasoRuleText(const TasoRule& rule) : rule_(rule) {
  for (const auto* side : {&rule.source, &rule.target}) {
    for (const TasoOperator& op : *side) {
      if (TextName(op.type) != nullptr || !refusal_.empty()) continue;
      refusal_ = fmt::format("our language has no form for {}", TasoOpName(op.type));
    }
  }
  if (!refusal_.empty()) return;
  CollectSource();
  CollectTarget();
}

void TasoRuleText::AddGuard(const std::string& text, const std::string& label) {
  const bool known = std::any_of(guards_.begin(), guards_.end(), [&](const TasoGuard& guard) {
    return guard.text == text && guard.label == label;
  });
  if (!known) guards_.push_back({text, label});
}

void TasoRuleText::CollectSource() {
  std::set<std::string> ranks;
  for (const TasoOperator& op : rule_.source) {
    if (IsLabelled(op)) {
      const std::string letter(1, static_cast<char>('c' + labels_.size()));
      labels_.emplace(KindOf(op), letter);
    }
    if (op.type == TasoOpType::kConv) {
      source_bias_.emplace(op.inputs[1], fmt::format("b{}", source_bias_.size()));
      AddGuard("group=1", LabelOf(op));
    }
    for (const TasoTensor& input : op.inputs) {
      const bool flat = op.type == TasoOpType::kMatMul;
      if (input.op < 0 && flat) ranks.insert(fmt::format("rank({}) == 2", Name(input)));
    }
    if (IsBinary(op)) {
      AddGuard(fmt::format("same_shape({}, {})", Name(op.inputs[0]), Name(op.inputs[1])));
    }
    if (op.type == TasoOpType::kScalarMul) {
      AddGuard(fmt::format("rank({}) == 0", Name(op.inputs[1])));
    }
  }
  if (!ranks.empty()) AddGuard(fmt::format("{}", fmt::join(ranks, ", ")));
}

// Adds guards that operands of a concat agree except along its axis.
void TasoRuleText::GuardConcat(const TasoOperator& op, bool target) {
  const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
  const Sizes first = SizesOf(op.inputs[0], target);
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[0].op < 0 && op.inputs[i].op < 0) {
      AddGuard(fmt::format("shape_but({}, {}) == shape_but({}, {})", Name(op.inputs[0]), axis,
                           Name(op.inputs[i]), axis));
      continue;
    }
    const Sizes other = SizesOf(op.inputs[i], target);
    std::vector<std::string> equal;
    for (size_t d = 0; d < std::min(first.dims.size(), other.dims.size()); ++d) {
      if (d == axis || first.dims[d].empty() || other.dims[d].empty()) continue;
      if (first.dims[d] == other.dims[d]) continue;
      equal.push_back(first.dims[d] + " == " + other.dims[d]);
    }
    if (!equal.empty()) AddGuard(fmt::format("{}", fmt::join(equal, ", ")));
  }
}

void TasoRuleText::CollectTarget() {
  for (size_t at = 0; at < rule_.target.size(); ++at) {
    const TasoOperator& op = rule_.target[at];
    if (IsLabelled(op) && !labels_.contains(KindOf(op))) {
      refusal_ =
          fmt::format("no {} of the source has the target's attributes", TasoOpName(op.type));
      return;
    }
    if (op.type == TasoOpType::kConcat) GuardConcat(op, /*target=*/true);
    if (op.type == TasoOpType::kMatMul) {
      const std::string a = SizesOf(op.inputs[0], true).dim(1);
      const std::string b = SizesOf(op.inputs[1], true).dim(0);
      if (!a.empty() && !b.empty() && a != b) AddGuard(a + " == " + b);
    }
    if (op.type != TasoOpType::kConv) continue;
    target_convs_.push_back(static_cast<int>(at));
    std::vector<std::string> choices;
    const std::string likely = BiasOf(op.inputs[1], true);
    if (!likely.empty()) choices.push_back(likely);
    for (const auto& [weights, bias] : source_bias_) {
      for (const std::string& choice : {bias, fmt::format("sub({}, {})", bias, bias)}) {
        if (choice != likely) choices.push_back(choice);
      }
    }
    biases_.push_back(std::move(choices));
  }
  GuardSiblings();
}

// Adds guards for equal convolutions, and for concats with equal cut points.
void TasoRuleText::GuardSiblings() {
  const TasoOperator* first = nullptr;
  for (const TasoOperator& op : rule_.source) {
    if (op.type != TasoOpType::kConv) continue;
    if (first == nullptr) first = &op;
    for (size_t i = 0; i < 2; ++i) {
      if (op.inputs[i] == first->inputs[i]) continue;
      AddGuard(fmt::format("same_shape({}, {})", Name(first->inputs[i]), Name(op.inputs[i])));
    }
  }
  for (const TasoOperator& op : rule_.source) {
    if (op.type != TasoOpType::kConcat || op.inputs.size() < 2) continue;
    const std::string axis = std::to_string(op.Get(TasoKey::kAxis, 0));
    std::vector<std::string> dims;
    for (const TasoOperator& other : rule_.source) {
      if (other.type != TasoOpType::kConcat || other.inputs[0].op >= 0) continue;
      if (std::to_string(other.Get(TasoKey::kAxis, 0)) != axis) continue;
      dims.push_back(fmt::format("dim({}, {})", Name(other.inputs[0]), axis));
    }
    for (size_t i = 1; i < dims.size(); ++i) {
      if (dims[i] != dims[0]) AddGuard(dims[0] + " == " + dims[i]);
    }
  }
}

std::string TasoRuleText::LabelOf(const TasoOperator& op) const {
  const auto found = labels_.find(KindOf(op));
  return found == labels_.end() ? "" : found->second;
}

// Returns the name of a tensor; source operators are t and their number.
std::string TasoRuleText::Name(const TasoTensor& tensor) const {
  return tensor.op < 0 ? TasoVariableName(tensor.op) : fmt::format("t{}", tensor.op);
}

// Returns the bias for weights that are joined from the source's weights.
std::string TasoRuleText::BiasOf(const TasoTensor& weights, bool target) const {
  const auto known = source_bias_.find(weights);
  if (weights.op < 0) return known == source_bias_.end() ? "" : known->second;
  if (!target && known != source_bias_.end()) return known->second;
  const TasoOperator& op = (target ? rule_.target : rule_.source)[weights.op];
  std::vector<std::string> parts;
  for (const TasoTensor& input : op.inputs) parts.push_back(BiasOf(input, target));
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return "";
  if (op.type == TasoOpType::kConcat && op.Get(TasoKey::kAxis, 0) == 0) {
    return fmt::format("concat({}, {}; axis=0)", parts[0], parts[1]);
  }
  const bool sums = op.type == TasoOpType::kAdd || op.type == TasoOpType::kConcat;
  return sums ? fmt::format("add({}, {})", parts[0], parts[1]) : "";
}

TasoRuleText::Sizes TasoRuleText::JoinedSizes(const TasoOperator& op, bool target) const {
  const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
  Sizes joined;
  Cut cut;
  for (const TasoTensor& input : op.inputs) {
    const Sizes sizes = SizesOf(input, target);
    if (joined.dims.empty()) joined = sizes;
    cut.sizes.push_back(sizes.dim(axis));
    cut.parts.push_back(sizes.cut(axis));
  }
  const auto rank = static_cast<size_t>(op.Get(TasoKey::kRank, 0));
  joined.dims.resize(rank);
  joined.cuts.assign(rank, {});
  joined.dims[axis] = fmt::format("{}", fmt::join(cut.sizes, " + "));
  joined.cuts[axis] = std::move(cut);
  return joined;
}

TasoRuleText::Sizes TasoRuleText::SizesOf(const TasoTensor& tensor, bool target) const {
  Sizes out;
  if (tensor.op < 0) {
    for (int i = 0; i < 4; ++i) out.dims.push_back(fmt::format("dim({}, {})", Name(tensor), i));
    return out;
  }
  const TasoOperator& op = (target ? rule_.target : rule_.source)[tensor.op];
  const Sizes first = SizesOf(op.inputs[0], target);
  switch (op.type) {
    case TasoOpType::kConcat:
      return JoinedSizes(op, target);
    case TasoOpType::kMatMul:
    case TasoOpType::kConv: {
      // Rows come from the left operand, columns or channels from the weights.
      const Sizes second = SizesOf(op.inputs[1], target);
      const size_t from = op.type == TasoOpType::kConv ? 0 : 1;
      out.dims = {first.dim(0), second.dim(from)};
      out.cuts = {first.cut(0), second.cut(from)};
      return out;
    }
    case TasoOpType::kSplit: {
      const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
      const Cut cut = first.cut(axis);
      out = first;
      const auto part = static_cast<size_t>(tensor.output);
      if (part >= cut.sizes.size() || axis >= out.dims.size()) return {};
      out.dims[axis] = cut.sizes[part];
      out.cuts[axis] = cut.parts[part];
      return out;
    }
    case TasoOpType::kTranspose:
      for (const int64_t axis :
           TasoPermutation(op.Get(TasoKey::kPermutation, 0), op.Get(TasoKey::kRank, 0))) {
        out.dims.push_back(first.dim(static_cast<size_t>(axis)));
        out.cuts.push_back(first.cut(static_cast<size_t>(axis)));
      }
      return out;
    case TasoOpType::kMaxPool:
    case TasoOpType::kAveragePool:
      out.dims = {first.dim(0), first.dim(1)};
      out.cuts = {first.cut(0), first.cut(1)};
      return out;
    default:
      return first;
  }
}

std::string TasoRuleText::WriteTensor(const TasoTensor& tensor, bool target,
                                      const TasoChoice& choice) const {
  if (tensor.op < 0) return Name(tensor);
  const TasoOperator& op = (target ? rule_.target : rule_.source)[tensor.op];
  std::string text = WriteOperator(tensor.op, tensor.output, target, choice);
  static constexpr const char* kActivations[] = {"", "sigmoid", "relu", "tanh"};
  const auto activation = static_cast<size_t>(op.activation());
  if (activation > 0) text = fmt::format("{}({})", kActivations[activation], text);
  const std::string name = fmt::format("t{}", tensor.op);
  const bool named = std::any_of(
      choice.guards.begin(), choice.guards.end(),
      [&](const TasoGuard& guard) { return guard.text.find(name) != std::string::npos; });
  return named && !target ? name + ":" + text : text;
}

std::string TasoRuleText::WriteConv(int at, bool target, const TasoChoice& choice) const {
  const TasoOperator& op = (target ? rule_.target : rule_.source)[at];
  std::string bias, attributes;
  if (target) {
    const auto found = std::find(target_convs_.begin(), target_convs_.end(), at);
    bias = choice.biases[static_cast<size_t>(found - target_convs_.begin())];
    const std::string channels = SizesOf(op.inputs[0], true).dim(1);
    const std::string each = SizesOf(op.inputs[1], true).dim(1);
    if (choice.infer_group && !channels.empty() && !each.empty()) {
      attributes = fmt::format("; group={} / {}", Bracketed(channels), Bracketed(each));
    }
  } else {
    bias = source_bias_.at(op.inputs[1]);
    for (const TasoGuard& guard : choice.guards) {
      if (guard.label == LabelOf(op)) attributes = "; " + guard.text;
    }
  }
  return fmt::format("conv.{}({}, {}, {}{})", LabelOf(op),
                     WriteTensor(op.inputs[0], target, choice),
                     WriteTensor(op.inputs[1], target, choice), bias, attributes);
}

std::string TasoRuleText::WriteOperator(int at, int output, bool target,
                                        const TasoChoice& choice) const {
  const TasoOperator& op = (target ? rule_.target : rule_.source)[at];
  if (op.type == TasoOpType::kConv) return WriteConv(at, target, choice);
  std::vector<std::string> operands;
  for (const TasoTensor& input : op.inputs) operands.push_back(WriteTensor(input, target, choice));
  std::string text = TextName(op.type);
  if (IsLabelled(op)) text += "." + LabelOf(op);
  text += fmt::format("({}", fmt::join(operands, ", "));
  if (op.type == TasoOpType::kConcat) text += fmt::format("; axis={}", op.Get(TasoKey::kAxis, 0));
  if (op.type == TasoOpType::kTranspose) {
    const auto perm = TasoPermutation(op.Get(TasoKey::kPermutation, 0), op.Get(TasoKey::kRank, 0));
    text += fmt::format("; perm=[{}]", fmt::join(perm, ", "));
  }
  if (op.type != TasoOpType::kSplit) return text + ")";
  const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
  const Cut cut = SizesOf(op.inputs[0], target).cut(axis);
  return fmt::format("{}; axis={}, sizes=[{}])[{}]", text, axis, fmt::join(cut.sizes, ", "),
                     output);
}

std::string TasoRuleText::Write(const TasoChoice& choice) const {
  std::vector<std::string> sources, targets, guards;
  for (const TasoMapping& mapping : rule_.mappings) {
    sources.push_back(WriteTensor(mapping.source, false, choice));
    targets.push_back(WriteTensor(mapping.target, true, choice));
  }
  for (const TasoGuard& guard : choice.guards) {
    if (guard.label.empty()) guards.push_back(guard.text);
  }
  const std::string condition =
      guards.empty() ? "" : fmt::format(" if {}", fmt::join(guards, ", "));
  return fmt::format("{} => {}{}", fmt::join(sources, ", "), fmt::join(targets, ", "), condition);
}

}  // namespace ag
