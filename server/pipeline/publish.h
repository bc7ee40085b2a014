// The last stage of a job: it chooses the file that is published among the plans that the search
// found. Every candidate is written as a file first. The file is timed against what the user runs
// today and compared on every output; when a candidate fails, the next one is tried. One thread at
// a time for one measurer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "rules/language/rule_set.h"
#include "server/pipeline/baseline.h"
#include "server/pipeline/output_file.h"

namespace ag {

struct PublishRequest {
  OutputSetting setting;
  const SearchResult* found = nullptr;
  const RuleSet* rules = nullptr;
  const v1::OptimizeRequest* job = nullptr;
  std::string onnxruntime;  // The version of ONNX Runtime beside the worker; empty: it is left out.
  bool is_final = true;     // False: the search goes on.
  double seconds = 10;      // Sampling time of one comparison of files.
  // May be null. Optional steps are left out when nothing is left, or less than they take.
  std::function<Nanos()> time_left;
  std::function<bool()> stopping;  // May be null. The server stops: nothing is published.
  // May be null. Called when another file is timed or compared: "timing the winner".
  std::function<void(const std::string& stage)> on_stage;
};

struct Published {
  OutputFile file;  // Without a digest: the input's own bytes.
  BaselineResult baseline;
  std::optional<Ratio> over_tuned_input;
  std::vector<AppliedRewrite> rewrites;
  std::vector<v1::PortableStep> portable;
  std::vector<std::string> warnings;     // Why candidates with better estimates were not published.
  bool winner_refused = false;           // The best by the search was not published.
  std::vector<v1::WrongRewrite> wrong;   // Rules that changed results and were left out.
  std::vector<v1::ShapeSetResult> sets;  // The file at each of the request's shape sets.
  double estimate_ns = 0;                // The search's estimate of the file's plan; 0: none.
};

// Returns the file to publish. The order of candidates is: the winner of the search and its
// runners-up, the input with the best plan for it, the input's own bytes. When an output of one
// differs, the rule at fault is left out, and what is left of the candidate is tried next
// (server/pipeline/wrong_rewrites.h). When none of these is
// FASTER and ONNX Runtime is there, the rewrites that make ONNX Runtime faster are looked for, and
// their file is taken when it is FASTER; while the search goes on only under target "portable".
// Under target "portable" and for a model with opaque nodes,
// the winner, its runners-up and the input with a plan are not candidates. Errors come from outside
// the files: no worker, cancelled, disk full.
StatusOr<Published> ChooseOutput(const PublishRequest& request, PoolMeasurer& measurer,
                                 BlobDir& blobs);

}  // namespace ag
