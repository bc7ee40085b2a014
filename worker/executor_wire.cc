#include "worker/executor_wire.h"

#include <vector>

#include "autograph/v1/worker.pb.h"
#include "plan/pair_problem.h"
#include "worker/execute.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Emit = std::function<Status(const v1::ItemResult&)>;

v1::ItemResult Result(int index, const Status& status) {
  v1::ItemResult result;
  result.set_index(index);
  result.set_code(static_cast<int>(status.code()));
  result.set_message(Message(status));
  return result;
}

void ToWire(const Measurement& measurement, v1::CacheRecord* record) {
  record->set_median_ns(measurement.latency.median_ns);
  record->set_low_ns(measurement.latency.low_ns);
  record->set_high_ns(measurement.latency.high_ns);
  record->set_samples(measurement.samples);
  record->set_discarded(measurement.discarded);
  record->set_canary_ns(measurement.canary_ns);
  record->set_kernel(measurement.kernel);
  record->set_simulated(measurement.simulated);
  record->set_busy_cores(measurement.busy_cores);
  record->set_disturbed(measurement.disturbed);
  for (const auto& [kernel, median_ns] : measurement.alternatives) {
    v1::KernelTime* time = record->add_alternatives();
    time->set_kernel(kernel);
    time->set_median_ns(median_ns);
  }
}

void ToWire(const PlanTiming& timing, v1::PlanTiming* wire) {
  wire->mutable_latency()->set_median_ms(timing.latency.median_ns / 1e6);
  wire->mutable_latency()->set_low_ms(timing.latency.low_ns / 1e6);
  wire->mutable_latency()->set_high_ms(timing.latency.high_ns / 1e6);
  wire->set_speedup(timing.speedup);
  wire->set_speedup_low(timing.speedup_low);
  wire->set_speedup_high(timing.speedup_high);
  wire->set_verdict(std::string(VerdictName(timing.verdict)));
  wire->set_blocks(timing.blocks);
  wire->set_discarded(timing.discarded);
  wire->set_disturbed(timing.disturbed);
}

void ToWire(const OutputError& error, v1::OutputError* wire) {
  wire->set_output(error.name);
  wire->set_max_abs(error.max_abs);
  wire->set_max_rel(error.max_rel);
  wire->set_max_elementwise(error.max_elementwise);
  wire->set_nonfinite_differs(error.nonfinite_differs);
}

CandidateBytes FromWire(const v1::Candidate& candidate) {
  return {candidate.graph(), candidate.plan()};
}

// True when the device must be opened anew in a fresh process (device/api/device.h).
bool IsLost(const Status& status) { return status.code() == StatusCode::kUnavailable; }

Status RunGroups(Executor& executor, const v1::GroupBatch& batch, const Emit& emit) {
  for (const std::string& bytes : batch.problems()) {
    const StatusOr<GroupProblem> problem = DecodeGroupProblem(bytes);
    if (problem.ok()) executor.device().Prepare(*problem);  // MeasureGroup reports what is wrong.
  }
  for (int i = 0; i < batch.problems_size(); ++i) {
    const std::string& bytes = batch.problems(i);
    const StatusOr<Measurement> measurement =
        IsPairProblem(bytes) ? executor.MeasurePair(i, bytes) : executor.MeasureGroup(i, bytes);
    if (IsLost(measurement.status())) return measurement.status();
    v1::ItemResult result = Result(i, measurement.status());
    if (measurement.ok()) ToWire(*measurement, result.mutable_measurement());
    AG_TRY(emit(result));
  }
  return emit(Result(-1, OkStatus()));
}

Status RunPlans(Executor& executor, const v1::PlanSet& set, const Emit& emit) {
  std::vector<CandidateBytes> candidates;
  for (const v1::Candidate& candidate : set.candidates()) candidates.push_back(FromWire(candidate));
  const StatusOr<Policy> policy = ParsePolicy(set.policy());
  if (!policy.ok()) return emit(Result(-1, policy.status()));
  const StatusOr<std::vector<PlanTiming>> timings = executor.TimePlans(
      candidates,
      {.seed = set.seed(), .blocks_max = set.blocks_max(), .cold_cache = policy->cold_cache});
  if (IsLost(timings.status())) return timings.status();
  if (timings.ok()) {
    for (size_t i = 0; i < timings->size(); ++i) {
      v1::ItemResult result = Result(static_cast<int>(i), (*timings)[i].status);
      ToWire((*timings)[i], result.mutable_timing());
      AG_TRY(emit(result));
    }
  }
  return emit(Result(-1, timings.status()));
}

Status RunCheck(Executor& executor, const v1::Check& check, const Emit& emit) {
  CheckRequest request;
  request.reference = FromWire(check.reference());
  request.candidate = FromWire(check.candidate());
  request.seeds.assign(check.seeds().begin(), check.seeds().end());
  request.reference_kernels = check.reference_kernels();
  const StatusOr<std::vector<OutputError>> errors = executor.Check(request);
  if (IsLost(errors.status())) return errors.status();
  v1::ItemResult result = Result(-1, errors.status());
  if (errors.ok()) {
    for (const OutputError& error : *errors) ToWire(error, result.add_errors());
  }
  return emit(result);
}

void ToWire(const FileTimes& times, v1::FileTimes* wire) {
  for (const FileRunner& runner : times.runners) {
    v1::FileRunner* file = wire->add_runners();
    file->set_code(static_cast<int>(runner.status.code()));
    file->set_message(Message(runner.status));
    file->set_version(runner.version);
    file->set_carried_plan(runner.carried_plan);
  }
  for (const std::vector<double>& block : times.blocks) {
    wire->add_blocks()->mutable_ns()->Assign(block.begin(), block.end());
  }
  wire->set_disturbed(times.disturbed);
}

StatusOr<FileSetRequest> FromWire(const v1::FileSet& set) {
  FileSetRequest request;
  for (const v1::FileToTime& file : set.files()) {
    AG_LET(const Digest digest, ParseDigest(file.digest()));
    request.files.emplace_back(
        digest, file.in_onnxruntime() ? FileRuntime::kOnnxRuntime : FileRuntime::kAutograph);
  }
  for (const v1::BoundShape& shape : set.shapes()) {
    request.shapes[shape.input()] = Shape(shape.dims().begin(), shape.dims().end());
  }
  AG_LET(const Policy policy, ParsePolicy(set.policy()));
  request.cold_cache = policy.cold_cache;
  request.seconds = set.seconds_max();
  request.blocks_max = set.blocks_max();
  return request;
}

// `silence_max` is the longest silence of a file's process in seconds; 0: the default.
Status RunFiles(Executor& executor, const v1::FileSet& set, double silence_max, const Emit& emit) {
  StatusOr<FileSetRequest> request = FromWire(set);
  if (!request.ok()) return emit(Result(-1, request.status()));
  if (silence_max > 0) request->answer_max = Nanos(static_cast<int64_t>(silence_max * 1e9));
  v1::ItemResult result = Result(0, OkStatus());
  if (set.compare_seeds() > 0) {
    const auto errors = executor.CompareFileSet(*request, set.compare_seeds());
    if (!errors.ok()) return emit(Result(-1, errors.status()));
    for (const OutputError& error : *errors) ToWire(error, result.add_errors());
  } else {
    const StatusOr<FileTimes> times = executor.TimeFileSet(*request);
    if (!times.ok()) return emit(Result(-1, times.status()));
    ToWire(*times, result.mutable_file_times());
  }
  AG_TRY(emit(result));
  return emit(Result(-1, OkStatus()));
}

Status RunRefine(Executor& executor, const v1::Refine& refine, const Emit& emit) {
  std::vector<KernelChoice> rivals;
  for (const v1::KernelChoice& rival : refine.rivals()) {
    rivals.push_back({rival.group(), rival.kernel()});
  }
  const auto faster = executor.RefinePlan(FromWire(refine.candidate()), rivals);
  if (IsLost(faster.status())) return faster.status();
  if (faster.ok()) {
    v1::ItemResult result = Result(0, OkStatus());
    for (const KernelChoice& choice : *faster) {
      v1::KernelChoice* wire = result.add_kernels();
      wire->set_group(choice.group);
      wire->set_kernel(choice.kernel);
    }
    AG_TRY(emit(result));
  }
  return emit(Result(-1, faster.status()));
}

}  // namespace

Status RunWorkItem(Executor& executor, const std::string& item_bytes,
                   const std::function<Status(const std::string&)>& emit) {
  v1::WorkItem item;
  if (!item.ParseFromString(item_bytes)) {
    return emit(Result(-1, Err(StatusCode::kDataLoss, "work item: not a WorkItem message"))
                    .SerializeAsString());
  }
  executor.EndWithin(item.end_within_seconds());
  const Emit send = [&](v1::ItemResult result) {
    result.set_attempt(item.attempt());
    return emit(result.SerializeAsString());
  };
  switch (item.item_case()) {
    case v1::WorkItem::kGroups:
      return RunGroups(executor, item.groups(), send);
    case v1::WorkItem::kPlans:
      return RunPlans(executor, item.plans(), send);
    case v1::WorkItem::kCheck:
      return RunCheck(executor, item.check(), send);
    case v1::WorkItem::kFiles:
      return RunFiles(executor, item.files(), item.time_max_seconds(), send);
    case v1::WorkItem::kRefine:
      return RunRefine(executor, item.refine(), send);
    case v1::WorkItem::kQualify:
      return send(Result(-1, executor.Qualify()));
    case v1::WorkItem::ITEM_NOT_SET:
      break;
  }
  return send(Result(
      -1, Err(StatusCode::kUnimplemented, "work item: of a kind that this worker does not know")));
}

}  // namespace ag
