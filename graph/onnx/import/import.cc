#include "graph/onnx/import/import.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/blobs.h"
#include "base/bytes.h"
#include "base/printable.h"
#include "graph/onnx/file_kind.h"
#include "graph/onnx/import/default_sizes.h"
#include "graph/onnx/import/importer.h"
#include "graph/onnx/import/sparse.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/plan_metadata.h"

namespace ag {
namespace {

Status CheckStatedOutput(const OnnxValueInfo& output, const TensorType& type, Importer& importer) {
  const StatusOr<DType> stated = DTypeFromOnnx(output.data_type);
  if (stated.ok() && *stated != type.dtype) {
    return Err(StatusCode::kInvalidArgument, "output {}: the model says {}, its nodes give {}",
               Quoted(output.name), DTypeName(*stated), DTypeName(type.dtype));
  }
  const TensorType* whole = importer.Stated(output.name);
  if (whole != nullptr && whole->shape != type.shape) {
    importer.warnings.push_back(fmt::format("output {}: the model says {}, its nodes give {}",
                                            Quoted(output.name), whole->ToString(),
                                            type.ToString()));
  }
  return OkStatus();
}

Status AddOutputs(const OnnxModel& model, const std::set<std::string>& dynamic,
                  Importer& importer) {
  for (const OnnxValueInfo& output : model.outputs) {
    if (dynamic.contains(output.name)) continue;
    const ValueId value = importer.Find(output.name);
    if (value == kNoValue) {
      return Err(StatusCode::kInvalidArgument, "output {} is never computed", Quoted(output.name));
    }
    if (!importer.FitsGraph(value)) {
      return Err(StatusCode::kUnimplemented, "output {} is a constant of strings",
                 Quoted(output.name));
    }
    AG_TRY(CheckStatedOutput(output, importer.type(value), importer));
    AG_TRY(importer.Output(value, output.name));
  }
  return OkStatus();
}

bool ReadsAny(const OnnxNode& node, const auto& contains) {
  return std::ranges::any_of(NamesRead(node), contains);
}

// Adds to `left` the nodes that make sequences and the like for nodes in `left` and for the
// outputs: these values are no edges, so they are made again behind the graph. Adds the names that
// these nodes define to *dynamic.
void LeaveMakersOf(const OnnxModel& model, const Importer& importer, std::set<int>& left,
                   std::set<std::string>* dynamic) {
  absl::flat_hash_map<std::string_view, int> makers;
  for (int i = 0; i < static_cast<int>(model.nodes.size()); ++i) {
    for (const std::string& output : model.nodes[i].outputs) makers.emplace(output, i);
  }
  std::vector<std::string> waiting;
  const auto look_at = [&](const std::string& name, bool is_output) {
    const ValueId value = dynamic->contains(name) ? kNoValue : importer.Find(name);
    if (value == kNoValue) return;
    const bool is_tensor = importer.kind(value) == OnnxKind::kTensor;
    if (!is_tensor || (is_output && !importer.FitsGraph(value))) waiting.push_back(name);
  };
  for (const OnnxValueInfo& output : model.outputs) look_at(output.name, true);
  for (const int i : left) {
    for (const std::string& name : NamesRead(model.nodes[i])) look_at(name, false);
  }
  while (!waiting.empty()) {
    const auto maker = makers.find(waiting.back());
    waiting.pop_back();
    if (maker == makers.end() || !left.insert(maker->second).second) continue;
    const OnnxNode& node = model.nodes[maker->second];
    dynamic->insert(node.outputs.begin(), node.outputs.end());
    for (const std::string& name : NamesRead(node)) look_at(name, false);
  }
  dynamic->erase("");
}

// Returns the warning of nodes that the graph does not have.
std::string LeftText(size_t left, size_t all, const std::string& no_kernel,
                     const std::string& why) {
  if (no_kernel.empty()) {
    return fmt::format("{} of {} nodes run one by one behind the plan; {}", left, all, why);
  }
  return fmt::format(
      "{} of {} nodes stay behind what is optimized, and only ONNX Runtime can run "
      "them: {} has no kernel here; {}",
      left, all, no_kernel, why);
}

// Imports the nodes whose operands are tensors of known types. Returns the indices of the others,
// producers first, and adds the names that these define to *dynamic, which has the inputs that the
// graph cannot hold. Sets *no_kernel as DynamicPart has it.
StatusOr<std::vector<int>> ImportStaticNodes(const OnnxModel& model, Importer& importer,
                                             std::set<std::string>* dynamic, Obstacles& obstacles,
                                             std::string* no_kernel) {
  AG_LET(const std::vector<int> order, OrderNodes(model.nodes));
  std::set<int> left;
  std::string why;
  if (!dynamic->empty())
    why = fmt::format("input {} is no tensor of numbers", Quoted(*dynamic->begin()));
  for (const int i : order) {
    if (obstacles.Ends()) break;
    const OnnxNode& node = model.nodes[i];
    const std::string noun = NodeNoun(node, i);
    const bool is_blocked =
        ReadsAny(node, [&](const std::string& name) { return obstacles.Defines(name); });
    const bool waits = !is_blocked && ReadsAny(node, [&](const std::string& name) {
      return dynamic->contains(name);
    });
    Status status;
    if (is_blocked) obstacles.Block(node.outputs);
    if (is_blocked || waits) {
      status = CheckOperator(node, noun, importer);
    } else {
      status = ImportNode(node, static_cast<size_t>(i), importer);
    }
    const bool may_wait = !is_blocked && !waits && status.code() == StatusCode::kUnimplemented &&
                          MayRunElsewhere(node, importer);
    if ((waits && status.ok()) || may_wait) {
      if (why.empty()) why = Message(status);
      if (no_kernel->empty() && !CanCompute(node, importer)) *no_kernel = noun;
      left.insert(i);
      dynamic->insert(node.outputs.begin(), node.outputs.end());
    } else if (!status.ok()) {
      obstacles.Add(noun, status, node.outputs);
    }
  }
  AG_TRY(obstacles.All());
  LeaveMakersOf(model, importer, left, dynamic);
  if (!left.empty()) {
    if (why.empty()) why = "an output is a sequence, an optional or of strings";
    importer.warnings.push_back(LeftText(left.size(), model.nodes.size(), *no_kernel, why));
  }
  std::vector<int> ordered;
  std::ranges::copy_if(order, std::back_inserter(ordered), [&](int i) { return left.contains(i); });
  return ordered;
}

// Makes an output of the graph of each value that the nodes `left` read, a weight of each constant.
StatusOr<DynamicPart> DynamicPartOf(const OnnxModel& model, const std::vector<int>& left,
                                    const std::set<std::string>& dynamic, Importer& importer) {
  DynamicPart part{.inputs = importer.outside_inputs};
  std::set<std::string> done = dynamic;
  for (const OnnxValueInfo& input : model.inputs) done.insert(input.name);
  for (const OnnxValueInfo& output : model.outputs) {
    done.insert(output.name);
    part.outputs.emplace_back(output.name, output.proto);
  }
  for (const OnnxTensor& weight : model.initializers) done.erase(weight.name);
  for (const int i : left) {
    const OnnxNode& node = model.nodes[i];
    part.nodes.emplace_back(node.proto);
    for (const std::string& name : NamesRead(node)) {
      if (!done.insert(name).second) continue;
      const ValueId value = importer.Find(name);
      if (value == kNoValue) {
        return Err(StatusCode::kInvalidArgument, "{}: nothing defines its input {}",
                   NodeNoun(node, i), Quoted(name));
      }
      const Tensor* tensor = importer.stored(value);
      const Digest* put = importer.DigestOf(value);
      if (tensor != nullptr) {
        AG_LET(const Digest digest, importer.sink().Put(tensor->bytes()));
        part.weights.push_back({name, tensor->type(), digest});
      } else if (put != nullptr) {
        part.weights.push_back({name, importer.type(value), *put});
      } else {
        AG_TRY(importer.Output(value, name));
      }
    }
  }
  for (const OnnxFunction& function : model.functions) part.functions.emplace_back(function.proto);
  if (importer.HasOutputs()) return part;
  // The graph needs an output, so it hands an input through.
  const auto input = std::ranges::find_if(model.inputs, [&](const OnnxValueInfo& info) {
    const ValueId value = importer.Find(info.name);
    return value != kNoValue && importer.stored(value) == nullptr;
  });
  if (input != model.inputs.end()) {
    AG_TRY(importer.Output(importer.Find(input->name), input->name));
    return part;
  }
  // All nodes run behind the graph, which is then a number that nobody reads.
  std::string unread = "nothing";
  while (done.contains(unread) || importer.Find(unread) != kNoValue) unread += "_";
  AG_LET(const ValueId zero, importer.AddTensor(Tensor::FromInts({}, std::vector<int64_t>{0})));
  AG_TRY(importer.Output(zero, unread));
  return part;
}

// Moves our own plans out of the metadata.
void TakePlans(ImportedModel& imported) {
  std::vector<std::pair<std::string, std::string>> rest;
  for (auto& [key, value] : imported.origin.metadata) {
    if (!absl::StartsWith(key, {kPlanPrefix.data(), kPlanPrefix.size()})) {
      rest.emplace_back(std::move(key), std::move(value));
      continue;
    }
    const std::string name = key.substr(kPlanPrefix.size());
    StatusOr<std::string> plan = FromBase64(value);
    if (plan.ok()) {
      imported.plans.emplace_back(name, *std::move(plan));
    } else {
      imported.warnings.push_back(
          fmt::format("plan ignored: {}: {}", Quoted(name), Message(plan.status())));
    }
  }
  imported.origin.metadata = std::move(rest);
}

// Returns the sizes that the model leaves open: "x:0" and the symbol, "" for none.
std::vector<std::pair<std::string, std::string>> OpenDims(const OnnxModel& model) {
  std::set<std::string_view> weights;
  for (const OnnxTensor& tensor : model.initializers) weights.insert(tensor.name);
  std::vector<std::pair<std::string, std::string>> open;
  for (const OnnxValueInfo& input : model.inputs) {
    if (weights.contains(input.name)) continue;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      if (input.dims[i].size >= 0) continue;
      open.emplace_back(fmt::format("{}:{}", input.name, i), input.dims[i].name);
    }
  }
  return open;
}

int64_t WeightBytes(const Graph& graph) {
  std::map<Digest, int64_t> sizes;
  for (const Node& node : graph.nodes()) {
    if (node.op == OpKind::kConstant) sizes[node.constant->digest] = node.outputs[0].Bytes();
  }
  int64_t sum = 0;
  for (const auto& [digest, bytes] : sizes) sum += bytes;
  return sum;
}

}  // namespace

// Defines weights before nodes. Their bytes are read at their first use.
Status AddWeights(OnnxModel& model, Importer& importer) {
  for (OnnxTensor& weight : model.initializers) {
    AG_LET(const Tensor tensor, ToTensor(weight));
    if (weight.owned == nullptr) importer.sink().Expect(weight.bytes);
    const StatusOr<ValueId> value = importer.AddTensor(tensor);
    AG_TRY(value, "tensor {}", Quoted(weight.name));
    AG_TRY(importer.Define(weight.name, *value));
    weight.owned.reset();
  }
  return OkStatus();
}

Status ImportNodes(std::span<const OnnxNode> nodes, std::span<const int> order,
                   Importer& importer) {
  for (const int i : order) {
    AG_TRY(ImportNode(nodes[i], static_cast<size_t>(i), importer));
  }
  return OkStatus();
}

namespace {

// Takes the place of a sink while sizes are tried: keeps nothing, gives every tensor a digest of
// its own.
class NoSink : public WeightSink {
 public:
  StatusOr<Digest> Put(std::string_view) override {
    Digest digest{};
    for (size_t i = 0; i < sizeof(count_); ++i) {
      digest.bytes[i] = static_cast<uint8_t>(count_ >> (8 * i));
    }
    ++count_;
    return digest;
  }

 private:
  uint64_t count_ = 0;
};

constexpr int kObstaclesMax = 8;

StatusOr<OnnxModel> ParseAndCheck(std::string_view bytes, const ImportLimits& limits) {
  if (bytes.empty()) return Err(StatusCode::kInvalidArgument, "the model is empty");
  if (static_cast<int64_t>(bytes.size()) > limits.model_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "the model has {} bytes, the limit is {}",
               bytes.size(), limits.model_bytes_max);
  }
  StatusOr<OnnxModel> parsed = ParseModel(bytes, limits.nodes_max);
  if (parsed.status().code() == StatusCode::kInvalidArgument && !KindOfFile(bytes).empty()) {
    return Err(StatusCode::kInvalidArgument, "not ONNX: this is {}", KindOfFile(bytes));
  }
  AG_LET(OnnxModel model, std::move(parsed));
  AG_TRY(CheckModel(model, limits));
  AG_TRY(Densify(model, limits));
  return model;
}

// Imports with the sizes of set `set` where the model leaves some open. Sets *chosen to what it
// says of them, "" when no size was open.
StatusOr<ImportedModel> ImportWithSizes(OnnxModel model, const ImportOptions& options, int set,
                                        WeightSink& sink, std::string* chosen) {
  Importer importer(options, model.origin, sink);
  if (model.training_infos > 0) importer.warnings.push_back("training information is ignored");
  // A try of other sizes ends at the first: only the first set's are told.
  Obstacles obstacles(set == 0 ? kObstaclesMax : 1);
  AG_TRY(BindInputs(model, options, set, importer, obstacles));
  *chosen = importer.chosen_sizes;
  importer.SetFunctions(model.functions);
  AG_TRY(AddWeights(model, importer));
  std::set<std::string> dynamic;
  for (const DynamicPart::Input& input : importer.outside_inputs) dynamic.insert(input.name);
  std::string no_kernel;
  AG_LET(const std::vector<int> left,
         ImportStaticNodes(model, importer, &dynamic, obstacles, &no_kernel));
  AG_TRY(AddOutputs(model, dynamic, importer));
  ImportedModel imported;
  if (!left.empty() || !importer.outside_inputs.empty()) {
    AG_LET(model.origin.dynamic, DynamicPartOf(model, left, dynamic, importer));
    model.origin.dynamic.no_kernel = no_kernel;
  }
  AG_TRY(NoteStated(model, importer, model.origin));
  AG_LET(imported.graph, importer.Build(&model.origin));
  imported.origin = std::move(model.origin);
  imported.origin.dim_names = OpenDims(model);
  imported.warnings = std::move(importer.warnings);
  imported.chosen_sizes = std::move(importer.chosen_sizes);
  imported.weight_bytes = WeightBytes(imported.graph);
  TakePlans(imported);
  return imported;
}

// Returns the first set of default sizes after the first that the model's nodes fit, if any does.
// Where the first failed with `code`, kOutOfRange, a table has too few rows for its sequences:
// shorter ones come before longer ones.
StatusOr<std::optional<int>> FittingSizes(std::string_view bytes, const ImportOptions& options,
                                          StatusCode code) {
  std::vector<int> sets(kDefaultSizeSets - 1);
  std::iota(sets.begin(), sets.end(), 1);
  if (code == StatusCode::kOutOfRange) {
    std::stable_partition(sets.begin(), sets.end(), HasShorterSequences);
  }
  for (const int set : sets) {
    NoSink sink;
    std::string chosen;
    AG_LET(OnnxModel model, ParseAndCheck(bytes, options.limits));
    if (ImportWithSizes(std::move(model), options, set, sink, &chosen).ok()) return set;
  }
  return std::nullopt;
}

StatusOr<ImportedModel> ImportWithAnySizes(std::string_view bytes, const ImportOptions& options,
                                           WeightSink& sink) {
  AG_LET(OnnxModel model, ParseAndCheck(bytes, options.limits));
  std::string chosen;
  StatusOr<ImportedModel> imported = ImportWithSizes(std::move(model), options, 0, sink, &chosen);
  const StatusCode code = imported.status().code();
  const bool too_short = code == StatusCode::kOutOfRange;  // A table, for these sizes.
  const bool may_fit_others =
      too_short || code == StatusCode::kInvalidArgument || code == StatusCode::kUnimplemented;
  if (!may_fit_others) return imported;
  const StatusCode told = too_short ? StatusCode::kInvalidArgument : code;
  if (chosen.empty() && too_short) {
    const char* const advice = options.shapes.empty() ? "" : " (smaller sizes may fit: --shape)";
    return Err(told, "{}{}", Message(imported.status()), advice);
  }
  if (chosen.empty()) return imported;
  AG_LET(const std::optional<int> set, FittingSizes(bytes, options, code));
  if (!set.has_value()) {
    return Err(told, "{} ({}; {} other sets of sizes fit no better: give them)",
               Message(imported.status()), chosen, kDefaultSizeSets - 1);
  }
  AG_LET(model, ParseAndCheck(bytes, options.limits));
  return ImportWithSizes(std::move(model), options, *set, sink, &chosen);
}

}  // namespace

StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   WeightSink& sink) {
  StatusOr<ImportedModel> imported = ImportWithAnySizes(bytes, options, sink);
  if (!imported.ok()) {
    return Status(imported.status().code(), OneLine(Message(imported.status())));
  }
  for (std::string& warning : imported->warnings) warning = OneLine(warning);
  imported->chosen_sizes = OneLine(imported->chosen_sizes);
  return imported;
}

StatusOr<ImportedModel> ImportOnnx(std::string_view bytes, const ImportOptions& options,
                                   BlobDir& blobs) {
  BlobSink sink(blobs);
  return ImportOnnx(bytes, options, sink);
}

}  // namespace ag
