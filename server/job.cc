#include "server/job.h"

#include "base/bytes.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr std::string_view kStateNames[] = {
    "STATE_UNSPECIFIED", "QUEUED",    "IMPORTING", "SEARCHING",
    "CONFIRMING",        "SUCCEEDED", "FAILED",    "CANCELLED"};

}  // namespace

std::string_view JobStateName(JobState state) { return kStateNames[static_cast<size_t>(state)]; }

StatusOr<JobState> ParseJobState(std::string_view name) {
  for (size_t i = 1; i < std::size(kStateNames); ++i) {
    if (kStateNames[i] == name) return static_cast<JobState>(i);
  }
  return Err(StatusCode::kDataLoss, "no job state is called {}", name);
}

std::string AnswerText(const JobRequest& r) {
  std::string text = fmt::format("model={}\ndevice={}\n", r.model.Hex(), r.device);
  for (const BoundShape& shape : r.shapes) {
    text += fmt::format("shape {}={}\n", shape.input, Join(shape.dims, "x"));
  }
  text += fmt::format("policy={}\nrounds={}\nexpansions={}\ngraphs={}\ncandidates={}\n",
                      r.policy.Text(), r.rounds, r.expansions, r.graphs, r.candidates);
  text += fmt::format("time_seconds={}\nalpha={}\nbeta={}\nstreams_max={}\nseed={}\n",
                      FormatDouble(r.time_seconds), FormatDouble(r.alpha), FormatDouble(r.beta),
                      r.streams_max, r.seed);
  for (const std::string& rule : r.disabled_rules) text += fmt::format("without {}\n", rule);
  text += fmt::format("target={}\nkeep_bytes={}\nonnxruntime={}\n", r.target, int{r.keep_bytes},
                      r.onnxruntime);
  return text;
}

Digest BodyDigest(const JobRequest& r) {
  ByteWriter writer;
  writer.String(AnswerText(r));
  writer.String(r.model_name);
  writer.U8(r.skip_model_cache);
  writer.U8(r.skip_group_cache);
  if (r.only_cached) writer.U8(1);  // Nothing when not set, so that stored digests stay the same.
  return Sha256(writer.bytes());
}

std::string Job::name() const { return fmt::format("jobs/{}", id); }

StatusOr<int64_t> ParseJobName(std::string_view name) {
  constexpr std::string_view kPrefix = "jobs/";
  if (name.starts_with(kPrefix)) {
    const auto id = ParseInt(name.substr(kPrefix.size()));
    if (id.ok() && *id > 0) return *id;
  }
  return Err(StatusCode::kNotFound, "no job {}", name);
}

}  // namespace ag
