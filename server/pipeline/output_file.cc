#include "server/pipeline/output_file.h"

#include <algorithm>
#include <limits>

#include "base/blobs.h"
#include "base/file_reader.h"
#include "base/log.h"
#include "graph/onnx/plan_metadata.h"
#include "graph/passes/cut_opaque.h"
#include "plan/equivalence.h"
#include "plan/format/plan_codec.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "server/jobs/job.h"
#include "server/pipeline/other_sizes.h"
#include "server/pipeline/remap_plan.h"
#include "server/pipeline/rules_of_nodes.h"
#include "wire/candidate_wire.h"

namespace ag {

bool IsRefusal(const Status& status) {
  if (IsHostFault(status)) return false;
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

StatusOr<Plan> UnfusedPlan(const OutputSetting& setting, const Graph& graph) {
  RooflineTimes times(setting.spec);
  return MakePlan(graph, setting.spec, setting.policy, times, {.grouped = false}, 1);
}

StatusOr<OutputFile> RefusedOr(const Status& status, OutputFile file) {
  if (status.ok()) return file;
  if (!IsRefusal(status)) return status;
  file.refusal = {Refusal::Kind::kNotMade, Message(status)};
  return file;
}

namespace {

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

constexpr size_t kCopyBytes = size_t{1} << 20;

void RefuseWhatDiffers(const OutputSetting& setting, size_t outputs, OutputFile* file) {
  if (file->errors.size() != outputs) {
    file->refusal = {Refusal::Kind::kNotCompared,
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

std::vector<std::string> NamesOfOutputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphOutput& output : graph.outputs()) names.push_back(output.name);
  return names;
}

// Returns the outputs of the whole model: those of the graph alone do where nothing stands behind
// it.
std::vector<std::string> NamesOfOutputs(const ImportedModel& model) {
  const DynamicPart& behind = model.origin.dynamic;
  if (behind.empty()) return NamesOfOutputs(model.graph);
  std::vector<std::string> names;
  for (const auto& [name, proto] : behind.outputs) names.push_back(name);
  return names;
}

// Returns which shape set these sizes are, as GivenInputs::shape_set says it; a number that no set
// has: none of them.
std::optional<size_t> ShapeSetOf(const OutputSetting& setting, const AtOtherSizes* at) {
  if (at == nullptr) return std::nullopt;
  for (size_t i = 0; i < setting.sets.size(); ++i) {
    if (&setting.sets[i] == at) return i;
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace

// Sets the graph and the plan of a file that a session reads: the graph as read where it equals the
// searched one, else cleaned up, because the export expands composites that the model's opset
// lacks. A session does the same (runtime/session.cc).
Status OutputFiles::PlanAsRead(const KnownPlan& known, const Graph& read, OutputFile* file) {
  file->graph = read;
  auto plan = RemapPlan(known.graph, known.plan, read, setting_.spec);
  if (!plan.ok()) {
    AG_LET(file->graph, CleanUp(read, BuiltInRules()));
    plan = RemapPlan(known.graph, known.plan, file->graph, setting_.spec);
  }
  if (!plan.ok()) {
    LogInfo("what was read back is planned anew: {}", Message(plan.status()));
    plan = PlanAnew(file->graph, known.plan);
  }
  AG_LET(file->plan, std::move(plan));
  file->plan.environment = setting_.environment;
  file->carries_plan = true;
  return OkStatus();
}

// Writes the model's bytes and, when there is one, the plan into the blob folder.
Status OutputFiles::CopyWithPlan(const std::string& model_path, OutputFile* file) {
  AG_LET(const std::shared_ptr<const MappedFile> model, MappedFile::Open(model_path));
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs_.NewWriter());
  const auto sink = [&](std::string_view bytes) -> Status {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kCopyBytes))) {
      AG_TRY(writer->Append(bytes.substr(0, kCopyBytes)));
    }
    return OkStatus();
  };
  AG_TRY(AppendPlans(model->bytes(), PlansOf(*file), sink));
  file->bytes = static_cast<int64_t>(writer->size());
  AG_LET(file->digest, writer->Commit());
  return OkStatus();
}

// The child writes the file that becomes the blob, and the plan follows once the export was read
// back: the model's bytes are written once.
Status OutputFiles::Export(const Graph& graph, const Plan* plan,
                           const std::vector<std::string>& rules, OutputFile* file) {
  Graph whole = graph;
  if (setting_.has_opaque()) {
    AG_LET(whole, Stitch(setting_.model->graph, graph, setting_.is_cut));
  }
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs_.NewWriter());
  const ImportedModel& model = *setting_.model;
  ExportRequest request{whole, model.graph, model.origin, setting_.blob_root, writer->fd()};
  request.rules = setting_.has_opaque() ? RulesIn(whole, graph, rules) : rules;
  AG_TRY(ExportInChild(request, setting_.child));
  AG_LET(const Graph read, ReadBack(writer->path(), setting_.import, setting_.runnable));
  file->graph = read;
  if (plan != nullptr) AG_TRY(PlanAsRead({graph, *plan}, read, file));
  AG_TRY(AppendPlanAndCommit(*writer, file));
  exported_[graph.digest()] = {read, file->digest, file->bytes, file->carries_plan};
  return OkStatus();
}

// Returns the graph of an exported file, without the opaque nodes that are cut out. `model` is the
// model's own at these sizes.
StatusOr<Graph> OutputFiles::ReadBack(const std::string& path, const ImportOptions& import,
                                      const Graph& model) const {
  auto read = ImportInSandbox(path, import, blobs_, setting_.sandbox);
  AG_TRY(read.status(), "reading the export back");
  if (setting_.has_opaque()) {
    AG_LET(OpaqueCut cut, CutOpaque(read->graph, setting_.is_cut));
    read->graph = cut.graph;
  }
  AG_TRY(SameInterface(model, read->graph));
  return read->graph;
}

// Takes in what the child wrote, and writes the plan behind it.
Status OutputFiles::AppendPlanAndCommit(BlobDir::Writer& writer, OutputFile* file) {
  AG_TRY(writer.TakeIn());
  for (const auto& [key, plan] : PlansOf(*file)) {
    if (!plan.empty()) AG_TRY(writer.Append(PlanEntry(key, plan)));
  }
  file->bytes = static_cast<int64_t>(writer.size());
  AG_LET(file->digest, writer.Commit());
  return OkStatus();
}

Status OutputFiles::MakeRewritten(const Graph& graph, const Plan* plan,
                                  const std::vector<std::string>& rules, OutputFile* file) {
  if (setting_.has_opaque()) plan = nullptr;
  const auto known = exported_.find(graph.digest());
  if (known == exported_.end()) return Export(graph, plan, rules, file);
  const Exported& exported = known->second;
  file->graph = exported.read;
  file->digest = exported.file;
  file->bytes = exported.bytes;
  if (plan != nullptr) AG_TRY(PlanAsRead({graph, *plan}, exported.read, file));
  if (plan == nullptr && !exported.carries_plan) return OkStatus();
  return CopyWithPlan(blobs_.PathOf(exported.file), file);
}

// Returns the file's plans; one without bytes where it has none, so that an old one goes.
std::vector<KeyedPlan> OutputFiles::PlansOf(const OutputFile& file) const {
  std::vector<KeyedPlan> plans = {
      {setting_.PlanKey(setting_.import.shapes), file.carries_plan ? EncodePlan(file.plan) : ""}};
  for (size_t i = 0; i < file.at_sets.size(); ++i) {
    plans.emplace_back(setting_.PlanKey(setting_.sets[i].shapes), EncodePlan(file.at_sets[i].plan));
  }
  return plans;
}

std::string OutputSetting::PlanKey(const ShapesByInput& shapes) const {
  std::string text;
  for (const auto& [name, shape] : shapes) {
    text += fmt::format("{}={};", name, fmt::join(shape, "x"));
  }
  return Sha256(environment + "\n" + text + "\n" + policy.Text()).Short();
}

// Plans the file in `path` for each set of sizes, from measured groups, on as many streams as its
// plan for the bound sizes has.
Status OutputFiles::PlanSets(const std::string& path, OutputFile* file) {
  for (const AtOtherSizes& set : setting_.sets) {
    ImportOptions import = setting_.import;
    for (const auto& [name, shape] : set.shapes) import.shapes[name] = shape;
    AG_LET(const Graph read, ReadBack(path, import, set.runnable));
    Candidate there;
    AG_LET(there.graph, CleanUp(read, BuiltInRules()));
    AG_LET(there.plan, PlanAnew(there.graph, file->plan));
    there.plan.environment = setting_.environment;
    file->at_sets.push_back(std::move(there));
  }
  return OkStatus();
}

BoundShapes BoundShapesOf(const ShapesByInput& shapes) {
  BoundShapes list;
  for (const auto& [name, shape] : shapes) {
    v1::BoundShape* bound = list.Add();
    bound->set_input(name);
    bound->mutable_dims()->Assign(shape.begin(), shape.end());
  }
  return list;
}

StatusOr<std::vector<OutputError>> OutputFiles::CompareElsewhere(OutputFile* file) {
  AG_LET(const ComparedElsewhere inputs,
         InputsElsewhere(setting_.model->graph, setting_.given, setting_.seed, blobs_));
  v1::FileSet set;
  for (const Digest& digest : {setting_.model_digest, file->digest}) {
    v1::FileToTime* compared = set.add_files();
    compared->set_digest(digest.Hex());
    compared->set_in_onnxruntime(true);
  }
  *set.mutable_shapes() = setting_.bound_shapes();
  set.mutable_compare_inputs()->Assign(inputs.digests.begin(), inputs.digests.end());
  set.set_compare_seeds(set.compare_inputs_size());
  AG_LET(std::vector<OutputError> errors,
         measurer_.CompareFiles(std::move(set), NamesOfOutputs(*setting_.model)));
  for (const std::string& name : inputs.names) file->compared.push_back({.inputs = name});
  return errors;
}

StatusOr<std::vector<OutputError>> OutputFiles::CompareHere(OutputFile* file) {
  Candidate candidate{file->graph, file->plan};
  if (!file->carries_plan) {
    AG_LET(candidate.plan, UnfusedPlan(setting_, file->graph));
  }
  Candidate reference{setting_.input, setting_.unfused_plan};
  if (auto unfused = UnfusedPlan(setting_, setting_.runnable); unfused.ok()) {
    reference = {setting_.runnable, *std::move(unfused)};
  } else {
    file->warnings.push_back("compared with the cleaned-up input: " + Message(unfused.status()));
  }
  return Compare(reference, candidate, nullptr, &file->compared);
}

v1::Check OutputFiles::CheckOf(const Candidate& reference, const Candidate& candidate,
                               const std::vector<GivenInputs>& given,
                               std::optional<size_t> shape_set) const {
  v1::Check check;
  ToProto(reference, check.mutable_reference());
  ToProto(candidate, check.mutable_candidate());
  AddInputs(reference.graph, given, shape_set, setting_.seed, &check);
  check.set_optional_seconds(setting_.optional_seconds);
  return check;
}

// Compares at these sizes; null: the bound ones.
StatusOr<std::vector<OutputError>> OutputFiles::Compare(const Candidate& reference,
                                                        const Candidate& candidate,
                                                        const AtOtherSizes* at,
                                                        std::vector<ComparedInputs>* compared) {
  const size_t before = compared->size();
  auto errors =
      measurer_.Check(CheckOf(reference, candidate, setting_.given, ShapeSetOf(setting_, at)),
                      NamesOfOutputs(setting_.model->graph), compared);
  for (size_t i = before; at != nullptr && i < compared->size(); ++i) {
    (*compared)[i].shapes = ShapesText(at->shapes);
  }
  return errors;
}

// Returns the model as it came, or cleaned up where the device cannot run it as it came.
StatusOr<Candidate> OutputFiles::ReferenceOf(const Graph& model) const {
  Candidate reference{model, {}};
  auto plan = UnfusedPlan(setting_, model);
  if (!plan.ok()) {
    AG_LET(reference.graph, CleanUp(model, BuiltInRules()));
    plan = UnfusedPlan(setting_, reference.graph);
  }
  AG_LET(reference.plan, std::move(plan));
  return reference;
}

StatusOr<std::optional<OutputError>> OutputFiles::Differs(const AtOtherSizes* at,
                                                          const Graph& graph) {
  AG_CHECK(!setting_.has_opaque());
  AG_LET(const Candidate reference, ReferenceOf(at == nullptr ? setting_.runnable : at->runnable));
  Candidate candidate{graph, {}};
  AG_LET(candidate.plan, UnfusedPlan(setting_, graph));
  std::vector<ComparedInputs> unused;
  AG_LET(const std::vector<OutputError> errors, Compare(reference, candidate, at, &unused));
  std::optional<OutputError> worst;
  for (const OutputError& error : errors) {
    if (IsEquivalent(error, setting_.policy.tolerance)) continue;
    if (!worst || error.max_rel > worst->max_rel) worst = error;
  }
  return worst;
}

StatusOr<std::optional<v1::ShownValues>> OutputFiles::ShowModel(const AtOtherSizes* at,
                                                                const Graph& before,
                                                                const Graph& after,
                                                                int64_t bytes_max) {
  return Show(before, after, setting_.given, ShapeSetOf(setting_, at), bytes_max);
}

StatusOr<std::optional<v1::ShownValues>> OutputFiles::ShowCut(const Graph& before,
                                                              const Graph& after,
                                                              int64_t bytes_max) {
  return Show(before, after, {}, std::nullopt, bytes_max);
}

StatusOr<std::optional<v1::ShownValues>> OutputFiles::Show(const Graph& before, const Graph& after,
                                                           const std::vector<GivenInputs>& given,
                                                           std::optional<size_t> shape_set,
                                                           int64_t bytes_max) {
  Candidate a{before, {}}, b{after, {}};
  AG_LET(a.plan, UnfusedPlan(setting_, before));
  AG_LET(b.plan, UnfusedPlan(setting_, after));
  return measurer_.Show(CheckOf(a, b, given, shape_set), NamesOfOutputs(before), bytes_max);
}

StatusOr<Plan> OutputFiles::PlanAnew(const Graph& graph, const Plan& like) {
  LearnedTimes times(setting_.spec, measurer_.ForGroups());
  const int streams = std::max(1, static_cast<int>(like.streams.size()));
  AG_LET(TimedPlan made,
         MakeMeasuredPlan({graph, setting_.spec, setting_.policy, {}, streams}, times));
  return std::move(made.plan);
}

StatusOr<OutputFile> OutputFiles::Rewritten(const Graph& graph, const Plan* plan,
                                            const std::vector<std::string>& rules) {
  OutputFile file;
  file.rewritten = true;
  const Status made = MakeRewritten(graph, plan, rules, &file);
  return RefusedOr(made, std::move(file));
}

StatusOr<OutputFile> OutputFiles::InputWithPlan(const Plan& plan) {
  AG_CHECK(!setting_.has_opaque());
  OutputFile file;
  Status made = PlanAsRead({setting_.input, plan}, setting_.model->graph, &file);
  if (made.ok()) made = PlanSets(blobs_.PathOf(setting_.model_digest), &file);
  if (made.ok()) made = CopyWithPlan(blobs_.PathOf(setting_.model_digest), &file);
  return RefusedOr(made, std::move(file));
}

StatusOr<std::string> OutputFiles::PlanOfInput(const Plan& plan) {
  OutputFile file;
  AG_TRY(PlanAsRead({setting_.input, plan}, setting_.model->graph, &file));
  return EncodePlan(file.plan);
}

Status OutputFiles::Check(OutputFile* file) {
  auto errors = setting_.has_opaque() ? CompareElsewhere(file) : CompareHere(file);
  if (!errors.ok()) {
    if (!IsRefusal(errors.status())) return errors.status();
    file->refusal = {Refusal::Kind::kNotCompared, "comparing outputs: " + Message(errors.status())};
    return OkStatus();
  }
  file->errors = *std::move(errors);
  const size_t outputs = setting_.has_opaque() ? NamesOfOutputs(*setting_.model).size()
                                               : setting_.model->graph.outputs().size();
  RefuseWhatDiffers(setting_, outputs, file);
  if (!file->refusal) AG_TRY(CheckAtOtherSizes(file));
  return OkStatus();
}

Status OutputFiles::CompareAt(const AtOtherSizes& sizes, const Candidate& there, OutputFile* file) {
  const auto compare = [&]() -> StatusOr<std::vector<OutputError>> {
    AG_LET(const Candidate reference, ReferenceOf(sizes.runnable));
    return Compare(reference, there, &sizes, &file->compared);
  };
  auto errors = compare();
  if (!errors.ok() && !IsRefusal(errors.status())) return errors.status();
  OutputFile checked;
  if (errors.ok()) {
    checked.errors = *std::move(errors);
    RefuseWhatDiffers(setting_, setting_.model->graph.outputs().size(), &checked);
  } else {
    checked.refusal = {Refusal::Kind::kNotCompared,
                       "comparing outputs: " + Message(errors.status())};
  }
  if (!checked.refusal) return OkStatus();
  file->refusal = {checked.refusal.kind, checked.refusal.text + " at " + ShapesText(sizes.shapes)};
  file->differs_at = &sizes;
  return OkStatus();
}

// Compares model and file once more: at sizes that nothing was learnt from, and at each set.
Status OutputFiles::CheckAtOtherSizes(OutputFile* file) {
  if (file->at_other_size) {
    const OutputFile::AtOtherSize& at = *file->at_other_size;
    Candidate there{at.file, {}};
    AG_LET(there.plan, UnfusedPlan(setting_, at.file));
    AG_TRY(CompareAt(*at.sizes, there, file));
  }
  for (size_t i = 0; i < file->at_sets.size() && !file->refusal; ++i) {
    AG_TRY(CompareAt(setting_.sets[i], file->at_sets[i], file));
  }
  return OkStatus();
}

}  // namespace ag
