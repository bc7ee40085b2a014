#include "device/cpu/executable.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "device/cpu/gate.h"
#include "device/cpu/half_loops.h"
#include "device/cpu/kernel.h"
#include "device/cpu/onednn.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"
#include "device/cpu/wide.h"
#include "plan/fusion/kernel_estimate.h"
#include "plan/happens_before.h"

namespace ag::cpu {
namespace {

// A tensor's address: in our own memory, known at build, or in the caller's, given with each run.
struct Address {
  std::byte* fixed = nullptr;
  Place::Kind kind = Place::Kind::kArena;
  int32_t index = 0;
  int64_t offset_bytes = 0;
};

// One launch made ready. Its pointers into the caller's memory are filled in before each run.
struct LaunchStep {
  int group = 0;
  int cores = 1;
  std::vector<int> waits;
  std::unique_ptr<Kernel> kernel;
  std::vector<Address> inputs, outputs;
  std::vector<size_t> input_bytes, output_bytes;
  std::vector<WeakBuffer> weights;  // What the kernel holds.
  std::vector<const void*> in;
  std::vector<void*> out;
};

struct StreamState {
  std::vector<LaunchStep> steps;
  dnnl::stream queue;
  AlignedBuffer scratch;
  Status status;  // Written by the stream's thread, read after its last gate.
};

// A part of the run that begins when the part before has ended: one step that takes several cores,
// or steps of several streams beside each other, a core each.
struct Phase {
  struct Range {
    size_t begin = 0, end = 0;
  };
  std::vector<Range> steps;        // By stream.
  std::vector<size_t> one_by_one;  // Streams of all steps, in an order for one thread.
  bool is_beside = false;          // Two streams or more have steps.
};

// A pointer of a step to fill in; exactly one of `in` and `out` is set.
struct Outside {
  Address address;
  const void** in = nullptr;
  void** out = nullptr;
};

// An input or output of the graph that the plan's precision stores as bf16: a buffer of ours, from
// or to which the caller's f32 is converted.
struct Narrowed {
  Place::Kind kind = Place::Kind::kInput;
  int32_t index = 0;
  int64_t elements = 0;
  AlignedBuffer memory;
};

// A port in the caller's memory with another layout than plain: a buffer of ours, and the reorder
// from or to the caller's memory.
struct Staged {
  Port port;
  AlignedBuffer memory;
  Address outside;
  std::unique_ptr<Kernel> reorder;
  AlignedBuffer scratch;
  bool is_output = false;
};

class CpuExecutable : public Executable {
 public:
  Status Prepare(const BuildRequest& request, const ExecutableOptions& options);

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    return RunAll({inputs, outputs});
  }
  StatusOr<double> Time(const TimeRequest& request) override {
    if (request.trace != nullptr) request.trace->assign(ended_.size(), {});
    AG_LET(const double ns, MeanNs(request.runs, [&] { return RunAll(request); }));
    if (request.trace != nullptr) {
      std::erase_if(*request.trace, [](const TraceEvent& event) { return event.end.count() == 0; });
    }
    return ns;
  }

 private:
  Status PrepareSteps(const BuildRequest& request, int cores);
  Status PrepareStep(const BuildRequest& request, Constants* constants, LaunchStep* step);
  Status PrepareNarrowed(const Graph& graph);
  Status PrepareStaged(const Graph& graph, const Plan& plan);
  // Returns memory for the arena: that of an executable which never runs beside this one, where it
  // is large enough, else new.
  static StatusOr<std::shared_ptr<const AlignedBuffer>> MemoryFor(
      size_t bytes, std::span<Executable* const> never_beside);
  Address AddressOf(const Place& place) const;
  // As AddressOf, of a place in plain layout.
  Address PlainAddressOf(const Place& place) const;
  FloatPorts FloatPortsOf(const Graph& graph, const Plan& plan, const Group& group) const;
  StatusOr<Nanos> RunAll(const TimeRequest& request);
  void ConvertNarrowed(bool is_output, std::span<const Tensor> inputs, std::span<Tensor> outputs);
  Status ConvertStaged(bool is_output, std::span<const Tensor> inputs, std::span<Tensor> outputs);
  Status CoolAllButInputs();
  void ListOutside();
  void Resolve(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  Status PreparePhases(const Plan& plan);
  void AddPhase(std::vector<size_t>* next, const std::vector<size_t>& end);
  void RunPhase(const Phase& phase);
  void RunSteps(size_t stream, Phase::Range range);
  void RunStep(size_t stream, const LaunchStep& step);
  std::byte* At(const Address& address, std::span<const Tensor> inputs,
                std::span<Tensor> outputs) const;

  std::optional<RunTypes> types_;
  // Values of 16 bits lie in the arena as f32, so every place is as far from its begin as the plan
  // says, times `arena_scale_`: 2 where the graph has such values.
  std::shared_ptr<const AlignedBuffer> arena_;
  int64_t arena_scale_ = 1;
  std::vector<std::unique_ptr<StreamState>> streams_;
  std::vector<Narrowed> narrowed_;
  // Not in a plan that is measured for its groups, all of whose ports are the caller's: elsewhere
  // they lie as stored.
  bool times_conversions_ = false;
  std::vector<std::unique_ptr<Staged>> staged_;
  std::vector<Outside> outside_;

  // A run executes phase after phase. Invariants: within a phase each step waits for the gates of
  // the groups that it depends on and opens its own group's gate with the run's epoch, also after
  // an error, so every wait ends. A phase begins when all steps of the phase before have ended.
  // `epoch_` is new in each run, so gates need no reset.
  int cores_ = 1;
  std::shared_ptr<CacheEviction> eviction_;
  std::shared_ptr<PackedWeights> packed_;
  int64_t constant_bytes_ = 0;
  FloatGraphs graphs_;  // While kernels are made.
  std::vector<Phase> phases_;
  uint32_t epoch_ = 0;
  std::vector<Gate> ended_;  // By group.
  std::atomic<bool> failed_{false};
  std::vector<TraceEvent>* trace_ = nullptr;  // By group, of the current run.
  Nanos begin_{0};
};

// Calls work() on so many threads at once, the caller's among them, or on fewer where the system
// limits threads.
void RunOnThreads(int64_t threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  try {
    for (int64_t i = 1; i < threads; ++i) {
      others.emplace_back([&work] {
        const TeamScope alone(1);
        work();
      });
    }
  } catch (const std::system_error&) {
    // The threads that there are do all of the work.
  }
  work();
  for (std::thread& other : others) other.join();
}

Address CpuExecutable::PlainAddressOf(const Place& place) const {
  if (place.kind == Place::Kind::kArena) {
    return {.fixed = arena_->data() + place.offset_bytes * arena_scale_};
  }
  for (const Narrowed& narrowed : narrowed_) {
    if (narrowed.kind == place.kind && narrowed.index == place.index) {
      return {.fixed = narrowed.memory.data() + place.offset_bytes};
    }
  }
  return {nullptr, place.kind, place.index, place.offset_bytes};
}

Address CpuExecutable::AddressOf(const Place& place) const {
  for (const auto& staged : staged_) {
    // In a plan of one group a port has one place: copies of blocks are refused.
    if (staged->port == place.port) return {.fixed = staged->memory.data()};
  }
  return PlainAddressOf(place);
}

// The caller's tensors are f32 where the plan stores bf16. They are converted whole, so that a
// place in one lies as far from its begin as the plan says.
Status CpuExecutable::PrepareNarrowed(const Graph& graph) {
  if (graphs_.stored == nullptr) return OkStatus();
  const auto add = [&](Place::Kind kind, size_t index, Edge edge) -> Status {
    const TensorType& stored = graphs_.stored->graph().type(edge);
    if (graph.type(edge).dtype == stored.dtype) return OkStatus();
    Narrowed narrowed{kind, static_cast<int32_t>(index), stored.NumElements()};
    AG_LET(narrowed.memory, AlignedBuffer::Make(static_cast<size_t>(stored.Bytes())));
    narrowed_.push_back(std::move(narrowed));
    return OkStatus();
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    AG_TRY(add(Place::Kind::kInput, i, {graph.inputs()[i], 0}));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    AG_TRY(add(Place::Kind::kOutput, i, graph.outputs()[i].edge));
  }
  return OkStatus();
}

// Only plans of one group have such places (plan/plan.h), and segments (BuildRequest's
// keeps_layouts), whose tensors are so already. In others a tensor of one pixel may lie
// in a plain output, as a view with the same bytes, which later groups read there; so may an image
// in channels_last whose transpose is the caller's tensor.
Status CpuExecutable::PrepareStaged(const Graph& graph, const Plan& plan) {
  for (const Place& place : plan.places) {
    if (place.kind == Place::Kind::kArena || place.port.layout == Layout::kPlain) continue;
    const TensorType& stored = graph.type(place.port.edge);
    if (HasSameBytes(stored, place.port.layout, Layout::kPlain)) continue;
    const auto index = static_cast<size_t>(place.index);
    const Edge callers = place.kind == Place::Kind::kOutput ? graph.outputs()[index].edge
                                                            : Edge{graph.inputs()[index], 0};
    if (callers != place.port.edge) continue;
    if (place.port.layout == Layout::kChannelsLast8) {
      return Err(StatusCode::kUnimplemented, "cpu: layout {}", LayoutName(place.port.layout));
    }
    const TensorType& type = graph.type(place.port.edge);
    auto staged = std::make_unique<Staged>();
    staged->port = place.port;
    staged->outside = PlainAddressOf({place.port, place.kind, place.index, 0});
    staged->is_output = place.kind == Place::Kind::kOutput;
    AG_LET(staged->memory, AlignedBuffer::Make(LayoutBytes(type, place.port.layout)));
    Port from{place.port.edge, Layout::kPlain}, to = place.port;
    if (staged->is_output) std::swap(from, to);
    const Group reorder{.pattern = std::string(kReorderPattern), .inputs = {from}, .outputs = {to}};
    AG_LET(staged->reorder, MakeKernel({.graph = graph,
                                        .group = reorder,
                                        .wide = graphs_.wide.get(),
                                        .stores_bf16 = graphs_.stored != nullptr},
                                       ""));
    AG_LET(staged->scratch, AlignedBuffer::Make(staged->reorder->scratch_bytes()));
    staged_.push_back(std::move(staged));
  }
  return OkStatus();
}

FloatPorts CpuExecutable::FloatPortsOf(const Graph& graph, const Plan& plan,
                                       const Group& group) const {
  FloatPorts floats;
  if (graphs_.wide == nullptr || graphs_.stored != nullptr) return floats;
  const auto is_float = [&](const Port& port) {
    return IsHalf(graph.type(port.edge).dtype) &&
           FindPlace(plan, port)->kind == Place::Kind::kArena;
  };
  for (const Port& port : group.inputs) floats.inputs.push_back(is_float(port));
  for (const Port& port : group.outputs) {
    floats.outputs.push_back(!IsCopy(group) && is_float(port));  // Copies write to the caller's.
  }
  return floats;
}

Status CpuExecutable::PrepareStep(const BuildRequest& request, Constants* constants,
                                  LaunchStep* step) {
  const Plan& plan = request.plan;
  const Group& group = plan.groups[step->group];
  const bool is_stored = graphs_.stored != nullptr;
  const Graph& graph = is_stored ? graphs_.stored->graph() : request.graph;
  const OmpThreads threads(step->cores);  // oneDNN plans for the current thread count.
  const FloatPorts floats = FloatPortsOf(request.graph, plan, group);
  const GroupContext context{
      .graph = graph,
      .group = group,
      .cores = step->cores,
      .constants = is_stored ? graphs_.stored->constants() : constants,
      .packed = packed_.get(),
      .wide = graphs_.wide.get(),
      .floats = &floats,
      .prefers_held_weights = request.prefers_held_weights && group.kernel.empty(),
      .stores_bf16 = is_stored};
  BufferList held;
  AG_LET(step->kernel, MakeKernel(context, group.kernel));
  step->weights = held.Take();
  const auto bytes_of = [&](const Port& port) {
    return static_cast<size_t>(LayoutBytes(graph.type(port.edge), port.layout));
  };
  for (const Port& port : group.inputs) {
    step->inputs.push_back(AddressOf(*FindPlace(plan, port)));
    step->input_bytes.push_back(bytes_of(port));
  }
  if (IsCopy(group)) {
    for (const Place& place : CopiesOf(graph, plan, group.outputs[0])) {
      step->outputs.push_back(AddressOf(place));
      step->output_bytes.push_back(0);  // The places are parts of other tensors.
    }
  } else {
    for (const Port& port : group.outputs) {
      step->outputs.push_back(AddressOf(*FindPlace(plan, port)));
      step->output_bytes.push_back(bytes_of(port));
    }
  }
  step->in.resize(step->inputs.size());
  step->out.resize(step->outputs.size());
  return OkStatus();
}

// Makes the kernels of all steps, on the caller's thread and others: compiling and packing take a
// core each. Not on the team's threads: in a part of a team oneDNN plans for one thread.
Status CpuExecutable::PrepareSteps(const BuildRequest& request, int cores) {
  const Plan& plan = request.plan;
  std::vector<std::pair<size_t, LaunchStep*>> all;  // With their streams.
  for (const Stream& stream : plan.streams) {
    auto state = std::make_unique<StreamState>();
    state->queue = dnnl::stream(Engine());
    for (const Launch& launch : stream.launches) {
      const int own = plan.groups[launch.group].cores;
      LaunchStep step{.group = launch.group, .waits = launch.waits};
      step.cores = own > 0 ? own : stream.cores > 0 ? stream.cores : cores;
      state->steps.push_back(std::move(step));
    }
    for (LaunchStep& step : state->steps) all.emplace_back(streams_.size(), &step);
    streams_.push_back(std::move(state));
  }
  Constants constants(request.graph, request.weights);
  std::vector<Status> statuses(all.size());
  // What is packed is needed no more as it was: without this a model's weights and their packed
  // copies would lie in memory together.
  constexpr size_t kDropEveryBytes = size_t{16} << 20;
  request.weights.DropPages();
  std::atomic<size_t> next{0}, dropped_at{packed_->bytes()};
  const auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      LaunchStep& step = *all[i].second;
      statuses[i] = Guarded("build", [&] { return PrepareStep(request, &constants, &step); });
      const size_t packed_bytes = packed_->bytes();
      if (packed_bytes < dropped_at + kDropEveryBytes) continue;
      dropped_at = packed_bytes;
      request.weights.DropPages();
    }
  };
  RunOnThreads(Team::Here().inside ? 1 : std::min<int64_t>(cores, std::ssize(all)), work);
  for (size_t i = 0; i < all.size(); ++i) {
    AG_TRY(statuses[i], "stream {}: group {}", all[i].first, all[i].second->group);
  }
  for (const auto& state : streams_) {
    size_t scratch = 0;
    for (const LaunchStep& step : state->steps)
      scratch = std::max(scratch, step.kernel->scratch_bytes());
    AG_LET(state->scratch, AlignedBuffer::Make(scratch));
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const AlignedBuffer>> CpuExecutable::MemoryFor(
    size_t bytes, std::span<Executable* const> never_beside) {
  for (Executable* const other : never_beside) {
    const auto* const own = dynamic_cast<const CpuExecutable*>(other);
    if (own != nullptr && own->arena_->size() >= bytes) return own->arena_;
  }
  AG_LET(AlignedBuffer made, AlignedBuffer::Make(bytes));
  return std::make_shared<const AlignedBuffer>(std::move(made));
}

Status CpuExecutable::Prepare(const BuildRequest& request, const ExecutableOptions& options) {
  const Graph& graph = request.graph;
  const Plan& plan = request.plan;
  types_.emplace(graph);
  const TeamScope team(options.cores);  // Weights are packed on all cores.
  AG_LET(graphs_, FloatGraphs::Of(graph, &request.weights, plan.policy.precision));
  arena_scale_ = graphs_.wide == nullptr || graphs_.stored != nullptr ? 1 : 2;
  const int64_t arena_bytes = plan.arena_bytes * arena_scale_;
  if (arena_bytes > options.memory_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "cpu memory: asked for {} bytes, there are {}",
               arena_bytes, options.memory_bytes_max);
  }
  AG_LET(arena_, MemoryFor(static_cast<size_t>(arena_bytes), request.never_beside));
  AG_TRY(PrepareNarrowed(graph));
  times_conversions_ = plan.arena_bytes > 0;
  if (!request.keeps_layouts) {
    AG_TRY(PrepareStaged(graphs_.stored != nullptr ? graphs_.stored->graph() : graph, plan));
  }
  packed_ = options.packed;
  AG_TRY(PrepareSteps(request, options.cores));
  ListOutside();
  cores_ = options.cores;
  eviction_ = options.eviction;
  constant_bytes_ = ConstantBytesOf(graph);
  ended_ = std::vector<Gate>(plan.groups.size());
  graphs_ = {};  // The weights are the caller's, for the build alone.
  return PreparePhases(plan);
}

// Cuts the streams into phases at the steps that take several cores. A plan of one stream is one
// phase.
Status CpuExecutable::PreparePhases(const Plan& plan) {
  std::vector<size_t> next(streams_.size()), end;
  if (streams_.size() == 1) {
    AddPhase(&next, {streams_[0]->steps.size()});
    return OkStatus();
  }
  AG_LET(const HappensBefore order, HappensBefore::Make(plan.groups.size(), plan.streams));
  std::vector<size_t> after(plan.groups.size());
  for (const int a : order.order()) {
    for (const int b : order.order()) after[b] += order.IsBefore(b, a) ? 1 : 0;
  }
  for (const int wide : order.order()) {
    const size_t stream = order.StreamOf(wide);
    const auto& steps = streams_[stream]->steps;
    const auto own = std::ranges::find(steps, wide, &LaunchStep::group);
    if (own->cores < 2) continue;
    if (order.Before(wide).Count() + after[wide] + 1 < order.order().size()) {
      return Err(StatusCode::kUnimplemented,
                 "cpu: group {}: {} cores beside other groups, which have one each", wide,
                 own->cores);
    }
    end.clear();
    for (const auto& other : streams_) {
      const auto is_before = [&](const LaunchStep& step) {
        return order.IsBefore(step.group, wide);
      };
      end.push_back(std::ranges::count_if(other->steps, is_before));
    }
    AddPhase(&next, end);
    ++end[stream];
    AddPhase(&next, end);
  }
  end.clear();
  for (const auto& stream : streams_) end.push_back(stream->steps.size());
  AddPhase(&next, end);
  return OkStatus();
}

// Adds the steps from `next` to `end` of each stream as a phase and sets `next` to `end`.
void CpuExecutable::AddPhase(std::vector<size_t>* next, const std::vector<size_t>& end) {
  Phase phase;
  size_t left = 0;
  int busy = 0;
  for (size_t s = 0; s < end.size(); ++s) {
    phase.steps.push_back({(*next)[s], end[s]});
    left += end[s] - (*next)[s];
    busy += end[s] > (*next)[s] ? 1 : 0;
  }
  if (left == 0) return;
  phase.is_beside = busy > 1;
  std::vector<bool> done(ended_.size(), true);
  for (size_t s = 0; s < end.size(); ++s) {
    for (size_t i = (*next)[s]; i < end[s]; ++i) done[streams_[s]->steps[i].group] = false;
  }
  for (size_t s = 0; left > 0; s = (s + 1) % end.size()) {  // Ends: the plan has no circle.
    for (size_t& i = (*next)[s]; i < end[s]; ++i, --left) {
      const LaunchStep& step = streams_[s]->steps[i];
      if (!std::ranges::all_of(step.waits, [&](int group) { return done[group]; })) break;
      done[step.group] = true;
      phase.one_by_one.push_back(s);
    }
  }
  phases_.push_back(std::move(phase));
}

std::byte* CpuExecutable::At(const Address& address, std::span<const Tensor> inputs,
                             std::span<Tensor> outputs) const {
  if (address.fixed != nullptr) return address.fixed;
  if (address.kind == Place::Kind::kOutput) {
    return outputs[address.index].Mutable<std::byte>().data() + address.offset_bytes;
  }
  // Groups only read their inputs; the cast gives one pointer type.
  const char* input = inputs[address.index].bytes().data() + address.offset_bytes;
  return reinterpret_cast<std::byte*>(const_cast<char*>(input));
}

// Fills in pointers into our own memory and lists the others. From here on steps do not move in
// memory.
void CpuExecutable::ListOutside() {
  for (const auto& stream : streams_) {
    for (LaunchStep& step : stream->steps) {
      for (size_t i = 0; i < step.in.size(); ++i) {
        step.in[i] = step.inputs[i].fixed;
        if (step.in[i] == nullptr)
          outside_.push_back({.address = step.inputs[i], .in = &step.in[i]});
      }
      for (size_t i = 0; i < step.out.size(); ++i) {
        step.out[i] = step.outputs[i].fixed;
        if (step.out[i] != nullptr) continue;
        outside_.push_back({.address = step.outputs[i], .out = &step.out[i]});
      }
    }
  }
}

void CpuExecutable::Resolve(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (const Outside& outside : outside_) {
    std::byte* const at = At(outside.address, inputs, outputs);
    if (outside.in != nullptr) {
      *outside.in = at;
    } else {
      *outside.out = at;
    }
  }
}

// Leaves the inputs as groups before this one leave them: in the layouts that the kernels read, in
// the caches of the cores that took part in writing them. A converted input would lie where the
// conversion wrote it: a pool in channels_last took five times as long.
Status CpuExecutable::CoolAllButInputs() {
  for (const auto& stream : streams_) {
    for (const LaunchStep& step : stream->steps) {
      for (size_t i = 0; i < step.out.size(); ++i) {
        eviction_->Demote({static_cast<const std::byte*>(step.out[i]), step.output_bytes[i]});
      }
      AG_TRY(eviction_->Cool(step.weights, constant_bytes_));
    }
  }
  for (const auto& stream : streams_) {
    for (const LaunchStep& step : stream->steps) {
      for (size_t i = 0; i < step.in.size(); ++i) {
        eviction_->Load({static_cast<const std::byte*>(step.in[i]), step.input_bytes[i]});
      }
    }
  }
  return OkStatus();
}

StatusOr<Nanos> CpuExecutable::RunAll(const TimeRequest& request) {
  const auto& [inputs, outputs, runs, caches, trace] = request;
  AG_TRY(types_->Check(inputs, outputs));
  const TeamScope team(cores_);
  Resolve(inputs, outputs);
  if (!times_conversions_) ConvertNarrowed(/*is_output=*/false, inputs, outputs);
  AG_TRY(ConvertStaged(/*is_output=*/false, inputs, outputs));
  if (caches == Caches::kInputs) AG_TRY(CoolAllButInputs(), "cooling of the caches");
  if (++epoch_ == 0) ++epoch_;
  trace_ = trace;
  failed_ = false;
  for (const auto& stream : streams_) stream->status = OkStatus();
  if (caches == Caches::kEvicted) AG_TRY(eviction_->Run(), "eviction of the caches");
  begin_ = RealClock().Now();
  if (times_conversions_) ConvertNarrowed(/*is_output=*/false, inputs, outputs);
  for (const Phase& phase : phases_) RunPhase(phase);
  if (times_conversions_) ConvertNarrowed(/*is_output=*/true, inputs, outputs);
  const Nanos spent = RealClock().Now() - begin_;
  for (const auto& stream : streams_) AG_TRY(stream->status);
  if (caches != Caches::kInputs) AG_TRY(ConvertStaged(/*is_output=*/true, inputs, outputs));
  if (!times_conversions_) ConvertNarrowed(/*is_output=*/true, inputs, outputs);
  return spent;
}

void CpuExecutable::ConvertNarrowed(bool is_output, std::span<const Tensor> inputs,
                                    std::span<Tensor> outputs) {
  for (const Narrowed& narrowed : narrowed_) {
    if ((narrowed.kind == Place::Kind::kOutput) != is_output) continue;
    auto* const own = narrowed.memory.As<uint16_t>();
    ParallelFor(cores_, narrowed.elements, kLightGrain, [&](int64_t begin, int64_t end, int) {
      if (is_output) {
        float* const to = outputs[narrowed.index].Mutable<float>().data();
        WidenHalf(DType::kBFloat16, own + begin, to + begin, end - begin);
      } else {
        const float* const from = inputs[narrowed.index].As<float>().data();
        StoreAsBf16(from + begin, own + begin, end - begin);
      }
    });
  }
}

Status CpuExecutable::ConvertStaged(bool is_output, std::span<const Tensor> inputs,
                                    std::span<Tensor> outputs) {
  for (const auto& staged : staged_) {
    if (staged->is_output != is_output) continue;
    std::byte* outside = At(staged->outside, inputs, outputs);
    std::byte* own = staged->memory.data();
    const void* from[1] = {is_output ? own : outside};
    void* to[1] = {is_output ? outside : own};
    AG_TRY(staged->reorder->Run({streams_[0]->queue.get(), staged->scratch.data()}, from, to));
  }
  return OkStatus();
}

void CpuExecutable::RunPhase(const Phase& phase) {
  const auto run = [&](int s) { RunSteps(s, phase.steps[s]); };
  if (!phase.is_beside) {
    for (size_t s = 0; s < streams_.size(); ++s) run(static_cast<int>(s));
  } else if (const Team::Place here = Team::Here();
             !here.inside && here.team->size() >= static_cast<int>(streams_.size())) {
    here.team->Run(static_cast<int>(streams_.size()), run);
  } else {
    std::vector<Phase::Range> left = phase.steps;
    for (const size_t s : phase.one_by_one) RunStep(s, streams_[s]->steps[left[s].begin++]);
  }
}

void CpuExecutable::RunSteps(size_t stream, Phase::Range range) {
  for (size_t i = range.begin; i < range.end; ++i) RunStep(stream, streams_[stream]->steps[i]);
}

void CpuExecutable::RunStep(size_t stream, const LaunchStep& step) {
  StreamState& state = *streams_[stream];
  for (const int group : step.waits) ended_[group].Wait(epoch_);
  const Nanos begin = trace_ != nullptr ? RealClock().Now() : Nanos(0);
  if (!failed_.load(std::memory_order_relaxed)) {
    const OmpThreads threads(step.cores);
    Status status = step.kernel->Run({state.queue.get(), state.scratch.data()}, step.in, step.out);
    if (!status.ok()) {
      state.status = Within(std::move(status), fmt::format("group {}", step.group));
      failed_ = true;  // The other steps are skipped, but every gate opens.
    }
  }
  if (trace_ != nullptr) {
    (*trace_)[step.group] = {step.group, static_cast<int>(stream), begin - begin_,
                             RealClock().Now() - begin_};
  }
  ended_[step.group].Open(epoch_);
}

}  // namespace

StatusOr<std::unique_ptr<Executable>> MakeExecutable(const BuildRequest& request,
                                                     const ExecutableOptions& options) {
  auto executable = std::make_unique<CpuExecutable>();
  const Status status = Guarded("build", [&] { return executable->Prepare(request, options); });
  AG_TRY(status);
  return executable;
}

}  // namespace ag::cpu
