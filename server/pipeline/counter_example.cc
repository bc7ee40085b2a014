#include "server/pipeline/counter_example.h"

#include <algorithm>
#include <set>

#include "graph/onnx/export/kept_names.h"
#include "graph/onnx/tensor_proto.h"
#include "rules/match/lone_rewrite.h"
#include "server/pipeline/output_file.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

// Places of a clean-up rule that are tried alone.
constexpr int kPlacesMax = 8;
// Names of nodes in a message.
constexpr size_t kNamesMax = 4;

constexpr char kReplay[] =
    R"py("""Runs both models in ONNX Runtime and compares their outputs with the expected ones.

Needs the packages numpy, onnx and onnxruntime.
"""

import glob
import os

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

here = os.path.dirname(os.path.abspath(__file__))


def load(kind):
    values = []
    for i in range(len(glob.glob(f"{here}/test_data_set_0/{kind}_*.pb"))):
        tensor = onnx.load_tensor(f"{here}/test_data_set_0/{kind}_{i}.pb")
        values.append((tensor.name, onnx.numpy_helper.to_array(tensor)))
    return values


options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
for model in ("before.onnx", "after.onnx"):
    session = onnxruntime.InferenceSession(f"{here}/{model}", options)
    results = session.run(None, dict(load("input")))
    for (name, expected), actual in zip(load("output"), results):
        a, b = expected.astype(np.float64), actual.astype(np.float64)
        scale = np.max(np.abs(a), initial=0.0) or 1.0
        error = np.max(np.abs(a - b), initial=0.0) / scale
        print(f"{model}: output {name}: max|a-b|/max|a| {error:.3g}")
)py";

// "usual, seed 3"; of the user's own: "inputs/0".
std::string InputsText(const v1::CounterExample& example) {
  if (example.seed() == 0) return example.inputs();
  return fmt::format("{}, seed {}", example.inputs(), example.seed());
}

std::string Readme(const CounterExampleRequest& request, const v1::CounterExample& example) {
  const char* size = example.whole_model()
                         ? "The models are the whole graphs before and after it."
                         : "The models are what the rule matched, and what it made of that.";
  const char* at_fault =
      example.on_device_only()
          ? "\nOn AutoGraph's reference kernels both compute the same: a kernel of the device is "
            "wrong, not the rule.\n"
          : "";
  return fmt::format(
      "{}: gives other results.\n\n"
      "before.onnx and after.onnx should compute the same and do not: output {}, max|a-b|/max|a| "
      "{:.3g}. {}\n{}\n"
      "test_data_set_0 has inputs ({}) and the outputs of before.onnx.\n\n"
      "    python3 replay.py                                     # in ONNX Runtime\n"
      "    autograph verify before.onnx --against after.onnx     # in AutoGraph\n",
      request.what, example.error().output(), example.error().max_rel(), size, at_fault,
      InputsText(example));
}

int64_t WeightBytes(const Graph& graph) {
  std::set<Digest> seen;
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kConstant || !seen.insert(node.constant->digest).second) continue;
    bytes += node.outputs[0].Bytes();
  }
  return bytes;
}

std::string MiB(int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// What a rule does by itself at the guilty places, the smallest pairs that may show it.
std::vector<GraphPair> Cuts(const GuiltyRewrite& guilty, const RuleSet& rules) {
  std::vector<Rewrite> places;
  if (guilty.rewrite) {
    places.push_back(*guilty.rewrite);
  } else if (const Rule* rule = rules.Find(guilty.rule)) {
    places = PlacesOf(guilty.before, *rule, kPlacesMax);
  }
  std::vector<GraphPair> cuts;
  for (const Rewrite& place : places) {
    StatusOr<LoneRewrite> lone = CutOut(guilty.before, place);
    if (!lone.ok()) continue;
    cuts.push_back({std::move(lone->before), std::move(lone->after)});
  }
  return cuts;
}

class Maker {
 public:
  Maker(const CounterExampleRequest& request, BlobDir& blobs) : request_(request), blobs_(blobs) {}

  StatusOr<v1::CounterExample> Run() {
    const GuiltyRewrite& guilty = *request_.guilty;
    for (const GraphPair& cut : Cuts(guilty, *request_.rules)) {
      AG_LET(const bool is_made, Try(cut));
      if (is_made) return std::move(example_);
    }
    AG_TRY(Try({guilty.before, guilty.after, /*is_model=*/true}).status());
    return std::move(example_);
  }

 private:
  // Makes the files when the pair shows a difference; true: there is no need for another pair.
  StatusOr<bool> Try(const GraphPair& pair) {
    example_.set_left_out(WhyNot(pair));
    if (!example_.left_out().empty()) return false;
    const auto shown = request_.show(pair, request_.bytes_max);
    if (!shown.ok() && !IsRefusal(shown.status())) return shown.status();
    if (!shown.ok() || !shown->has_value()) {
      example_.set_left_out(shown.ok() ? "the two graphs by themselves do not differ"
                                       : "it cannot be shown: " + Message(shown.status()));
      return false;
    }
    example_.set_whole_model(pair.is_model);
    TakeFigures(**shown);
    const Status made = Write(pair, **shown);
    if (made.ok()) return true;
    if (!IsRefusal(made)) return made;
    example_.clear_files();
    example_.set_left_out(Message(made));
    return false;
  }

  std::string WhyNot(const GraphPair& pair) const {
    if (request_.stop && request_.stop()) return "the time was over";
    return TooLarge(WeightBytes(pair.before) + WeightBytes(pair.after));
  }

  std::string TooLarge(int64_t bytes) const {
    if (bytes <= request_.bytes_max) return "";
    return fmt::format("it has {}, at most {} are kept", MiB(bytes), MiB(request_.bytes_max));
  }

  void TakeFigures(const v1::ShownValues& shown) {
    example_.set_inputs(shown.compared());
    example_.set_seed(shown.seed());
    example_.set_on_device_only(shown.on_device_only());
    const auto larger = [](const v1::OutputError& a, const v1::OutputError& b) {
      return std::pair(a.nonfinite_differs(), a.max_rel()) <
             std::pair(b.nonfinite_differs(), b.max_rel());
    };
    const auto worst = std::max_element(shown.errors().begin(), shown.errors().end(), larger);
    if (worst != shown.errors().end()) *example_.mutable_error() = *worst;
  }

  Status Write(const GraphPair& pair, const v1::ShownValues& shown) {
    const std::string too_large =
        TooLarge(shown.value_bytes() + WeightBytes(pair.before) + WeightBytes(pair.after));
    if (!too_large.empty()) return Err(StatusCode::kFailedPrecondition, "{}", too_large);
    AG_TRY(PutText("README.txt", Readme(request_, example_)));
    AG_TRY(PutText("replay.py", kReplay));
    AG_TRY(PutModel("before.onnx", pair.before));
    AG_TRY(PutModel("after.onnx", pair.after));
    std::vector<std::pair<std::string, TensorType>> inputs, outputs;
    for (size_t i = 0; i < pair.before.inputs().size(); ++i) {
      inputs.emplace_back(pair.before.input_name(i),
                          pair.before.type({pair.before.inputs()[i], 0}));
    }
    for (const GraphOutput& output : pair.before.outputs()) {
      outputs.emplace_back(output.name, pair.before.type(output.edge));
    }
    AG_TRY(PutTensors("input", inputs, shown.inputs()));
    return PutTensors("output", outputs, shown.expected());
  }

  Status PutTensors(const std::string& kind,
                    const std::vector<std::pair<std::string, TensorType>>& types,
                    const google::protobuf::RepeatedPtrField<std::string>& values) {
    if (static_cast<size_t>(values.size()) != types.size()) {
      return Err(StatusCode::kDataLoss, "the worker sent {} {}s of {}", values.size(), kind,
                 types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const auto& [name, type] = types[i];
      const std::string& bytes = values[static_cast<int>(i)];
      if (!BytesFit(type, bytes)) {
        return Err(StatusCode::kDataLoss, "{} {}: {} bytes do not fit {}", kind, name, bytes.size(),
                   type.ToString());
      }
      AG_TRY(PutText(fmt::format("test_data_set_0/{}_{}.pb", kind, i),
                     FormatTensorProto(name, Tensor::FromBytes(type, bytes))));
    }
    return OkStatus();
  }

  Status PutText(const std::string& name, std::string_view bytes) {
    AG_LET(const Digest digest, blobs_.Put(bytes));
    AddFile(name, digest, static_cast<int64_t>(bytes.size()));
    return OkStatus();
  }

  // Names are the model's only where the graph is.
  Status PutModel(const std::string& name, const Graph& graph) {
    AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs_.NewWriter());
    ExportRequest exported{graph, request_.imported, request_.origin, request_.blob_root,
                           writer->fd()};
    exported.origin.metadata.clear();
    exported.origin.dim_names.clear();
    exported.origin.dynamic = {};
    if (!example_.whole_model()) {
      exported.imported = graph;
      exported.origin.names.clear();
    }
    AG_TRY(ExportInChild(exported, request_.child), "{}", name);
    AG_TRY(writer->TakeIn());
    const auto bytes = static_cast<int64_t>(writer->size());
    AG_LET(const Digest digest, writer->Commit());
    AddFile(name, digest, bytes);
    return OkStatus();
  }

  void AddFile(const std::string& name, const Digest& digest, int64_t bytes) {
    v1::NamedBlob* file = example_.add_files();
    file->set_name(name);
    file->set_digest(digest.Hex());
    file->set_bytes(bytes);
  }

  const CounterExampleRequest& request_;
  BlobDir& blobs_;
  v1::CounterExample example_;
};

}  // namespace

StatusOr<v1::CounterExample> MakeCounterExample(const CounterExampleRequest& request,
                                                BlobDir& blobs) {
  return Maker(request, blobs).Run();
}

std::string PlaceText(const Graph& graph, const Rewrite& rewrite, const OnnxOrigin& origin,
                      const Graph& imported) {
  const KeptNames kept(graph, origin, &imported);
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (const Edge& root : rewrite.roots) {
    add(kept.NodeOf(root.node));
    for (const std::string& name : kept.OriginsOf(root.node)) add(name);
  }
  for (const Edge& root : rewrite.roots) {
    if (names.empty()) add("a " + Info(graph.node(root.node).op).text_name);
  }
  if (names.size() <= kNamesMax) return fmt::format("{}", fmt::join(names, ", "));
  const size_t more = names.size() - kNamesMax;
  names.resize(kNamesMax);
  return fmt::format("{} and {} more", fmt::join(names, ", "), more);
}

}  // namespace ag
