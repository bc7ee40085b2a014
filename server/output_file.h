// Files that may be handed out: a rewritten graph exported and read back, or the input's own bytes
// with a plan behind them. Each carries the plan of the graph as a session reads it, and is
// compared with the model as it came on every output before it is handed out.
#pragma once

#include <string>
#include <vector>

#include "graph/onnx/jail.h"
#include "search/search.h"
#include "server/export_child.h"
#include "server/pool_measurer.h"

namespace ag {

// What all files of one job have in common.
struct OutputSetting {
  const ImportedModel* model = nullptr;  // As it came.
  Digest model_digest;                   // Of its bytes.
  Graph runnable;                        // The model without its opaque nodes; else its graph.
  Graph input;                           // `runnable` cleaned up: what was searched.
  Plan eager_plan;                       // Of `input`.
  DeviceSpec spec;
  Environment environment;
  Policy policy;
  ImportOptions import;
  JailOptions jail;
  ExportChildOptions child;
  std::string blob_root;
  std::string work_dir;  // Files that live while the stage lasts.
  std::string plan_key;  // Under which the plan stands in the metadata.
  uint64_t seed = 1;
  bool has_opaque() const { return runnable.digest() != model->graph.digest(); }
};

// A file in the blob folder.
struct OutputFile {
  std::string refusal;  // Why it is not to be handed out; empty: it may be.
  Digest digest;
  int64_t bytes = 0;
  bool rewritten = false;  // Its graph is another than the input's.
  bool carries_plan = false;
  Graph graph;  // As a session runs the file, and the plan of it.
  Plan plan;
  std::vector<OutputError> errors;  // Set by CheckOutputFile.
  std::vector<std::string> warnings;
};

// Both make a file, not yet compared. Errors are of the world (worker lost, disk full, cancelled);
// that the file is no good is a refusal.
//
// Exports `graph` (of `setting.input`'s interface; opaque nodes are put back around it). With a
// `plan` of it, plans what was read back and writes the plan behind the export; without, or when
// the model has opaque nodes, which no runtime of ours runs, no plan goes with it.
StatusOr<OutputFile> MakeRewrittenFile(const OutputSetting& setting, const Graph& graph,
                                       const Plan* plan, PoolMeasurer& measurer, BlobDir& blobs);
// Writes the input's bytes with a plan of `setting.input` behind them; an entry of the same key
// that they hold is replaced.
StatusOr<OutputFile> AddPlanToInput(const OutputSetting& setting, const Plan& plan,
                                    PoolMeasurer& measurer, BlobDir& blobs);

// Compares the file's outputs with those of the model as it came: ungrouped on the device, where it
// can run that, and on the reference kernels; of a model with opaque nodes, which nothing here
// runs, in ONNX Runtime. What differs beyond the policy's tolerance is a refusal.
Status CheckOutputFile(const OutputSetting& setting, PoolMeasurer& measurer, OutputFile* file);

}  // namespace ag
