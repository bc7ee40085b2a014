// `optimize --target portable`: a model for stock runtimes. Of what the job found only those
// rewrites stay that make ONNX Runtime faster here; the file carries no plan.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/ort.h"
#include "client/cli/portable.h"
#include "graph/onnx/onnx.h"

namespace ag {

struct PortableAnswer {
  std::vector<PortableStep> steps;
  // The input's own bytes: nothing was FASTER, or (`refusal`) what was cannot be handed out.
  bool is_input = true;
  std::string refusal;
  OrtTimes times;                   // The model as it came against what is written.
  std::vector<OutputError> errors;  // Of what is written; empty for the input's own bytes.
  std::string output_sha256;
  int64_t output_bytes = 0;
};

class PortableTarget {
 public:
  // Before any work: is there an ONNX Runtime, does it take the model, and are all operators of the
  // standard domain and known here? kUnavailable: no ONNX Runtime.
  static StatusOr<std::unique_ptr<PortableTarget>> Open(const OptimizeFlags& flags);

  // A file that lives as long as this: where the job's output is to be put for Run.
  std::string winner_path() const { return PathOf("winner.onnx"); }

  // Tries the rewrites of a job's result and the file it handed out ("": none), verifies what is
  // left, times it once more and writes it to flags.output. Progress goes to standard error.
  // kCancelled: a stop signal came; then nothing is written.
  StatusOr<PortableAnswer> Run(const Context& context, const std::vector<TrailStep>& trail,
                               const std::string& winner);

 private:
  PortableTarget(const OptimizeFlags& flags, TempDir folder)
      : flags_(flags), folder_(std::move(folder)) {}
  Status Import();
  StatusOr<ImportOptions> ToImport() const;
  StatusOr<Graph> ReadWinner(const std::string& path);
  std::string PathOf(const char* name) const { return folder_.path() + "/" + name; }
  OrtRequest ToTime(std::vector<std::string> models) const;
  StatusOr<PlanTiming> Try(const Graph* best, const Graph& candidate);
  // Why what was found is not to be handed out; empty: it is. Fills in errors and times.
  StatusOr<std::string> Refusal(PortableAnswer* answer) const;
  Status Write(PortableAnswer* answer) const;

  const OptimizeFlags flags_;
  const TempDir folder_;
  std::shared_ptr<BlobDir> blobs_;
  ImportedModel model_;
  RuleSet rules_;
  Graph input_;
};

nlohmann::ordered_json PortableJson(const PortableAnswer& answer);

// Rows of the result table, as ResultTable's.
std::string PortableRows(const PortableAnswer& answer);

}  // namespace ag
