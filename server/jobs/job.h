// A job inside the coordinator: the messages that it stores and sends (docs/adr/001). Plain data
// and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "autograph/v1/optimizer.pb.h"
#include "base/digest.h"
#include "plan/measurement.h"
#include "plan/spec/policy.h"
#include "server/workers/dispatcher.h"

namespace ag {

namespace v1 = autograph::v1;

inline bool IsTerminal(v1::Job::State state) { return state >= v1::Job::SUCCEEDED; }

// Returns the request with defaults filled in and lists sorted. kInvalidArgument names the field
// that is out of range.
StatusOr<v1::OptimizeRequest> AcceptedRequest(v1::OptimizeRequest request);

// These take an accepted request.
Digest ModelOf(const v1::OptimizeRequest& request);
Policy PolicyOf(const v1::OptimizeRequest& request);
inline bool IsPortable(const v1::OptimizeRequest& request) {
  return request.target() == v1::OptimizeRequest::PORTABLE;
}

// Returns a canonical text of all that the caller fixes and the answer depends on: the request as
// JSON without request_id, model_name, client and what is said of caches. A new field is part of
// it.
std::string AnswerText(v1::OptimizeRequest request);

std::string TraceIdOf(const v1::OptimizeRequest& request);  // "": it has none.

// Returns the digest that two requests with one request_id must share.
Digest BodyDigest(v1::OptimizeRequest request);

// True for a certain gain of more than 1 %; a smaller gain does not count.
inline bool IsFaster(const Ratio& ratio) { return ratio.low > 1.01; }

struct Job {
  Job() { progress.set_best_speedup(1); }

  int64_t id = 0;
  v1::Job::State state = v1::Job::QUEUED;
  v1::Progress progress;
  std::optional<v1::Result> result;
  Status error;
  v1::OptimizeRequest request;  // As accepted, without the client.
  std::string client;           // Of the first request.
  int waiters = 1;              // Requests that wait for it; 0: it was cancelled.
  std::string tenant;           // Whose it is; "": made without a token.
  int64_t created_unix_seconds = 0;
  int64_t finished_unix_seconds = 0;
  uint64_t version = 1;
  int resumed = 0;            // Starts of a coordinator that took it up again,
  int crashes = 0;            // and those of them after a coordinator that ended while the job ran.
  double device_seconds = 0;  // That workers have spent on it.
  // What PublishBest made last, or why it made nothing. Not stored.
  std::optional<v1::Result> best_so_far;
  Status best_error;
  uint64_t best_version = 0;  // Grows with each of them.

  std::string name() const;  // "jobs/<id>"; REQUIRES: it is stored.
};
StatusOr<int64_t> ParseJobName(std::string_view name);  // kNotFound: not a job's name.

void ToProto(const Job& job, v1::Job* proto);
// The same without what may be long: the request's lists, and of the result all but its figures.
void ToSummary(const Job& job, v1::Job* proto);
void ClearLists(v1::Result* result);

// The version of ONNX Runtime that a job compares with: the one beside the worker, on `cpu` devices
// alone, since times on this machine's cores say nothing beside another device; empty: none. A
// portable job compares files in ONNX Runtime only, whatever its device. kUnavailable: the job
// needs one and there is none; kInvalidArgument: it requires one beside another device than `cpu`.
StatusOr<std::string> OnnxRuntimeFor(const v1::OptimizeRequest& request, const DeviceOffer& offer);

}  // namespace ag
