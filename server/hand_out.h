// The last stage of a job: of the plans that the search found, the file that is handed out. Every
// candidate is a file first; it is timed as one against what the user runs today, compared on every
// output, and what fails gives way to the next.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rules/rule_set.h"
#include "server/baseline.h"
#include "server/output_file.h"

namespace ag {

struct HandOutRequest {
  OutputSetting setting;
  const SearchResult* found = nullptr;
  const RuleSet* rules = nullptr;
  const JobRequest* job = nullptr;
  std::string onnxruntime;             // Its version beside the worker; empty: it is left out.
  double seconds = 10;                 // Of sampling, for one comparison of files.
  std::function<bool()> is_time_over;  // May be null. Once true, what is optional is left out.
  std::function<bool()> stopping;      // May be null. The server stops: nothing is handed out.
};

struct HandedOut {
  OutputFile file;  // Without a digest: the input's own bytes.
  BaselineResult baseline;
  std::optional<Ratio> over_tuned_input;
  std::vector<AppliedRewrite> rewrites;
  std::vector<PortableStep> portable;
  std::vector<std::string> warnings;  // Why what was better on paper was not handed out.
  double estimate_ns = 0;             // Of the file's plan, by the search; 0: none.
};

// Chooses. Of several files the order is: the winner of the search and its runners-up, the input
// with the best plan for it, the input's own bytes. When none of these is FASTER and ONNX Runtime
// is there (always under target "portable", always for a model with opaque nodes), what makes ONNX
// Runtime faster is looked for and taken when it is FASTER. Errors are of the world.
StatusOr<HandedOut> ChooseOutput(const HandOutRequest& request, PoolMeasurer& measurer,
                                 BlobDir& blobs);

}  // namespace ag
