// Files that may be published: a rewritten graph that was exported and read back, or the input's
// own bytes with a plan behind them. Each file carries the plan of the graph as a session reads it,
// and each is compared with the model on every output before it is published. One thread at a time
// for one measurer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/plan_metadata.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "graph/passes/cut_opaque.h"
#include "search/search.h"
#include "server/pipeline/check_inputs.h"
#include "server/pipeline/export_child.h"
#include "server/pipeline/pool_measurer.h"

namespace ag {

using ShapesByInput = std::map<std::string, Shape>;

// The model at one set of sizes of what it leaves open.
struct AtOtherSizes {
  ShapesByInput shapes;           // Of all open inputs.
  OnnxOrigin origin;              // Its names are of `runnable`.
  Graph runnable;                 // As OutputSetting's.
  Graph input;                    // `runnable` cleaned up.
  std::string timed_inputs = {};  // As OutputSetting's.
};

BoundShapes BoundShapesOf(const ShapesByInput& shapes);

// The parts that all files of one job share.
struct OutputSetting {
  const ImportedModel* model = nullptr;  // The model file as it came.
  Digest model_digest;                   // The digest of its bytes.
  IsCut is_cut;                          // The opaque nodes that the device cannot run.
  Graph runnable;                        // The model's graph without them.
  Graph input;                           // `runnable` cleaned up: the graph that was searched.
  Plan unfused_plan;                     // Of `input`.
  DeviceSpec spec;
  Environment environment;
  Policy policy;
  ImportOptions import;
  SandboxOptions sandbox;
  ExportChildOptions child;
  std::string blob_root;
  std::vector<AtOtherSizes> sets;  // The request's further sets of sizes; each gets a plan.
  std::vector<GivenInputs> given;  // The request's sets of inputs.
  std::string timed_inputs;        // Digest of the set that files are timed on; empty: random ones.
  double optional_seconds = 0;     // Of a comparison, for what is not always compared.
  uint64_t seed = 1;
  BoundShapes bound_shapes() const { return BoundShapesOf(import.shapes); }
  // Returns the key in the file's metadata of the plan for these sizes of open inputs.
  std::string PlanKey(const ShapesByInput& shapes) const;
  // Whether our runtime cannot run the whole model: opaque nodes are cut out of the graph, or nodes
  // behind it have no kernel.
  bool has_opaque() const {
    return runnable.digest() != model->graph.digest() || !model->origin.dynamic.no_kernel.empty();
  }
};

// Why a file is not published; `text` is for people.
struct Refusal {
  enum class Kind : uint8_t {
    kNone,         // It may be published.
    kNotMade,      // It could not be exported, read back or planned.
    kNotRun,       // A fresh session does not run it.
    kNotCompared,  // Its outputs could not be compared with the model's.
    kDiffers,      // An output differs from the model's.
    kUnsteady,     // Another fresh process takes another time.
    kNoGain,       // It is slower than what there is without it.
  };
  Kind kind = Kind::kNone;
  std::string text;
  explicit operator bool() const { return kind != Kind::kNone; }
};

// True when the fault is in the file, false when it is outside.
bool IsRefusal(const Status& status);

// A file in the blob folder.
struct OutputFile {
  Refusal refusal;
  Digest digest;
  int64_t bytes = 0;
  bool rewritten = false;  // Its graph is not the input's.
  bool carries_plan = false;
  Graph graph;  // The graph as a session runs the file; `plan` is for it.
  Plan plan;
  std::vector<OutputError> errors;  // Set by OutputFiles::Check, as `compared`.
  std::vector<ComparedInputs> compared;
  std::vector<Candidate> at_sets;  // The file at each of OutputSetting::sets, and its plan there.
  // What the rest says is about a file that keeps sizes open.
  std::vector<std::string> kept_open;    // Those sizes: "x:0 (batch)".
  std::vector<AppliedRewrite> rewrites;  // Those of the plan that hold at other sizes too.
  // The file at sizes that nothing was learnt from; Check compares it there too.
  struct AtOtherSize {
    const AtOtherSizes* sizes = nullptr;  // Lives as long as the OutputFiles.
    Graph file;
  };
  std::optional<AtOtherSize> at_other_size;
  // Where the file differs; null: at the bound sizes. Set by OutputFiles::Check with kDiffers.
  const AtOtherSizes* differs_at = nullptr;
  std::vector<std::string> warnings;
};

// Returns the plan with every operator by itself on one stream, the reference of a check.
StatusOr<Plan> UnfusedPlan(const OutputSetting& setting, const Graph& graph);

// Returns the file with a refusal, or the error when its cause is outside the file.
StatusOr<OutputFile> RefusedOr(const Status& status, OutputFile file);

// Makes and compares the files of one job. Rewritten and InputWithPlan make a file that is not yet
// compared. Errors come from outside the file: worker lost, disk full, cancelled. A fault of the
// file itself is a refusal.
class OutputFiles {
 public:
  OutputFiles(const OutputSetting& setting, PoolMeasurer& measurer, BlobDir& blobs);
  ~OutputFiles();

  // Exports `graph`, which has the interface of `setting.input`, puts the opaque nodes back around
  // it, and reads the file back, once for each graph. With a `plan` of `graph`, also plans what was
  // read back and writes that plan behind the export. A model with opaque nodes gets no plan, since
  // our runtime does not run it. `rules` names the rules that made the nodes of `graph`, where they
  // are known (ExportOptions::rules).
  StatusOr<OutputFile> Rewritten(const Graph& graph, const Plan* plan,
                                 const std::vector<std::string>& rules);

  // Exports the plan's graph with the sizes open that the model leaves open, and reads it back at
  // the bound sizes and at others. The refusal of such a file says what depends on sizes in a way
  // that export cannot write. `rules` are those of the search. REQUIRES: the model has no opaque
  // nodes.
  StatusOr<OutputFile> RewrittenOpen(const FoundPlan& plan, const RuleSet& rules);

  // Writes the input's bytes with a plan of `setting.input` behind them; replaces an entry of the
  // same key in them. REQUIRES: the model has no opaque nodes.
  StatusOr<OutputFile> InputWithPlan(const Plan& plan);

  // Returns the bytes of that plan for the input as a session reads it. REQUIRES: as above.
  StatusOr<std::string> PlanOfInput(const Plan& plan);

  // Makes a new plan for `graph` on as many streams as `like` has, from measured group times.
  // Measures groups that the cache does not have.
  StatusOr<Plan> PlanAnew(const Graph& graph, const Plan& like);

  // Compares the file's outputs with those of the model as it came: with the model ungrouped on the
  // device, where the device can run it, and on the reference kernels. A model with opaque nodes is
  // compared in ONNX Runtime. A difference beyond the policy's tolerance is a refusal.
  Status Check(OutputFile* file);

  // Compares a graph of the search, ungrouped, with the model at these sizes (null: the bound ones)
  // on what Check compares on; returns the output that differs most beyond the tolerance, if one
  // does. REQUIRES: the model has no opaque nodes.
  StatusOr<std::optional<OutputError>> Differs(const AtOtherSizes* at, const Graph& graph);

  // Returns the values where `after` differs from `before`, at most `bytes_max` of them, on what
  // Check compares on at these sizes; nothing: they agree. REQUIRES: both have the model's inputs.
  StatusOr<std::optional<v1::ShownValues>> ShowModel(const AtOtherSizes* at, const Graph& before,
                                                     const Graph& after, int64_t bytes_max);
  // The same of a part of the model, on data made for its inputs.
  StatusOr<std::optional<v1::ShownValues>> ShowCut(const Graph& before, const Graph& after,
                                                   int64_t bytes_max);

 private:
  // A graph that was exported and read back.
  struct Exported {
    Graph read;  // Without its opaque nodes.
    Digest file;
    int64_t bytes = 0;
    bool carries_plan = false;
  };
  // A plan for another form of the graph that is to run.
  struct KnownPlan {
    const Graph& graph;
    const Plan& plan;
  };
  struct OtherSizes;
  Status MakeOpen(const FoundPlan& plan, const RuleSet& rules, OutputFile* file);
  StatusOr<Graph> ProvenAt(const AtOtherSizes& there, const Graph& rewritten,
                           const std::string& path);
  StatusOr<Graph> ReadBack(const std::string& path, const ImportOptions& import,
                           const Graph& model) const;
  Status AppendPlanAndCommit(BlobDir::Writer& writer, OutputFile* file);
  Status MakeRewritten(const Graph& graph, const Plan* plan, const std::vector<std::string>& rules,
                       OutputFile* file);
  Status Export(const Graph& graph, const Plan* plan, const std::vector<std::string>& rules,
                OutputFile* file);
  Status PlanAsRead(const KnownPlan& known, const Graph& read, OutputFile* file);
  Status CopyWithPlan(const std::string& model_path, OutputFile* file);
  StatusOr<std::vector<OutputError>> CompareElsewhere(OutputFile* file);
  StatusOr<std::vector<OutputError>> CompareHere(OutputFile* file);
  StatusOr<Candidate> ReferenceOf(const Graph& model) const;
  // What a comparison runs on: the inputs of `shape_set`, as GivenInputs::shape_set.
  v1::Check CheckOf(const Candidate& reference, const Candidate& candidate,
                    const std::vector<GivenInputs>& given, std::optional<size_t> shape_set) const;
  StatusOr<std::vector<OutputError>> Compare(const Candidate& reference, const Candidate& candidate,
                                             const AtOtherSizes* at,
                                             std::vector<ComparedInputs>* compared);
  StatusOr<std::optional<v1::ShownValues>> Show(const Graph& before, const Graph& after,
                                                const std::vector<GivenInputs>& given,
                                                std::optional<size_t> shape_set, int64_t bytes_max);
  Status PlanSets(const std::string& path, OutputFile* file);
  std::vector<KeyedPlan> PlansOf(const OutputFile& file) const;
  Status CompareAt(const AtOtherSizes& sizes, const Candidate& there, OutputFile* file);
  Status CheckAtOtherSizes(OutputFile* file);

  const OutputSetting& setting_;
  PoolMeasurer& measurer_;
  BlobDir& blobs_;
  std::map<Digest, Exported> exported_;  // By the graph that was exported.
  std::unique_ptr<OtherSizes> other_sizes_;
};

}  // namespace ag
