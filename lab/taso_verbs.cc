// The verbs coverage and import.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/signals.h"
#include "client/cli/verbs.h"
#include "lab/taso/builtins.h"
#include "lab/taso/coverage.h"
#include "lab/taso/import.h"
#include "lab/verbs.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

StatusOr<std::vector<TasoRule>> Load(const std::string& path) {
  AG_LET(const std::string bytes, ReadFile(path));
  auto rules = ReadTasoFile(bytes);
  if (!rules.ok()) return Within(rules.status(), path);
  return rules;
}

Json ToJson(const TasoCoverage& c) {
  return {{"rule", c.rule},
          {"text", c.text},
          {"verdict", std::string(TasoVerdictName(c.verdict))},
          {"path", c.path},
          {"regrouped", c.regrouped},
          {"guard", c.guard},
          {"counter_example", c.counter_example},
          {"difference", c.difference},
          {"reason", c.reason},
          {"missed", c.missed},
          {"tested", c.tested},
          {"held", c.held},
          {"tried", c.tried},
          {"reached", c.reached}};
}

}  // namespace

int RunCoverage(Context& context, const TasoFlags& flags) {
  auto rules = Load(flags.file);
  if (!rules.ok()) return context.Fail(rules.status());
  const auto ours = LoadRules(flags.rules);
  if (!ours.ok()) return context.Fail(ours.status());
  for (TasoRule& builtin : TasoBuiltins()) rules->push_back(std::move(builtin));
  CatchStopSignals();
  std::vector<TasoCoverage> coverage;
  Json list = Json::array();
  int unknown = 0;
  for (const TasoRule& rule : *rules) {
    if (StopSignal() != 0) return context.Fail(Err(StatusCode::kCancelled, "interrupted"));
    coverage.push_back(CoverTasoRule(rule, *ours, {.steps_max = flags.steps, .seed = flags.seed}));
    unknown += coverage.back().verdict == TasoVerdict::kUnknown;
    list.push_back(ToJson(coverage.back()));
    if (!context.flags().json) context.Print(FormatTasoCoverage(coverage.back()));
  }
  const std::string summary = TasoCoverageSummary(coverage);
  context.Print(context.flags().json ? Json{{"rules", list}, {"summary", summary}}.dump(2)
                                     : summary);
  return unknown == 0 ? kExitOk : kExitFailed;
}

int RunImport(Context& context, const TasoFlags& flags) {
  const auto rules = Load(flags.file);
  if (!rules.ok()) return context.Fail(rules.status());
  if (const Status writable = CheckWritable(flags.output); !writable.ok())
    return context.Fail(writable);
  CatchStopSignals();
  std::vector<TasoImport> imports;
  Json list = Json::array();
  int proved = 0;
  for (const TasoRule& rule : *rules) {
    if (StopSignal() != 0) return context.Fail(Err(StatusCode::kCancelled, "interrupted"));
    imports.push_back(ImportTasoRule(rule, {.instances = flags.instances, .seed = flags.seed}));
    const TasoImport& import = imports.back();
    proved += import.proved;
    list.push_back({{"rule", import.rule},
                    {"proved", import.proved},
                    {"line", import.line},
                    {"guards", import.guards},
                    {"why", import.why}});
  }
  const std::string name = flags.file.substr(flags.file.find_last_of('/') + 1);
  const Status written = WriteFileAtomically(flags.output, FormatTasoImport(*rules, imports, name));
  if (!written.ok()) return context.Fail(written);
  context.Print(context.flags().json
                    ? Json{{"file", flags.output}, {"proved", proved}, {"rules", list}}.dump(2)
                    : fmt::format("{}: {} of {} rules proved, the others commented out",
                                  flags.output, proved, imports.size()));
  return kExitOk;
}

}  // namespace ag
