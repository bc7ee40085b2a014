#include "graph/onnx/export/export.h"

#include "base/bytes.h"
#include "graph/onnx/export/exporter.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/plan_metadata.h"

namespace ag {
namespace {

constexpr int64_t kOpsetWrittenMax = 28;

}  // namespace

Status ExportOnnx(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
                  const ExportOptions& options, const ByteSink& sink) {
  OpenSizes open;
  if (!options.at_other_sizes.empty()) {
    std::vector<Graph> graphs = {graph};
    graphs.insert(graphs.end(), options.at_other_sizes.begin(), options.at_other_sizes.end());
    AG_LET(open, OpenSizes::Learn(std::move(graphs), origin));
  }
  Exporter exporter(graph, origin, weights, options, std::move(open));
  if (exporter.opset() > kOpsetWrittenMax) {
    return Err(StatusCode::kUnimplemented, "opset {} is above {}", exporter.opset(),
               kOpsetWrittenMax);
  }
  AG_LET(OnnxModel model, exporter.Run());
  for (const auto& [key, plan] : options.plans) {
    model.origin.metadata.emplace_back(std::string(kPlanPrefix) + key, Base64(plan));
  }
  return SerializeModel(model, sink);
}

StatusOr<std::string> ExportOnnx(const Graph& graph, const OnnxOrigin& origin,
                                 const WeightSource& weights, const ExportOptions& options) {
  std::string bytes;
  const auto append = [&](std::string_view piece) {
    bytes += piece;
    return OkStatus();
  };
  AG_TRY(ExportOnnx(graph, origin, weights, options, append));
  return bytes;
}

}  // namespace ag
