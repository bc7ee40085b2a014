// How well each estimate ranks plans, beside how well a second measurement does.
//   build/rank [--device D] [--precision P] [--plans N] [--seed N] [--blocks N] [--group-ms MS]
//     [MODEL...]
// (cpu, fp32, 60 plans, seed 1, 5 paired blocks a plan, 30 ms a kernel; squeezenet, resnet50,
// inception_v3, bert)
// Walks of random rewrites make graphs of the model; each gets a plan: of the best cover, of a
// cover that a disturbed look at the groups' times chooses, of one layout, without groups in one
// layout, with kernels that lost for a share of its groups, on one stream or several. All are timed
// beside the input's plan in sets, twice, in another order. Prints Spearman's coefficient of each
// estimate with the first measurement, beside that of the second with the first; the same among the
// 20 fastest; and by how much the plan that is the estimate's first is slower than the fastest of
// the estimate's best 20. Then, of all graphs with their best plans, the same of the search's own
// estimate with the simulated makespan, which needs no measurement. "corrected" is the makespan
// with each pattern's times multiplied by what the input's traced runs say of them: how much longer
// they take inside the plan than alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/random.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "graph/structure_hash.h"
#include "plan/format/plan_codec.h"
#include "plan/fusion/grouping.h"
#include "plan/interval.h"
#include "plan/rank_correlation.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedule_problem.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/candidates.h"
#include "search/rewrite_walk.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

struct Options {
  std::string device = "cpu";
  std::string precision = "fp32";
  int plans = 60;
  int seed = 1;
  int blocks = 5;  // As the search ranks (server/pipeline/pool_measurer.cc).
  int group_ms = 30;
  std::vector<std::string> models;
};

// Plans in one call of ProfilePlans, besides the input: all are in memory at once.
constexpr size_t kSetMax = 8;
// Graphs along one walk of rewrites, and the most nodes in proportion to the input.
constexpr int kWalkLength = 10;
constexpr int kGrowthMax = 2;
// Draws of a plan per plan that is wanted: a model of few rewrites has few plans.
constexpr int kTriesMax = 5;
// The most that a kernel may take in proportion to a group's fastest one, to be in a plan.
constexpr double kSlowest = 10;
// Runs of a plan from which the times of its groups inside are taken.
constexpr int kTracedRuns = 21;
// Those among which an estimate's first choice is to be good.
constexpr size_t kBest = 20;

// Times on the device, as a worker measures.
class DeviceMeasurer : public Measurer {
 public:
  DeviceMeasurer(Device& device, const WeightSource& weights, const Options& options)
      : device_(device), weights_(weights), monitor_(ReadMachine, RealClock()) {
    profile_.blocks_max = options.blocks;
    profile_.group_time = std::chrono::milliseconds(options.group_ms);
    if (!device.simulated()) profile_.interference = &monitor_;
  }

  std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) override {
    std::vector<StatusOr<Measurement>> results =
        MeasureOn(device_, profile_, RealClock())(problems);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) measured_[EncodeGroupProblem(problems[i])] = *results[i];
    }
    return results;
  }
  // Returns what was measured of the group; null: nothing.
  const Measurement* Measured(const GroupProblem& problem) const {
    const auto it = measured_.find(EncodeGroupProblem(problem));
    return it == measured_.end() ? nullptr : &it->second;
  }
  std::vector<StatusOr<Measurement>> MeasurePairs(const std::vector<PairProblem>& pairs) override {
    std::vector<StatusOr<Measurement>> results;
    for (const PairProblem& pair : pairs) {
      results.push_back(ProfilePair(device_, pair, profile_, RealClock()));
    }
    return results;
  }
  StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                 Effort) override {
    std::vector<std::unique_ptr<Executable>> built;
    std::vector<PlanToTime> plans;
    for (const Candidate& candidate : candidates) {
      AG_LET(auto executable, device_.Build({candidate.graph, candidate.plan, weights_}));
      plans.push_back(
          {executable.get(), UsualInputs(candidate.graph, 1), EmptyOutputs(candidate.graph)});
      built.push_back(std::move(executable));
    }
    AG_LET(auto timings, ProfilePlans(device_, std::move(plans), profile_, RealClock()));
    for (size_t i = 1; i < timings.size(); ++i) {
      blocks_ += timings[i].blocks;
      disturbed_ += timings[i].disturbed;
    }
    return timings;
  }

  // Returns the median time of each group in traced runs of the plan; 0 of those without one.
  StatusOr<std::vector<double>> Trace(const Candidate& candidate) {
    AG_LET(const auto executable, device_.Build({candidate.graph, candidate.plan, weights_}));
    const std::vector<Tensor> inputs = UsualInputs(candidate.graph, 1);
    std::vector<Tensor> outputs = EmptyOutputs(candidate.graph);
    std::vector<std::vector<double>> samples(candidate.plan.groups.size());
    for (int run = 0; run < kTracedRuns; ++run) {
      std::vector<TraceEvent> trace;
      AG_TRY(executable->Time({inputs, outputs, 1, Caches::kAsLeft, &trace}));
      for (const TraceEvent& event : trace) {
        samples[static_cast<size_t>(event.group)].push_back(
            static_cast<double>((event.end - event.begin).count()));
      }
    }
    std::vector<double> medians;
    for (const auto& of_group : samples) {
      medians.push_back(of_group.empty() ? 0 : Median(of_group));
    }
    return medians;
  }

  int blocks() const { return blocks_; }
  int disturbed() const { return disturbed_; }

 private:
  static ProcessorTimes ReadMachine() { return ReadProcessorTimes(); }

  Device& device_;
  const WeightSource& weights_;
  ProcessorMonitor monitor_;
  ProfileOptions profile_;
  std::map<std::string, Measurement> measured_;  // By the group's bytes.
  int blocks_ = 0, disturbed_ = 0;
};

// Looks at times through a factor that depends on the group: another cover looks the best.
class DisturbedTimes : public GroupTimes {
 public:
  DisturbedTimes(GroupTimes& times, double sigma, uint64_t seed)
      : times_(times), sigma_(sigma), seed_(seed) {}
  GroupTime Time(const GroupProblem& problem) override {
    GroupTime time = times_.Time(problem);
    const Digest digest = Sha256(EncodeGroupProblem(problem));
    Random random(seed_ + digest.bytes[0] + 256 * digest.bytes[1]);
    time.ns *= std::exp(sigma_ * random.Normal());
    return time;
  }

 private:
  GroupTimes& times_;
  const double sigma_;
  const uint64_t seed_;
};

struct Subject {
  Candidate candidate;
  PlanEstimates estimates;
  double corrected_ns = 0;       // The makespan with the groups' times inside plans.
  double first = 0, second = 0;  // Time over the input's, measured twice.
};

using Estimate = double PlanEstimates::*;
constexpr std::pair<const char*, Estimate> kEstimates[] = {
    {"mixed", &PlanEstimates::mixed_ns},
    {"sum", &PlanEstimates::sum_ns},
    {"critical path", &PlanEstimates::critical_path_ns},
    {"makespan", &PlanEstimates::makespan_ns}};

class Ranking {
 public:
  Ranking(const Options& options, Device& device, Graph input, const MemoryWeights& weights)
      : options_(options),
        random_(static_cast<uint64_t>(options.seed)),
        request_{.input = std::move(input),
                 .rules = &BuiltInRules(),
                 .spec = device.spec(),
                 .environment = device.environment(),
                 .options = {.limits = {.time_max = Nanos::max()}}},
        measurer_(device, weights, options),
        run_(request_, RealClock()),
        times_(request_.spec, measurer_.ForGroups()),
        pairs_(request_.spec, measurer_, request_.options.limits.pairs_max),
        pool_(request_.threads),
        setting_{request_, BuiltInRules(), times_, pairs_, run_, pool_} {
    request_.policy.precision = options.precision;
  }

  Status Run(const std::string& name) {
    name_ = name;
    AG_LET(input_, MakeOneStreamPlan(request_.input, setting_));
    AG_TRY(FitCorrections());
    MakeGraphs();
    for (int i = 0; i < kTriesMax * options_.plans && IsShort(); ++i) {
      const auto graphs = graphs_.size();
      const auto turn = static_cast<size_t>(i);
      AG_TRY(AddSubject(graphs_[turn < graphs ? turn : random_.Below(graphs)]));
    }
    AG_TRY(MeasureAll(&Subject::first));
    AG_TRY(MeasureAll(&Subject::second));
    Print();
    return PrintObjective();
  }

 private:
  // Distinct graphs along random walks that begin at the input; the input is the first.
  void MakeGraphs() {
    std::set<std::pair<uint64_t, uint64_t>> seen;
    const auto keep = [&](const Graph& graph) {
      const StructureHash hash = HashOfStructure(graph);
      if (seen.insert({hash.a, hash.b}).second) graphs_.push_back(graph);
    };
    keep(request_.input);
    const auto wanted = static_cast<size_t>(options_.plans);
    for (int walks = 0; graphs_.size() < wanted && walks < options_.plans; ++walks) {
      RewriteWalk walk(request_.input, BuiltInRules());
      for (int step = 0; step < kWalkLength && graphs_.size() < wanted; ++step) {
        const std::vector<Rewrite> rewrites = FindRewrites(walk.graph(), BuiltInRules());
        if (rewrites.empty()) break;
        StatusOr<Graph> after = walk.After(rewrites[random_.Below(rewrites.size())]);
        if (!after.ok() || after->size() > kGrowthMax * request_.input.size()) continue;
        walk.GoTo(*std::move(after));
        if (!MakeOneStreamPlan(walk.graph(), setting_).ok()) break;  // The device lacks a group.
        keep(walk.graph());
      }
    }
  }

  // Fits for each pattern how much longer its groups take inside the input's plan than alone.
  Status FitCorrections() {
    AG_LET(const std::vector<double> traced, measurer_.Trace(input_));
    std::map<std::string, std::pair<double, double>> sums;
    for (size_t g = 0; g < traced.size(); ++g) {
      const Group& group = input_.plan.groups[g];
      if (group.pattern == kViewPattern || traced[g] <= 0) continue;
      auto& [inside_ns, alone_ns] = sums[group.pattern];
      inside_ns += traced[g];
      alone_ns += times_.Time(ExtractGroup(input_.graph, group, request_.policy)).ns;
    }
    for (const auto& [pattern, sum] : sums) {
      corrections_[pattern] = sum.first / sum.second;
      std::printf("  %s: %.3f of its time alone\n", pattern.c_str(), corrections_[pattern]);
    }
    return OkStatus();
  }

  bool IsShort() const { return static_cast<int>(subjects_.size()) < options_.plans; }

  // Adds one plan of the graph, of a kind that is drawn, unless it is there.
  Status AddSubject(const Graph& graph) {
    const std::vector<Layout> layouts = LayoutChoices(graph, request_.spec);
    const int streams_max = StreamsMax(request_);
    GroupingOptions grouping{.mixed_layouts = true};
    double sigma = 0;
    const double slow_share = random_.Below(2) == 0 ? random_.Unit() : 0;
    switch (random_.Below(6)) {
      case 1:
        sigma = 0.3;
        break;
      case 2:
        grouping = {.layout = layouts[random_.Below(layouts.size())]};
        break;
      case 3:
        sigma = 1;
        break;
      case 4:
        grouping = {.grouped = false, .layout = layouts[random_.Below(layouts.size())]};
        break;
      default:
        break;
    }
    const bool is_wide = random_.Below(3) == 0 && streams_max > 1;
    const int streams =
        is_wide ? 2 + static_cast<int>(random_.Below(static_cast<uint64_t>(streams_max) - 1)) : 1;
    const PlanRequest request = setting_.For(graph, grouping, streams);
    DisturbedTimes disturbed(times_, sigma, random_.Next());
    AG_LET(TimedPlan plan,
           sigma > 0 ? MakeTimedPlan(request, disturbed) : MakeMeasuredPlan(request, times_));
    TakeTrueTimes(request, slow_share, &plan);
    if (!plan.failure.ok()) return OkStatus();
    plan.plan.environment = request_.environment;
    if (!known_.insert(EncodePlan(plan.plan)).second) return OkStatus();
    const PlanEstimates estimates = EstimatesOf(graph, plan, request_.options.alpha);
    std::vector<double> ns = NsOf(plan.times);
    for (size_t g = 0; g < ns.size(); ++g) {
      const auto found = corrections_.find(plan.plan.groups[g].pattern);
      if (found != corrections_.end()) ns[g] *= found->second;
    }
    const double corrected_ns =
        MakespanNs(graph, plan.plan, ns, request_.spec, ContentionOf(plan.times, request.overlap));
    subjects_.push_back({{graph, std::move(plan.plan)}, estimates, corrected_ns});
    return OkStatus();
  }

  // Gives a plan the measured times of its groups, this share of them by a kernel that lost.
  void TakeTrueTimes(const PlanRequest& request, double slow_share, TimedPlan* plan) {
    std::vector<std::optional<GroupProblem>> problems;
    for (const Group& group : plan->plan.groups) {
      problems.emplace_back();
      if (group.pattern == kViewPattern) continue;
      problems.back() = ExtractGroup(request.graph, group, request.policy);
      times_.Want(*problems.back());
    }
    times_.MeasureWanted();
    for (size_t g = 0; g < problems.size(); ++g) {
      if (!problems[g]) continue;
      plan->times[g] = times_.Time(*problems[g]);
      if (random_.Unit() < slow_share) TakeSlower(*problems[g], &plan->times[g]);
      plan->plan.groups[g].kernel = plan->times[g].kernel;
      if (plan->times[g].measured()) continue;
      plan->failure = Err(StatusCode::kUnavailable, "group {}: not measured", g);
    }
    plan->makespan_ns = MakespanNs(request.graph, plan->plan, NsOf(plan->times), request.spec,
                                   ContentionOf(plan->times, request.overlap));
  }

  // Takes one of the other kernels that were timed, if it takes at most kSlowest as long.
  void TakeSlower(const GroupProblem& problem, GroupTime* time) {
    const Measurement* measured = measurer_.Measured(problem);
    if (measured == nullptr) return;
    std::vector<std::pair<std::string, double>> others = measured->alternatives;
    std::erase_if(others, [&](const auto& other) { return other.second > kSlowest * time->ns; });
    if (others.empty()) return;
    // Of two draws the slower one, so that plans differ by more than noise.
    std::tie(time->kernel, time->ns) =
        std::max(others[random_.Below(others.size())], others[random_.Below(others.size())],
                 [](const auto& a, const auto& b) { return a.second < b.second; });
  }

  // Times all plans beside the input in sets, in an order of its own.
  Status MeasureAll(double Subject::*time) {
    std::vector<Subject*> order;
    for (Subject& subject : subjects_) order.push_back(&subject);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    for (size_t begin = 0; begin < order.size(); begin += kSetMax) {
      const size_t end = std::min(order.size(), begin + kSetMax);
      std::vector<Candidate> set{input_};
      for (size_t i = begin; i < end; ++i) set.push_back(order[i]->candidate);
      AG_LET(const std::vector<PlanTiming> timings,
             measurer_.MeasurePlans(set, Measurer::Effort::kRanking));
      input_ns_ = timings[0].latency.median_ns;
      for (size_t i = begin; i < end; ++i) {
        const PlanTiming& timing = timings[i - begin + 1];
        AG_TRY(timing.status, "plan {}", i);
        order[i]->*time = 1 / timing.speedup;
      }
    }
    return OkStatus();
  }

  template <class Value>
  static std::vector<double> Column(const std::vector<const Subject*>& subjects, Value value) {
    std::vector<double> column;
    for (const Subject* subject : subjects) column.push_back(value(*subject));
    return column;
  }

  static std::vector<const Subject*> Best(std::vector<const Subject*> subjects, auto value) {
    std::ranges::stable_sort(subjects, {}, [&](const Subject* subject) { return value(*subject); });
    if (subjects.size() > kBest) subjects.resize(kBest);
    return subjects;
  }

  // A row of the table. `value` is an estimate, or the second measurement.
  void PrintRow(const char* name, const std::vector<const Subject*>& all, auto value) const {
    const auto first = [](const Subject& subject) { return subject.first; };
    const auto mean = [](const Subject& subject) { return (subject.first + subject.second) / 2; };
    const auto rho = [&](const std::vector<const Subject*>& subjects) {
      return Spearman(Column(subjects, value), Column(subjects, first));
    };
    const std::vector<const Subject*> choice = Best(all, value);
    const std::vector<double> chosen = Column(choice, mean);
    std::printf("  %-14s %8.3f %12.3f %14.1f %%\n", name, rho(all), rho(Best(all, mean)),
                100 * (chosen[0] / *std::ranges::min_element(chosen) - 1));
  }

  void Print() const {
    std::vector<const Subject*> all;
    for (const Subject& subject : subjects_) all.push_back(&subject);
    const std::vector<double> times = Column(all, [](const Subject& s) { return s.first; });
    const auto [least, most] = std::ranges::minmax(times);
    std::printf(
        "%s on %s, %s: %zu plans of %zu graphs, %.3f to %.3f times the input's %.3f ms; %d of %d "
        "blocks beside foreign load\n",
        name_.c_str(), options_.device.c_str(), options_.precision.c_str(), subjects_.size(),
        graphs_.size(), least, most, input_ns_ / 1e6, measurer_.disturbed(), measurer_.blocks());
    std::printf("  %-14s %8s %12s %16s\n", "Spearman of", "all", "best 20", "first choice");
    for (const auto& [name, estimate] : kEstimates) {
      PrintRow(name, all,
               [estimate = estimate](const Subject& s) { return s.estimates.*estimate; });
    }
    PrintRow("corrected", all, [](const Subject& s) { return s.corrected_ns; });
    PrintRow("groups", all, [](const Subject& s) { return s.estimates.groups; });
    PrintRow("measured again", all, [](const Subject& s) { return s.second; });
    std::fflush(stdout);
  }

  // Of all graphs: by which estimate the search goes, and the makespan of the best plan.
  Status PrintObjective() {
    std::vector<double> objective, makespan;
    for (const Graph& graph : graphs_) {
      AG_TRY(FormMeasuredGroups(setting_.For(graph), times_));
      AG_LET(const std::vector<PlanCandidate> plans, MakePlans(graph, setting_));
      objective.push_back(EstimateNs(graph, setting_));
      makespan.push_back(std::ranges::min(plans, {}, &PlanCandidate::makespan_ns).makespan_ns);
    }
    std::printf("  the search's estimate with the simulated makespan of the best plan: %.3f\n",
                Spearman(objective, makespan));
    std::fflush(stdout);
    return OkStatus();
  }

  const Options& options_;
  Random random_;
  std::string name_;
  SearchRequest request_;
  DeviceMeasurer measurer_;
  SearchRun run_;
  LearnedTimes times_;
  PairTimes pairs_;
  ThreadPool pool_;
  const SearchSetting setting_;
  PlanCandidate input_;
  double input_ns_ = 0;
  std::vector<Graph> graphs_;
  std::vector<Subject> subjects_;
  std::set<std::string> known_;                // Their plans.
  std::map<std::string, double> corrections_;  // By pattern.
};

std::string Load() {
  std::string text;
  std::ifstream file("/proc/loadavg");
  std::getline(file, text);
  return text;
}

Status RankModel(const Options& options, Device& device, const std::string& name) {
  MemoryWeights weights;
  AG_LET(const Graph graph, BuildZooModel(name, {}, &weights));
  AG_LET(Graph input, CleanUp(graph, BuiltInRules()));
  return Ranking(options, device, std::move(input), weights).Run(name);
}

Status RankAll(const Options& options) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(options.device));
  AG_LET(const auto alone, MeasureAlone(*device));
  std::printf("load before: %s\n", Load().c_str());
  for (const std::string& name : options.models)
    AG_TRY(RankModel(options, *device, name), "{}", name);
  std::printf("load after: %s\n", Load().c_str());
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("How well each estimate ranks plans", "rank");
  ag::ShowDefaults(app);
  app.add_option("--device", options.device, "Device");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("--plans", options.plans, "Plans of a model")->check(ag::WrongAmount);
  app.add_option("--seed", options.seed, "Seed of the walks and plans");
  app.add_option("--blocks", options.blocks, "Paired blocks of a plan")->check(ag::WrongAmount);
  app.add_option("--group-ms", options.group_ms, "Milliseconds of a kernel")
      ->check(ag::WrongAmount);
  app.add_option("MODEL", options.models, "Models of the zoo");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.models.empty()) options.models = {"squeezenet", "resnet50", "inception_v3", "bert"};
  if (const ag::Status status = ag::RankAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
