#include "server/confirm.h"

#include <algorithm>

#include "base/file_reader.h"
#include "base/log.h"
#include "graph/clean_up.h"
#include "plan/equivalence.h"
#include "rules/rewrite.h"
#include "server/transfer_plan.h"

namespace ag {
namespace {

bool HasOpaque(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == OpKind::kOpaque) return true;
  }
  return false;
}

// What went wrong with the winner itself, as opposed to the world.
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

// The exported file read back as a loader will see it.
struct ReadBack {
  std::string path;
  ImportedModel model;
  Graph runnable;
};

StatusOr<ReadBack> ExportAndReadBack(const ConfirmRequest& request, const Graph& whole,
                                     const ExportOptions& options, const std::string& name,
                                     BlobDir& blobs) {
  ReadBack read;
  read.path = request.work_dir + "/" + name;
  AG_TRY(ExportInChild({whole, request.model->origin, options, request.blob_root, read.path},
                       request.child));
  auto model = ImportInJail(read.path, request.import, blobs, request.jail);
  AG_TRY(model.status(), "reading the export back");
  read.model = *std::move(model);
  read.runnable = read.model.graph;
  if (HasOpaque(read.model.graph)) {
    AG_LET(OpaqueCut cut, CutOpaque(read.model.graph));
    read.runnable = cut.graph;
  }
  return read;
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

// Plans what was read: as it is where it is what was searched, else cleaned up, because the export
// takes composites apart that the model's opset lacks. A session does the same
// (runtime/session.cc).
Status PlanAsRead(const ConfirmRequest& request, const Graph& read, PoolMeasurer& measurer,
                  Confirmed* confirmed) {
  const FoundPlan& found = *request.found;
  confirmed->graph = read;
  auto plan = TransferPlan(found.graph, found.plan, read, request.spec);
  if (!plan.ok()) {
    AG_LET(confirmed->graph, CleanUp(read, RuleSet::Shipped()));
    plan = TransferPlan(found.graph, found.plan, confirmed->graph, request.spec);
  }
  if (!plan.ok()) {
    LogInfo("confirm: what was read back is planned anew: {}", Message(plan.status()));
    plan = Replan({confirmed->graph, request.spec, request.policy, found.plan}, measurer);
  }
  AG_LET(confirmed->plan, std::move(plan));
  return OkStatus();
}

Status TimeAgain(const ConfirmRequest& request, PoolMeasurer& measurer, Confirmed* confirmed) {
  AG_LET(const std::vector<PlanTiming> timings,
         measurer.MeasurePlans(
             {{request.input, request.input_plan}, {confirmed->graph, confirmed->plan}},
             Measurer::Effort::kVerdict));
  AG_TRY(timings[1].status, "timing the export");
  confirmed->input_timing = timings[0];
  confirmed->timing = timings[1];
  confirmed->verdict = timings[1].verdict;
  if (confirmed->verdict != Verdict::kFaster) {
    confirmed->refusal = fmt::format("as read back it is {} ({:.3f}x)",
                                     VerdictName(confirmed->verdict), timings[1].speedup);
  }
  return OkStatus();
}

// Compares with the model as it came, ungrouped; where the device cannot run that, with the
// cleaned-up input.
Status Compare(const ConfirmRequest& request, PoolMeasurer& measurer, Confirmed* confirmed) {
  PoolMeasurer::CheckRequest check;
  check.candidate = {confirmed->graph, confirmed->plan};
  check.seeds = {request.seed, request.seed + 1, request.seed + 2};
  check.reference_kernels = true;
  if (auto eager = EagerPlan(request.runnable, request.spec, request.policy); eager.ok()) {
    check.reference = {request.runnable, *std::move(eager)};
  } else {
    check.reference = {request.input, request.eager_plan};
    confirmed->warnings.push_back("compared with the cleaned-up input: " + Message(eager.status()));
  }
  AG_LET(confirmed->errors, measurer.Check(check));
  if (confirmed->errors.size() != confirmed->graph.outputs().size()) {
    confirmed->refusal = fmt::format("{} of {} outputs were compared", confirmed->errors.size(),
                                     confirmed->graph.outputs().size());
  }
  for (const OutputError& error : confirmed->errors) {
    if (IsEquivalent(error, request.policy.tolerance)) continue;
    confirmed->refusal = fmt::format(
        "output {} differs: max|a-b|/max|a| {:.3g}, tolerance {:.3g}{}", error.name, error.max_rel,
        request.policy.tolerance, error.nonfinite_differs ? ", Inf or NaN elsewhere" : "");
    break;
  }
  return OkStatus();
}

constexpr int64_t kCopyBytes = int64_t{1} << 20;

// Copies the file into the blob folder piece by piece, so that it never stands in memory.
Status Keep(const std::string& path, BlobDir& blobs, Confirmed* confirmed) {
  AG_LET(FileReader file, FileReader::Open(path));
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs.NewWriter());
  for (int64_t begin = 0; begin < file.size(); begin += kCopyBytes) {
    const int64_t size = std::min(kCopyBytes, file.size() - begin);
    AG_LET(const std::string_view piece, file.Read(begin, size));
    AG_TRY(writer->Append(piece));
  }
  confirmed->output_bytes = file.size();
  AG_LET(confirmed->output, writer->Commit());
  return OkStatus();
}

Status ConfirmSteps(const ConfirmRequest& request, PoolMeasurer& measurer, BlobDir& blobs,
                    Confirmed* confirmed) {
  const bool opaque = HasOpaque(request.model->graph);
  Graph whole = request.found->graph;
  if (opaque) {
    AG_LET(whole, Stitch(request.model->graph, request.found->graph));
  }
  AG_LET(ReadBack read, ExportAndReadBack(request, whole, {}, "bare.onnx", blobs));
  AG_TRY(SameInterface(request.runnable, read.runnable));
  AG_TRY(PlanAsRead(request, read.runnable, measurer, confirmed));
  if (!opaque) {  // A runtime cannot run opaque nodes, so no plan goes with them.
    const Digest bare = read.model.graph.digest();
    const ExportOptions with_plan = {{{request.plan_key, EncodePlan(confirmed->plan)}}};
    AG_LET(read, ExportAndReadBack(request, whole, with_plan, "planned.onnx", blobs));
    if (read.model.graph.digest() != bare || read.model.plans.size() != 1) {
      return Err(StatusCode::kInternal, "the plan does not fit what was read back");
    }
  }
  AG_TRY(TimeAgain(request, measurer, confirmed));
  if (!confirmed->refusal.empty()) return OkStatus();
  AG_TRY(Compare(request, measurer, confirmed));
  if (!confirmed->refusal.empty()) return OkStatus();
  return Keep(read.path, blobs, confirmed);
}

}  // namespace

StatusOr<Confirmed> Confirm(const ConfirmRequest& request, PoolMeasurer& measurer, BlobDir& blobs) {
  Confirmed confirmed;
  const Status status = ConfirmSteps(request, measurer, blobs, &confirmed);
  if (status.ok()) return confirmed;
  if (!IsRefusal(status)) return status;
  confirmed.refusal = Message(status);
  return confirmed;
}

}  // namespace ag
