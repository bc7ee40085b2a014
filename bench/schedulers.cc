// Which scheduler makes the fastest plan, by simulation, for the models of the zoo as they come.
//   build/schedulers [--spec FILE] [--precision P] [MODEL...]
// (bench/h200-v1.spec of this folder, fp16; all models that are not tiny)
// Prints for each model its groups, the time on one stream, of each scheduler the earliest
// simulated end on 2 to streams_max streams, and the least time that any schedule could take; then
// how often each one was the earliest, how often alone, and its time per schedule.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/clock.h"
#include "base/command_line.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/least_makespan.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/planner.h"
#include "plan/schedule/schedulers.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

struct Options {
  std::string spec = "bench/h200-v1.spec";
  std::string precision = "fp16";
  std::vector<std::string> models;
};

// What one scheduler did over all models.
struct Tally {
  int first = 0, alone = 0, schedules = 0;
  double seconds = 0;
};

// Ends that differ by less are equal.
constexpr double kEqual = 1 + 1e-9;

class Comparison {
 public:
  explicit Comparison(const Options& options) : options_(options) {
    policy_.precision = options.precision;
  }

  Status Run() {
    AG_LET(spec_, ReadDeviceSpec(options_.spec));
    std::printf("%-16s %6s", "model", "groups");
    for (const Scheduler& scheduler : Schedulers()) {
      std::printf(" %14s", std::string(scheduler.name).c_str());
    }
    std::printf(" %14s\n", "least possible");
    for (const std::string& model : options_.models) AG_TRY(Compare(model));
    for (const Scheduler& scheduler : Schedulers()) {
      const Tally& tally = tallies_[scheduler.name];
      std::printf("%-16s earliest of %2d models, of %2d alone, %7.3f ms a schedule\n",
                  std::string(scheduler.name).c_str(), tally.first, tally.alone,
                  1e3 * tally.seconds / std::max(tally.schedules, 1));
    }
    return OkStatus();
  }

 private:
  Status Compare(const std::string& model) {
    MemoryWeights weights;
    AG_LET(Graph graph, BuildZooModel(model, {}, &weights));
    AG_LET(graph, CleanUp(graph, BuiltInRules()));
    RooflineTimes times(spec_);
    AG_LET(const TimedGroups timed,
           FormTimedGroups(graph, spec_, policy_, times, {.mixed_layouts = true}));
    std::vector<double> ends;
    for (const Scheduler& scheduler : Schedulers()) {
      ends.push_back(EarliestEnd(graph, timed, scheduler));
    }
    std::printf("%-16s %6zu", model.c_str(), timed.groups.size());
    for (const double end : ends) std::printf(" %14.2f", end / 1e3);
    const ScheduleProblem problem = ProblemOf(graph, timed, spec_.streams_max);
    std::printf(" %14.2f\n", LeastMakespanNs(problem) / 1e3);
    std::fflush(stdout);
    const double best = *std::ranges::min_element(ends) * kEqual;
    const auto firsts = std::ranges::count_if(ends, [&](double end) { return end <= best; });
    for (size_t i = 0; i < ends.size(); ++i) {
      Tally& tally = tallies_[Schedulers()[i].name];
      tally.first += ends[i] <= best ? 1 : 0;
      tally.alone += ends[i] <= best && firsts == 1 ? 1 : 0;
    }
    return OkStatus();
  }

  ScheduleProblem ProblemOf(const Graph& graph, const TimedGroups& timed, int streams) const {
    return MakeScheduleProblem(graph, timed.groups, NsOf(timed.times), spec_, policy_, streams,
                               ContentionOf(timed.times, /*overlap=*/1));
  }

  double EarliestEnd(const Graph& graph, const TimedGroups& timed, const Scheduler& scheduler) {
    double earliest = 0;
    for (int streams = 2; streams <= spec_.streams_max; ++streams) {
      const ScheduleProblem problem = ProblemOf(graph, timed, streams);
      const Nanos begin = RealClock().Now();
      const std::vector<Stream> schedule = scheduler.schedule(problem);
      Tally& tally = tallies_[scheduler.name];
      tally.seconds += static_cast<double>((RealClock().Now() - begin).count()) / 1e9;
      ++tally.schedules;
      const double end = MakespanNs(problem, schedule);
      earliest = streams == 2 ? end : std::min(earliest, end);
    }
    return earliest;
  }

  const Options& options_;
  Policy policy_;
  DeviceSpec spec_;
  std::map<std::string_view, Tally> tallies_;
};

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("The simulated time of models by each scheduler", "schedulers");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("MODEL", options.models, "Models of the zoo; none: all that are not tiny");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.models.empty()) {
    for (const ag::ZooEntry& entry : ag::Zoo()) {
      if (!entry.tiny) options.models.emplace_back(entry.name);
    }
  }
  if (const ag::Status status = ag::Comparison(options).Run(); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
