// How far a session that measures nothing is from a tuned one, and where its guesses are wrong.
//   build/first_guesses [--groups] [--seconds S] [--streams N] [--kernel NAME]... MODEL...
//                                                             (MODEL: of the zoo, or a file)
// A line for each model: medians of three plans run in turn (by the bare roofline, as a session
// guesses, tuned), the ratios of the first two to the third with their middle half, the seconds of
// tuning; then by how much the groups of a pattern differ. --groups: every group that was measured
// on the way, each kernel's time alone. --streams: the guesses on one and on so many streams, in
// turn with the others, and first the simulated end of the second over that of the first. --kernel:
// the guessed plan with this kernel wherever a group has it, in turn with the others.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "bench/models/load_model.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "plan/fusion/grouping.h"
#include "plan/interval.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "runtime/tune_plan.h"

namespace ag {
namespace {

constexpr int kRoundsMin = 9;

StatusOr<LoadedModel> LoadCleaned(const std::string& name) {
  AG_LET(LoadedModel model, LoadModel(name));
  AG_LET(model.graph, CleanUp(model.graph, BuiltInRules()));
  return model;
}

// A plan of the model on its way through the comparison.
struct Contender {
  std::string name;
  Plan plan;
  std::unique_ptr<Executable> executable;
  std::vector<double> whole_ns;
  std::vector<std::vector<double>> group_ns;  // By group.
};

using Sums = std::map<std::string, double>;  // Nanoseconds by pattern.

Sums SumsOf(const Contender& one) {
  Sums sums;
  for (size_t i = 0; i < one.group_ns.size(); ++i) {
    if (!one.group_ns[i].empty()) sums[one.plan.groups[i].pattern] += Median(one.group_ns[i]);
  }
  return sums;
}

// Times every group that grouping asks for and prints it.
GroupMeasurer Printing(Device& device) {
  const auto measure = MeasureOn(device, {.group_time = Nanos(10'000'000)}, RealClock());
  return [measure, &device](const std::vector<GroupProblem>& problems) {
    auto results = measure(problems);
    for (size_t i = 0; i < problems.size(); ++i) {
      if (!results[i].ok()) continue;
      const GroupProblem& p = problems[i];
      std::printf("  group %s", Summary(p).c_str());
      for (size_t k = 0; k < p.graph.inputs().size(); ++k) {
        std::printf(" %s:%s", p.graph.type({p.graph.inputs()[k], 0}).ToString().c_str(),
                    std::string(LayoutName(p.input_layouts[k])).c_str());
      }
      for (const Node& node : p.graph.nodes()) {
        if (node.op != OpKind::kConv) continue;
        std::printf(" w%s s%ld g%ld d%ld", p.graph.type(node.inputs[1]).ToString().c_str(),
                    node.IntList("strides")[0], node.Int("group"), node.IntList("dilations")[0]);
      }
      for (const Node& node : p.graph.nodes()) {
        if (node.op != OpKind::kMatMul) continue;
        std::printf(" mm%s", p.graph.type(node.inputs[1]).ToString().c_str());
      }
      const Measurement& m = *results[i];
      std::printf(" > %s | est %.1f flops %.4g bytes %.4g | %s=%.1f",
                  std::string(LayoutName(p.output_layouts[0])).c_str(),
                  RooflineNs(p, device.spec()) / 1e3, WorkOf(p).flops, WorkOf(p).bytes,
                  m.kernel.c_str(), m.latency.median_ns / 1e3);
      for (const auto& [name, ns] : m.alternatives) std::printf(" %s=%.1f", name.c_str(), ns / 1e3);
      std::printf("\n");
    }
    return results;
  };
}

struct Options {
  bool groups = false;
  double seconds = 6;
  int streams = 0;
  std::vector<std::string> kernels;
};

class Comparison {
 public:
  Comparison(const LoadedModel& subject, Device& device, const Options& options)
      : subject_(subject), device_(device), options_(options) {}

  Status Print(const std::string& model) {
    DeviceSpec bare = device_.spec();
    bare.kernels.clear();
    RooflineTimes by_roofline(bare);
    AG_TRY(Add("roofline", MakePlan(subject_.graph, bare, Policy(), by_roofline, {}, 1)));
    AG_TRY(Add("guessed", GuessedPlan(subject_.graph, device_.spec())));
    AG_LET(const auto alone, MeasureAlone(device_));
    const Nanos begin = RealClock().Now();
    AG_TRY(Add("tuned", Tune()));
    const Nanos took = RealClock().Now() - begin;
    if (options_.streams > 0) AG_TRY(AddStreams());
    for (const std::string& kernel : options_.kernels) {
      AG_TRY(Add(kernel, WithEverywhere(all_[kGuessed].plan, kernel)));
    }
    AG_TRY(RunInTurn());
    std::printf("%-24s", model.substr(model.rfind('/') + 1).c_str());
    std::printf(" tuned %.3f ms; over it:", Median(all_[kTuned].whole_ns) / 1e6);
    for (const Contender& one : all_) {
      if (&one == &all_[kTuned]) continue;
      std::printf(" %s %s,", one.name.c_str(), Over(one).c_str());
    }
    std::printf(" %zu rounds; tuning %.1f s, %zu streams (guessed %zu)\n", all_[0].whole_ns.size(),
                static_cast<double>(took.count()) / 1e9, all_[kTuned].plan.streams.size(),
                all_[kGuessed].plan.streams.size());
    PrintPatterns();
    std::fflush(stdout);
    return OkStatus();
  }

 private:
  static constexpr size_t kGuessed = 1, kTuned = 2;

  // Returns the plan with this kernel for every group that has it.
  StatusOr<Plan> WithEverywhere(Plan plan, const std::string& kernel) {
    for (Group& group : plan.groups) {
      if (group.pattern == kViewPattern) continue;
      const auto names = device_.Kernels(ExtractGroup(subject_.graph, group, plan.policy));
      if (names.ok() && std::ranges::count(*names, kernel) > 0) group.kernel = kernel;
    }
    return plan;
  }

  Status AddStreams() {
    RooflineTimes times(device_.spec());
    std::vector<double> ends_ns;
    for (const int streams : {1, options_.streams}) {
      AG_LET(TimedPlan made, MakeTimedPlan({subject_.graph, device_.spec(), Policy(),
                                            GroupingOptions{.mixed_layouts = true}, streams},
                                           times));
      ends_ns.push_back(made.makespan_ns);
      AG_TRY(Add(fmt::format("on {}", streams), std::move(made.plan)));
    }
    std::printf("  simulated on %d streams over one: %.3f\n", options_.streams,
                ends_ns[1] / ends_ns[0]);
    return OkStatus();
  }

  StatusOr<Plan> Tune() {
    if (!options_.groups) return TunePlan(subject_.graph, device_, {.instances = false});
    LearnedTimes times(device_.spec(), Printing(device_), {.at_once = true});
    return MakePlan(subject_.graph, device_.spec(), Policy(), times, {.mixed_layouts = true}, 1);
  }

  Status Add(const std::string& name, StatusOr<Plan> plan) {
    AG_TRY(plan, "{}", name);
    Contender one{.name = name, .plan = *std::move(plan)};
    AG_LET(one.executable, device_.Build({subject_.graph, one.plan, *subject_.weights}));
    one.group_ns.resize(one.plan.groups.size());
    all_.push_back(std::move(one));
    return OkStatus();
  }

  // Each round runs every plan once, in an order that turns round, then once traced.
  Status RunInTurn() {
    const std::vector<Tensor> inputs = UsualInputs(subject_.graph, 1);
    std::vector<Tensor> outputs = EmptyOutputs(subject_.graph);
    const Nanos begin = RealClock().Now();
    const auto seconds = Nanos(static_cast<int64_t>(options_.seconds * 1e9));
    for (int round = -1; round < kRoundsMin || RealClock().Now() - begin < seconds; ++round) {
      for (Contender& one : all_) {
        AG_LET(const double ns, one.executable->Time({inputs, outputs}));
        if (round >= 0) one.whole_ns.push_back(ns);
      }
      for (auto one = all_.rbegin(); one != all_.rend(); ++one) {
        AG_LET(const double ns, one->executable->Time({inputs, outputs}));
        if (round >= 0) one->whole_ns.back() = (one->whole_ns.back() + ns) / 2;
      }
      for (Contender& one : all_) {
        std::vector<TraceEvent> trace;
        AG_TRY(one.executable->Time({inputs, outputs, 1, Caches::kAsLeft, &trace}));
        for (const TraceEvent& event : trace) {
          one.group_ns[event.group].push_back(
              static_cast<double>((event.end - event.begin).count()));
        }
      }
    }
    return OkStatus();
  }

  // Returns the median of the rounds' ratios to the tuned plan, with their middle half.
  std::string Over(const Contender& one) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < one.whole_ns.size(); ++i) {
      ratios.push_back(one.whole_ns[i] / all_[kTuned].whole_ns[i]);
    }
    std::ranges::sort(ratios);
    return fmt::format("{:.3f} ({:.3f} to {:.3f})", Median(ratios), ratios[ratios.size() / 4],
                       ratios[3 * ratios.size() / 4]);
  }

  // Prints the patterns whose sums differ by more than 1 % of the whole, with the kernels that the
  // tuned plan has for them.
  void PrintPatterns() const {
    const Sums guessed = SumsOf(all_[kGuessed]), tuned = SumsOf(all_[kTuned]);
    Sums differences = guessed;
    for (const auto& [name, ns] : tuned) differences[name] -= ns;
    for (const auto& [name, ns] : differences) {
      if (std::abs(ns) < 0.01 * Median(all_[kTuned].whole_ns)) continue;
      std::map<std::string, int> kernels;
      for (const Group& group : all_[kTuned].plan.groups) {
        if (group.pattern == name) ++kernels[group.kernel];
      }
      std::printf("    %-14s guessed - tuned %9.1f us; tuned:", name.c_str(), ns / 1e3);
      for (const auto& [kernel, count] : kernels) std::printf(" %s %d", kernel.c_str(), count);
      std::printf("\n");
    }
  }

  const LoadedModel& subject_;
  Device& device_;
  const Options& options_;
  std::vector<Contender> all_;
};

Status Run(int argc, char** argv) {
  Options options;
  AG_LET(const std::unique_ptr<Device> device, OpenDevice("cpu"));
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--groups") {
      options.groups = true;
    } else if (word == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (word == "--streams" && i + 1 < argc) {
      options.streams = std::atoi(argv[++i]);
    } else if (word == "--kernel" && i + 1 < argc) {
      options.kernels.emplace_back(argv[++i]);
    } else {
      AG_LET(const LoadedModel subject, LoadCleaned(word));
      AG_TRY(Comparison(subject, *device, options).Print(word), "{}", word);
    }
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const ag::Status status = ag::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
