// A rewritten file that keeps the sizes open that the model leaves open.
#include "graph/onnx/plan_metadata.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/repeat_rewrites.h"
#include "search/rewrite_trail.h"
#include "server/pipeline/other_sizes.h"
#include "server/pipeline/output_file.h"
#include "server/pipeline/remap_plan.h"
#include "server/pipeline/rules_of_nodes.h"

namespace ag {
namespace {

std::vector<std::string> NamesOfOpenSizes(const ImportedModel& model) {
  std::vector<std::string> names;
  for (const auto& [place, name] : model.origin.dim_names) {
    names.push_back(name.empty() ? place : fmt::format("{} ({})", place, name));
  }
  return names;
}

std::string LeftOutText(const std::vector<AppliedRewrite>& left_out, const std::string& shapes) {
  std::vector<std::string> texts;
  for (const AppliedRewrite& rewrite : left_out) {
    texts.push_back(fmt::format("{} x{}", rewrite.rule, rewrite.count));
  }
  return fmt::format("rewrites that hold at {} only are left out, so that sizes stay open: {}",
                     shapes, fmt::join(texts, ", "));
}

}  // namespace

// The model at other sizes, imported once for a job; or why it cannot be.
struct OutputFiles::OtherSizes {
  StatusOr<std::vector<AtOtherSizes>> sets = Err(StatusCode::kCancelled, "not imported");
};

OutputFiles::OutputFiles(const OutputSetting& setting, PoolMeasurer& measurer, BlobDir& blobs)
    : setting_(setting), measurer_(measurer), blobs_(blobs) {}
OutputFiles::~OutputFiles() = default;

StatusOr<OutputFile> OutputFiles::RewrittenOpen(const FoundPlan& plan, const RuleSet& rules) {
  AG_CHECK(!setting_.has_opaque());
  OutputFile file;
  file.rewritten = true;
  const Status made = MakeOpen(plan, rules, &file);
  return RefusedOr(made, std::move(file));
}

// Reads the open file at `there` back. It must be the rewritten graph of these sizes, up to
// constants; where the opset lacks a composite, it must be as that graph comes back when it is
// written with fixed sizes.
StatusOr<Graph> OutputFiles::ProvenAt(const AtOtherSizes& there, const Graph& rewritten,
                                      const std::string& path) {
  ImportOptions import = setting_.import;
  for (const auto& [name, shape] : there.shapes) import.shapes[name] = shape;
  AG_LET(const Graph read, ReadBack(path, import, there.runnable));
  AG_LET(Graph clean, CleanUp(read, BuiltInRules()));
  if (SameOperators(rewritten, clean).ok()) return clean;
  AG_LET(const std::unique_ptr<BlobDir::Writer> fixed, blobs_.NewWriter());
  AG_TRY(ExportInChild({rewritten, there.runnable, there.origin, setting_.blob_root, fixed->fd()},
                       setting_.child));
  AG_LET(const Graph expected, ReadBack(fixed->path(), import, there.runnable));
  AG_TRY(SameOperators(expected, read));
  return clean;
}

Status OutputFiles::MakeOpen(const FoundPlan& plan, const RuleSet& rules, OutputFile* file) {
  if (other_sizes_ == nullptr) {
    other_sizes_ = std::make_unique<OtherSizes>();
    other_sizes_->sets = ImportAtOtherSizes(setting_, rules, blobs_);
  }
  AG_TRY(other_sizes_->sets);
  const std::vector<AtOtherSizes>& sets = *other_sizes_->sets;
  std::vector<Graph> inputs;
  for (const AtOtherSizes& set : sets) inputs.push_back(set.input);
  NodeRules made_by = RulesOfCleanUp(sets[0].runnable, rules);
  const auto on_rewritten = [&](const Graph& after, const std::string& rule) {
    made_by.Next(after, rule);
  };
  AG_LET(const RepeatedRewrites repeated,
         RepeatRewrites(setting_.input, plan.steps, std::move(inputs), rules, on_rewritten));
  if (repeated.applied == 0) {
    return Err(StatusCode::kFailedPrecondition, "none of its rewrites has a place at {}",
               ShapesText(sets[0].shapes));
  }
  const std::vector<Graph>& graphs = repeated.graphs;
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs_.NewWriter());
  ExportRequest request{graphs[0], sets[0].runnable, sets[0].origin, setting_.blob_root,
                        writer->fd()};
  auto& metadata = request.origin.metadata;
  std::erase_if(metadata, [](const auto& entry) { return entry.first == kSizesKey; });
  metadata.emplace_back(kSizesKey, SizesText(setting_.import.shapes));
  request.at_other_sizes.assign(graphs.begin() + 1, graphs.begin() + kLearnt);
  made_by.Next(graphs[0], "");
  request.rules = made_by.rules();
  AG_TRY(ExportInChild(request, setting_.child));
  AG_LET(const Graph read, ReadBack(writer->path(), setting_.import, setting_.runnable));
  for (const int set : {0, kLearnt}) {
    const std::string shapes = ShapesText(sets[set].shapes);
    const auto there = ProvenAt(sets[set], graphs[set], writer->path());
    AG_TRY(there, "at {}", shapes);
    file->at_other_size = {&sets[set], *there};
  }
  AG_TRY(PlanAsRead({plan.graph, plan.plan}, read, file));
  AG_TRY(PlanSets(writer->path(), file));
  AG_TRY(AppendPlanAndCommit(*writer, file));
  file->kept_open = NamesOfOpenSizes(*setting_.model);
  // What a rewrite gains was measured beside all of them.
  file->rewrites = repeated.left_out.empty() ? plan.rewrites : AppliedOf(repeated.steps[0]);
  if (!repeated.left_out.empty()) {
    file->warnings.push_back(LeftOutText(repeated.left_out, ShapesText(setting_.import.shapes)));
  }
  return OkStatus();
}

}  // namespace ag
