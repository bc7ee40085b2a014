// `autograph bench --compare OLD.onnx NEW.onnx`: for continuous integration.
#include <nlohmann/json.hpp>

#include "client/cli/bench.h"
#include "client/cli/compare_models.h"
#include "client/cli/local_model.h"
#include "client/cli/timing_text.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSeeds = 1;  // `verify` takes more; here one set finds a wrong model.

struct Pair {
  std::unique_ptr<Session> before, after;
  ModelMatch match;
};

StatusOr<Pair> LoadPair(Context& context, const BenchFlags& flags, Device& device) {
  ModelFlags old = flags.model;
  old.model = flags.compare;
  Pair pair;
  AG_LET(pair.before, LoadSession(old, PlanChoice::kCarried, device));
  AG_LET(pair.after, LoadSession(flags.model, PlanChoice::kCarried, device));
  if (flags.no_verify) {  // The outputs may then differ.
    AG_LET(pair.match.inputs, MatchTensors(pair.before->inputs(), pair.after->inputs(), "inputs",
                                           old.model, flags.model.model));
  } else {
    AG_LET(pair.match, MatchModels(*pair.before, *pair.after, old.model, flags.model.model));
  }
  for (const Session* session : {pair.before.get(), pair.after.get()}) {
    const bool first = session == pair.before.get();
    for (const std::string& warning : session->warnings()) {
      context.Note(fmt::format("warning: {}: {}", first ? "old" : "new", warning));
    }
  }
  return pair;
}

StatusOr<std::vector<PlanTiming>> Time(const Pair& pair, const std::vector<Tensor>& inputs,
                                       const BenchFlags& flags, Device& device) {
  std::vector<PlanToTime> plans;
  plans.push_back(ToTime(*pair.before, inputs));
  plans.push_back(ToTime(*pair.after, Reordered(inputs, pair.match.inputs)));
  AG_LET(std::vector<PlanTiming> timings, TimePlans(device, std::move(plans), flags));
  AG_TRY(timings[1].status, "{}", flags.model.model);
  return timings;
}

// Prints each output that differs; returns true when none does.
bool SayErrors(Context& context, const std::vector<OutputError>& errors, double tolerance,
               Json* json) {
  bool equivalent = true;
  double largest = 0;
  Json list = Json::array();
  for (const OutputError& error : errors) {
    largest = std::max(largest, error.max_rel);
    const bool same = IsEquivalent(error, tolerance);
    equivalent &= same;
    list.push_back({{"output", error.name},
                    {"max_abs", error.max_abs},
                    {"max_rel", error.max_rel},
                    {"nonfinite_differs", error.nonfinite_differs}});
    if (same || context.flags().json) continue;
    context.Print(fmt::format("{:<20} output {}: max abs {:.3g}, max rel {:.3g}, tolerance {}{}",
                              "DIFFERENT", error.name, error.max_abs, error.max_rel, tolerance,
                              error.nonfinite_differs ? "; Inf, NaN or shape differ" : ""));
  }
  (*json)["equivalent"] = equivalent;
  (*json)["tolerance"] = tolerance;
  (*json)["errors"] = list;
  if (equivalent && !context.flags().json) {
    context.Print(fmt::format("{:<20} within {}: max rel {:.2g}", "outputs", tolerance, largest));
  }
  return equivalent;
}

void SayTimings(Context& context, const std::vector<PlanTiming>& timings, Json* json) {
  const PlanTiming& after = timings[1];
  (*json)["verdict"] = VerdictName(after.verdict);
  (*json)["speedup"] = after.speedup;
  (*json)["speedup_low"] = after.speedup_low;
  (*json)["speedup_high"] = after.speedup_high;
  (*json)["timings"] = {TimingJson("old", timings[0]), TimingJson("new", after)};
  if (context.flags().json) return;
  context.Print(fmt::format("{:<20} {}", "old", LatencyText(timings[0].latency)));
  context.Print(fmt::format("{:<20} {}", "new", LatencyText(after.latency)));
  context.Print(fmt::format("{:<20} {}  {:.3f}x  ({:.3f} to {:.3f})  {} blocks, {} thrown away",
                            "verdict", VerdictName(after.verdict), after.speedup, after.speedup_low,
                            after.speedup_high, after.blocks, after.discarded));
}

// Wrong outputs count more than times.
int ExitOf(Verdict verdict, bool equivalent, const BenchFlags& flags) {
  if (!equivalent) return kExitFailed;
  if (verdict == Verdict::kSlower) return kExitSlower;
  return verdict == Verdict::kAmbiguous && flags.fail_ambiguous ? kExitSlower : kExitOk;
}

}  // namespace

StatusOr<int> BenchCompare(Context& context, const BenchFlags& flags) {
  AG_LET(const auto device, OpenLocalDevice(flags.model.device));
  AG_LET(const auto pair, LoadPair(context, flags, *device));
  Json json = BenchJson(flags, *device);
  json["old"] = flags.compare;
  json["new"] = flags.model.model;
  bool equivalent = true;
  if (!flags.no_verify) {
    AG_LET(const std::vector<NamedSet> own, OwnInputs(flags.model));
    AG_LET(const auto errors, CompareOutputs(*pair.before, *pair.after, pair.match, own, kSeeds));
    equivalent = SayErrors(context, errors, flags.tolerance, &json);
  }
  AG_LET(const std::vector<Tensor> inputs, InputsToTime(*pair.before, flags.model));
  AG_LET(const auto timings, Time(pair, inputs, flags, *device));
  SayTimings(context, timings, &json);
  AG_TRY(AddOrtTimes(context, flags, {flags.compare, flags.model.model},
                     ToInputSet(DescribeInputs(*pair.before), inputs), &json));
  FinishBench(context, *device, json);
  return ExitOf(timings[1].verdict, equivalent, flags);
}

}  // namespace ag
