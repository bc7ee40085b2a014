#include "client/cli/target_portable.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/file.h"
#include "base/signals.h"
#include "client/cli/compare_models.h"
#include "client/cli/job_text.h"
#include "client/cli/local_model.h"
#include "graph/onnx/wire.h"
#include "plan/equivalence.h"
#include "plan/policy.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPortableSeeds = 3;  // As `verify` takes by default.
// A decision must be sure where a figure for information may be AMBIGUOUS.
constexpr double kDecisionFactor = 3;

// What a stock runtime lacks, and what nothing here can run to verify it.
Status CheckStandard(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kOpaque) continue;
    AG_LET(const OnnxNode kept, ParseNode(node.attributes->String("onnx_node")));
    return Err(
        StatusCode::kUnimplemented,
        "--target portable: operator {}{}{} cannot be run here, so nothing could be verified",
        kept.domain, kept.domain.empty() ? "" : ".", kept.op_type);
  }
  return OkStatus();
}

// A step in a few words: "conv-merge-siblings x7 of 9".
std::string StepName(const PortableStep& step) {
  if (step.rule == kCleanUpStep || step.rule == kWinnerStep) return step.rule;
  if (step.applied == step.wanted || step.applied == 0) {
    return fmt::format("{} x{}", step.rule, step.wanted);
  }
  return fmt::format("{} x{} of {}", step.rule, step.applied, step.wanted);
}

std::string StepText(const PortableStep& step) {
  std::string text = fmt::format("{}: {}", StepName(step), step.reason);
  if (step.timing.has_value()) {
    text += fmt::format(" {:.3f}x ({:.3f} to {:.3f})", step.timing->speedup,
                        step.timing->speedup_low, step.timing->speedup_high);
  }
  return text;
}

std::string PortableRow(const char* name, const std::string& value) {
  return TableRow(name, value) + "\n";
}

}  // namespace

StatusOr<std::unique_ptr<PortableTarget>> PortableTarget::Open(const OptimizeFlags& flags) {
  const Status found = FindOrt().status();
  if (!found.ok()) {
    return Err(found.code() == StatusCode::kNotFound ? StatusCode::kUnavailable : found.code(),
               "--target portable measures in ONNX Runtime: {}; install it (pip install "
               "onnxruntime) or name a Python that has it in AUTOGRAPH_PYTHON",
               Message(found));
  }
  AG_LET(TempDir folder, TempDir::Make("autograph-portable"));
  std::unique_ptr<PortableTarget> target(new PortableTarget(flags, std::move(folder)));
  AG_TRY(target->Import(), "{}", flags.model.model);
  OrtRequest once = target->ToTime({flags.model.model});
  once.seconds = 1e-3;
  AG_TRY(TimeInOrt(once).status(), "{}", flags.model.model);
  return target;
}

StatusOr<ImportOptions> PortableTarget::ToImport() const {
  ImportOptions options;
  for (const std::string& text : flags_.model.shapes) {
    AG_LET(const auto shape, ParseShapeFlag(text));
    options.shapes[shape.first] = Shape(shape.second.begin(), shape.second.end());
  }
  return options;
}

Status PortableTarget::Import() {
  AG_LET(const ImportOptions options, ToImport());
  AG_LET(const std::shared_ptr<const MappedFile> file, MappedFile::Open(flags_.model.model));
  AG_LET(blobs_, BlobDir::Open(PathOf("blobs")));
  AG_LET(model_, ImportOnnx(file->bytes(), options, *blobs_));
  AG_TRY(CheckStandard(model_.graph));
  std::erase_if(model_.origin.opsets,
                [](const auto& opset) { return !opset.first.empty() && opset.first != "ai.onnx"; });
  rules_ = RuleSet::Shipped().Without(flags_.without, /*strict=*/false);
  AG_LET(input_, CleanUp(model_.graph, rules_));
  return OkStatus();
}

OrtRequest PortableTarget::ToTime(std::vector<std::string> models) const {
  OrtRequest request;
  request.models = std::move(models);
  request.threads = OrtThreads(flags_.model.device);
  request.seconds = flags_.ort.seconds * kDecisionFactor;
  request.shapes = flags_.model.shapes;
  return request;
}

StatusOr<PlanTiming> PortableTarget::Try(const Graph* best, const Graph& candidate) {
  AG_LET(const std::string bytes, ExportOnnx(candidate, model_.origin, BlobWeights(blobs_)));
  AG_TRY(WriteFileAtomically(PathOf("candidate.onnx"), bytes));
  AG_LET(const OrtTimes times,
         TimeInOrt(ToTime({best != nullptr ? PathOf("best.onnx") : flags_.model.model,
                           PathOf("candidate.onnx")})));
  if (times.second.verdict != Verdict::kFaster) return times.second;
  std::error_code error;
  std::filesystem::rename(PathOf("candidate.onnx"), PathOf("best.onnx"), error);
  if (error) return FromErrno(error.value(), "rename " + PathOf("candidate.onnx"));
  return times.second;
}

StatusOr<std::string> PortableTarget::Refusal(PortableAnswer* answer) const {
  ModelFlags from = flags_.model, to = flags_.model;
  // The device of a far server may not be here; the numbers of any device will do.
  if (!OpenLocalDevice(from.device).ok()) from.device = to.device = "cpu";
  to.model = PathOf("best.onnx");
  AG_LET(const auto a, LoadSession(from, PlanChoice::kEager));
  AG_LET(const auto b, LoadSession(to, PlanChoice::kCarried));
  AG_LET(const ModelMatch match, MatchModels(*a, *b, from.model, "the export"));
  AG_LET(answer->errors, CompareOutputs(*a, *b, match, kPortableSeeds));
  const double tolerance =
      flags_.tolerance > 0 ? flags_.tolerance : DefaultTolerance(flags_.precision);
  for (const OutputError& error : answer->errors) {
    if (IsEquivalent(error, tolerance)) continue;
    return fmt::format("output {} differs: max rel {:.3g}, tolerance {:.3g}", error.name,
                       error.max_rel, tolerance);
  }
  AG_LET(answer->times, TimeInOrt(ToTime({from.model, to.model})));
  const PlanTiming& again = answer->times.second;
  if (again.verdict == Verdict::kFaster) return std::string();
  return fmt::format("timed once more it is {} ({:.3f}x)", VerdictName(again.verdict),
                     again.speedup);
}

Status PortableTarget::Write(PortableAnswer* answer) const {
  const std::string path = answer->is_input ? flags_.model.model : PathOf("best.onnx");
  AG_LET(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  answer->output_sha256 = Sha256(file->bytes()).Hex();
  answer->output_bytes = static_cast<int64_t>(file->bytes().size());
  return WriteFileAtomically(flags_.output, file->bytes());
}

StatusOr<Graph> PortableTarget::ReadWinner(const std::string& path) {
  AG_LET(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  AG_LET(const ImportOptions options, ToImport());
  AG_LET(ImportedModel winner, ImportOnnx(file->bytes(), options, *blobs_));
  return winner.graph;
}

StatusOr<PortableAnswer> PortableTarget::Run(const Context& context,
                                             const std::vector<TrailStep>& trail,
                                             const std::string& winner) {
  PortableRequest request;
  if (!winner.empty()) {
    AG_LET(request.winner, ReadWinner(winner));
  }
  request.model = model_.graph;
  request.input = input_;
  request.trail = trail;
  request.rules = &rules_;
  request.try_graph = [this](const Graph* best, const Graph& candidate) {
    return Try(best, candidate);
  };
  request.stop = [] { return StopSignal() != 0; };
  request.on_step = [&context](const PortableStep& step) {
    context.Note("portable: " + StepText(step));
  };
  AG_LET(const PortableResult found, KeepWhatHelps(request));
  PortableAnswer answer;
  answer.steps = found.steps;
  answer.is_input = !found.best.has_value();
  if (found.stopped) return Err(StatusCode::kCancelled, "interrupted");
  if (!answer.is_input) {
    AG_LET(answer.refusal, Refusal(&answer));
    answer.is_input = !answer.refusal.empty();
  }
  if (answer.is_input) {
    answer.errors.clear();
    OrtRequest alone = ToTime({flags_.model.model});
    alone.seconds = flags_.ort.seconds / 5;
    AG_LET(answer.times, TimeInOrt(alone));
  }
  AG_TRY(Write(&answer));
  return answer;
}

Json PortableJson(const PortableAnswer& answer) {
  Json steps = Json::array();
  for (const PortableStep& step : answer.steps) {
    Json entry = {{"step", step.rule},
                  {"wanted", step.wanted},
                  {"applied", step.applied},
                  {"kept", step.kept},
                  {"reason", step.reason}};
    if (step.timing.has_value()) {
      entry["speedup"] = step.timing->speedup;
      entry["speedup_low"] = step.timing->speedup_low;
      entry["speedup_high"] = step.timing->speedup_high;
    }
    steps.push_back(entry);
  }
  double max_rel = 0;
  for (const OutputError& error : answer.errors) max_rel = std::max(max_rel, error.max_rel);
  return {{"is_input", answer.is_input},
          {"refusal", answer.refusal},
          {"speedup", answer.is_input ? 1.0 : answer.times.second.speedup},
          {"max_rel_error", max_rel},
          {"steps", steps},
          {"output_sha256", answer.output_sha256},
          {"output_bytes", answer.output_bytes}};
}

std::string PortableRows(const PortableAnswer& answer) {
  std::string text;
  for (const PortableStep& step : answer.steps) {
    text += PortableRow(step.kept ? "kept" : "dropped", StepText(step));
  }
  if (!answer.refusal.empty()) text += PortableRow("warning", "not handed out: " + answer.refusal);
  if (answer.is_input) {
    text += PortableRow("portable",
                        "nothing made ONNX Runtime faster; the output is the input's own bytes");
    return text + PortableRow("onnxruntime", OrtText(answer.times, "input"));
  }
  double max_rel = 0;
  for (const OutputError& error : answer.errors) max_rel = std::max(max_rel, error.max_rel);
  text += PortableRow("portable", fmt::format("no plan in it; verified: max rel {:.2g}", max_rel));
  return text + PortableRow("onnxruntime", OrtText(answer.times, "input", "output"));
}

}  // namespace ag
