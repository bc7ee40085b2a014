// `autograph bench MODEL`: unfused, input and its plan, timed interleaved; also the entry of the
// other forms.
#include "client/cli/bench.h"

#include <nlohmann/json.hpp>

#include "client/cli/local_model.h"
#include "client/cli/ort.h"
#include "client/cli/timing_text.h"
#include "client/cli/verbs.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsDefault = 10;  // Of one model, or of two compared.

struct Contender {
  std::string name;  // "input", "unfused", "plan", "input on N streams"
  std::unique_ptr<Session> session;
};

StatusOr<std::vector<Contender>> LoadContenders(const Context& context, const BenchFlags& flags,
                                                Device& device) {
  std::vector<Contender> contenders;
  AG_LET(auto input, LoadSession(flags.model, PlanChoice::kInput, device));
  contenders.push_back({"input", std::move(input)});
  AG_LET(auto unfused, LoadSession(flags.model, PlanChoice::kUnfused, device));
  contenders.push_back({"unfused", std::move(unfused)});
  ModelFlags untuned = flags.model;  // Only a carried plan is kept: no tuning.
  untuned.tune = false;
  AG_LET(auto plan, LoadSession(untuned, PlanChoice::kCarried, device));
  for (const std::string& warning : plan->warnings()) context.Note("warning: " + warning);
  if (plan->uses_carried_plan()) contenders.push_back({"plan", std::move(plan)});
  if (flags.streams > 1) {
    AG_LET(auto streams, LoadSession(flags.model, PlanChoice::kInput, device, flags.streams));
    contenders.push_back({fmt::format("input on {} streams", flags.streams), std::move(streams)});
  }
  return contenders;
}

StatusOr<std::vector<PlanTiming>> Time(const std::vector<Contender>& contenders,
                                       const std::vector<Tensor>& inputs, Device& device,
                                       const BenchFlags& flags) {
  std::vector<PlanToTime> plans;
  for (const Contender& contender : contenders) {
    plans.push_back(ToTime(*contender.session, inputs));
  }
  return TimePlans(device, std::move(plans), flags);
}

// Flags of one form beside another form are an error.
Status CheckForms(const BenchFlags& flags) {
  const bool load = flags.clients > 0;
  const auto misplaced = [](const char* flag, const char* form) {
    return Err(StatusCode::kInvalidArgument, "{} goes with {} only", flag, form);
  };
  if (load && !flags.compare.empty()) {
    return Err(StatusCode::kInvalidArgument, "--compare and --clients are two different questions");
  }
  if (flags.cold_cache && load) {
    return Err(StatusCode::kInvalidArgument, "--cold-cache does not go with --clients");
  }
  if (flags.streams > 0 && (load || !flags.compare.empty())) {
    return Err(StatusCode::kInvalidArgument, "--streams does not go with --compare or --clients");
  }
  if (flags.cores_each > 0 && !load) return misplaced("--cores-each", "--clients");
  if (flags.runs > 0 && !load) return misplaced("--runs", "--clients");
  if (flags.no_verify && flags.compare.empty()) return misplaced("--no-verify", "--compare");
  if (flags.fail_ambiguous && flags.compare.empty()) {
    return misplaced("--fail-ambiguous", "--compare");
  }
  return OkStatus();
}

StatusOr<int> BenchAlone(Context& context, const BenchFlags& flags) {
  AG_LET(const auto device, OpenLocalDevice(flags.model.device));
  AG_LET(const auto contenders, LoadContenders(context, flags, *device));
  Session& first = *contenders[0].session;
  AG_LET(const std::vector<Tensor> inputs, InputsToTime(first, flags.model));
  AG_LET(const auto timings, Time(contenders, inputs, *device, flags));
  Json list = Json::array();
  for (size_t i = 0; i < timings.size(); ++i) {
    const PlanTiming& timing = timings[i];
    const std::string& name = contenders[i].name;
    if (!timing.status.ok()) return Within(timing.status, name);
    list.push_back(TimingJson(name, timing));
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<20} {}  {:.3f}x of input  {}", name, LatencyText(timing.latency),
                              timing.speedup, i == 0 ? "" : VerdictName(timing.verdict)));
  }
  Json json = BenchJson(flags, *device);
  json["timings"] = list;
  AG_TRY(AddOrtTimes(context, flags, {flags.model.model}, ToInputSet(DescribeInputs(first), inputs),
                     &json));
  FinishBench(context, *device, json);
  return kExitOk;
}

}  // namespace

PlanToTime ToTime(Session& session, std::vector<Tensor> inputs) {
  PlanToTime plan;
  plan.executable = &session.executable();
  plan.inputs = std::move(inputs);
  plan.outputs = session.NewOutputs();
  return plan;
}

StatusOr<std::vector<PlanTiming>> TimePlans(Device& device, std::vector<PlanToTime> plans,
                                            const BenchFlags& flags) {
  AG_TRY(CheckMeasures(device.spec(), {.cold_cache = flags.cold_cache}));
  ProfileOptions options;
  const double seconds = flags.seconds > 0 ? flags.seconds : kSecondsDefault;
  options.comparison_time = Nanos(static_cast<int64_t>(seconds * 1e9));
  options.cold_cache = flags.cold_cache;
  AG_LET(const auto alone, MeasureAlone(device));
  return ProfilePlans(device, std::move(plans), options, RealClock());
}

Json BenchJson(const BenchFlags& flags, const Device& device) {
  return {{"device", flags.model.device},
          {"environment", device.environment()},
          {"simulated", device.simulated()},
          {"cold_cache", flags.cold_cache}};
}

Status AddOrtTimes(Context& context, const BenchFlags& flags,
                   const std::vector<std::string>& models, const InputSet& inputs, Json* json) {
  if (!WantsOrt(flags.ort, flags.model.device)) return OkStatus();
  OrtRequest request;
  request.models = models;
  request.threads = OrtThreads(flags.model.device);
  request.seconds = flags.ort.seconds;
  request.shapes = flags.model.shapes;
  request.inputs = inputs;
  const bool two = models.size() == 2;
  const char* first = two ? "old" : "model";
  const char* second = two ? "new" : nullptr;
  const auto times = TimeInOrt(request);
  if (!times.ok() && flags.ort.mode == "require") return times.status();
  (*json)["onnxruntime"] = OrtJson(times, first, second);
  if (!times.ok()) {
    context.Note(OrtAbsence(times.status(), context.terminal()));
  } else if (!context.flags().json) {
    context.Print(fmt::format("{:<20} {}", "onnxruntime", OrtText(*times, first, second)));
  }
  return OkStatus();
}

void FinishBench(Context& context, const Device& device, const Json& json) {
  if (context.flags().json) {
    context.Print(json.dump(2));
  } else if (device.simulated()) {
    context.Note("simulated device: every time is an estimate");
  }
}

StatusOr<int> RunBench(Context& context, const BenchFlags& flags) {
  if (const Status forms = CheckForms(flags); !forms.ok()) return context.FailUsage(forms);
  AG_TRY(CheckOrt(flags.ort));
  if (!flags.compare.empty()) return BenchCompare(context, flags);
  return flags.clients > 0 ? BenchClients(context, flags) : BenchAlone(context, flags);
}

}  // namespace ag
