#include "device/cuda/launch/executable.h"

#include <algorithm>
#include <optional>

#include "device/cuda/launch/buffers.h"
#include "device/cuda/launch/capture.h"
#include "plan/fusion/group_time.h"
#include "plan/schedule/placement.h"

namespace ag::cuda {
namespace {

// Short plans are timed as copies in a row in one graph, because the host limits the rate of
// replays of a graph of a few microseconds.
constexpr size_t kShortPlan = 8;
constexpr int kCopies = 20;

// Replays of a longer plan in each part of a cold sample; one replay of a short plan has kCopies.
constexpr int kColdReplays = 4;

// Evictions take tens of microseconds, a short plan two. Where their scatter hides the plan, the
// sample takes up to this many rounds.
constexpr int kColdRoundsMax = 3;

// Rounds of A B B A replays that decide whether launches begin early.
constexpr int kEarlyRounds = 5;
constexpr int kEarlyReplays = 10;

class PlanExecutable : public GpuExecutable {
 public:
  PlanExecutable(const GpuContext& gpu, const Graph& graph)
      : driver_(gpu.driver), eviction_(gpu.eviction), types_(graph) {}
  ~PlanExecutable() override {
    for (const OwnedStream& stream : streams_) {
      static_cast<void>(driver_.Synchronize(stream.get()));  // Freed memory must not be in use.
    }
  }

  Status Prepare(const GpuContext& gpu, const BuildRequest& request);

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    AG_TRY(UploadAnew(inputs, outputs));
    AG_LET(const Nanos took, TimeReplays(captured_.replay.get(), 1));
    AG_TRY(buffers_->Download(outputs));
    return took;
  }
  StatusOr<double> Time(const TimeRequest& request) override {
    if (request.trace != nullptr) return Trace(request);
    AG_TRY(types_.Check(request.inputs, request.outputs));
    return request.caches == Caches::kEvicted ? ColdNs(request.inputs)
                                              : WarmNs(request.inputs, request.runs);
  }
  const std::vector<GroupNodes>& nodes() const override { return nodes_; }
  bool has_early_launches() const override { return captured_.early_edges > 0; }

 private:
  StreamRef stream() const { return streams_[0].get(); }
  Status MakeStreams(const Plan& plan);
  Status MakeKernels(KernelSources& sources, const Chip& chip, const Graph& graph, const Plan& plan,
                     const WeightSource& weights, Precision precision);
  Status LayOut(const DeviceSpec& spec, const Graph& graph, Plan* plan, Precision precision);
  Status Order(const DeviceSpec& spec, const Graph& graph, const Plan& plan);
  Status CaptureBest(const Chip& chip);
  Status UploadAnew(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  Status UploadOnce(std::span<const Tensor> inputs);
  StatusOr<double> WarmNs(std::span<const Tensor> inputs, int runs);
  StatusOr<double> ColdNs(std::span<const Tensor> inputs);
  StatusOr<double> Trace(const TimeRequest& request);
  StatusOr<Nanos> TimeReplays(ReplayRef replay, int replays);
  bool is_short() const { return launches_.size() <= kShortPlan; }
  Status CaptureCold();
  StatusOr<Nanos> TimeColdRound(int replays);

  Driver& driver_;
  CacheEviction& eviction_;
  const RunTypes types_;
  std::vector<OwnedStream> streams_;  // One per stream of the plan.
  OwnedEvent begin_, end_;
  std::optional<WeightMemory> weights_;
  std::optional<Buffers> buffers_;
  std::vector<ReadyLaunch> launches_;
  CapturedGraph captured_;
  // Made at first use.
  CapturedGraph copies_;
  CapturedGraph cold_, evictions_;  // Evictions with the plan after each, and alone.
  std::vector<GroupNodes> nodes_;
  std::vector<Tensor> uploaded_;  // By Time, while is_uploaded_.
  bool is_uploaded_ = false;
};

Status PlanExecutable::MakeStreams(const Plan& plan) {
  for (size_t i = 0; i < std::max<size_t>(1, plan.streams.size()); ++i) {
    AG_LET(const StreamRef stream, driver_.MakeStream(0));
    streams_.emplace_back(driver_, stream);
  }
  AG_LET(const EventRef begin, driver_.MakeEvent());
  begin_ = OwnedEvent(driver_, begin);
  AG_LET(const EventRef end, driver_.MakeEvent());
  end_ = OwnedEvent(driver_, end);
  return OkStatus();
}

// Makes the launches in the plan's order; Order sorts them.
Status PlanExecutable::MakeKernels(KernelSources& sources, const Chip& chip, const Graph& graph,
                                   const Plan& plan, const WeightSource& weights,
                                   Precision precision) {
  Constants constants(graph, weights);
  weights_.emplace(driver_, stream());
  for (const Stream& stream : plan.streams) {
    for (const Launch& launch : stream.launches) {
      const Group& group = plan.groups[launch.group];
      ReadyLaunch ready;
      ready.order.group = launch.group;
      ready.kernel_name = group.kernel;
      StatusOr<std::unique_ptr<GroupKernel>> kernel =
          sources.Make({graph, group, precision, chip}, group.kernel, constants, *weights_);
      AG_TRY(kernel, "group {}", launch.group);
      ready.kernel = *std::move(kernel);
      launches_.push_back(std::move(ready));
    }
  }
  return OkStatus();
}

Status PlanExecutable::LayOut(const DeviceSpec& spec, const Graph& graph, Plan* plan,
                              Precision precision) {
  std::vector<int64_t> bytes(plan->groups.size(), 0);
  for (const ReadyLaunch& launch : launches_) {
    bytes[launch.order.group] = launch.kernel->workspace_bytes();
  }
  AG_LET(const std::vector<int64_t> offsets, PlaceWorkspaces(graph, spec, bytes, plan));
  StatusOr<Buffers> buffers = Buffers::Make(driver_, stream(), graph, *plan, precision);
  AG_TRY(buffers, "memory of the plan");
  buffers_.emplace(*std::move(buffers));
  for (ReadyLaunch& launch : launches_) {
    const Group& group = plan->groups[launch.order.group];
    const auto address = [&](const Port& port) {
      return buffers_->AddressOf(*FindPlace(*plan, port));
    };
    for (const Port& port : group.inputs) launch.inputs.push_back(address(port));
    if (IsCopy(group)) {
      for (const Place& place : CopiesOf(graph, *plan, group.outputs[0])) {
        launch.outputs.push_back(buffers_->AddressOf(place));
      }
    } else {
      for (const Port& port : group.outputs) launch.outputs.push_back(address(port));
    }
    const int64_t offset = offsets[launch.order.group];
    if (offset >= 0) launch.workspace = buffers_->Arena(offset);
  }
  return OkStatus();
}

Status PlanExecutable::Order(const DeviceSpec& spec, const Graph& graph, const Plan& plan) {
  std::vector<double> group_ns(plan.groups.size(), 0);
  for (const ReadyLaunch& launch : launches_) {
    const Group& group = plan.groups[launch.order.group];
    group_ns[launch.order.group] = RooflineNs(ExtractGroup(graph, group, plan.policy), spec);
  }
  AG_LET(const std::vector<OrderedLaunch> ordered, OrderLaunches(plan, group_ns));
  std::vector<size_t> position(plan.groups.size());
  for (size_t i = 0; i < launches_.size(); ++i) position[launches_[i].order.group] = i;
  std::vector<ReadyLaunch> sorted;
  for (const OrderedLaunch& order : ordered) {
    sorted.push_back(std::move(launches_[position[order.group]]));
    sorted.back().order = order;
  }
  launches_ = std::move(sorted);
  return OkStatus();
}

StatusOr<Nanos> PlanExecutable::TimeReplays(ReplayRef replay, int replays) {
  AG_TRY(driver_.Record(begin_.get(), stream()));
  for (int i = 0; i < replays; ++i) AG_TRY(driver_.Replay(replay, stream()));
  AG_TRY(driver_.Record(end_.get(), stream()));
  return driver_.Between(begin_.get(), end_.get());
}

Status PlanExecutable::CaptureBest(const Chip& chip) {
  AG_LET(captured_, Capture(driver_, stream(), launches_, {}));
  const auto may_begin_early = [](const ReadyLaunch& launch) {
    return !launch.order.parents.empty() && launch.kernel->can_begin_early();
  };
  if (chip.has_early_launch() && std::ranges::any_of(launches_, may_begin_early)) {
    StatusOr<CapturedGraph> early = Capture(driver_, stream(), launches_, {.early_launch = true});
    // A driver may refuse early edges; the plan then does without.
    if (early.ok() && early->early_edges > 0) {
      Nanos plain{0}, begun_early{0};
      for (int i = 0; i < kEarlyRounds; ++i) {
        for (const bool is_early : {false, true, true, false}) {
          const ReplayRef replay = is_early ? early->replay.get() : captured_.replay.get();
          AG_LET(const Nanos took, TimeReplays(replay, kEarlyReplays));
          (is_early ? begun_early : plain) += took;
        }
      }
      if (begun_early < plain) captured_ = *std::move(early);
    }
  }
  for (size_t i = 0; i < launches_.size(); ++i) {
    nodes_.push_back({launches_[i].order.group, captured_.nodes[i]});
  }
  return OkStatus();
}

Status PlanExecutable::Prepare(const GpuContext& gpu, const BuildRequest& request) {
  const Graph& graph = request.graph;
  Plan plan = request.plan;
  AG_LET(const Precision precision, PrecisionOf(plan.policy));
  AG_TRY(MakeStreams(plan));
  AG_TRY(MakeKernels(gpu.sources, gpu.chip, graph, plan, request.weights, precision));
  AG_TRY(LayOut(gpu.spec, graph, &plan, precision));
  AG_TRY(Order(gpu.spec, graph, plan));
  AG_TRY(driver_.Synchronize(stream()));
  AG_TRY(RunDirectly(driver_, streams_, launches_, nullptr), "first run");
  AG_TRY(CaptureBest(gpu.chip));
  active_cores_.assign(plan.groups.size(), 0);
  for (const GroupNodes& group : nodes_) {
    active_cores_[group.group] = ActiveCores(group, gpu.spec.cores);
  }
  return OkStatus();
}

Status PlanExecutable::UploadAnew(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  AG_TRY(types_.Check(inputs, outputs));
  is_uploaded_ = false;
  return buffers_->Upload(inputs);
}

// Uploads the inputs unless they are those of the sample before, because converting and copying
// takes longer than most groups. This object holds them, so nobody has written to them.
Status PlanExecutable::UploadOnce(std::span<const Tensor> inputs) {
  const auto is_same = [](const Tensor& a, const Tensor& b) {
    return a.bytes().data() == b.bytes().data();
  };
  if (is_uploaded_ && std::ranges::equal(inputs, uploaded_, is_same)) return OkStatus();
  AG_TRY(buffers_->Upload(inputs));
  uploaded_.assign(inputs.begin(), inputs.end());
  is_uploaded_ = true;
  return OkStatus();
}

StatusOr<double> PlanExecutable::WarmNs(std::span<const Tensor> inputs, int runs) {
  const bool as_copies = runs > 1 && is_short();
  if (as_copies && copies_.replay.get() == nullptr) {
    AG_LET(copies_, Capture(driver_, stream(), launches_,
                            {.copies = kCopies, .early_launch = has_early_launches()}));
  }
  const int copies = as_copies ? kCopies : 1;
  const int replays = (runs + copies - 1) / copies;
  AG_TRY(UploadOnce(inputs));
  const ReplayRef replay = as_copies ? copies_.replay.get() : captured_.replay.get();
  // Keeps the device busy while the host sends the timed work.
  AG_TRY(driver_.Replay(replay, stream()));
  AG_LET(const Nanos took, TimeReplays(replay, replays));
  if (took.count() <= 0) {
    return Err(StatusCode::kDataLoss, "sample of {} ns: expected more than 0", took.count());
  }
  return static_cast<double>(took.count()) / replays / copies;
}

Status PlanExecutable::CaptureCold() {
  if (cold_.replay.get() != nullptr) return OkStatus();
  AG_TRY(eviction_.Prepare());
  CaptureOptions options{.copies = is_short() ? kCopies : 1, .eviction = &eviction_};
  AG_LET(evictions_, Capture(driver_, stream(), {}, options));
  options.early_launch = has_early_launches();
  AG_LET(cold_, Capture(driver_, stream(), launches_, options));
  return OkStatus();
}

// Returns the time of two replayed series of plans less that of the evictions alone before and
// after them.
StatusOr<Nanos> PlanExecutable::TimeColdRound(int replays) {
  Nanos difference{0};
  for (const bool has_plan : {false, true, true, false}) {
    // Keeps the device busy while the host sends the timed work.
    AG_TRY(eviction_.Enqueue(stream()));
    const ReplayRef replay = has_plan ? cold_.replay.get() : evictions_.replay.get();
    AG_LET(const Nanos took, TimeReplays(replay, replays));
    difference += has_plan ? took : -took;
  }
  return difference;
}

StatusOr<double> PlanExecutable::Trace(const TimeRequest& request) {
  AG_TRY(UploadAnew(request.inputs, request.outputs));
  request.trace->clear();
  AG_TRY(RunDirectly(driver_, streams_, launches_, request.trace));
  AG_TRY(buffers_->Download(request.outputs));
  Nanos end{0};
  for (const TraceEvent& event : *request.trace) end = std::max(end, event.end);
  return static_cast<double>(end.count());
}

StatusOr<double> PlanExecutable::ColdNs(std::span<const Tensor> inputs) {
  AG_TRY(CaptureCold(), "cold run");
  AG_TRY(UploadOnce(inputs));
  const int replays = is_short() ? 1 : kColdReplays;
  const int round_runs = 2 * replays * (is_short() ? kCopies : 1);
  Nanos spent{0};
  for (int rounds = 1; rounds <= kColdRoundsMax; ++rounds) {
    AG_LET(const Nanos difference, TimeColdRound(replays));
    spent += difference;
    if (spent.count() > 0) return static_cast<double>(spent.count()) / rounds / round_runs;
  }
  return Err(StatusCode::kDataLoss, "sample of {} ns beyond its evictions: expected more than 0",
             spent.count());
}

}  // namespace

int ActiveCores(const GroupNodes& group, int cores) {
  int64_t blocks = 0;
  for (const NodeInfo& node : group.nodes) {
    if (node.kind != NodeKind::kKernel) continue;
    blocks = std::max(blocks, int64_t{node.grid[0]} * node.grid[1] * node.grid[2]);
  }
  return static_cast<int>(std::min<int64_t>(blocks, cores));
}

StatusOr<std::unique_ptr<GpuExecutable>> MakeExecutable(const GpuContext& gpu,
                                                        const BuildRequest& request) {
  auto executable = std::make_unique<PlanExecutable>(gpu, request.graph);
  AG_TRY(executable->Prepare(gpu, request));
  return executable;
}

}  // namespace ag::cuda
