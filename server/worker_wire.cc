#include "server/worker_wire.h"

#include "autograph/v1/cache.pb.h"
#include "autograph/v1/worker.pb.h"
#include "plan/fusion/pair_problem.h"
#include "wire/measurement_wire.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

constexpr size_t kReasonBytesMax = 3000;
constexpr size_t kVersionBytesMax = 100;

WorkerResult ResultOf(const v1::ItemResult& p) {
  WorkerResult r;
  r.sequence = p.sequence();
  r.epoch = p.epoch();
  r.attempt = p.attempt();
  r.entry.index = p.index();
  r.entry.status = StatusFromWire(p.code(), p.message());
  r.entry.measurement = FromProto(p.measurement());
  r.entry.timing = FromProto(p.timing());
  r.entry.timing.status = r.entry.status;
  for (const v1::OutputError& error : p.errors()) r.entry.errors.push_back(FromProto(error));
  r.entry.file_times = FromProto(p.file_times());
  for (const v1::KernelChoice& choice : p.kernels()) r.entry.kernels.push_back(FromProto(choice));
  r.entry.executor_died = p.executor_died();
  return r;
}

void ToProto(const CandidateWork& candidate, v1::Candidate* p) {
  p->set_graph(candidate.graph);
  p->set_plan(candidate.plan);
}

void ToProto(const FileSetWork& work, v1::FileSet* p) {
  for (const FileWork& file : work.files) {
    v1::FileToTime* to_time = p->add_files();
    to_time->set_digest(file.file.Hex());
    to_time->set_in_onnxruntime(file.in_onnxruntime);
    to_time->set_plan(file.plan);
  }
  *p->mutable_shapes() = work.shapes;
  p->set_policy(work.policy);
  p->set_seconds_max(work.seconds_max);
  p->set_blocks_max(work.blocks_max);
  p->set_compare_seeds(work.compare_seeds);
}

void ToProto(const WorkItem& work, v1::WorkItem* p) {
  p->set_time_max_seconds(work.time_max_seconds);
  p->set_end_within_seconds(work.end_within_seconds);
  if (const auto* groups = std::get_if<GroupBatchWork>(&work.body)) {
    for (const std::string& problem : groups->problems) p->mutable_groups()->add_problems(problem);
    p->mutable_groups()->set_policy(groups->policy);
  } else if (const auto* plans = std::get_if<PlanSetWork>(&work.body)) {
    for (const CandidateWork& candidate : plans->candidates) {
      ToProto(candidate, p->mutable_plans()->add_candidates());
    }
    p->mutable_plans()->set_policy(plans->policy);
    p->mutable_plans()->set_seed(plans->seed);
    p->mutable_plans()->set_blocks_max(plans->blocks_max);
  } else if (const auto* check = std::get_if<CheckWork>(&work.body)) {
    ToProto(check->reference, p->mutable_check()->mutable_reference());
    ToProto(check->candidate, p->mutable_check()->mutable_candidate());
    for (const uint64_t seed : check->seeds) p->mutable_check()->add_seeds(seed);
    p->mutable_check()->set_reference_kernels(check->reference_kernels);
    p->mutable_check()->set_tolerance(check->tolerance);
  } else if (const auto* files = std::get_if<FileSetWork>(&work.body)) {
    ToProto(*files, p->mutable_files());
  } else if (const auto* refine = std::get_if<RefineWork>(&work.body)) {
    ToProto(refine->candidate, p->mutable_refine()->mutable_candidate());
    for (const KernelChoice& rival : refine->rivals) {
      ToProto(rival, p->mutable_refine()->add_rivals());
    }
  }
}

}  // namespace

WorkerReport FromProto(const v1::WorkerState& p) {
  WorkerReport r;
  r.worker_id = p.worker_id();
  r.device = p.device();
  r.device_spec = p.device_spec();
  r.environment = p.environment();
  r.health =
      p.health() == v1::WorkerState::HEALTH_UNSPECIFIED || p.health() > v1::WorkerState::DRAINING
          ? WorkerHealth::kNotServing
          : static_cast<WorkerHealth>(p.health());
  r.reason = p.reason().substr(0, kReasonBytesMax);
  r.epoch = p.epoch();
  r.attempt = p.attempt();
  for (const v1::ItemResult& result : p.results()) r.results.push_back(ResultOf(result));
  r.version = p.version();
  r.executor_restarts = p.executor_restarts();
  r.simulated = p.simulated();
  r.onnxruntime = p.onnxruntime().substr(0, kVersionBytesMax);
  r.waits_for = p.waits_for().substr(0, kReasonBytesMax);
  return r;
}

void ToProto(const Desired& desired, v1::DesiredState* p) {
  p->set_epoch(desired.epoch);
  for (const uint64_t sequence : desired.acknowledged) p->add_acknowledged(sequence);
  if (!desired.lease.has_value()) return;
  p->mutable_work()->set_attempt(desired.lease->attempt);
  if (desired.lease->work != nullptr) ToProto(*desired.lease->work, p->mutable_work());
}

void ToProto(const CacheRow& row, v1::CacheRecord* p) {
  p->set_key(GroupKey(row.problem, row.environment).Hex());
  p->set_problem(row.problem);
  p->set_environment(row.environment);
  ToProto(row.measurement, p->mutable_measurement());
  p->set_measured_unix_seconds(static_cast<double>(row.measured_unix_seconds));
  p->set_summary(row.summary);
}

StatusOr<CacheRow> FromProto(const v1::CacheRecord& p) {
  CacheRow row;
  row.problem = p.problem();
  row.environment = p.environment();
  row.measurement = FromProto(p.measurement());
  row.measured_unix_seconds = static_cast<int64_t>(p.measured_unix_seconds());
  row.summary = p.summary();
  if (p.key() != GroupKey(row.problem, row.environment).Hex()) {
    return Err(StatusCode::kInvalidArgument, "the key {} is not that of problem and environment",
               p.key());
  }
  const Status problem = IsPairProblem(row.problem) ? DecodePairProblem(row.problem).status()
                                                    : DecodeGroupProblem(row.problem).status();
  if (!problem.ok()) return Err(StatusCode::kInvalidArgument, "problem: {}", Message(problem));
  AG_TRY(CheckMeasurement(row.measurement));
  return row;
}

}  // namespace ag
