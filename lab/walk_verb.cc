// The verb walk.
#include <algorithm>

#include "base/blobs.h"
#include "base/file.h"
#include "base/signals.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "lab/verbs.h"
#include "rules/match/applier.h"
#include "rules/match/random_match.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

constexpr std::string_view kModelEnd = ".onnx";

// Returns the graph after a random rewrite and clean-up; the graph itself where none can be made (a
// target that does not fit, or a cycle).
StatusOr<Graph> Step(const Graph& graph, Random& random) {
  const RandomMatch match = ChooseMatch(graph, BuiltInRules(), random);
  if (match.rule == nullptr) return graph;
  GraphBuilder builder(graph);
  if (!ApplyTo(&builder, graph, *match.rule->pattern, match.bindings).ok()) return graph;
  const StatusOr<Graph> after = builder.Build();
  if (!after.ok()) return graph;
  const StatusOr<Graph> clean = CleanUp(*after, BuiltInRules());
  if (!clean.ok()) return Within(clean.status(), match.rule->name);
  return clean;
}

StatusOr<std::string> Rewritten(std::string_view bytes, int steps, uint64_t seed,
                                const std::shared_ptr<BlobDir>& blobs) {
  AG_LET(const ImportedModel model, ImportOnnx(bytes, {}, *blobs));
  AG_LET(Graph graph, CleanUp(model.graph, BuiltInRules()));
  Random random(seed);
  for (int i = 0; i < steps; ++i) {
    AG_LET(graph, Step(graph, random));
  }
  const ExportOptions options{.imported = &model.graph};
  return ExportOnnx(graph, model.origin, BlobWeights(blobs), options);
}

}  // namespace

int RunWalk(Context& context, const WalkFlags& flags) {
  CatchStopSignals();
  StatusOr<std::vector<std::string>> names = ListDir(flags.folder);
  if (!names.ok()) return context.Fail(names.status());
  const auto blobs = BlobDir::Open(flags.folder + "/weights");
  if (!blobs.ok()) return context.Fail(blobs.status());
  std::sort(names->begin(), names->end());
  int rewritten = 0, refused = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(kModelEnd)) continue;
    if (StopSignal() != 0) return context.Fail(Err(StatusCode::kCancelled, "interrupted"));
    const std::string stem = flags.folder + "/" + name.substr(0, name.size() - kModelEnd.size());
    if (FileExists(stem + ".rewritten") || FileExists(stem + ".refused")) continue;
    const StatusOr<std::string> bytes = ReadFile(flags.folder + "/" + name);
    if (!bytes.ok()) return context.Fail(bytes.status());
    const auto made = Rewritten(*bytes, flags.steps, flags.seed, *blobs);
    const Status written = made.ok()
                               ? WriteFileAtomically(stem + ".rewritten", *made)
                               : WriteFileAtomically(stem + ".refused", ToString(made.status()));
    if (!written.ok()) return context.Fail(written);
    (made.ok() ? rewritten : refused) += 1;
  }
  context.Print(fmt::format("{} rewritten, {} refused", rewritten, refused));
  return kExitOk;
}

}  // namespace ag
