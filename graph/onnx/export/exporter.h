// The state of one export: the growing ONNX model, the names in use, and the tensors of the
// initializers. The writers of single operators (export_ops.cc) express a node in ONNX; this class
// chooses names and stores constants. One thread at a time.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/export/kept_names.h"
#include "graph/onnx/export/open_sizes.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/wire.h"
#include "graph/weights.h"

namespace ag {

class Exporter {
 public:
  // All arguments but the last must outlive this.
  Exporter(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
           const ExportOptions& options, OpenSizes open = {});

  const Graph& graph() const { return graph_; }
  int64_t opset() const { return opset_; }

  // Returns the whole model. REQUIRES: called once.
  StatusOr<OnnxModel> Run();

  // Returns the name of an operand. A constant becomes an initializer at its first use.
  StatusOr<std::string> NameOf(Edge edge);
  // Returns the elements of a constant edge; null: the edge is not constant.
  StatusOr<const Tensor*> ConstantOf(Edge edge);
  // Adds an i64 list as initializer; returns its name.
  std::string IntsName(const std::vector<int64_t>& values);
  std::string FloatsName(const std::vector<float>& values);  // The same for f32.
  std::string ScalarName(DType dtype, double value);         // The same for one element.
  // Returns the name of a node's list of sizes: an i64 list, computed where it depends on open
  // sizes. kFailedPrecondition: no size gives it.
  StatusOr<std::string> SizesName(NodeId id, std::string_view attribute);
  const OpenSizes& open() const { return open_; }
  // Adds an operator with the given outputs, or with one fresh name. Returns the name of the first
  // output.
  std::string Append(std::string_view op_type, std::vector<std::string> inputs,
                     std::vector<OnnxAttribute> attributes = {},
                     std::vector<std::string> outputs = {});
  void AppendKept(OnnxNode node);
  std::vector<std::string> OutputNames(NodeId id);

 private:
  // Whether the node's value is written as an initializer. An opaque node stays a node: quantized
  // weights stay as small as they came. So does what open sizes take part in computing.
  bool IsFolded(NodeId id) const;
  bool IsWritten(NodeId id) const;
  std::string Fresh(std::string_view stem);  // Returns "conv_12" or a similar name that is free.
  std::string FreshNode(const std::string& name);  // Returns `name`, or `name`_12 when it is taken.
  void NameOutputs();
  void KeepNames();
  void BeginNode(NodeId id);
  void WriteTables();  // Says in the metadata from which nodes and rules new ones came.
  void AddValueInfo(Edge edge, const std::string& name, std::vector<OnnxValueInfo>& list) const;
  // What the user's model states of values that are still there (exporter_stated.cc).
  void ReadStated(const OnnxOrigin& origin);
  void ReserveStatedNames();  // A new value has no name of one that is gone.
  void TakeStated(OnnxValueInfo& info) const;
  bool IsStillRight(const OnnxValueInfo& stated, const OnnxValueInfo& now) const;
  bool IsModelOutput(Edge edge, const std::string& name) const;
  void WriteTypes(NodeId id);
  void WriteDynamicTypes(const OnnxNode& node);
  Status WriteAnnotations();
  std::string AddInitializer(const Tensor& tensor, std::string name = "");
  // For open sizes (open_sizes_names.cc). Each returns the name of an i64 list.
  std::string SizeName(const SizePlace& place);
  std::string FormulaName(const SizeFormula& formula);
  std::string ListName(std::span<const SizeFormula> list);
  StatusOr<std::vector<SizeFormula>> FormulasOf(Edge edge, NodeId reader) const;
  StatusOr<std::string> OpenConstantName(Edge edge);
  std::string RangeName(const SizeFormula& size, size_t axes_behind);
  std::string PlacesName(DType dtype, const OpenConstant& places,
                         std::span<const SizeFormula> sizes);
  std::string MaskName(DType dtype, const OpenConstant& mask, std::span<const SizeFormula> sizes);
  Status WriteOutputs();
  Status ReserveDynamicNames();  // No name made here may be one of the dynamic part.
  Status WriteDynamicPart();

  const Graph& graph_;
  const DynamicPart& dynamic_;
  const WeightSource& weights_;
  int64_t opset_ = 17;
  std::vector<std::pair<std::string, int64_t>> given_opsets_;  // Before they are raised.
  OnnxModel model_;
  const KeptNames kept_;
  std::set<std::string> taken_, taken_nodes_;  // Names of values, and of nodes.
  std::map<Edge, std::string> weights_names_;  // Of constants that the user's model names.
  std::string node_name_;                      // Of the node that is being written; "": any.
  std::string stem_;                           // Of new values of that node.
  std::string notes_;                          // OnnxNode::notes of that node.
  std::string nodes_table_, rules_table_;      // What WriteTables writes.
  const std::vector<std::string>& rules_;      // By node.
  std::map<std::string, OnnxValueInfo> stated_;
  std::set<std::string> symbols_;  // Names of open sizes of inputs.
  const std::vector<QuantAnnotation>& annotations_;
  const std::vector<DynamicPart::Weight>& annotation_weights_;
  std::set<std::string> dynamic_names_;  // Those that the dynamic part uses.
  int next_ = 0;
  std::map<Edge, std::string> names_;
  std::deque<Tensor> tensors_;  // The bytes of model_'s initializers.
  std::map<Edge, Tensor> constants_;
  std::map<std::vector<int64_t>, std::string> ints_;
  std::map<std::vector<float>, std::string> floats_;
  std::map<std::pair<DType, double>, std::string> scalars_;
  const OpenSizes open_;
  NodeId writing_ = -1;  // The node that is being written.
  std::map<Edge, std::string> shape_names_;
  std::map<SizePlace, std::string> size_names_;
  std::map<SizeFormula, std::string> formula_names_;
};

// Writes node `id` as operators of the exporter's opset (export_ops.cc). kUnimplemented: the opset
// has none for it.
Status WriteNode(NodeId id, Exporter& exporter);

OnnxAttribute IntAttribute(std::string_view name, int64_t value);
OnnxAttribute FloatAttribute(std::string_view name, double value);
OnnxAttribute StringAttribute(std::string_view name, std::string_view value);
OnnxAttribute IntsAttribute(std::string_view name, std::vector<int64_t> values);

}  // namespace ag
