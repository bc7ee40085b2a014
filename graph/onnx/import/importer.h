// The state of one import: the values of a model by name, and the growing graph. A value is a
// tensor that nodes read: an edge of the graph, a weight that is stored at its first use, or a
// small tensor with known elements; or a sequence or optional, which is a list of values and leaves
// nothing in the graph. A node whose operands are all known is computed at once on the
// reference kernels, so the shape chains of real exporters (Shape, Gather, Concat, Reshape) leave
// no nodes. An importer that computes all nodes is an interpreter: it keeps every value and adds
// nothing to the graph (dynamic_program.h). One thread at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "graph/onnx/import/lasting_values.h"
#include "graph/onnx/import/obstacles.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/weight_sink.h"
#include "graph/onnx/wire.h"

namespace ag {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // An omitted optional operand.

class Importer {
 public:
  Importer(const ImportOptions& options, const OnnxOrigin& origin, WeightSink& sink);

  // Computes every node at once; one whose operands are not known is then an error. `memory`, which
  // may be null, keeps what other runs of the same nodes need again.
  void ComputeAll(int threads, RunMemory* memory = nullptr);
  bool computes_all() const { return threads_ > 0; }
  int threads() const { return std::max(threads_, 1); }

  const OnnxOrigin& origin() const { return origin_; }
  const ImportLimits& limits() const { return options_.limits; }
  WeightSink& sink() { return sink_; }

  // Names. Define returns kInvalidArgument when the name is taken; Find returns kNoValue when no
  // value has it.
  Status Define(const std::string& name, ValueId value);
  ValueId Find(const std::string& name) const;

  // The names of a subgraph, which sees those around it, or of a function (with its opsets), which
  // does not. Enter returns kResourceExhausted: nested too deep; kInvalidArgument: inside of the
  // same function.
  using Opsets = std::vector<std::pair<std::string, int64_t>>;
  Status Enter(const Opsets* function_opsets);
  void Leave() { scopes_.pop_back(); }
  const Opsets& opsets() const { return *scopes_.back().opsets; }
  // Counts a node. kResourceExhausted: more than the limit, subgraphs and functions written out.
  Status CountNode();

  // What is kept for the nodes of the innermost scope; null: nothing, or they are of a function,
  // whose bytes are made for each call.
  LastingValues* lasting_values();
  ReadyOperators* ready_operators() { return memory_ == nullptr ? nullptr : &memory_->operators; }
  // The number of a value that is the same in every run; 0: another value.
  int64_t lasting(ValueId value) const { return values_[value].lasting; }
  StatusOr<ValueId> AddLasting(const GivenOperand& value);
  void SetLasting(ValueId value, int64_t number) { values_[value].lasting = number; }

  // Forgets all values from `first` on but those listed, which get new ids, and what is in them.
  // REQUIRES: the importer computes all nodes, and no name of an open scope has a forgotten value.
  ValueId next() const { return static_cast<ValueId>(values_.size()); }
  void ForgetOthers(ValueId first, std::span<std::vector<ValueId>* const> listed);

  // Returns the model-local function that the node calls, else null.
  const OnnxFunction* FunctionOf(const OnnxNode& node) const;
  void SetFunctions(std::span<const OnnxFunction> functions) { functions_ = functions; }

  OnnxKind kind(ValueId value) const { return values_[value].kind; }
  // Returns the values in a sequence or optional.
  const std::vector<ValueId>& items(ValueId value) const { return values_[value].items; }
  bool IsString(ValueId value) const {
    return kind(value) == OnnxKind::kTensor && type(value).dtype == DType::kString;
  }
  // Whether the value can be an output of the graph: a tensor, not of strings that are known here.
  bool FitsGraph(ValueId value) const;

  const TensorType& type(ValueId value) const { return values_[value].type; }  // Of a tensor.
  // Returns the elements when they are known, else null.
  const Tensor* known(ValueId value) const;
  // Returns the bytes of a value that is no edge of the graph yet, known or a weight; else null.
  const Tensor* stored(ValueId value) const;
  const Digest* DigestOf(ValueId value) const;  // Of a constant of the graph; else null.

  // Whether the value is a weight, or what a kept operator always makes of weights.
  bool IsConstant(ValueId value) const;

  // Returns the complete type that the model states for a tensor, else null.
  const TensorType* Stated(const std::string& name) const;
  void SetStated(std::map<std::string, TensorType> stated) { stated_ = std::move(stated); }

  // New values.
  StatusOr<ValueId> AddInput(const std::string& name, const TensorType& type);
  StatusOr<ValueId> AddTensor(const Tensor& tensor);  // A weight or a computed constant.
  // Adds a sequence of tensors, or an optional. kResourceExhausted: all together hold too many.
  StatusOr<ValueId> AddItems(OnnxKind kind, std::vector<ValueId> items);
  // Adds an operator over values, or computes it at once when it can. Returns one value per output.
  StatusOr<std::vector<ValueId>> AddNode(OpKind op, std::span<const ValueId> inputs,
                                         Attributes attributes);
  StatusOr<std::vector<ValueId>> AddOpaque(std::span<const ValueId> inputs, Attributes attributes,
                                           std::span<const TensorType> outputs);

  // Returns the edge of a value; stores the value's bytes when it has no edge yet.
  StatusOr<Edge> EdgeOf(ValueId value);
  Status Output(ValueId value, const std::string& name);
  bool HasOutputs() const { return has_outputs_; }
  // Returns the graph, and sets the names and notes of *origin to those of its nodes.
  StatusOr<Graph> Build(OnnxOrigin* origin);

  // The number of nodes of the graph so far. NameNodes gives those from `first` on, which have no
  // name yet, the name and the comment of the model's node that they were made for.
  int size() const { return builder_.size(); }
  void NameNodes(int first, const OnnxNode& node);

  std::vector<std::string> warnings;
  std::vector<DynamicPart::Input> outside_inputs;  // Those that the graph cannot hold.
  std::string chosen_sizes;  // What to tell of the sizes that nobody gave; "": none were chosen.

 private:
  struct Value {
    TensorType type;
    Edge edge;                     // Node -1: not in the graph yet.
    std::optional<Tensor> tensor;  // The bytes until they are stored; small ones are kept.
    OnnxKind kind = OnnxKind::kTensor;
    std::vector<ValueId> items;
    int64_t lasting = 0;
  };
  StatusOr<ValueId> Add(Value value);
  static int64_t BytesOf(const Value& value);
  // Notes the name of a value of the whole model, for export.
  void NameValue(const std::string& name, ValueId value);
  NodeNames* NamesOf(NodeId id);
  uint32_t AddNotes(const OnnxNode& node);  // Returns NodeNames::notes.
  // kOutOfRange: the known indices of a gather are outside its table.
  Status CheckIndices(std::span<const ValueId> inputs, int64_t axis) const;
  // Returns the results, or nothing when the operator cannot be computed now.
  StatusOr<std::optional<std::vector<ValueId>>> Compute(OpKind op, std::span<const ValueId> inputs,
                                                        const Attributes& attributes);
  // Does the same with what other runs kept. REQUIRES: the operands are known, memory_.
  StatusOr<std::optional<std::vector<ValueId>>> ComputeKept(
      OpKind op, std::span<const ValueId> inputs, const Attributes& attributes,
      const std::function<StatusOr<ReadyOperators::Results>()>& reference);

  const ImportOptions& options_;
  const OnnxOrigin& origin_;
  WeightSink& sink_;
  GraphBuilder builder_;
  std::vector<Value> values_;
  std::vector<NodeNames> names_;                               // By the builder's ids.
  absl::flat_hash_map<ValueId, std::string> names_of_stored_;  // Of values without an edge yet.
  std::vector<std::string> notes_;                             // Of nodes.
  size_t notes_bytes_ = 0;
  struct Scope {
    bool is_function = false;  // Sees no names around it.
    const Opsets* opsets = nullptr;
    absl::flat_hash_map<std::string, ValueId> names;
  };
  std::vector<Scope> scopes_;  // The innermost one is the last.
  std::span<const OnnxFunction> functions_;
  int64_t nodes_ = 0;      // Of the model, with those of subgraphs and functions.
  int64_t operators_ = 0;  // Of the graph, without constants.
  std::map<std::string, TensorType> stated_;
  int64_t total_bytes_ = 0, total_items_ = 0;
  int64_t known_bytes_max_;
  int threads_ = 0;  // From 1: every node is computed.
  RunMemory* memory_ = nullptr;
  bool has_outputs_ = false;
};

// Whether export can keep a name: plain text, not too long.
bool IsKeptName(const std::string& name);

// Notes in `origin` what the model says of its values beside what is computed: stated types,
// comments, quantization annotations and the constants that these name. Beyond a limit of bytes
// the rest is left out, with a warning.
Status NoteStated(const OnnxModel& model, Importer& importer, OnnxOrigin& origin);

// The names that the node's operands and subgraphs read.
std::vector<std::string> NamesRead(const OnnxNode& node);

// The importer's steps, in order.
Status CheckModel(const OnnxModel& model, const ImportLimits& limits);
// Sizes that nobody gives come from set `set` of default_sizes.h. An input that cannot be imported
// is an obstacle.
Status BindInputs(const OnnxModel& model, const ImportOptions& options, int set, Importer& importer,
                  Obstacles& obstacles);
StatusOr<std::vector<int>> OrderNodes(std::span<const OnnxNode> nodes);  // Producers first.
Status AddWeights(OnnxModel& model, Importer& importer);
Status ImportNodes(std::span<const OnnxNode> nodes, std::span<const int> order, Importer& importer);
Status ImportNode(const OnnxNode& node, size_t index, Importer& importer);
// How nodes of an operator run: written out with operators of the IR (or with nothing), and by a
// kernel of the operator itself, which other forms of it need.
struct OperatorSupport {
  bool is_imported = false, has_kernel = false;
};
OperatorSupport SupportOf(const OnnxNode& node);
// Whether an importer that computes all nodes has a kernel or a way to write the node out.
bool CanCompute(const OnnxNode& node, const Importer& importer);
// Whether some runtime may run the node behind the graph: this one, or, for an operator of another
// domain than ONNX's, one that knows it.
bool MayRunElsewhere(const OnnxNode& node, const Importer& importer);
// Returns an error when the node's operator is known neither here nor to ONNX, is of ONNX's domain,
// and the model does not state the types of its outputs: it stops the import, whatever it reads.
Status CheckOperator(const OnnxNode& node, const std::string& noun, const Importer& importer);

// Returns "node \"conv1\" (Conv)", or "node 12 (Conv)" for a node without a name.
std::string NodeNoun(const OnnxNode& node, size_t index);

}  // namespace ag
