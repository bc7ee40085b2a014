#include "server/output_file.h"

#include <algorithm>

#include "base/blobs.h"
#include "base/file_reader.h"
#include "base/log.h"
#include "graph/onnx/plan_metadata.h"
#include "graph/passes/clean_up.h"
#include "graph/passes/cut_opaque.h"
#include "plan/equivalence.h"
#include "plan/format/plan_codec.h"
#include "plan/schedule/planner.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "server/job.h"
#include "server/remap_plan.h"

namespace ag {
namespace {

// True when the fault is in the file, false when it is outside.
bool IsRefusal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kCancelled:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
      return false;
    default:
      return true;
  }
}

// Exports to `path` and returns the graph that a loader reads from it, without its opaque nodes.
StatusOr<Graph> ExportAndReadBack(const OutputSetting& setting, const Graph& whole,
                                  const std::string& path, BlobDir& blobs) {
  AG_TRY(ExportInChild({whole, setting.model->origin, {}, setting.blob_root, path}, setting.child));
  auto model = ImportInSandbox(path, setting.import, blobs, setting.sandbox);
  AG_TRY(model.status(), "reading the export back");
  if (!setting.has_opaque()) return model->graph;
  AG_LET(OpaqueCut cut, CutOpaque(model->graph));
  return cut.graph;
}

Status SameInterface(const Graph& a, const Graph& b) {
  if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size()) {
    return Err(StatusCode::kInternal, "read back with {} inputs and {} outputs, not {} and {}",
               b.inputs().size(), b.outputs().size(), a.inputs().size(), a.outputs().size());
  }
  for (size_t i = 0; i < a.inputs().size(); ++i) {
    const TensorType &x = a.type({a.inputs()[i], 0}), &y = b.type({b.inputs()[i], 0});
    if (x == y && a.input_name(i) == b.input_name(i)) continue;
    return Err(StatusCode::kInternal, "input {} {} was read back as {} {}", a.input_name(i),
               x.ToString(), b.input_name(i), y.ToString());
  }
  for (size_t i = 0; i < a.outputs().size(); ++i) {
    const TensorType &x = a.type(a.outputs()[i].edge), &y = b.type(b.outputs()[i].edge);
    if (x == y && a.outputs()[i].name == b.outputs()[i].name) continue;
    return Err(StatusCode::kInternal, "output {} {} was read back as {} {}", a.outputs()[i].name,
               x.ToString(), b.outputs()[i].name, y.ToString());
  }
  return OkStatus();
}

// A plan for another form of the graph that is to run.
struct KnownPlan {
  const Graph& graph;
  const Plan& plan;
};

// Sets the graph and the plan of a file that a session reads: the graph as read where it equals the
// searched one, else cleaned up, because the export expands composites that the model's opset
// lacks. A session does the same (runtime/session.cc).
Status PlanAsRead(const OutputSetting& setting, const KnownPlan& known, const Graph& read,
                  PoolMeasurer& measurer, OutputFile* file) {
  file->graph = read;
  auto plan = RemapPlan(known.graph, known.plan, read, setting.spec);
  if (!plan.ok()) {
    AG_LET(file->graph, CleanUp(read, BuiltInRules()));
    plan = RemapPlan(known.graph, known.plan, file->graph, setting.spec);
  }
  if (!plan.ok()) {
    LogInfo("what was read back is planned anew: {}", Message(plan.status()));
    plan = PlanAnew(setting, file->graph, known.plan, measurer);
  }
  AG_LET(file->plan, std::move(plan));
  file->plan.environment = setting.environment;
  file->carries_plan = true;
  return OkStatus();
}

constexpr size_t kCopyBytes = size_t{1} << 20;

// Writes the model's bytes and, when there is one, the plan into the blob folder.
Status Keep(const OutputSetting& setting, const std::string& model_path, BlobDir& blobs,
            OutputFile* file) {
  AG_LET(const std::shared_ptr<const MappedFile> model, MappedFile::Open(model_path));
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs.NewWriter());
  const auto sink = [&](std::string_view bytes) -> Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kCopyBytes))) {
      AG_TRY(writer->Append(bytes.substr(0, kCopyBytes)));
    }
    return OkStatus();
  };
  const std::string plan = file->carries_plan ? EncodePlan(file->plan) : "";
  AG_TRY(AppendPlan(model->bytes(), setting.plan_key, plan, sink));
  file->bytes = static_cast<int64_t>(writer->size());
  AG_LET(file->digest, writer->Commit());
  return OkStatus();
}

Status MakeRewritten(const OutputSetting& setting, const Graph& graph, const Plan* plan,
                     PoolMeasurer& measurer, BlobDir& blobs, OutputFile* file) {
  Graph whole = graph;
  if (setting.has_opaque()) {
    AG_LET(whole, Stitch(setting.model->graph, graph));
  }
  const std::string path = setting.work_dir + "/export.onnx";
  AG_LET(const Graph read, ExportAndReadBack(setting, whole, path, blobs));
  AG_TRY(SameInterface(setting.runnable, read));
  file->graph = read;
  if (plan != nullptr && !setting.has_opaque()) {
    AG_TRY(PlanAsRead(setting, {graph, *plan}, read, measurer, file));
  }
  return Keep(setting, path, blobs, file);
}

// Returns the file with a refusal, or the error when its cause is outside the file.
StatusOr<OutputFile> RefusedOr(const Status& status, OutputFile file) {
  if (status.ok()) return file;
  if (!IsRefusal(status)) return status;
  file.refusal = {Refusal::Kind::kNotMade, Message(status)};
  return file;
}

void RefuseWhatDiffers(const OutputSetting& setting, size_t outputs, OutputFile* file) {
  if (file->errors.size() != outputs) {
    file->refusal = {Refusal::Kind::kDiffers,
                     fmt::format("{} of {} outputs were compared", file->errors.size(), outputs)};
  }
  for (const OutputError& error : file->errors) {
    if (IsEquivalent(error, setting.policy.tolerance)) continue;
    file->refusal = {Refusal::Kind::kDiffers,
                     fmt::format("output {} differs: max|a-b|/max|a| {:.3g}, tolerance {:.3g}{}",
                                 error.name, error.max_rel, setting.policy.tolerance,
                                 error.nonfinite_differs ? ", Inf or NaN elsewhere" : "")};
    break;
  }
}

constexpr int kSeeds = 3;

StatusOr<std::vector<OutputError>> CompareElsewhere(const OutputSetting& setting,
                                                    PoolMeasurer& measurer,
                                                    const OutputFile& file) {
  FileSetWork work;
  work.files = {{setting.model_digest, true}, {file.digest, true}};
  for (const auto& [name, shape] : setting.import.shapes) {
    v1::BoundShape* bound = work.shapes.Add();
    bound->set_input(name);
    bound->mutable_dims()->Assign(shape.begin(), shape.end());
  }
  work.compare_seeds = kSeeds;
  return measurer.CompareFiles(std::move(work));
}

// Returns the plan with every operator by itself on one stream, the reference of a check.
StatusOr<Plan> UnfusedPlan(const OutputSetting& setting, const Graph& graph) {
  RooflineTimes times(setting.spec);
  return MakePlan(graph, setting.spec, setting.policy, times, {.grouped = false}, 1);
}

StatusOr<std::vector<OutputError>> CompareHere(const OutputSetting& setting, PoolMeasurer& measurer,
                                               OutputFile* file) {
  PoolMeasurer::CheckRequest check;
  check.candidate = {file->graph, file->plan};
  if (!file->carries_plan) {
    AG_LET(check.candidate.plan, UnfusedPlan(setting, file->graph));
  }
  for (int i = 0; i < kSeeds; ++i) check.seeds.push_back(setting.seed + static_cast<uint64_t>(i));
  check.reference_kernels = true;
  if (auto unfused = UnfusedPlan(setting, setting.runnable); unfused.ok()) {
    check.reference = {setting.runnable, *std::move(unfused)};
  } else {
    check.reference = {setting.input, setting.unfused_plan};
    file->warnings.push_back("compared with the cleaned-up input: " + Message(unfused.status()));
  }
  return measurer.Check(check);
}

}  // namespace

StatusOr<Plan> PlanAnew(const OutputSetting& setting, const Graph& graph, const Plan& like,
                        Measurer& measurer) {
  LearnedTimes times(setting.spec, measurer.ForGroups());
  const int streams = std::max(1, static_cast<int>(like.streams.size()));
  AG_LET(TimedPlan made,
         MakeMeasuredPlan({graph, setting.spec, setting.policy, {}, streams}, times));
  return std::move(made.plan);
}

StatusOr<OutputFile> MakeRewrittenFile(const OutputSetting& setting, const Graph& graph,
                                       const Plan* plan, PoolMeasurer& measurer, BlobDir& blobs) {
  OutputFile file;
  file.rewritten = true;
  const Status made = MakeRewritten(setting, graph, plan, measurer, blobs, &file);
  return RefusedOr(made, std::move(file));
}

StatusOr<OutputFile> AddPlanToInput(const OutputSetting& setting, const Plan& plan,
                                    PoolMeasurer& measurer, BlobDir& blobs) {
  AG_CHECK(!setting.has_opaque());
  OutputFile file;
  Status made = PlanAsRead(setting, {setting.input, plan}, setting.model->graph, measurer, &file);
  if (made.ok()) made = Keep(setting, blobs.PathOf(setting.model_digest), blobs, &file);
  return RefusedOr(made, std::move(file));
}

Status CheckOutputFile(const OutputSetting& setting, PoolMeasurer& measurer, OutputFile* file) {
  auto errors = setting.has_opaque() ? CompareElsewhere(setting, measurer, *file)
                                     : CompareHere(setting, measurer, file);
  if (!errors.ok()) {
    if (!IsRefusal(errors.status())) return errors.status();
    file->refusal = {Refusal::Kind::kDiffers, "comparing outputs: " + Message(errors.status())};
    return OkStatus();
  }
  file->errors = *std::move(errors);
  RefuseWhatDiffers(setting, setting.model->graph.outputs().size(), file);
  return OkStatus();
}

}  // namespace ag
