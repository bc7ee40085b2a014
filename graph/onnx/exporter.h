// The state of one export: the ONNX model that grows, the names it has used, the tensors whose
// bytes it will hold. Writers of single operators (export_ops.cc) say what a node is in ONNX; this
// says how things are called and where constants live.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/onnx/wire.h"

namespace ag {

class Exporter {
 public:
  Exporter(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights);

  const Graph& graph() const { return graph_; }
  int64_t opset() const { return opset_; }

  // Everything that the graph says, in order. Call once.
  StatusOr<OnnxModel> Run();

  // The name of an operand; a constant becomes an initializer at its first use.
  StatusOr<std::string> NameOf(Edge edge);
  // The elements of a constant edge, or null for another.
  StatusOr<const Tensor*> ConstantOf(Edge edge);
  std::string IntsName(const std::vector<int64_t>& values);  // An i64 list as initializer.
  std::string FloatsName(const std::vector<float>& values);  // An f32 list, likewise.
  std::string ScalarName(DType dtype, double value);         // One element as initializer.
  // Adds a node of the present operator. Its outputs: the given names, or one fresh name.
  std::string Append(std::string_view op_type, std::vector<std::string> inputs,
                     std::vector<OnnxAttribute> attributes = {},
                     std::vector<std::string> outputs = {});
  void AppendKept(OnnxNode node);
  std::vector<std::string> OutputNames(NodeId id);

 private:
  std::string Fresh(std::string_view stem);  // "conv_12", and never a name that is taken.
  void NameOutputs();
  void AddValueInfo(Edge edge, const std::string& name, std::vector<OnnxValueInfo>& list) const;
  std::string AddInitializer(const Tensor& tensor);
  Status WriteOutputs();

  const Graph& graph_;
  const WeightSource& weights_;
  int64_t opset_ = 17;
  OnnxModel model_;
  std::set<std::string> taken_;
  int next_ = 0;
  std::map<Edge, std::string> names_;
  std::deque<Tensor> tensors_;  // What the initializers of model_ point into.
  std::map<Edge, Tensor> constants_;
  std::map<std::vector<int64_t>, std::string> ints_;
  std::map<std::vector<float>, std::string> floats_;
  std::map<std::pair<DType, double>, std::string> scalars_;
};

// Writes node `id` as operators of the exporter's opset (export_ops.cc). kUnimplemented when it has
// none.
Status WriteNode(NodeId id, Exporter& exporter);

OnnxAttribute IntAttribute(std::string_view name, int64_t value);
OnnxAttribute FloatAttribute(std::string_view name, double value);
OnnxAttribute StringAttribute(std::string_view name, std::string_view value);
OnnxAttribute IntsAttribute(std::string_view name, std::vector<int64_t> values);

}  // namespace ag
