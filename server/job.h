// A job as the coordinator thinks of it: plain data, as optimizer.proto says it in messages
// (job_wire.cc converts). The numbers of JobState are the protocol's.
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

// As accepted: defaults are filled in, the device is named.
struct JobRequest {
  std::string request_id;
  Digest model;
  std::string model_name;
  std::string device;
  std::vector<BoundShape> shapes;  // Sorted by input.
  Policy policy;
  int rounds = 0, expansions = 0, graphs = 0, candidates = 0;  // Per SearchLimits.
  double time_seconds = 0;
  double alpha = 0;
  double beta = 0;
  int streams_max = 0;
  uint64_t seed = 0;
  std::vector<std::string> disabled_rules;  // Sorted.
  bool skip_model_cache = false;
  bool skip_group_cache = false;
  bool only_cached = false;          // kNotFound in the place of a search.
  std::string target = "device";     // "portable": only what makes ONNX Runtime faster, no plan.
  bool keep_bytes = false;           // The input's own bytes when no rewrite wins.
  std::string onnxruntime = "auto";  // As the baseline: "auto", "require", "off".
};

// Canonical text of all that the answer depends on and the caller fixes: without request_id,
// model_name and the skip flags.
std::string AnswerText(const JobRequest& request);

// What makes two requests with one request_id the same.
Digest BodyDigest(const JobRequest& request);

struct JobProgress {
  std::string stage;
  int round = 0;
  int graphs = 0;
  int candidates = 0;
  double best_speedup = 1;
  int groups_measured = 0;
  int cache_hits = 0;
  double fraction = 0;         // Never falls.
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
  int applied = 0;  // 0: it had no place, or no such rule is known here; then there is no timing.
  bool kept = false;
  std::string reason;          // "FASTER", "NO_GAIN_FOUND", "its places are gone", ...
  std::optional<Ratio> ratio;  // Over the best before it.
};

inline constexpr std::string_view kFaster = "FASTER";
inline constexpr std::string_view kNoGainFound = "NO_GAIN_FOUND";
inline constexpr std::string_view kNotMeasured = "NOT_MEASURED";

// Gains below 1 % are none, however sure.
inline bool IsFaster(const Ratio& ratio) { return ratio.low > 1.01; }

// optimizer.proto's Result says what each field is.
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
  std::string onnxruntime;  // Its version beside the worker; part of the answer's key.
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
  // Others used the processors while much of it was measured. Known to the run alone: neither
  // stored nor sent; `warnings` says it to people.
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
