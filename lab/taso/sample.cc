#include "lab/taso/sample.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "graph/tensor.h"
#include "lab/taso/side.h"

namespace ag {
namespace {

bool IsConvWeight(const TasoOperator& op, size_t input) {
  return op.type == TasoOpType::kConv && input >= 1;
}

bool IsWeight(const TasoOperator& op, size_t input) {
  if (op.type == TasoOpType::kEnlarge || op.type == TasoOpType::kMergeGroups) return true;
  return IsConvWeight(op, input) || (op.type == TasoOpType::kBatchNorm && input >= 1);
}

// The ranks that operators require, for variables and inner values; 0: no requirement.
class Ranks {
 public:
  explicit Ranks(const std::vector<TasoOperator>& side) {
    for (size_t round = 0; round <= side.size(); ++round) {
      for (size_t at = 0; at < side.size(); ++at) Visit(side[at], static_cast<int>(at));
    }
  }

  int Of(const TasoTensor& tensor) const {
    const auto found = ranks_.find(tensor);
    return found == ranks_.end() ? 0 : found->second;
  }

 private:
  void Visit(const TasoOperator& op, int at) {
    int rank = 0;  // The rank of operands and result.
    switch (op.type) {
      case TasoOpType::kConv:
      case TasoOpType::kMaxPool:
      case TasoOpType::kAveragePool:
      case TasoOpType::kEnlarge:
      case TasoOpType::kMergeGroups:
        rank = 4;
        break;
      case TasoOpType::kMatMul:
        rank = 2;
        break;
      case TasoOpType::kConcat:
      case TasoOpType::kTranspose:
        rank = op.Get(TasoKey::kRank, 0);
        break;
      case TasoOpType::kBatchNorm:
        for (size_t i = 0; i < op.inputs.size(); ++i) Set(op.inputs[i], i == 0 ? 4 : 1);
        Set({at, 0}, 4);
        return;
      default:
        rank = Of({at, 0});
        for (const TasoTensor& input : op.inputs) rank = std::max(rank, Of(input));
    }
    if (rank == 0) return;
    for (int i = 0; i < op.outputs(); ++i) Set({at, i}, rank);
    if (op.type == TasoOpType::kScalarMul) {
      Set(op.inputs[0], rank);
      return;
    }
    for (const TasoTensor& input : op.inputs) Set(input, rank);
  }

  void Set(const TasoTensor& tensor, int rank) { ranks_.emplace(tensor, rank); }

  std::map<TasoTensor, int> ranks_;
};

class Sampler {
 public:
  Sampler(const TasoRule& rule, uint64_t seed)
      : rule_(rule), random_(seed), ranks_(rule.source), side_(rule.source, &builder_, &context_) {
    alike_ = Chance(30) ? random_.Between(2, 4) : 0;
    rank_ = static_cast<int>(random_.Between(1, 4));
    image_ = {random_.Between(1, 2), Chance(30) ? 2 * random_.Between(2, 3) : Dim(),
              random_.Between(2, 5), random_.Between(2, 5)};
    kernel_ = Chance(60) ? 3 : random_.Between(1, 3);
    out_ = Dim();
    broadcasts_ = Chance(35);
    thin_ = random_.Below(2);  // On the axes that rules join.
    context_.epsilon = Chance(50) ? 1e-5 : 1e-2;
    for (const int variable : rule.Variables()) FindUses(variable);
  }

  StatusOr<TasoInstance> Run() {
    for (size_t at = 0; at < rule_.source.size(); ++at) {
      SampleOperands(rule_.source[at]);
      AG_TRY(side_.Add(static_cast<int>(at)));
    }
    AddOutputs(&builder_, side_, /*target=*/false);
    StatusOr<Graph> source = builder_.Build();
    if (!source.ok()) return source.status();
    instance_.source = *std::move(source);
    instance_.epsilon = uses_epsilon_ ? context_.epsilon : 0;
    const StatusOr<Graph> target = BuildTarget();
    if (target.ok()) {
      instance_.target = *target;
    } else {
      instance_.target_error = Message(target.status());
    }
    return std::move(instance_);
  }

 private:
  struct Leaf {
    TensorType type;
    bool input = false;
    bool ones = false;
    Edge edge;
  };

  bool Chance(int percent) { return random_.Below(100) < static_cast<uint64_t>(percent); }
  int64_t Dim() { return alike_ > 0 ? alike_ : Chance(15) ? 1 : random_.Between(2, 4); }

  void FindUses(int variable) {
    bool weight = true;
    int uses = 0;
    bool multiplies = false;
    // A result of weights alone is a weight: add(w4, w5).
    std::set<TasoTensor> same = {{variable, 0}};
    for (size_t at = 0; at < rule_.source.size(); ++at) {
      const TasoOperator& op = rule_.source[at];
      uses_epsilon_ |=
          op.type == TasoOpType::kBatchNorm && !op.parameters.contains(TasoKey::kEpsilon);
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (!same.contains(op.inputs[i])) continue;
        ++uses;
        multiplies |= op.type == TasoOpType::kMul && op.inputs[1 - i].op >= 0;
        if (IsWeight(op, i)) continue;
        const bool passes = op.type == TasoOpType::kAdd || op.type == TasoOpType::kMul ||
                            op.type == TasoOpType::kConcat;
        if (passes && FeedsConvWeights(static_cast<int>(at))) {
          same.insert({static_cast<int>(at), 0});
        } else {
          weight = false;
        }
      }
    }
    if (weight) weights_.insert(variable);
    if (uses == 1 && multiplies) factors_.insert(variable);
  }

  bool FeedsConvWeights(int at) const {
    bool any = false;
    for (const TasoOperator& op : rule_.source) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i].op != at) continue;
        if (!IsConvWeight(op, i)) return false;
        any = true;
      }
    }
    return any;
  }

  void SampleOperands(const TasoOperator& op) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const TasoTensor& input = op.inputs[i];
      if (input.op < 0 && !side_.Has(input)) SetVariable(input.op, SampleShape(op, i));
    }
  }

  Shape Free(const TasoTensor& tensor) {
    const int known = ranks_.Of(tensor);
    const auto rank = static_cast<size_t>(known > 0 ? known : rank_);
    Shape shape(rank);
    for (size_t i = 0; i < rank; ++i) {
      const bool shared = rank == 4 && Chance(75);
      shape[i] = shared ? image_[i] : Dim();
      if (broadcasts_ && i == thin_ && Chance(50)) shape[i] = 1;
    }
    return shape;
  }

  // Returns the shape or, in a sample with broadcasts, one with some axes made 1 or longer: mostly
  // only the axis thin_, the same for all operands.
  Shape Like(Shape shape) {
    if (!broadcasts_ || Chance(40)) return shape;
    const bool everywhere = Chance(20);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != thin_ && !(everywhere && Chance(40))) continue;
      shape[i] = shape[i] == 1 ? Dim() : 1;
    }
    return shape;
  }

  // Returns 1, n, or a divisor between.
  int64_t Divisor(int64_t n) {
    if (Chance(55)) return 1;
    for (int64_t d = random_.Between(2, 3); d < n; ++d) {
      if (n % d == 0) return d;
    }
    return n;
  }

  Shape SampleShape(const TasoOperator& op, size_t index) {
    const auto known = [&](size_t i) {
      return i < op.inputs.size() && i != index && side_.Has(op.inputs[i]);
    };
    const auto shape = [&](size_t i) { return side_.shape(op.inputs[i]); };
    switch (op.type) {
      case TasoOpType::kMatMul:
        if (index == 0) return {Dim(), known(1) ? shape(1)[0] : Dim()};
        return {known(0) && shape(0).size() == 2 ? shape(0)[1] : Dim(), Dim()};
      case TasoOpType::kConv:
        return ConvOperand(index,
                           known(1 - std::min<size_t>(index, 1))
                               ? std::optional<Shape>(shape(1 - index))
                               : std::nullopt,
                           op);
      case TasoOpType::kScalarMul:
        if (index == 1) return {};
        break;
      case TasoOpType::kBatchNorm:
        if (index > 0) return {shape(0).size() > 1 ? shape(0)[1] : 1};
        break;
      case TasoOpType::kConcat:
        for (size_t i = 0; i < op.inputs.size(); ++i) {
          if (!known(i)) continue;
          Shape like = shape(i);
          const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
          if (axis < like.size() && Chance(60)) like[axis] = Dim();
          return like;
        }
        break;
      case TasoOpType::kAdd:
      case TasoOpType::kMul:
        if (known(1 - index)) return Factor(op, index, shape(1 - index));
        break;
      default:
        break;
    }
    return Free(op.inputs[index]);
  }

  // Returns the shape of a factor, which may be a constant of ones by channel.
  Shape Factor(const TasoOperator& op, size_t index, const Shape& other) {
    const int variable = op.inputs[index].op;
    if (!factors_.contains(variable) || op.inputs[1 - index].op < 0 || !Chance(50)) {
      return Like(other);
    }
    ones_.insert(variable);
    Shape shape(other.size(), 1);
    if (shape.size() > 1) shape[1] = other[1];
    return shape;
  }

  Shape ConvOperand(size_t index, const std::optional<Shape>& other, const TasoOperator& op) {
    if (index == 2) return {side_.shape(op.inputs[1])[0]};
    if (index == 0) {
      Shape x = {Chance(85) ? image_[0] : Dim(), Chance(50) ? image_[1] : Dim(),
                 Chance(85) ? image_[2] : Dim(), Chance(85) ? image_[3] : Dim()};
      if (other && other->size() == 4) x[1] = (*other)[1] * Divisor((*other)[0]);
      return x;
    }
    const int64_t channels = other && other->size() == 4 ? (*other)[1] : Dim();
    const int64_t group = Divisor(channels);
    const int64_t k = Chance(85) ? kernel_ : random_.Between(1, 3);
    int64_t out = Chance(60) ? out_ : Dim();
    if (out % group != 0) out = group * random_.Between(1, 2);
    return {out, channels / group, k, Chance(85) ? k : 1};
  }

  void SetVariable(int variable, const Shape& shape) {
    const bool ones = ones_.contains(variable);
    Leaf leaf{.type = {DType::kFloat64, shape},
              .input = !ones && !weights_.contains(variable),
              .ones = ones};
    const std::string name = TasoVariableName(variable);
    leaf.edge = AddLeaf(&builder_, name, leaf);
    leaves_.emplace_back(variable, leaf);
    side_.SetVariable(variable, leaf.edge);
    instance_.shapes += fmt::format("{}{}{}{}", instance_.shapes.empty() ? "" : " ", name,
                                    ShapeToString(shape), ones ? "=1" : "");
    instance_.elements += leaf.type.NumElements();
  }

  static Edge AddLeaf(GraphBuilder* builder, const std::string& name, const Leaf& leaf) {
    if (leaf.input) return builder->Input(name, leaf.type);
    if (!leaf.ones) return builder->Constant(leaf.type, Sha256(name));
    Tensor ones = Tensor::Zeros(leaf.type);
    for (int64_t i = 0; i < leaf.type.NumElements(); ++i) ones.Put(i, 1);
    return builder->Constant(leaf.type, ones.Name(), ones.bytes());
  }

  void AddOutputs(GraphBuilder* builder, const TasoSide& side, bool target) {
    for (size_t i = 0; i < rule_.mappings.size(); ++i) {
      const TasoTensor& tensor = target ? rule_.mappings[i].target : rule_.mappings[i].source;
      builder->Output(side.value(tensor).edge, fmt::format("o{}", i));
    }
  }

  StatusOr<Graph> BuildTarget() {
    GraphBuilder builder;
    TasoSide side(rule_.target, &builder, &context_);
    for (const auto& [variable, leaf] : leaves_) {
      side.SetVariable(variable, AddLeaf(&builder, TasoVariableName(variable), leaf));
    }
    for (size_t at = 0; at < rule_.target.size(); ++at) {
      AG_TRY(side.Add(static_cast<int>(at)));
    }
    for (const TasoMapping& mapping : rule_.mappings) {
      if (side.Has(mapping.target)) continue;
      return Err(StatusCode::kInvalidArgument, "output {} of the target has no value",
                 mapping.target.op);
    }
    AddOutputs(&builder, side, /*target=*/true);
    return builder.Build();
  }

  const TasoRule& rule_;
  Random random_;
  Ranks ranks_;
  GraphBuilder builder_;
  TasoContext context_;
  TasoSide side_;
  TasoInstance instance_;
  std::vector<std::pair<int, Leaf>> leaves_;
  std::set<int> weights_;  // Variables that are constants.
  std::set<int> factors_;  // Variables that may be ones, and those that are.
  std::set<int> ones_;
  bool uses_epsilon_ = false;
  int64_t alike_ = 0;  // The size of every axis; 0: sizes differ.
  bool broadcasts_ = false;
  size_t thin_ = 0;
  int rank_ = 1;  // The rank of variables without a requirement.
  // The usual sizes of convolutions and images in this sample.
  std::array<int64_t, 4> image_{};
  int64_t kernel_ = 3;
  int64_t out_ = 1;
};

}  // namespace

StatusOr<TasoInstance> SampleTasoInstance(const TasoRule& rule, uint64_t seed) {
  return Sampler(rule, seed).Run();
}

}  // namespace ag
