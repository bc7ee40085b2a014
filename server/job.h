// A job inside the coordinator: plain data, the counterpart of the messages of optimizer.proto
// (job_wire.cc converts). The numbers of JobState are those of the protocol. Plain data and pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "graph/onnx/model_facts.h"
#include "plan/measurement.h"
#include "plan/policy.h"
#include "server/bound_shape.h"

namespace ag {

enum class JobState : uint8_t {
  kQueued = 1,
  kImporting = 2,
  kSearching = 3,
  kConfirming = 4,
  kSucceeded = 5,
  kFailed = 6,
  kCancelled = 7,
};
std::string_view JobStateName(JobState state);  // "QUEUED", ...
StatusOr<JobState> ParseJobState(std::string_view name);
inline bool IsTerminal(JobState state) { return state >= JobState::kSucceeded; }

// A request as it was accepted: defaults are filled in, the device is named.
struct JobRequest {
  std::string request_id;
  Digest model;
  std::string model_name;
  std::string device;
  std::vector<BoundShape> shapes;  // Sorted by input.
  Policy policy;
  int rounds = 0, expansions = 0, graphs = 0, candidates = 0;  // As in SearchLimits.
  double time_seconds = 0;
  double alpha = 0;
  double beta = 0;
  int streams_max = 0;
  uint64_t seed = 0;
  std::vector<std::string> disabled_rules;  // Sorted.
  bool skip_model_cache = false;
  bool skip_group_cache = false;
  bool only_cached = false;          // kNotFound instead of a search.
  std::string target = "device";     // "portable": only what makes ONNX Runtime faster, no plan.
  bool keep_bytes = false;           // Hand out the input's own bytes when no rewrite wins.
  std::string onnxruntime = "auto";  // Whether it is the baseline: "auto", "require", "off".
};

// Returns a canonical text of all that the caller fixes and the answer depends on: the request
// without request_id, model_name and the skip flags.
std::string AnswerText(const JobRequest& request);

// Returns the digest that two requests with one request_id must share.
Digest BodyDigest(const JobRequest& request);

struct JobProgress {
  std::string stage;
  int round = 0;
  int graphs = 0;
  int candidates = 0;
  double best_speedup = 1;
  int groups_measured = 0;
  int cache_hits = 0;
  double fraction = 0;         // Never decreases.
  std::string waits_for = {};  // "the measuring lock, held by process 123"; empty: nothing.
  double elapsed_seconds = 0;  // Since the job began to run.
};

struct RewriteTotal {
  std::string rule;
  int count = 0;
  double gain_ns = 0;
};

struct CacheUse {
  int hits = 0;
  int misses = 0;
  bool model_hit = false;
};

// One rule that was tried in ONNX Runtime (server/portable.h).
struct PortableStep {
  std::string rule;
  int wanted = 0;
  int applied = 0;  // 0: it matched nowhere or is unknown here; nothing was timed.
  bool kept = false;
  std::string reason;          // "FASTER", "NO_GAIN_FOUND", "its places are gone", ...
  std::optional<Ratio> ratio;  // Speed over the best graph before this step.
};

inline constexpr std::string_view kFaster = "FASTER";
inline constexpr std::string_view kNoGainFound = "NO_GAIN_FOUND";
inline constexpr std::string_view kNotMeasured = "NOT_MEASURED";

// True for a certain gain of more than 1 %; a smaller gain does not count.
inline bool IsFaster(const Ratio& ratio) { return ratio.low > 1.01; }

// The result of a job; optimizer.proto's Result describes each field.
struct JobResult {
  std::string verdict{kNotMeasured};
  std::string device;
  Environment environment;
  std::string output_kind = "INPUT";
  std::string baseline;
  std::string output_runtime;
  Latency input_latency;
  Latency output_latency;
  Latency eager_latency;
  Ratio speedup;
  std::optional<Ratio> over_onnxruntime, over_untuned, over_tuned_input, fresh_session;
  std::vector<OutputError> errors;
  std::vector<RewriteTotal> rewrites;
  std::vector<RewriteTotal> clean_up;
  std::vector<PortableStep> portable;
  int groups = 0;
  int streams = 0;
  ModelFacts input_facts, output_facts;
  std::string onnxruntime;  // ONNX Runtime beside the worker; part of the answer's key.
  std::string search;
  std::string stop_reason;
  double seconds = 0;
  CacheUse cache;
  Digest output;
  int64_t output_bytes = 0;
  Digest report;
  bool simulated = false;
  int rounds = 0, expansions = 0, graphs = 0, candidates = 0;
  int groups_failed = 0;
  // Other processes used the processors during much of the measuring. Neither stored nor sent;
  // `warnings` tells it to people.
  bool busy = false;
  std::vector<std::string> warnings;
  double estimate_ns = 0;
};

struct Job {
  int64_t id = 0;
  JobState state = JobState::kQueued;
  JobProgress progress;
  std::optional<JobResult> result;
  Status error;
  JobRequest request;
  int64_t created_unix_seconds = 0;
  int64_t finished_unix_seconds = 0;
  uint64_t version = 1;
  int resumed = 0;

  std::string name() const;  // "jobs/<id>"
};
StatusOr<int64_t> ParseJobName(std::string_view name);  // kNotFound: not a job's name.

}  // namespace ag
