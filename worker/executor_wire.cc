#include "worker/executor_wire.h"

#include <vector>

#include "autograph/v1/worker.pb.h"
#include "device/api/lost_device.h"
#include "plan/fusion/pair_problem.h"
#include "wire/candidate_wire.h"
#include "wire/measurement_wire.h"
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

Status RunGroups(Executor& executor, const v1::GroupBatch& batch, const Emit& emit) {
  for (const std::string& bytes : batch.problems()) {
    const StatusOr<GroupProblem> problem = DecodeGroupProblem(bytes);
    if (problem.ok()) executor.device().Prepare(*problem);  // MeasureGroup reports what is wrong.
  }
  for (int i = 0; i < batch.problems_size(); ++i) {
    const std::string& bytes = batch.problems(i);
    const StatusOr<Measurement> measurement =
        IsPairProblem(bytes) ? executor.MeasurePair(i, bytes) : executor.MeasureGroup(i, bytes);
    if (IsLostDevice(measurement.status())) return measurement.status();
    v1::ItemResult result = Result(i, measurement.status());
    if (measurement.ok()) ToProto(*measurement, result.mutable_measurement());
    AG_TRY(emit(result));
  }
  return emit(Result(-1, OkStatus()));
}

Status RunPlans(Executor& executor, const v1::PlanSet& set, const Emit& emit) {
  std::vector<StatusOr<Candidate>> candidates;
  for (const v1::Candidate& candidate : set.candidates()) {
    candidates.push_back(FromProto(candidate));
  }
  const StatusOr<Policy> policy = ParsePolicy(set.policy());
  if (!policy.ok()) return emit(Result(-1, policy.status()));
  const StatusOr<std::vector<PlanTiming>> timings = executor.TimePlans(
      candidates,
      {.seed = set.seed(), .blocks_max = set.blocks_max(), .cold_cache = policy->cold_cache});
  if (IsLostDevice(timings.status())) return timings.status();
  if (timings.ok()) {
    for (size_t i = 0; i < timings->size(); ++i) {
      v1::ItemResult result = Result(static_cast<int>(i), (*timings)[i].status);
      ToProto((*timings)[i], result.mutable_timing());
      AG_TRY(emit(result));
    }
  }
  return emit(Result(-1, timings.status()));
}

StatusOr<std::vector<OutputError>> ErrorsOf(Executor& executor, const v1::Check& check) {
  CheckRequest request;
  AG_LET(request.reference, FromProto(check.reference()));
  AG_LET(request.candidate, FromProto(check.candidate()));
  request.seeds.assign(check.seeds().begin(), check.seeds().end());
  request.reference_kernels = check.reference_kernels();
  return executor.Check(request);
}

Status RunCheck(Executor& executor, const v1::Check& check, const Emit& emit) {
  const StatusOr<std::vector<OutputError>> errors = ErrorsOf(executor, check);
  if (IsLostDevice(errors.status())) return errors.status();
  v1::ItemResult result = Result(-1, errors.status());
  if (errors.ok()) {
    for (const OutputError& error : *errors) ToProto(error, result.add_errors());
  }
  return emit(result);
}

StatusOr<FileSetRequest> FromWire(const v1::FileSet& set) {
  FileSetRequest request;
  for (const v1::FileToTime& file : set.files()) {
    AG_LET(const Digest digest, ParseDigest(file.digest()));
    request.files.push_back(
        {digest, file.in_onnxruntime() ? FileRuntime::kOnnxRuntime : FileRuntime::kAutograph,
         file.plan()});
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
    for (const OutputError& error : *errors) ToProto(error, result.add_errors());
  } else {
    const StatusOr<FileTimes> times = executor.TimeFileSet(*request);
    if (!times.ok()) return emit(Result(-1, times.status()));
    ToProto(*times, result.mutable_file_times());
  }
  AG_TRY(emit(result));
  return emit(Result(-1, OkStatus()));
}

StatusOr<std::vector<KernelChoice>> FasterRivals(Executor& executor, const v1::Refine& refine) {
  AG_LET(const Candidate candidate, FromProto(refine.candidate()));
  std::vector<KernelChoice> rivals;
  for (const v1::KernelChoice& rival : refine.rivals()) rivals.push_back(FromProto(rival));
  return executor.RefinePlan(candidate, rivals);
}

Status RunRefine(Executor& executor, const v1::Refine& refine, const Emit& emit) {
  const auto faster = FasterRivals(executor, refine);
  if (IsLostDevice(faster.status())) return faster.status();
  if (faster.ok()) {
    v1::ItemResult result = Result(0, OkStatus());
    for (const KernelChoice& choice : *faster) ToProto(choice, result.add_kernels());
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
