// The last stage: a plan that won the finals is exported, read back, planned as read, timed against
// the input once more, and compared on every output. Only what passes all of that is handed out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/jail.h"
#include "search/search.h"
#include "server/export_child.h"
#include "server/pool_measurer.h"

namespace ag {

struct ConfirmRequest {
  const ImportedModel* model = nullptr;  // As it came.
  Graph runnable;                    // The model without its opaque nodes; else the model's graph.
  Graph input;                       // `runnable` cleaned up: what was searched.
  const FoundPlan* found = nullptr;  // Its verdict is FASTER.
  Plan input_plan;
  Plan eager_plan;
  DeviceSpec spec;
  Policy policy;
  ImportOptions import;
  JailOptions jail;
  ExportChildOptions child;
  std::string blob_root;
  std::string work_dir;  // Files that live while the stage lasts.
  std::string plan_key;  // Under which the plan stands in the metadata.
  uint64_t seed = 1;
};

struct Confirmed {
  std::string refusal;               // Why it is not handed out; empty: it is.
  Verdict verdict = Verdict::kSame;  // Of the bytes as read back.
  Digest output;
  int64_t output_bytes = 0;
  PlanTiming input_timing;
  PlanTiming timing;
  Plan plan;
  Graph graph;  // As a session runs what was read back: what `plan` is of.
  std::vector<OutputError> errors;
  std::vector<std::string> warnings;
};

// Errors are of the world (worker lost, disk full, cancelled); that the winner is no good is a
// refusal.
StatusOr<Confirmed> Confirm(const ConfirmRequest& request, PoolMeasurer& measurer, BlobDir& blobs);

}  // namespace ag
