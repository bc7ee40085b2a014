#include "device/api/segments.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "plan/segments.h"

namespace ag {
namespace {

// Where the tensor of a piece's input or output lies: among the caller's inputs or outputs, or in a
// buffer between segments.
struct Home {
  enum class Kind : uint8_t { kInput, kOutput, kBetween };
  Kind kind = Kind::kBetween;
  size_t index = 0;
  TensorType type;    // Of one part.
  int64_t parts = 1;  // Parts of this size that the home holds.
};

class SegmentsExecutable : public Executable {
 public:
  explicit SegmentsExecutable(const Graph& whole) : types_(whole) {}

  Status Prepare(Device& device, const BuildRequest& request);

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    AG_TRY(types_.Check(inputs, outputs));
    Nanos total{0};
    const Status status = EachRun([&](SegmentRuns& segment, int64_t run) -> Status {
      Cut(inputs, outputs, run, &segment);
      AG_LET(const Nanos time, segment.executable->Run(segment.inputs, segment.outputs));
      total += time;
      return OkStatus();
    });
    AG_TRY(status);
    return total;
  }

  StatusOr<double> Time(const TimeRequest& request) override {
    AG_TRY(types_.Check(request.inputs, request.outputs));
    double total = 0;
    if (request.trace != nullptr) request.trace->clear();
    for (int i = 0; i < request.runs; ++i) {
      Caches caches = request.caches;  // Of the first segment's first run.
      AG_TRY(EachRun([&](SegmentRuns& segment, int64_t run) {
        return TimeOne(request, std::exchange(caches, Caches::kAsLeft), run, &segment, &total);
      }));
    }
    return total / request.runs;
  }

 private:
  struct SegmentRuns {
    int64_t instances = 1;
    int first_group = 0;
    std::unique_ptr<Executable> executable;
    std::vector<Home> input_homes, output_homes;
    std::vector<Tensor> inputs, outputs;  // Views of one part. Kept: a run allocates nothing.
  };

  // Calls run(segment, i) for the i-th run of each segment, depth first. Ends at an error.
  Status EachRun(const std::function<Status(SegmentRuns&, int64_t)>& run) {
    return RunBefore(segments_.size(), 0, 1, run);
  }

  // Runs what the segments before `end` do for part `part` of `parts`.
  Status RunBefore(size_t end, int64_t part, int64_t parts,
                   const std::function<Status(SegmentRuns&, int64_t)>& run) {
    if (end == 0) return OkStatus();
    SegmentRuns& segment = segments_[end - 1];
    const int64_t times = segment.instances / parts;
    for (int64_t i = part * times; i < (part + 1) * times; ++i) {
      AG_TRY(RunBefore(end - 1, i, segment.instances, run));
      AG_TRY(run(segment, i));
    }
    return OkStatus();
  }

  void Cut(std::span<const Tensor> inputs, std::span<const Tensor> outputs, int64_t run,
           SegmentRuns* segment) const {
    const auto cut = [&](const std::vector<Home>& homes, std::vector<Tensor>* views) {
      for (size_t i = 0; i < homes.size(); ++i) {
        const Home& home = homes[i];
        const Tensor& whole = home.kind == Home::Kind::kInput    ? inputs[home.index]
                              : home.kind == Home::Kind::kOutput ? outputs[home.index]
                                                                 : between_[home.index];
        const auto size = static_cast<size_t>(home.type.Bytes());
        const auto at = static_cast<size_t>(run % home.parts) * size;
        (*views)[i] = Tensor::View(home.type, whole.bytes().substr(at, size), nullptr);
      }
    };
    cut(segment->input_homes, &segment->inputs);
    cut(segment->output_homes, &segment->outputs);
  }

  // Adds the time of one run to `total_ns`, which is when it begins in the trace.
  Status TimeOne(const TimeRequest& request, Caches caches, int64_t run, SegmentRuns* segment,
                 double* total_ns) {
    Cut(request.inputs, request.outputs, run, segment);
    std::vector<TraceEvent> trace;
    AG_LET(const double ns,
           segment->executable->Time({.inputs = segment->inputs,
                                      .outputs = segment->outputs,
                                      .caches = caches,
                                      .trace = request.trace == nullptr ? nullptr : &trace}));
    const Nanos begin(static_cast<int64_t>(*total_ns));
    for (TraceEvent& event : trace) {
      event.group += segment->first_group;
      event.begin += begin;
      event.end += begin;
      request.trace->push_back(event);
    }
    *total_ns += ns;
    return OkStatus();
  }

  RunTypes types_;
  std::vector<SegmentRuns> segments_;
  std::vector<Tensor> between_;
};

// Where an edge of the whole lies, by the tensors of the caller and the buffers.
class Homes {
 public:
  Homes(const Graph& graph, const Plan& plan, const std::vector<Between>& between)
      : graph_(graph), plan_(plan), between_(between) {}

  Home InputOf(Edge edge, TensorType part, int64_t instances) const {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (Edge{graph_.inputs()[i], 0} != edge) continue;
      return {Home::Kind::kInput, i, std::move(part), instances};
    }
    return OutputOf(edge, 0, std::move(part), instances);
  }

  // `repeats`: how many of the piece's outputs before this one are the same edge.
  Home OutputOf(Edge edge, int repeats, TensorType part, int64_t instances) const {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i].edge != edge || repeats-- > 0) continue;
      return {Home::Kind::kOutput, i, std::move(part), instances};
    }
    const auto it = std::ranges::find(between_, edge, &Between::edge);
    AG_CHECK(it != between_.end());
    return {Home::Kind::kBetween, static_cast<size_t>(it - between_.begin()), std::move(part),
            instances / plan_.segments[it->last_reader].instances};
  }

 private:
  const Graph& graph_;
  const Plan& plan_;
  const std::vector<Between>& between_;
};

Status SegmentsExecutable::Prepare(Device& device, const BuildRequest& request) {
  const Plan& plan = request.plan;
  AG_LET(const std::vector<GraphPiece> pieces, PiecesOf(request.graph, plan));
  const std::vector<Between> between = TensorsBetween(request.graph, pieces);
  for (const Between& tensor : between) {
    TensorType type = request.graph.type(tensor.edge);
    const int32_t parts = plan.segments[tensor.last_reader].instances;
    if (parts > 1) type.shape[0] /= parts;
    between_.push_back(Tensor::Zeros(std::move(type)));
  }
  const Homes homes(request.graph, plan, between);
  // The largest arena first: later segments may lie in it.
  std::vector<size_t> order(pieces.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t s) { return plan.segments[s].plan.arena_bytes; });
  std::vector<Executable*> never_beside(request.never_beside.begin(), request.never_beside.end());
  segments_.resize(pieces.size());
  for (const size_t s : order) {
    SegmentRuns& segment = segments_[s];
    AG_LET(segment.executable, device.Build({.graph = pieces[s].graph,
                                             .plan = plan.segments[s].plan,
                                             .weights = request.weights,
                                             .prefers_held_weights = request.prefers_held_weights,
                                             .never_beside = never_beside,
                                             .keeps_layouts = true}));
    never_beside.push_back(segment.executable.get());
  }
  int first_group = 0;
  for (size_t s = 0; s < pieces.size(); ++s) {
    const GraphPiece& piece = pieces[s];
    SegmentRuns& segment = segments_[s];
    segment.instances = plan.segments[s].instances;
    segment.first_group = first_group;
    first_group += static_cast<int>(plan.segments[s].plan.groups.size());
    for (size_t i = 0; i < piece.inputs.size(); ++i) {
      const TensorType& type = piece.graph.type({piece.graph.inputs()[i], 0});
      segment.input_homes.push_back(homes.InputOf(piece.inputs[i], type, segment.instances));
    }
    for (size_t i = 0; i < piece.outputs.size(); ++i) {
      const Edge edge = piece.outputs[i];
      const auto repeats = std::count(piece.outputs.begin(), piece.outputs.begin() + i, edge);
      const TensorType& type = piece.graph.type(piece.graph.outputs()[i].edge);
      segment.output_homes.push_back(
          homes.OutputOf(edge, static_cast<int>(repeats), type, segment.instances));
    }
    segment.inputs.resize(piece.inputs.size());
    segment.outputs.resize(piece.outputs.size());
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Executable>> BuildSegments(Device& device, const BuildRequest& request) {
  auto executable = std::make_unique<SegmentsExecutable>(request.graph);
  AG_TRY(executable->Prepare(device, request));
  return executable;
}

}  // namespace ag
