// One side of a TASO rule as a graph, operator by operator, with known shapes of its variables. It
// defines TASO's operators in our IR:
//   - a convolution without bias has a bias of zeros, its group is inferred (channels of x over
//     w's axis 1), and its activation is a separate operator;
//   - SAME pads are those of ONNX's SAME_UPPER;
//   - split cuts where the concat before it joined ("split trees"): tensors carry their cut points.
// One thread at a time.
#pragma once

#include <map>
#include <vector>

#include "graph/graph.h"
#include "lab/taso/format.h"

namespace ag {

// The places where an axis was joined; without parts: none. parts[i] has the earlier joins in part
// i.
struct TasoCut {
  Ints sizes;
  std::vector<TasoCut> parts;
};

struct TasoValue {
  Edge edge;
  std::vector<TasoCut> cuts;  // By axis; may be shorter than the rank.
};

// The shared part of both sides.
struct TasoContext {
  double epsilon = 1e-5;                 // For batch-norms whose rule has none.
  std::map<TasoTensor, int64_t> groups;  // For source weights: the number of groups that read them.
};

class TasoSide {
 public:
  // All three must outlive the side. REQUIRES: a variable has a value before an operator that reads
  // it is added.
  TasoSide(const std::vector<TasoOperator>& operators, GraphBuilder* builder, TasoContext* context)
      : operators_(operators), builder_(*builder), context_(*context) {}

  void SetVariable(int variable, Edge edge) { values_[{variable, 0}] = {edge, {}}; }
  // Adds an operator. kInvalidArgument: it is ill-typed with these shapes.
  Status Add(int op);

  bool Has(const TasoTensor& tensor) const { return values_.contains(tensor); }
  const TasoValue& value(const TasoTensor& tensor) const { return values_.at(tensor); }
  Shape shape(const TasoTensor& tensor) const { return builder_.type(value(tensor).edge).shape; }

 private:
  StatusOr<TasoValue> Make(const TasoOperator& op);
  StatusOr<TasoValue> Conv(const TasoOperator& op);
  StatusOr<TasoValue> Pool(const TasoOperator& op);
  StatusOr<TasoValue> BatchNorm(const TasoOperator& op);
  StatusOr<TasoValue> Concat(const TasoOperator& op);
  StatusOr<TasoValue> Transpose(const TasoOperator& op);
  StatusOr<TasoValue> Enlarge(const TasoOperator& op);
  StatusOr<TasoValue> MergeGroups(const TasoOperator& op);
  StatusOr<TasoValue> FoldedWeights(const TasoOperator& op);
  StatusOr<TasoValue> FoldedBias(const TasoOperator& op);
  StatusOr<TasoValue> Elementwise(const TasoOperator& op, OpKind kind);
  Status Split(int at);
  // Makes the constants that `reader` reads: they get their shapes from it.
  Status MakeConstants(const TasoOperator& reader);
  StatusOr<Edge> MakeConstant(const TasoOperator& constant, const TasoOperator& reader, int input);

  StatusOr<Edge> ScaleOf(Edge scale, Edge variance);
  Edge Number(double value);
  StatusOr<Edge> Filled(const Ints& shape, double value);
  StatusOr<Edge> Identity(int64_t n);
  StatusOr<Edge> Activated(Edge edge, TasoActivation activation);
  Ints Pads(const TasoOperator& op, const Shape& x, const Ints& kernel) const;

  const std::vector<TasoOperator>& operators_;
  GraphBuilder& builder_;
  TasoContext& context_;
  std::map<TasoTensor, TasoValue> values_;
};

}  // namespace ag
