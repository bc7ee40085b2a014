#include "tests/fuzz/targets.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "graph/codec.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_format.h"
#include "plan/format/plan_validate.h"
#include "tests/fuzz/seeds.h"

namespace ag {
namespace {

// Weights need no place here.
class DigestSink : public WeightSink {
 public:
  StatusOr<Digest> Put(std::string_view bytes) override { return Sha256(bytes); }
};

void Promise(bool kept, std::string_view promise, std::string_view found = "") {
  if (kept) return;
  fmt::print(stderr, "broken: {}: {}\n", promise, found);
  std::abort();
}

// Small limits: hostile sizes end at once, and what a mutation finds is quick to repeat.
ImportOptions SmallLimits() {
  ImportOptions options;
  options.limits = {.model_bytes_max = 1 << 20,
                    .nodes_max = 1000,
                    .tensor_bytes_max = 256 << 10,
                    .total_bytes_max = 1 << 20,
                    .subgraph_depth_max = 8};
  return options;
}

bool IsOneLine(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

void CheckError(const Status& error) {
  static constexpr std::array kOfTheModel = {
      StatusCode::kInvalidArgument, StatusCode::kUnimplemented, StatusCode::kResourceExhausted};
  Promise(std::ranges::count(kOfTheModel, error.code()) > 0, "an error of import is the model's",
          ToString(error));
  Promise(!Message(error).empty() && IsOneLine(Message(error)), "an error is one line",
          ToString(error));
}

}  // namespace

bool FuzzImport(std::string_view bytes) {
  DigestSink sink;
  const StatusOr<ImportedModel> imported = ImportOnnx(bytes, SmallLimits(), sink);
  if (!imported.ok()) {
    CheckError(imported.status());
    return false;
  }
  const StatusOr<Graph> graph = DecodeGraph(EncodeGraph(imported->graph));
  Promise(graph.ok(), "an imported graph decodes", ToString(graph.status()));
  Promise(graph->digest() == imported->graph.digest(), "an imported graph decodes to itself");
  const std::string origin_bytes = EncodeOrigin(imported->origin);
  const StatusOr<OnnxOrigin> origin = DecodeOrigin(origin_bytes);
  Promise(origin.ok(), "an origin decodes", ToString(origin.status()));
  Promise(EncodeOrigin(*origin) == origin_bytes, "an origin decodes to itself");
  for (const std::string& warning : imported->warnings) {
    Promise(IsOneLine(warning), "a warning is one line", warning);
  }
  return true;
}

bool FuzzGraph(std::string_view bytes) {
  const StatusOr<Graph> graph = DecodeGraph(bytes);
  if (!graph.ok()) return false;
  Promise(EncodeGraph(*graph) == bytes, "what decodes encodes to the same bytes");
  Promise(Sha256(CanonicalBytes(*graph)) == graph->digest(), "a digest is that of the bytes");
  return true;
}

bool FuzzPlan(std::string_view bytes) {
  const StatusOr<Plan> plan = DecodePlan(bytes);
  if (!plan.ok()) return false;
  Promise(EncodePlan(*plan) == bytes, "what decodes encodes to the same bytes");
  const PlanSeeds& seeds = SeedsOfPlans();
  if (!ValidatePlan(seeds.graph, *plan, seeds.spec).ok()) return false;
  Promise(!FormatPlan(seeds.graph, *plan).empty(), "a valid plan has a text");
  return true;
}

}  // namespace ag
