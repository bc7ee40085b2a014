// What the search finds when its rules, its budget and its method change, on simulated times that
// repeat exactly: groups take the bare roofline of a device spec, plans their simulated time.
//   build/search_choices [--spec FILE] [--precision P] [--threads N] [--part PART] [MODEL...]
// (bench/h200-v1.spec of this folder, fp16; all parts; the zoo's models but its tiny ones)
// Parts, each one line per model, microseconds of the best plan:
//   rules    all rules, and without those of each file of rules/sets
//   budgets  1, 2, 4 and 8 thousand graphs expanded in a round, and five times as many scored
//   paper    the paper's search, and ours with at most its graphs scored and candidates measured
// Ends with 1 when all rules are worse than some, a larger budget than a smaller one, or ours than
// the paper's, by more than 0.1 %.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/text.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/testing/fake_measurer.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

constexpr double kWorse = 1.001;  // Above it a figure is worse than another.
// The paper's search measures until no candidate is accepted.
constexpr int kPaperRoundsMax = 1'000'000, kPaperCandidatesMax = 20;
constexpr Nanos kPaperTimeMax = std::chrono::minutes(30);

struct Options {
  std::string spec = "bench/h200-v1.spec";
  std::string precision = "fp16";
  std::string part;
  int threads = 1;
  std::vector<std::string> models;
};

struct Found {
  double us = 0;
  SearchResult result;
};

class Model {
 public:
  Model(const Options& options, const DeviceSpec& spec, std::string name, Graph input)
      : name_(std::move(name)) {
    request_.input = std::move(input);
    request_.spec = spec;
    request_.policy.precision = options.precision;
    request_.threads = options.threads;
    request_.options.limits.time_max = Nanos::max();
  }

  const std::string& name() const { return name_; }

  StatusOr<Found> Find(const RuleSet& rules, const SearchOptions& options) {
    request_.rules = &rules;
    request_.options = options;
    FakeMeasurer measurer = FakeMeasurer::OnRoofline(request_.spec);
    Found found;
    AG_LET(found.result, FindPlan(request_, measurer, RealClock()));
    found.us = measurer.SimulatedNs(found.result) / 1e3;
    return found;
  }

 private:
  const std::string name_;
  SearchRequest request_;
};

SearchOptions WithoutTime() {
  SearchOptions options;
  options.limits.time_max = Nanos::max();
  return options;
}

// The names of the rules of each file that are searched.
std::map<std::string, std::vector<std::string>> RulesByFile() {
  std::map<std::string, std::vector<std::string>> files;
  for (const Rule& rule : BuiltInRules().rules()) {
    if (!rule.clean_up) files[rule.file].push_back(rule.name);
  }
  return files;
}

void Print(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// Each returns whether the model's figures are as they should be.
StatusOr<bool> Rules(Model* model) {
  AG_LET(const Found all, model->Find(BuiltInRules(), WithoutTime()));
  Print(fmt::format("rules   {:<14} all {:.2f}", model->name(), all.us));
  bool is_good = true;
  for (const auto& [file, names] : RulesByFile()) {
    const RuleSet rules = BuiltInRules().Without(names, false);
    AG_LET(const Found some, model->Find(rules, WithoutTime()));
    const bool is_worse = all.us > kWorse * some.us;
    is_good = is_good && !is_worse;
    Print(fmt::format("  -{} {:.2f}{}", file.substr(0, file.find('.')), some.us,
                      is_worse ? " (better)" : ""));
  }
  Print("\n");
  return is_good;
}

StatusOr<bool> Budgets(Model* model) {
  Print(fmt::format("budgets {:<14}", model->name()));
  bool is_good = true;
  double before_us = 0;
  for (const int thousands : {1, 2, 4, 8}) {
    SearchOptions options = WithoutTime();
    options.limits.expansions_max = 1000 * thousands;
    options.limits.graphs_max = 5 * options.limits.expansions_max;
    AG_LET(const Found found, model->Find(BuiltInRules(), options));
    const bool is_worse = before_us > 0 && found.us > kWorse * before_us;
    is_good = is_good && !is_worse;
    before_us = found.us;
    Print(fmt::format("  {}k {:.2f} ({} graphs){}", thousands, found.us, found.result.graphs,
                      is_worse ? " (worse)" : ""));
  }
  Print("\n");
  return is_good;
}

// Ours scores half of the graphs, at most, in cells.
StatusOr<bool> Paper(Model* model) {
  SearchOptions options = WithoutTime();
  options.method = SearchMethod::kPaper;
  options.limits.rounds_max = kPaperRoundsMax;
  options.limits.candidates_max = kPaperCandidatesMax;
  options.limits.time_max = kPaperTimeMax;
  AG_LET(const Found paper, model->Find(BuiltInRules(), options));
  const int graphs = std::max(paper.result.graphs, 2);
  const int candidates = std::max(paper.result.candidates, 1);
  options = WithoutTime();
  SearchLimits& limits = options.limits;
  limits.cell_graphs_max = std::min(limits.cell_graphs_max, graphs / 2);
  limits.graphs_total_max = graphs - limits.cell_graphs_max;
  limits.candidates_max = std::min(limits.candidates_max, candidates);
  // Cells make one candidate besides those of the rounds.
  limits.rounds_max = std::clamp((candidates - 1) / limits.candidates_max, 1, limits.rounds_max);
  AG_LET(const Found ours, model->Find(BuiltInRules(), options));
  const bool is_worse = ours.us > kWorse * paper.us;
  Print(
      fmt::format("paper   {:<14} paper {:.2f} ({} graphs, {} candidates{})  ours {:.2f} ({} + {} "
                  "graphs, {} candidates)  {:.3f}x{}\n",
                  model->name(), paper.us, paper.result.graphs, paper.result.candidates,
                  paper.result.stop_reason == StopReason::kTime ? ", cut by time" : "", ours.us,
                  ours.result.graphs, ours.result.cell_graphs, ours.result.candidates,
                  paper.us / ours.us, is_worse ? " (worse)" : ""));
  return !is_worse;
}

Status RunAll(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  bool is_good = true;
  const std::pair<std::string, StatusOr<bool> (*)(Model*)> parts[] = {
      {"rules", Rules}, {"budgets", Budgets}, {"paper", Paper}};
  for (const auto& [part, run] : parts) {
    if (!options.part.empty() && options.part != part) continue;
    for (const std::string& name : options.models) {
      MemoryWeights weights;
      AG_LET(const Graph graph, BuildZooModel(name, {}, &weights));
      AG_LET(Graph input, CleanUp(graph, BuiltInRules()));
      Model model(options, spec, name, std::move(input));
      AG_LET(const bool is_as_expected, run(&model));
      is_good = is_good && is_as_expected;
    }
  }
  if (!is_good) return Err(StatusCode::kFailedPrecondition, "some figures are worse");
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("What other rules, budgets and methods find", "search_choices");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("--threads", options.threads, "Threads that score graphs");
  app.add_option("--part", options.part, "One part alone")
      ->check(ag::OneOf({"rules", "budgets", "paper"}));
  app.add_option("MODEL", options.models, "Models of the zoo");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.models.empty()) {
    for (const ag::ZooEntry& entry : ag::Zoo()) {
      if (!entry.tiny) options.models.emplace_back(entry.name);
    }
  }
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    fmt::print(stderr, "{}\n", ag::Message(status));
    return 1;
  }
}
