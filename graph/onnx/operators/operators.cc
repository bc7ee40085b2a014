#include "graph/onnx/operators/operators.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/string_ranks.h"

namespace ag {
namespace {

using onnx_operators::OperatorCall;
using onnx_operators::OperatorRow;
using onnx_operators::ResultSizes;

const absl::flat_hash_map<std::string_view, OperatorRow>& OperatorRows() {
  static const auto& table = *new absl::flat_hash_map<std::string_view, OperatorRow>([] {
    absl::flat_hash_map<std::string_view, OperatorRow> result;
    for (const auto rows :
         {onnx_operators::IndexOperators(),          onnx_operators::WindowOperators(),
          onnx_operators::RecurrentOperators(),      onnx_operators::ReduceOperators(),
          onnx_operators::NormOperators(),           onnx_operators::ScalarOperators(),
          onnx_operators::QuantOperators(),          onnx_operators::SignalOperators(),
          onnx_operators::ProductOperators(),        onnx_operators::AttentionOperators(),
          onnx_operators::MicrosoftOperators(),      onnx_operators::MicrosoftAttentionOperators(),
          onnx_operators::MicrosoftQuantOperators(), onnx_operators::SampleOperators(),
          onnx_operators::RegionOperators(),         onnx_operators::ResampleOperators(),
          onnx_operators::LossOperators(),           onnx_operators::TextOperators(),
          onnx_operators::StatefulOperators(),       onnx_operators::RandomOperators()}) {
      for (const OperatorRow& row : rows) AG_CHECK(result.emplace(row.name, row).second);
    }
    return result;
  }());
  return table;
}

std::string QualifiedName(const OnnxNode& node) {
  return node.domain.empty() ? node.op_type : fmt::format("{}.{}", node.domain, node.op_type);
}

// Whether the node draws other numbers in each run.
bool LacksSeed(const OnnxNode& node) {
  const auto rows = onnx_operators::RandomOperators();
  return node.domain.empty() && std::ranges::count(rows, node.op_type, &OperatorRow::name) > 0 &&
         std::ranges::count(node.attributes, "seed", &OnnxAttribute::name) == 0;
}

const OperatorRow* FindOperator(const OnnxNode& node) {
  if (LacksSeed(node)) return nullptr;
  const auto found = OperatorRows().find(QualifiedName(node));
  return found == OperatorRows().end() ? nullptr : &found->second;
}

StatusOr<std::vector<Tensor>> RunRow(const OperatorRow& row, const OperatorRun& run) {
  OperatorCall call(run.node, run.opset, run.inputs, run.bytes_max, run.threads);
  call.set_types_only(run.types_only);
  Status status = row.run(call);
  if (status.ok()) status = call.CheckAttributes();
  AG_TRY(status, "operator {}", Quoted(QualifiedName(run.node)));
  std::vector<Tensor> results = std::move(call.results());
  results.resize(run.node.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!call.Wants(i) || BytesFit(results[i].type(), results[i].bytes())) continue;
    return Err(StatusCode::kUnimplemented, "operator {}: output {} is not supported",
               Quoted(QualifiedName(run.node)), i);
  }
  return results;
}

// Whether the operator only moves and compares elements of its first result's type, so that the
// ranks of strings serve as well.
bool MovesElements(const OnnxNode& node) {
  static constexpr std::string_view kNames[] = {
      "Compress", "GatherElements",  "GatherND",  "OneHot", "ReverseSequence", "Scatter",
      "Unique",   "ScatterElements", "ScatterND", "Trilu",  "CenterCropPad",   "Pad"};
  const bool reduces = std::ranges::any_of(node.attributes, [](const OnnxAttribute& attribute) {
    return attribute.name == "reduction" && attribute.s != "none";
  });
  return node.domain.empty() && !reduces && std::ranges::count(kNames, node.op_type) > 0;
}

// Runs an operator that moves elements on the ranks of strings. Its first result is of strings.
StatusOr<std::vector<Tensor>> RunOnRanks(const OperatorRow& row, OperatorRun run) {
  const onnx_operators::StringRanks ranks(run.inputs);
  std::deque<Tensor> ranked;
  for (const Tensor*& input : run.inputs) {
    if (input == nullptr || input->type().dtype != DType::kString) continue;
    input = &ranked.emplace_back(ranks.RanksOf(*input));
  }
  AG_LET(std::vector<Tensor> results, RunRow(row, run));
  if (!run.node.outputs[0].empty()) {
    AG_LET(results[0], ranks.StringsOf(results[0]));
  }
  return results;
}

}  // namespace

bool HasOperator(const OnnxNode& node) { return FindOperator(node) != nullptr; }

std::string_view WhyLeftOut(const OnnxNode& node) {
  if (LacksSeed(node)) return "random numbers without a seed: give the node the attribute seed";
  if (node.domain.empty() && node.op_type == "ImageDecoder") {
    return "image decoding is left to the program around the model";
  }
  return "";
}

bool SizesComeFromValues(const OnnxNode& node, const std::vector<bool>& known) {
  const ResultSizes sizes = FindOperator(node)->sizes;
  if (sizes == ResultSizes::kFromValues) return true;
  for (size_t i = 0; i < std::min<size_t>(known.size(), 8); ++i) {
    if (!known[i] && ((static_cast<unsigned>(sizes) >> i) & 1) != 0) return true;
  }
  return false;
}

StatusOr<std::vector<Tensor>> RunOperator(const OperatorRun& run) {
  const OperatorRow* row = FindOperator(run.node);
  if (row == nullptr) {
    return Err(StatusCode::kUnimplemented, "operator {}: nothing here can run it",
               Quoted(QualifiedName(run.node)));
  }
  const bool of_strings = std::ranges::any_of(run.inputs, [](const Tensor* input) {
    return input != nullptr && input->type().dtype == DType::kString;
  });
  if (!of_strings || row->takes_strings) return RunRow(*row, run);
  if (MovesElements(run.node)) return RunOnRanks(*row, run);
  return Err(StatusCode::kUnimplemented, "operator {}: nothing here can run it on strings",
             Quoted(QualifiedName(run.node)));
}

std::string OperatorName(const Node& node) {
  const std::string bytes = node.attributes->String("onnx_node");
  const StatusOr<OnnxNode> read = ParseNode(bytes);
  return read.ok() && !read->op_type.empty() ? QualifiedName(*read) : "opaque";
}

StatusOr<KeptOperator> KeptOperator::Of(const Node& node) {
  KeptOperator kept;
  kept.bytes_ = node.attributes->String("onnx_node");
  AG_LET(kept.node_, ParseNode(kept.bytes_));
  if (!HasOperator(kept.node_)) {
    const std::string_view why = WhyLeftOut(kept.node_);
    return Err(StatusCode::kUnimplemented,
               "operator {}: optimize keeps it as it is, but nothing here can run it{}{}{}",
               QualifiedName(kept.node_), why.empty() ? "" : ": ", why,
               SimilarOperator(kept.node_));
  }
  kept.node_.proto = {};  // Points into bytes that move.
  kept.opset_ = node.Int("opset");
  kept.types_.assign(node.outputs.begin(), node.outputs.end());
  return kept;
}

StatusOr<std::vector<Tensor>> KeptOperator::Run(std::span<const Tensor> inputs, int threads) const {
  std::vector<const Tensor*> operands;
  size_t next = 0;
  for (const std::string& name : node_.inputs) {
    if (!name.empty() && next == inputs.size()) {
      return Err(StatusCode::kInvalidArgument, "operator {}: got {} operands", node_.op_type, next);
    }
    operands.push_back(name.empty() ? nullptr : &inputs[next++]);
  }
  AG_LET(std::vector<Tensor> all,
         RunOperator({.node = node_, .opset = opset_, .inputs = operands, .threads = threads}));
  std::vector<Tensor> results;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!node_.outputs[i].empty()) results.push_back(std::move(all[i]));
  }
  for (size_t i = 0; i < types_.size(); ++i) {
    if (i < results.size() && results[i].type() == types_[i]) continue;
    return Err(StatusCode::kInvalidArgument, "operator {}: output {} is {}, the graph says {}",
               node_.op_type, i, i < results.size() ? results[i].type().ToString() : "absent",
               types_[i].ToString());
  }
  return results;
}

}  // namespace ag
