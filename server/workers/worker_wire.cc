#include "server/workers/worker_wire.h"

#include "autograph/v1/cache.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/printable.h"
#include "plan/fusion/pair_problem.h"
#include "plan/spec/device_spec.h"
#include "wire/measurement_wire.h"

namespace ag {

namespace {

constexpr size_t kReasonBytesMax = 3000;
constexpr size_t kVersionBytesMax = 100;
constexpr double kUnixSecondsMax = 1e12;

constexpr size_t kIdBytesMax = 300, kDeviceBytesMax = 1000, kEnvironmentBytesMax = 10'000;
constexpr size_t kSpecBytesMax = size_t{256} << 10;
constexpr int kResultsMax = 10'000;  // A batch has 256 at most, and a few may be on their way.

Status CheckText(const char* field, const std::string& text, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Err(StatusCode::kInvalidArgument, "{}: {} bytes, at most {}", field, text.size(),
               bytes_max);
  }
  return CheckPrintable(field, text);
}

// What is kept of a worker, logged and listed.
Status CheckTexts(const v1::WorkerState& p) {
  AG_TRY(CheckText("worker_id", p.worker_id(), kIdBytesMax));
  AG_TRY(CheckText("device", p.device(), kDeviceBytesMax));
  AG_TRY(CheckText("environment", p.environment(), kEnvironmentBytesMax));
  AG_TRY(CheckText("attempt", p.attempt(), kIdBytesMax));
  return OkStatus();
}

// The coordinator plans with the first offer of a device: one that does not parse fails the jobs of
// others.
Status CheckSpec(const std::string& spec) {
  if (spec.size() > kSpecBytesMax) {
    return Err(StatusCode::kInvalidArgument, "device_spec: {} bytes, at most {}", spec.size(),
               kSpecBytesMax);
  }
  if (spec.empty()) return OkStatus();  // Unchanged.
  const Status parsed = ParseDeviceSpec(spec).status();
  if (parsed.ok()) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "device_spec: {}", Printable(Message(parsed)));
}

WorkerResult ResultOf(const v1::ItemResult& p) {
  return {p.sequence(), p.epoch(), p.attempt(), EntryResultOf(p)};
}

}  // namespace

EntryResult EntryResultOf(const v1::ItemResult& p) {
  EntryResult r;
  r.index = p.index();
  r.status = StatusFromWire(p.code(), p.message());
  r.measurement = FromProto(p.measurement());
  r.timing = FromProto(p.timing());
  r.timing.status = r.status;
  for (const v1::OutputError& error : p.errors()) r.errors.push_back(FromProto(error));
  for (const v1::ComparedInputs& compared : p.compared()) {
    r.compared.push_back(FromProto(compared));
  }
  r.file_times = FromProto(p.file_times());
  for (const v1::KernelChoice& choice : p.kernels()) r.kernels.push_back(FromProto(choice));
  if (p.shown().differs()) r.shown = p.shown();
  r.executor_died = p.executor_died();
  return r;
}

void ToProto(const EntryResult& r, v1::ItemResult* p) {
  p->set_index(r.index);
  p->set_code(static_cast<int>(r.status.code()));
  p->set_message(Message(r.status));
  ToProto(r.measurement, p->mutable_measurement());
  ToProto(r.timing, p->mutable_timing());
  for (const OutputError& error : r.errors) ToProto(error, p->add_errors());
  for (const ComparedInputs& compared : r.compared) ToProto(compared, p->add_compared());
  ToProto(r.file_times, p->mutable_file_times());
  for (const KernelChoice& choice : r.kernels) ToProto(choice, p->add_kernels());
  if (r.shown) *p->mutable_shown() = *r.shown;
  p->set_executor_died(r.executor_died);
}

StatusOr<WorkerReport> FromProto(const v1::WorkerState& p) {
  AG_TRY(CheckTexts(p));
  AG_TRY(CheckSpec(p.device_spec()));
  if (p.results_size() > kResultsMax) {
    return Err(StatusCode::kInvalidArgument, "results: {}, at most {}", p.results_size(),
               kResultsMax);
  }
  WorkerReport r;
  r.worker_id = p.worker_id();
  r.device = p.device();
  r.device_spec = p.device_spec();
  r.environment = p.environment();
  r.health =
      p.health() == v1::WorkerState::HEALTH_UNSPECIFIED || p.health() > v1::WorkerState::DRAINING
          ? WorkerHealth::kNotServing
          : static_cast<WorkerHealth>(p.health());
  r.reason = Printable(p.reason().substr(0, kReasonBytesMax));
  r.epoch = p.epoch();
  r.attempt = p.attempt();
  for (const v1::ItemResult& result : p.results()) r.results.push_back(ResultOf(result));
  r.version = Printable(p.version().substr(0, kVersionBytesMax));
  r.executor_restarts = p.executor_restarts();
  r.simulated = p.simulated();
  r.onnxruntime = Printable(p.onnxruntime().substr(0, kVersionBytesMax));
  r.waits_for = Printable(p.waits_for().substr(0, kReasonBytesMax));
  return r;
}

void ToProto(const Desired& desired, v1::DesiredState* p) {
  p->set_epoch(desired.epoch);
  p->set_drain(desired.drain);
  for (const uint64_t sequence : desired.acknowledged) p->add_acknowledged(sequence);
  if (!desired.lease.has_value()) return;
  if (desired.lease->work != nullptr) *p->mutable_work() = *desired.lease->work;
  p->mutable_work()->set_attempt(desired.lease->attempt);
}

void ToProto(const CacheRow& row, v1::CacheRecord* p) {
  p->set_key(GroupKey(row.problem, row.environment).Hex());
  p->set_problem(row.problem);
  p->set_environment(row.environment);
  ToProto(row.measurement, p->mutable_measurement());
  p->set_measured_unix_seconds(static_cast<double>(row.measured_unix_seconds));
  p->set_summary(row.summary);
  p->set_worker(row.worker);
  p->set_import_id(row.import);
}

StatusOr<CacheRow> FromProto(const v1::CacheRecord& p) {
  CacheRow row;
  row.problem = p.problem();
  row.environment = p.environment();
  row.measurement = FromProto(p.measurement());
  // An importer may send any double, NaN too, and the cast of what does not fit is undefined.
  if (!(p.measured_unix_seconds() >= 0 && p.measured_unix_seconds() <= kUnixSecondsMax)) {
    return Err(StatusCode::kInvalidArgument, "measured_unix_seconds: {} is no time",
               p.measured_unix_seconds());
  }
  row.measured_unix_seconds = static_cast<int64_t>(p.measured_unix_seconds());
  row.summary = p.summary();
  row.worker = p.worker();
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
