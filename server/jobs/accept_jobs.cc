// How Jobs accepts requests, and finds the answers and the running jobs that they repeat.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/reason.h"
#include "server/jobs/job_row.h"
#include "server/jobs/jobs.h"

namespace ag {

// Returns the key of an answer. It contains the version of ONNX Runtime, since the answer depends
// on what the output was compared with, and the tenant, since an answer has the model in it.
std::string Jobs::AnswerKey(const v1::OptimizeRequest& request, const Environment& environment,
                            const std::string& onnxruntime, const std::string& tenant) const {
  return fmt::format("{}environment={}\nonnxruntime={}\nrules={}\n{}", AnswerText(request),
                     environment, onnxruntime, options_.rules_digest,
                     tenant.empty() ? "" : fmt::format("tenant={}\n", tenant));
}

// Returns the keys under which an answer may be remembered, one for each environment where ONNX
// Runtime is as the request asks; where it is nowhere, the first reason.
StatusOr<std::vector<std::string>> Jobs::AnswerKeys(const v1::OptimizeRequest& request,
                                                    const std::vector<DeviceOffer>& offers,
                                                    const std::string& tenant) const {
  std::vector<std::string> keys;
  Status first;
  for (const DeviceOffer& offer : offers) {
    const auto onnxruntime = OnnxRuntimeFor(request, offer);
    if (onnxruntime.ok()) {
      keys.push_back(AnswerKey(request, offer.environment, *onnxruntime, tenant));
    } else if (first.ok()) {
      first = onnxruntime.status();
    }
  }
  if (keys.empty()) return first;
  return keys;
}

StatusOr<std::optional<Job>> Jobs::Repeated(const v1::OptimizeRequest& request, const Digest& body,
                                            const std::string& tenant) {
  if (request.request_id().empty()) return std::optional<Job>();
  AG_LET(const auto known, stores_.jobs->FindRequestId(StoredId(tenant, request.request_id())));
  if (!known.has_value()) return std::optional<Job>();
  if (known->body_digest != body.Hex()) {
    return Because(Reason::kRequestIdReused,
                   Err(StatusCode::kInvalidArgument,
                       "request_id {} was used before with another request", request.request_id()));
  }
  AG_LET(Job job, Get(known->job));
  return std::optional<Job>(std::move(job));
}

bool Jobs::HasBlob(const std::string& digest) const {
  const StatusOr<Digest> parsed = ParseDigest(digest);
  return digest.empty() || (parsed.ok() && stores_.blobs->Has(*parsed));
}

// Returns a terminal job when the answer is known and its bytes are still there.
StatusOr<std::optional<Job>> Jobs::Remembered(const v1::OptimizeRequest& request,
                                              const std::string& key, const std::string& body,
                                              const std::string& tenant) {
  const auto answer = stores_.cache->FindModel(key);
  if (!answer.has_value()) return std::optional<Job>();
  auto result = DecodeStored<v1::Result>(answer->result, "stored answer");
  if (!result.ok() || !HasBlob(result->output_digest()) || !HasBlob(result->report_digest())) {
    LogWarn("the answer for model {} is known, but not its bytes: searched again",
            ModelOf(request).Short());
    return std::optional<Job>();
  }
  Job job;
  job.request = request;
  job.client = request.client();
  job.tenant = tenant;
  job.request.clear_client();
  job.state = v1::Job::SUCCEEDED;
  job.result = *std::move(result);
  job.result->clear_cache();
  job.result->mutable_cache()->set_model_hit(true);
  job.result->clear_seconds();
  job.progress.set_fraction(1);
  job.finished_unix_seconds = clock_.UnixSeconds();
  if (request.request_id().empty() || request.validate_only()) {
    return std::optional<Job>(std::move(job));
  }
  StatusOr<Job> inserted = Insert(job, Sha256(key).Hex(), body);
  if (inserted.ok()) return std::optional<Job>(*std::move(inserted));
  if (!IsHostFault(inserted.status())) return inserted.status();
  LogWarn("the answer for model {} is given without a job: {}", ModelOf(request).Short(),
          Message(inserted.status()));
  return std::optional<Job>(std::move(job));
}

StatusOr<Job> Jobs::Insert(Job job, const std::string& dedupe_key, const std::string& body) {
  job.created_unix_seconds = clock_.UnixSeconds();
  JobRow row;
  row.request = job.request.SerializeAsString();
  row.created_unix_seconds = job.created_unix_seconds;
  row.dedupe_key = dedupe_key;
  row = ToRow(job, std::move(row));
  if (job.result.has_value()) AG_TRY(OwnResult(job.tenant, *job.result));
  const std::string request_id = StoredId(job.tenant, job.request.request_id());
  AG_LET(job.id, stores_.jobs->Insert(row, request_id, body));
  row.id = job.id;
  if (!IsTerminal(job.state)) {
    auto live = std::make_shared<Live>();
    live->job = job;
    live->row = std::move(row);
    MutexLock lock(mutex_);
    live_[job.id] = std::move(live);
    changed_.NotifyAll();
  }
  const LogScope scope({{"job", job.name()}, {"trace_id", TraceIdOf(job.request)}});
  LogInfo("{}: {} {} on {}", job.name(), v1::Job::State_Name(job.state),
          ModelOf(job.request).Short(), job.request.device());
  return job;
}

Status Jobs::OwnBlob(const Tenant& tenant, const Digest& digest) {
  return tenant.name.empty() ? OkStatus() : stores_.jobs->OwnBlob(tenant.name, digest.Hex());
}

StatusOr<bool> Jobs::MaySee(const Tenant& tenant, const Digest& digest) const {
  if (tenant.sees_all) return true;
  return stores_.jobs->OwnsBlob(tenant.name, digest.Hex());
}

// Makes what a job has made its tenant's.
Status Jobs::OwnResult(const std::string& tenant, const v1::Result& result) {
  for (const std::string& hex : {result.output_digest(), result.report_digest()}) {
    if (hex.empty()) continue;
    AG_LET(const Digest digest, ParseDigest(hex));
    AG_TRY(OwnBlob({.name = tenant}, digest));
  }
  return OkStatus();
}

// The blobs that a job needs. One of another tenant is not here for this one, who may send it.
Status Jobs::CheckBlobs(const v1::OptimizeRequest& request, const Tenant& tenant) const {
  const auto check = [&](const std::string& noun, const Digest& digest) -> Status {
    AG_LET(const bool may_see, MaySee(tenant, digest));
    if (may_see && stores_.blobs->Has(digest)) return OkStatus();
    return Because(Reason::kBlobMissing,
                   Err(StatusCode::kFailedPrecondition,
                       "{} {} is not here; upload it and call again", noun, digest.Hex()));
  };
  AG_TRY(check("model", ModelOf(request)));
  for (const v1::InputSet& set : request.inputs()) {
    AG_LET(const Digest digest, ParseDigest(set.digest()));
    AG_TRY(check(fmt::format("inputs {}:", set.name()), digest));
  }
  return OkStatus();
}

StatusOr<Job> Jobs::Accept(v1::OptimizeRequest request, const Tenant& tenant) {
  MutexLock accept(accept_mutex_);
  if (stopping()) return Stopping();
  const Digest body = BodyDigest(request);
  AG_LET(std::optional<Job> known, Repeated(request, body, tenant.name));
  if (known.has_value()) return *std::move(known);
  if (options_.validate) AG_TRY(options_.validate(request));
  if (!request.only_cached()) AG_TRY(CheckBlobs(request, tenant));
  AG_LET(const auto offers, options_.find_offers(request.device()));
  request.set_device(offers[0].device);
  AG_LET(const auto keys, AnswerKeys(request, offers, tenant.name));
  for (const std::string& key : keys) {
    if (request.skip_model_cache()) break;
    AG_LET(known, Remembered(request, key, body.Hex(), tenant.name));
    if (known.has_value()) return *std::move(known);
  }
  if (request.validate_only()) {
    Job checked;
    checked.state = v1::Job::STATE_UNSPECIFIED;
    checked.waiters = 0;
    checked.request = std::move(request);
    return checked;
  }
  if (request.only_cached()) {
    return Because(Reason::kAnswerMissing,
                   Err(StatusCode::kNotFound, "no answer for model {} on {} is remembered",
                       ModelOf(request).Short(), request.device()));
  }
  // Without an environment: the job may be planned for any of the device's.
  const std::string dedupe_key =
      Sha256(fmt::format("{}skip={}{}\n", AnswerKey(request, "", "", tenant.name),
                         int{request.skip_model_cache()}, int{request.skip_group_cache()}))
          .Hex();
  AG_LET(const auto in_flight, stores_.jobs->FindUnfinished(dedupe_key));
  if (in_flight.has_value()) {
    const std::string request_id = StoredId(tenant.name, request.request_id());
    AG_LET(const bool joined, Join(in_flight->id, request_id, body.Hex()));
    if (joined) return Get(in_flight->id);
  }
  AG_TRY(use_->Check(tenant.name));
  Job job;
  job.client = request.client();
  job.tenant = tenant.name;
  request.clear_client();
  job.request = std::move(request);
  return Insert(std::move(job), dedupe_key, body.Hex());
}

StatusOr<bool> Jobs::Join(int64_t id, const std::string& request_id, const std::string& body) {
  LivePtr live;
  {
    MutexLock lock(mutex_);
    if (const auto found = live_.find(id); found != live_.end()) live = found->second;
  }
  if (live == nullptr) return false;
  MutexLock one_change(live->change);
  {
    MutexLock lock(mutex_);
    if (live->cancel || IsTerminal(live->job.state)) return false;
  }
  AG_TRY(stores_.jobs->Join(id, request_id, body));
  MutexLock lock(mutex_);
  ++live->job.waiters;
  ++live->job.version;
  changed_.NotifyAll();
  return true;
}

StatusOr<bool> Jobs::Leave(Live& live, const std::string& request_id) {
  int64_t id = 0;
  int waiters = 0;
  std::string stored_id;
  {
    MutexLock lock(mutex_);
    id = live.job.id;
    waiters = live.job.waiters;
    stored_id = StoredId(live.job.tenant, request_id);
  }
  if (!request_id.empty()) {
    AG_LET(const auto known, stores_.jobs->FindRequestId(stored_id));
    if (!known.has_value() || known->job != id) {
      return Err(StatusCode::kInvalidArgument, "request_id {} is not of jobs/{}", request_id, id);
    }
    if (known->left) return waiters > 0;
  }
  if (waiters <= 1) return false;
  AG_TRY(stores_.jobs->Leave(id, stored_id));
  MutexLock lock(mutex_);
  --live.job.waiters;
  ++live.job.version;
  changed_.NotifyAll();
  LogInfo("jobs/{}: a request was taken off, {} wait for it", id, live.job.waiters);
  return true;
}

}  // namespace ag
