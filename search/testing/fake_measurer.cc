#include "search/testing/fake_measurer.h"

#include "graph/text_form.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/makespan.h"
#include "plan/segments.h"

namespace ag {
namespace {

GroupPattern One(std::string name, std::vector<OpKind> ops) {
  return {.name = std::move(name), .steps = {{.ops = std::move(ops)}}, .layouts = {Layout::kPlain}};
}

PlanTiming TimingOf(double ns, double input_ns) {
  PlanTiming timing{.latency = {ns, ns * 0.99, ns * 1.01}, .speedup = input_ns / ns, .blocks = 4};
  timing.speedup_low = timing.speedup * (1 - FakeMeasurer::kIntervalShare);
  timing.speedup_high = timing.speedup * (1 + FakeMeasurer::kIntervalShare);
  if (timing.speedup_low > 1) timing.verdict = Verdict::kFaster;
  if (timing.speedup_high < 1) timing.verdict = Verdict::kSlower;
  return timing;
}

}  // namespace

DeviceSpec TestSpec(int streams_max) {
  DeviceSpec spec{.name = "test", .dtypes = {DType::kFloat32}};
  spec.cores = 4;
  spec.streams_max = streams_max;
  spec.flops_per_second = 1e9;
  spec.bytes_per_second = 1e10;
  spec.cache_bytes_per_second = 1e11;
  spec.cache_bytes = 1 << 20;
  spec.launch_ns = 1000;
  spec.event_ns = 100;
  spec.memory_bytes = int64_t{1} << 30;
  GroupPattern matmul = One("matmul", {OpKind::kMatMul});
  matmul.steps.push_back({.ops = {OpKind::kRelu}, .optional = true});
  std::vector<OpKind> others;
  for (const OpInfo& op : AllOps()) {
    if (op.kind != OpKind::kMatMul && !Has(op.kind, kLeaf) && !Has(op.kind, kBarrier)) {
      others.push_back(op.kind);
    }
  }
  spec.patterns = {std::move(matmul), One("one", std::move(others))};
  return spec;
}

Graph TestGraph(std::string_view text) {
  StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) fmt::print(stderr, "{}\n", Message(graph.status()));
  AG_CHECK(graph.ok());
  return *std::move(graph);
}

RuleSet TestRules(std::string_view text) {
  StatusOr<RuleSet> rules = RuleSet::Parse(text, "test.rules");
  if (!rules.ok()) fmt::print(stderr, "{}\n", Message(rules.status()));
  AG_CHECK(rules.ok());
  return *std::move(rules);
}

FakeMeasurer FakeMeasurer::OnRoofline(const DeviceSpec& spec) {
  FakeMeasurer measurer(spec);
  measurer.group_ns = [spec](const GroupProblem& problem) { return RooflineNs(problem, spec); };
  measurer.is_exact = true;
  measurer.keeps_calls = false;
  return measurer;
}

double FakeMeasurer::HashedNs(const GroupProblem& problem) const {
  const Digest digest = Sha256(EncodeGroupProblem(problem));
  return RooflineNs(problem, spec_) * (1 + digest.bytes[0] / 512.0);
}

double FakeMeasurer::GroupNs(const GroupProblem& problem) const {
  return group_ns ? group_ns(problem) : HashedNs(problem);
}

int FakeMeasurer::ActiveCores(const GroupProblem& problem) const {
  return active_cores ? active_cores(problem) : EstimateGroup(problem, spec_).active_cores;
}

double FakeMeasurer::SimulatedNs(const Candidate& candidate) const {
  const Plan& plan = candidate.plan;
  if (plan.segments.empty()) return RunNs(candidate.graph, plan);
  const StatusOr<std::vector<GraphPiece>> pieces = PiecesOf(candidate.graph, plan);
  AG_CHECK(pieces.ok());
  double ns = 0;
  for (size_t s = 0; s < pieces->size(); ++s) {
    ns += plan.segments[s].instances * RunNs((*pieces)[s].graph, plan.segments[s].plan);
  }
  ns /= plan.beside;  // As if runs beside each other shared nothing but the cores.
  return ns;
}

double FakeMeasurer::RunNs(const Graph& graph, const Plan& plan) const {
  std::vector<double> ns;
  Contention contention{.overlap = overlap};
  for (const Group& group : plan.groups) {
    const bool is_view = group.pattern == kViewPattern;
    const GroupProblem problem = is_view ? GroupProblem() : ExtractGroup(graph, group, plan.policy);
    ns.push_back(is_view ? 0 : GroupNs(problem));
    contention.active_cores.push_back(is_view ? 0 : ActiveCores(problem));
  }
  return MakespanNs(graph, plan, ns, spec_, contention);
}

std::vector<StatusOr<Measurement>> FakeMeasurer::MeasurePairs(
    const std::vector<PairProblem>& pairs) {
  if (keeps_calls) pair_calls.push_back(pairs);
  std::vector<StatusOr<Measurement>> results;
  for (const PairProblem& pair : pairs) {
    const StatusOr<PairRun> run = PlanOfPair(pair);
    AG_CHECK(run.ok());
    const double ns = RunNs(run->graph, run->plan);
    results.push_back(Measurement{.latency = {ns, ns, ns}, .samples = 3});
    if (!pair_failure.ok()) results.back() = pair_failure;
  }
  return results;
}

StatusOr<std::vector<KernelChoice>> FakeMeasurer::RefinePlan(const Candidate& candidate) {
  if (keeps_calls) refine_calls.push_back(candidate);
  if (refine) return refine(candidate);
  return std::vector<KernelChoice>();
}

std::vector<StatusOr<Measurement>> FakeMeasurer::MeasureGroups(
    const std::vector<GroupProblem>& problems) {
  if (keeps_calls) group_calls.push_back(problems);
  std::vector<StatusOr<Measurement>> results;
  for (const GroupProblem& problem : problems) {
    const Status failure = group_failure ? group_failure(problem) : OkStatus();
    if (!failure.ok()) {
      results.push_back(failure);
      continue;
    }
    const double ns = GroupNs(problem);
    results.push_back(Measurement{.latency = {ns, ns, ns},
                                  .samples = 3,
                                  .kernel = "fake",
                                  .simulated = is_exact,
                                  .active_cores = ActiveCores(problem)});
  }
  return results;
}

StatusOr<std::vector<PlanTiming>> FakeMeasurer::MeasurePlans(
    const std::vector<Candidate>& candidates, Effort effort) {
  const int call = static_cast<int>(plan_calls.size());
  if (keeps_calls) {
    plan_calls.push_back(candidates);
    plan_efforts.push_back(effort);
  }
  if (call_failure) AG_TRY(call_failure(call));
  std::vector<PlanTiming> timings;
  double input_ns = 0;
  for (const Candidate& candidate : candidates) {
    const double true_ns = plan_ns ? plan_ns(candidate) : SimulatedNs(candidate);
    const double ns = true_ns * (1 + noise * (2 * random.Unit() - 1));
    if (timings.empty()) input_ns = ns;
    PlanTiming timing = TimingOf(ns, input_ns);
    if (plan_failure) timing.status = plan_failure(candidate);
    timings.push_back(std::move(timing));
  }
  timings[0].speedup = timings[0].speedup_low = timings[0].speedup_high = 1;
  timings[0].verdict = Verdict::kSame;
  return timings;
}

}  // namespace ag
