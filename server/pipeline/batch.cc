#include "server/pipeline/batch.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "graph/batch/samples.h"
#include "graph/input_role.h"

namespace ag {

namespace v1 = autograph::v1;

StatusOr<ShapesByInput> ShapesAtBatch(const v1::OptimizeRequest& asked,
                                      const ImportedModel& model) {
  ShapesByInput shapes;
  const Graph& graph = model.graph;
  for (size_t i = 0; asked.batch() > 0 && i < graph.inputs().size(); ++i) {
    const std::string& name = graph.input_name(i);
    Shape shape = graph.type({graph.inputs()[i], 0}).shape;
    if (shape.empty() || shape[0] == asked.batch()) continue;
    const auto is_bound = [&](const v1::BoundShape& bound) { return bound.input() == name; };
    if (std::ranges::any_of(asked.shapes(), is_bound)) {
      return Err(StatusCode::kInvalidArgument, "batch {}: shapes bind {} to a batch of {}",
                 asked.batch(), name, shape[0]);
    }
    const auto& open = model.origin.dim_names;
    const auto dim = std::ranges::find(open, name + ":0", [](const auto& d) { return d.first; });
    if (dim == open.end()) {
      return Err(StatusCode::kInvalidArgument, "batch {}: the model fixes the batch of {} at {}",
                 asked.batch(), name, shape[0]);
    }
    if (NamesAny(absl::AsciiStrToLower(dim->second), {"seq", "len", "time", "token", "frame"})) {
      return Err(StatusCode::kInvalidArgument, "batch {}: the first axis of {} is {}",
                 asked.batch(), name, dim->second);
    }
    shape[0] = asked.batch();
    shapes[name] = std::move(shape);
  }
  return shapes;
}

Status CheckObjective(const v1::OptimizeRequest& asked, const Graph& graph) {
  if (asked.objective() != v1::OptimizeRequest::THROUGHPUT) return OkStatus();
  const StatusOr<Samples> samples = FindSamples(graph);
  if (!samples.ok()) {
    return Err(StatusCode::kInvalidArgument, "objective throughput: {}", Message(samples.status()));
  }
  if (samples->batch > 1) return OkStatus();
  return Err(StatusCode::kInvalidArgument,
             "objective throughput: the batch is {}; ask for another one", samples->batch);
}

void TakeThroughput(const Graph& graph, v1::Result* result) {
  const StatusOr<Samples> samples = FindSamples(graph);
  if (!samples.ok() || samples->batch < 1) return;
  result->set_batch(samples->batch);
  const double ns = result->output_latency().median_ns();
  if (ns > 0) result->set_samples_per_second(static_cast<double>(samples->batch) * 1e9 / ns);
}

}  // namespace ag
