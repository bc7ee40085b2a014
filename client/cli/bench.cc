#include <nlohmann/json.hpp>

#include "client/cli/local_model.h"
#include "client/cli/verbs.h"
#include "device/profile/profile.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

struct Contender {
  std::string name;  // "input", "eager", "plan", "input on N streams"
  std::unique_ptr<Session> session;
};

StatusOr<std::vector<Contender>> LoadContenders(const BenchFlags& flags, Device& device) {
  std::vector<Contender> contenders;
  AG_LET(auto input, LoadSession(flags.model, PlanChoice::kInput, device));
  contenders.push_back({"input", std::move(input)});
  AG_LET(auto eager, LoadSession(flags.model, PlanChoice::kEager, device));
  contenders.push_back({"eager", std::move(eager)});
  AG_LET(auto plan, LoadSession(flags.model, PlanChoice::kCarried, device));
  if (plan->uses_carried_plan()) contenders.push_back({"plan", std::move(plan)});
  if (flags.streams > 1) {
    AG_LET(auto streams, LoadSession(flags.model, PlanChoice::kInput, device, flags.streams));
    contenders.push_back({fmt::format("input on {} streams", flags.streams), std::move(streams)});
  }
  return contenders;
}

StatusOr<std::vector<PlanTiming>> Time(const std::vector<Contender>& contenders, Device& device,
                                       const BenchFlags& flags) {
  std::vector<PlanToTime> plans;
  for (const Contender& contender : contenders) {
    PlanToTime plan;
    plan.executable = &contender.session->executable();
    AG_LET(plan.inputs, GatherInputs(*contender.session, {}, 1));
    for (const TensorInfo& info : contender.session->outputs()) {
      plan.outputs.push_back(Tensor::Zeros(info.type));
    }
    plans.push_back(std::move(plan));
  }
  ProfileOptions options;
  options.finals_time = Nanos(static_cast<int64_t>(flags.seconds * 1e9));
  AG_LET(const auto alone, MeasureAlone(device));
  return ProfilePlans(device, std::move(plans), options, RealClock());
}

Json TimingJson(const std::string& name, const PlanTiming& timing) {
  return {{"name", name},
          {"latency_ms",
           {{"median", timing.latency.median_ns / 1e6},
            {"low", timing.latency.low_ns / 1e6},
            {"high", timing.latency.high_ns / 1e6}}},
          {"speedup", timing.speedup},
          {"speedup_low", timing.speedup_low},
          {"speedup_high", timing.speedup_high},
          {"verdict", VerdictName(timing.verdict)},
          {"blocks", timing.blocks},
          {"discarded", timing.discarded}};
}

}  // namespace

int RunBench(Context& context, const BenchFlags& flags) {
  const auto device = OpenLocalDevice(flags.model.device);
  if (!device.ok()) return Fail(device.status());
  const auto contenders = LoadContenders(flags, **device);
  if (!contenders.ok()) return Fail(contenders.status());
  const auto timings = Time(*contenders, **device, flags);
  if (!timings.ok()) return Fail(timings.status());
  Json list = Json::array();
  for (size_t i = 0; i < timings->size(); ++i) {
    const PlanTiming& timing = (*timings)[i];
    const std::string& name = (*contenders)[i].name;
    list.push_back(TimingJson(name, timing));
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<20} {:>10.3f} ms  ({:.3f} to {:.3f})  {:.3f}x of input  {}", name,
                              timing.latency.median_ns / 1e6, timing.latency.low_ns / 1e6,
                              timing.latency.high_ns / 1e6, timing.speedup,
                              i == 0 ? "" : VerdictName(timing.verdict)));
  }
  if (context.flags().json) {
    context.Print(Json{
        {"device", flags.model.device},
        {"environment", (*device)->environment()},
        {"simulated", (*device)->simulated()},
        {"timings",
         list}}.dump(2));
  } else if ((*device)->simulated()) {
    context.Note("simulated device: every time is an estimate");
  }
  return kExitOk;
}

int RunPlanShow(Context& context, const ModelFlags& flags) {
  const auto session = LoadSession(flags, PlanChoice::kCarried);
  if (!session.ok()) return Fail(session.status());
  for (const std::string& warning : (*session)->warnings()) context.Note("warning: " + warning);
  const Plan& plan = (*session)->plan();
  const std::string text = FormatPlan((*session)->graph(), plan);
  if (context.flags().json) {
    context.Print(Json{
        {"carried", (*session)->uses_carried_plan()},
        {"environment", plan.environment},
        {"groups", plan.groups.size()},
        {"streams", plan.streams.size()},
        {"arena_bytes", plan.arena_bytes},
        {"text",
         text}}.dump(2));
    return kExitOk;
  }
  context.Note((*session)->uses_carried_plan()
                   ? "the plan in the model:"
                   : "the model carries no plan; as the input would run:");
  context.Print(text);
  return kExitOk;
}

}  // namespace ag
