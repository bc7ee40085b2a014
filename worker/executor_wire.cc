#include "worker/executor_wire.h"

#include <algorithm>
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

// Returns the digest of a set of inputs; nothing for an empty text.
StatusOr<std::optional<Digest>> SetOf(const std::string& hex) {
  if (hex.empty()) return std::optional<Digest>();
  AG_LET(const Digest digest, ParseDigest(hex));
  return std::optional<Digest>(digest);
}

Status RunPlans(Executor& executor, const v1::PlanSet& set, const Emit& emit) {
  std::vector<StatusOr<Candidate>> candidates;
  for (const v1::Candidate& candidate : set.candidates()) {
    candidates.push_back(FromProto(candidate));
  }
  const StatusOr<Policy> policy = ParsePolicy(set.policy());
  if (!policy.ok()) return emit(Result(-1, policy.status()));
  const StatusOr<std::optional<Digest>> inputs = SetOf(set.inputs());
  if (!inputs.ok()) return emit(Result(-1, inputs.status()));
  const StatusOr<std::vector<PlanTiming>> timings =
      executor.TimePlans(candidates, {.seed = set.seed(),
                                      .inputs = *inputs,
                                      .blocks_max = set.blocks_max(),
                                      .cold_cache = policy->cold_cache});
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

StatusOr<CheckInputs> FromWire(Executor& executor, const v1::CheckInputs& asked) {
  CheckInputs inputs{.seed = asked.seed(),
                     .name = asked.name(),
                     .reference_kernels = asked.reference_kernels(),
                     .optional = asked.optional()};
  if (!asked.digest().empty()) {
    AG_LET(const Digest digest, ParseDigest(asked.digest()));
    StatusOr<InputSet> set = executor.ReadSet(digest);
    AG_TRY(set, "inputs {}", asked.name());
    inputs.set = *std::move(set);
    return inputs;
  }
  const std::optional<InputKind> kind = ParseInputKind(asked.kind());
  if (!kind) {
    return Err(StatusCode::kUnimplemented, "inputs of a kind that this worker does not know: {}",
               asked.kind());
  }
  inputs.kind = *kind;
  return inputs;
}

StatusOr<CheckRequest> FromWire(Executor& executor, const v1::Check& check) {
  CheckRequest request;
  AG_LET(request.reference, FromProto(check.reference()));
  AG_LET(request.candidate, FromProto(check.candidate()));
  request.tolerance = check.tolerance();
  if (check.optional_seconds() > 0) {
    request.optional_max = Nanos(static_cast<int64_t>(check.optional_seconds() * 1e9));
  }
  for (const v1::CheckInputs& asked : check.inputs()) {
    AG_LET(CheckInputs inputs, FromWire(executor, asked));
    request.inputs.push_back(std::move(inputs));
  }
  if (check.inputs().empty()) {
    for (const uint64_t seed : check.seeds()) request.inputs.push_back({.seed = seed});
    if (!request.inputs.empty()) {
      request.inputs[0].reference_kernels = check.reference_kernels();
    }
  }
  return request;
}

StatusOr<CheckResult> ResultOf(Executor& executor, const v1::Check& check) {
  AG_LET(const CheckRequest request, FromWire(executor, check));
  return executor.Check(request);
}

Status RunCheck(Executor& executor, const v1::Check& check, const Emit& emit) {
  const StatusOr<CheckResult> checked = ResultOf(executor, check);
  if (IsLostDevice(checked.status())) return checked.status();
  v1::ItemResult result = Result(-1, checked.status());
  if (checked.ok()) {
    for (const OutputError& error : checked->errors) ToProto(error, result.add_errors());
    for (const ComparedInputs& inputs : checked->compared) ToProto(inputs, result.add_compared());
  }
  return emit(result);
}

int64_t BytesOf(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.bytes().size());
  return bytes;
}

void ToWire(const ShownDifference& shown, int64_t bytes_max, v1::ShownValues* values) {
  values->set_differs(true);
  values->set_compared(shown.compared);
  values->set_seed(shown.seed);
  values->set_on_device_only(shown.on_device_only);
  for (const OutputError& error : shown.errors) ToProto(error, values->add_errors());
  values->set_value_bytes(BytesOf(shown.inputs) + BytesOf(shown.expected) + BytesOf(shown.actual));
  if (values->value_bytes() > bytes_max) return;
  for (const Tensor& tensor : shown.inputs) values->add_inputs(std::string(tensor.bytes()));
  for (const Tensor& tensor : shown.expected) values->add_expected(std::string(tensor.bytes()));
  for (const Tensor& tensor : shown.actual) values->add_actual(std::string(tensor.bytes()));
}

StatusOr<std::optional<ShownDifference>> ShownOf(Executor& executor, const v1::Check& check) {
  AG_LET(const CheckRequest request, FromWire(executor, check));
  return executor.Show(request);
}

Status RunShow(Executor& executor, const v1::Show& show, const Emit& emit) {
  const auto shown = ShownOf(executor, show.check());
  if (IsLostDevice(shown.status())) return shown.status();
  if (shown.ok()) {
    v1::ItemResult result = Result(0, OkStatus());
    if (shown->has_value()) ToWire(**shown, show.bytes_max(), result.mutable_shown());
    AG_TRY(emit(result));
  }
  return emit(Result(-1, shown.status()));
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
  AG_LET(request.inputs, SetOf(set.inputs()));
  return request;
}

StatusOr<std::vector<OutputError>> CompareFiles(Executor& executor, const v1::FileSet& set,
                                                const FileSetRequest& request) {
  std::vector<Digest> sets;
  for (const std::string& hex : set.compare_inputs()) {
    AG_LET(const Digest digest, ParseDigest(hex));
    sets.push_back(digest);
  }
  return executor.CompareFileSet(request, sets, set.compare_seeds());
}

// `silence_max` is the longest silence of a file's process in seconds; 0: the default.
Status RunFiles(Executor& executor, const v1::FileSet& set, double silence_max, const Emit& emit) {
  StatusOr<FileSetRequest> request = FromWire(set);
  if (!request.ok()) return emit(Result(-1, request.status()));
  if (silence_max > 0) request->answer_max = Nanos(static_cast<int64_t>(silence_max * 1e9));
  v1::ItemResult result = Result(0, OkStatus());
  if (set.compare_seeds() > 0 || !set.compare_inputs().empty()) {
    const auto errors = CompareFiles(executor, set, *request);
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

Status HasKernels(Device& device, const v1::GroupKernelNames& group) {
  AG_LET(const GroupProblem problem, DecodeGroupProblem(group.problem()));
  AG_LET(const std::vector<std::string> names, device.Kernels(problem));
  for (const std::string& kernel : group.kernels()) {
    if (std::ranges::find(names, kernel) != names.end()) continue;
    return Err(StatusCode::kNotFound, "{}: no kernel {}", problem.pattern, kernel);
  }
  return OkStatus();
}

Status RunKernelCheck(Executor& executor, const v1::KernelCheck& check, const Emit& emit) {
  for (int i = 0; i < check.groups_size(); ++i) {
    const Status status = HasKernels(executor.device(), check.groups(i));
    if (IsLostDevice(status)) return status;
    AG_TRY(emit(Result(i, status)));
  }
  return emit(Result(-1, OkStatus()));
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
    case v1::WorkItem::kKernelCheck:
      return RunKernelCheck(executor, item.kernel_check(), send);
    case v1::WorkItem::kShow:
      return RunShow(executor, item.show(), send);
    case v1::WorkItem::kQualify:
      return send(Result(-1, executor.Qualify()));
    case v1::WorkItem::ITEM_NOT_SET:
      break;
  }
  return send(Result(
      -1, Err(StatusCode::kUnimplemented, "work item: of a kind that this worker does not know")));
}

}  // namespace ag
