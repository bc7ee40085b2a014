#include "device/api/segments.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
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

// A segment made ready, for one worker.
struct SegmentRuns {
  int64_t instances = 1;
  int first_group = 0;
  std::unique_ptr<Executable> executable;
  std::vector<Home> input_homes, output_homes;
  std::vector<Tensor> inputs, outputs;  // Views of one part. Kept: a run allocates nothing.
};

// Who runs all segments for one part after the other; of several, each has memory of its own.
struct Worker {
  int number = 0;
  std::vector<SegmentRuns> segments;
  std::vector<Tensor> between;
  // Of the current run.
  double ns = 0;
  Status status;
  Caches caches = Caches::kAsLeft;  // Before the next run of a segment.
  std::vector<TraceEvent> trace;
};

class SegmentsExecutable : public Executable {
 public:
  SegmentsExecutable(Device& device, const Graph& whole) : device_(device), types_(whole) {}

  Status Prepare(const BuildRequest& request);

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    AG_TRY(types_.Check(inputs, outputs));
    AG_LET(const double ns, RunParts([&](SegmentRuns& segment, int64_t run, Worker* worker) {
             return RunOne(inputs, outputs, run, &segment, worker);
           }));
    return Nanos(static_cast<int64_t>(ns));
  }

  StatusOr<double> Time(const TimeRequest& request) override {
    AG_TRY(types_.Check(request.inputs, request.outputs));
    if (workers_.size() > 1 && request.caches != Caches::kAsLeft) {
      return Err(StatusCode::kUnimplemented,
                 "runs beside each other begin with the caches as left");
    }
    double total = 0;
    if (request.trace != nullptr) request.trace->clear();
    for (int i = 0; i < request.runs; ++i) {
      workers_[0].caches = request.caches;
      AG_LET(const double ns, RunParts([&](SegmentRuns& segment, int64_t run, Worker* worker) {
               return TimeOne(request, run, &segment, worker);
             }));
      total += ns;
    }
    if (request.trace == nullptr) return total / request.runs;
    for (Worker& worker : workers_) {
      request.trace->insert(request.trace->end(), worker.trace.begin(), worker.trace.end());
    }
    return total / request.runs;
  }

 private:
  Status PrepareWorker(const BuildRequest& request, const std::vector<GraphPiece>& pieces,
                       Worker* worker);

  // Calls run(segment, i, worker) for the i-th run of each segment, depth first. The parts of the
  // last segment are taken, not assigned: a worker that waits for its core takes none. Returns the
  // nanoseconds until all had ended.
  template <class RunSegment>
  StatusOr<double> RunParts(const RunSegment& run) {
    const size_t last = workers_[0].segments.size() - 1;
    const int64_t parts = workers_[0].segments[last].instances;
    std::atomic<int64_t> next{0};
    const auto work = [&](int number) {
      Worker& worker = workers_[number];
      worker.ns = 0;
      worker.status = OkStatus();
      worker.trace.clear();
      for (int64_t part = next++; part < parts; part = next++) {
        if (worker.status.ok()) worker.status = RunUpTo(last, part, run, &worker);
      }
    };
    std::optional<Nanos> spent;
    if (workers_.size() == 1) {
      work(0);
    } else {
      spent = device_.RunBeside(static_cast<int>(workers_.size()), work);
    }
    double sum = 0;
    for (const Worker& worker : workers_) {
      AG_TRY(worker.status);
      sum += worker.ns;
    }
    return spent ? static_cast<double>(spent->count()) : sum;
  }

  // Runs run `i` of the segment `last` behind the runs that lead to it.
  template <class RunSegment>
  Status RunUpTo(size_t last, int64_t i, const RunSegment& run, Worker* worker) {
    SegmentRuns& segment = worker->segments[last];
    if (last > 0) {
      const int64_t times = worker->segments[last - 1].instances / segment.instances;
      for (int64_t before = i * times; before < (i + 1) * times; ++before) {
        AG_TRY(RunUpTo(last - 1, before, run, worker));
      }
    }
    return run(segment, i, worker);
  }

  static void Cut(std::span<const Tensor> inputs, std::span<const Tensor> outputs, int64_t run,
                  const Worker& worker, SegmentRuns* segment) {
    const auto cut = [&](const std::vector<Home>& homes, std::vector<Tensor>* views) {
      for (size_t i = 0; i < homes.size(); ++i) {
        const Home& home = homes[i];
        const Tensor& whole = home.kind == Home::Kind::kInput    ? inputs[home.index]
                              : home.kind == Home::Kind::kOutput ? outputs[home.index]
                                                                 : worker.between[home.index];
        const auto size = static_cast<size_t>(home.type.Bytes());
        const auto at = static_cast<size_t>(run % home.parts) * size;
        (*views)[i] = Tensor::View(home.type, whole.bytes().substr(at, size), nullptr);
      }
    };
    cut(segment->input_homes, &segment->inputs);
    cut(segment->output_homes, &segment->outputs);
  }

  static Status RunOne(std::span<const Tensor> inputs, std::span<const Tensor> outputs, int64_t run,
                       SegmentRuns* segment, Worker* worker) {
    Cut(inputs, outputs, run, *worker, segment);
    AG_LET(const Nanos time, segment->executable->Run(segment->inputs, segment->outputs));
    worker->ns += static_cast<double>(time.count());
    return OkStatus();
  }

  // Adds the time of one run to the worker's, which is when it begins in the trace.
  static Status TimeOne(const TimeRequest& request, int64_t run, SegmentRuns* segment,
                        Worker* worker) {
    Cut(request.inputs, request.outputs, run, *worker, segment);
    std::vector<TraceEvent> trace;
    AG_LET(const double ns,
           segment->executable->Time({.inputs = segment->inputs,
                                      .outputs = segment->outputs,
                                      .caches = std::exchange(worker->caches, Caches::kAsLeft),
                                      .trace = request.trace == nullptr ? nullptr : &trace}));
    const Nanos begin(static_cast<int64_t>(worker->ns));
    for (TraceEvent& event : trace) {
      event.group += segment->first_group;
      event.stream += worker->number;  // The plans of runs beside each other have one stream.
      event.begin += begin;
      event.end += begin;
      worker->trace.push_back(event);
    }
    worker->ns += ns;
    return OkStatus();
  }

  Device& device_;
  RunTypes types_;
  std::vector<Worker> workers_;
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

Status SegmentsExecutable::Prepare(const BuildRequest& request) {
  AG_LET(const std::vector<GraphPiece> pieces, PiecesOf(request.graph, request.plan));
  workers_.resize(static_cast<size_t>(request.plan.beside));
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].number = static_cast<int>(i);
    AG_TRY(PrepareWorker(request, pieces, &workers_[i]));
  }
  return OkStatus();
}

Status SegmentsExecutable::PrepareWorker(const BuildRequest& request,
                                         const std::vector<GraphPiece>& pieces, Worker* worker) {
  const Plan& plan = request.plan;
  const std::vector<Between> between = TensorsBetween(request.graph, pieces);
  for (const Between& tensor : between) {
    TensorType type = request.graph.type(tensor.edge);
    const int32_t parts = plan.segments[tensor.last_reader].instances;
    if (parts > 1) type.shape[0] /= parts;
    worker->between.push_back(Tensor::Zeros(std::move(type)));
  }
  const Homes homes(request.graph, plan, between);
  // The largest arena first: later segments may lie in it.
  std::vector<size_t> order(pieces.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t s) { return plan.segments[s].plan.arena_bytes; });
  std::vector<Executable*> never_beside(request.never_beside.begin(), request.never_beside.end());
  // The caller's other executables lend their memory once.
  if (worker->number > 0) never_beside.clear();
  worker->segments.resize(pieces.size());
  for (const size_t s : order) {
    SegmentRuns& segment = worker->segments[s];
    AG_LET(segment.executable, device_.Build({.graph = pieces[s].graph,
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
    SegmentRuns& segment = worker->segments[s];
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
  auto executable = std::make_unique<SegmentsExecutable>(device, request.graph);
  AG_TRY(executable->Prepare(request));
  return executable;
}

}  // namespace ag
