#include "search/cell_search.h"

#include <gmock/gmock.h>

#include <atomic>
#include <set>

#include "plan/format/plan_codec.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The way to a gain leads through a graph that is dearer: too much dearer for a slack of 1.1 of
// three modules, and not for a slack of 2 of one.
constexpr std::string_view kDetour =
    "detour [exact]: tanh(x) => tanh(abs(abs(x)))\n"
    "gain [exact]: tanh(abs(abs(x))) => sigmoid(x)\n";

std::string Modules(int count, std::string_view end, int first_seed = 1) {
  std::string text = "input x0 f32[4,8]\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "a{0} = relu(x{0})\n"
        "b{0} = matmul(a{0}, const f32[8,8] seed {1})\n"
        "c{0} = {2}(matmul(a{0}, const f32[8,8] seed {3}))\n"
        "x{4} = add(b{0}, c{0})\n",
        i, 2 * i + first_seed, end, 2 * i + first_seed + 1, i + 1);
  }
  return text + fmt::format("output y = x{}\n", count);
}

// A clock that advances with every question.
class CountingClock : public FakeClock {
 public:
  Nanos Now() override {
    Advance(Nanos{1});
    return FakeClock::Now();
  }
};

bool Contains(const Graph& graph, OpKind op) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

class CellSearchTest : public testing::Test {
 protected:
  // Every group takes 1,000 ns, one with a sigmoid 100.
  CellSearchTest() {
    measurer_.group_ns = [](const GroupProblem& problem) {
      return Contains(problem.graph, OpKind::kSigmoid) ? 100.0 : 1000.0;
    };
  }

  SearchRequest Request(std::string_view graph, std::string_view rules) {
    rules_ = TestRules(rules);
    SearchRequest request{.input = TestGraph(graph), .rules = &rules_, .spec = measurer_.spec()};
    request.environment = "device=test";
    return request;
  }
  SearchResult Find(const SearchRequest& request, RegionStore* regions = nullptr) {
    auto result = FindPlan(request, measurer_, clock_, regions);
    AG_CHECK(result.ok());
    return *std::move(result);
  }
  SearchResult Find(std::string_view graph, std::string_view rules, int cell_graphs_max = 1000) {
    SearchRequest request = Request(graph, rules);
    request.options.limits.cell_graphs_max = cell_graphs_max;
    return Find(request);
  }

  RuleSet rules_;
  FakeMeasurer measurer_{TestSpec()};
  FakeClock clock_;
};

TEST_F(CellSearchTest, ADetourThatFitsACellIsFoundForAllCopies) {
  const SearchResult result = Find(Modules(3, "tanh"), kDetour);
  EXPECT_EQ(result.timing.verdict, Verdict::kFaster);
  EXPECT_THAT(result.rewrites,
              ElementsAre(FieldsAre("detour", 3, testing::Lt(0), testing::_, testing::_),
                          FieldsAre("gain", 3, testing::Gt(0), testing::_, testing::_)));
  EXPECT_EQ(result.cell_takes, 3);
  EXPECT_FALSE(Contains(result.graph, OpKind::kTanh));
}

TEST_F(CellSearchTest, TheLogHasWhatWasSearchedByItself) {
  const SearchResult result = Find(Modules(3, "tanh"), kDetour);
  int copies = 0, seen = 0, groups = 0, taken = 0;
  for (const SearchedRegion& form : result.log.regions) {
    EXPECT_EQ(form.round, 0);
    EXPECT_GT(form.nodes, 0);
    EXPECT_LE(form.best_ns, form.estimate_ns);
    EXPECT_LE(form.pruned, form.seen);
    EXPECT_EQ(form.results > 0, form.best_ns < form.estimate_ns);
    copies += form.copies;
    seen += form.seen;
    groups += form.groups;
    taken += form.taken;
  }
  EXPECT_GE(copies, 3);
  EXPECT_EQ(seen, result.cell_graphs);
  EXPECT_EQ(groups, result.cell_groups);
  EXPECT_EQ(taken, 3);
  EXPECT_THAT(Find(Modules(3, "tanh"), kDetour, /*cell_graphs_max=*/0).log.regions, IsEmpty());
}

TEST_F(CellSearchTest, WithoutCellsABeamOverTheWholeGraphFindsAFewOfThem) {
  const SearchResult three = Find(Modules(3, "tanh"), kDetour, /*cell_graphs_max=*/0);
  EXPECT_EQ(three.cell_graphs, 0);
  EXPECT_THAT(three.rewrites,
              ElementsAre(FieldsAre("detour", 3, testing::Lt(0), testing::_, testing::_),
                          FieldsAre("gain", 3, testing::Gt(0), testing::_, testing::_)));
}

TEST_F(CellSearchTest, AFormIsSearchedOnce) {
  const SearchResult one = Find(Modules(1, "tanh"), kDetour);
  const SearchResult ten = Find(Modules(10, "tanh"), kDetour);
  EXPECT_GT(one.cell_graphs, 1);
  EXPECT_EQ(one.cell_graphs, ten.cell_graphs);
  EXPECT_EQ(ten.cell_takes, 10);
}

// The first operator of a cell runs in the group of the one before it: what is faster alone is not
// faster there.
TEST_F(CellSearchTest, WhatMakesTheWholeGraphDearerIsNotTaken) {
  measurer_.group_ns = [](const GroupProblem& problem) {
    return Contains(problem.graph, OpKind::kRelu) && !Contains(problem.graph, OpKind::kMatMul)
               ? 2000.0
               : 1000.0;
  };
  const SearchResult result = Find(
      "input x f32[8,8]\n"
      "a = relu(matmul(tanh(x), sigmoid(x)))\n"
      "output y = matmul(tanh(a), sigmoid(a))\n",
      "swap [exact]: relu(x) => abs(x)\n");
  EXPECT_GT(result.cell_takes, 0);
  EXPECT_THAT(result.rewrites, IsEmpty());
  EXPECT_EQ(result.candidates, 0);
}

class KnownRegionsTest : public CellSearchTest {
 protected:
  // Finds the plan of some modules, with what was found for others of their form.
  SearchResult FindKnown(int count, int first_seed) {
    return Find(Request(Modules(count, "tanh", first_seed), kDetour), &regions_);
  }
  // The one entry.
  RegionEntry& entry() { return regions_.entries().begin()->second; }

  MemoryRegions regions_;
};

TEST_F(KnownRegionsTest, AnotherModelStartsFromWhatIsKnown) {
  const SearchResult first = FindKnown(3, 1);
  ASSERT_THAT(first.regions, SizeIs(1));
  EXPECT_EQ(first.regions[0].origin, RegionOrigin::kSearched);
  EXPECT_EQ(first.regions[0].copies, 3);
  EXPECT_EQ(first.regions[0].entry.operators, 5);
  ASSERT_THAT(regions_.entries(), SizeIs(1));
  EXPECT_EQ(entry(), first.regions[0].entry);
  ASSERT_THAT(entry().results, SizeIs(testing::Ge(1u)));
  EXPECT_THAT(entry().results[0].steps, ElementsAre(testing::Field(&RegionStep::rule, "detour"),
                                                    testing::Field(&RegionStep::rule, "gain")));

  const SearchResult cold = Find(Modules(5, "tanh", 50), kDetour);
  const SearchResult known = FindKnown(5, 50);  // Other weights.
  ASSERT_THAT(known.regions, SizeIs(1));
  EXPECT_EQ(known.regions[0].origin, RegionOrigin::kKnown);
  EXPECT_EQ(known.regions[0].copies, 5);
  EXPECT_EQ(known.regions[0].entry, first.regions[0].entry);
  // The form and its results.
  EXPECT_EQ(known.cell_graphs, 1 + static_cast<int>(entry().results.size()));
  EXPECT_LT(known.cell_graphs, first.cell_graphs);
  EXPECT_EQ(known.cell_takes, 5);
  EXPECT_EQ(known.graph.digest(), cold.graph.digest());
  EXPECT_EQ(known.rewrites.size(), cold.rewrites.size());
}

TEST_F(KnownRegionsTest, ThatNothingIsFoundIsKnownToo) {
  const std::string graph = Modules(2, "sigmoid");
  Find(Request(graph, kDetour), &regions_);
  ASSERT_THAT(regions_.entries(), SizeIs(1));
  EXPECT_THAT(entry().results, IsEmpty());
  const SearchResult known = Find(Request(graph, kDetour), &regions_);
  EXPECT_EQ(known.regions[0].origin, RegionOrigin::kKnown);
  EXPECT_EQ(known.cell_graphs, 1);
  EXPECT_EQ(known.cell_takes, 0);
}

TEST_F(KnownRegionsTest, WhatHasNoPlaceIsSearchedAnewAndReplaced) {
  const SearchResult first = FindKnown(3, 1);
  const RegionEntry right = entry();
  const std::vector<std::function<void(RegionStep&)>> poisons = {
      [](RegionStep& step) { step.rule = "no-such-rule"; },
      [](RegionStep& step) { step.rule = "gain"; },
      [](RegionStep& step) { step.place[0].a ^= 1; },
      [](RegionStep& step) { step.place.clear(); },
      [](RegionStep& step) { step.which = 9; },
      [](RegionStep& step) { step.which = -1; },
  };
  for (size_t i = 0; i < poisons.size(); ++i) {
    for (RegionResult& result : entry().results) poisons[i](result.steps[0]);
    const SearchResult result = FindKnown(3, 1);
    EXPECT_EQ(result.regions[0].origin, RegionOrigin::kSearched) << i;
    EXPECT_EQ(result.graph.digest(), first.graph.digest()) << i;
    EXPECT_EQ(result.cell_graphs, first.cell_graphs) << i;
    EXPECT_EQ(entry(), right) << i;
  }
}

TEST_F(KnownRegionsTest, WhatIsDearerNowIsNotTaken) {
  FindKnown(3, 1);
  for (RegionResult& result : entry().results) {
    result.steps.resize(1);    // The detour alone,
    result.estimate_ns = 0.5;  // which says that it is fast.
  }
  const SearchResult result = FindKnown(3, 1);
  EXPECT_EQ(result.regions[0].origin, RegionOrigin::kKnown);
  EXPECT_EQ(result.cell_takes, 0);
}

TEST_F(KnownRegionsTest, TheRoundsOfAKnownModelScoreATenthOfTheGraphs) {
  const std::string rules = std::string(kDetour) + "swap [exact]: relu(x) => abs(x)\n";
  SearchRequest request = Request(Modules(6, "tanh"), rules);
  request.options.limits.graphs_max = 20;
  const SearchResult first = Find(request, &regions_);
  const SearchResult known = Find(request, &regions_);
  ASSERT_EQ(known.regions[0].origin, RegionOrigin::kKnown);
  EXPECT_GT(first.graphs, 2 * first.rounds);
  EXPECT_LE(known.graphs, 2 * known.rounds);
  EXPECT_EQ(known.timing.speedup, first.timing.speedup);
}

TEST_F(KnownRegionsTest, OnlySearchesThatEndedByThemselvesAreKept) {
  SearchRequest request = Request(Modules(3, "tanh"), kDetour);
  request.options.limits.cell_graphs_max = 2;
  EXPECT_EQ(Find(request, &regions_).regions[0].origin, RegionOrigin::kCut);
  EXPECT_THAT(regions_.entries(), IsEmpty());
  request.options.limits.cell_graphs_max = 1000;
  request.options.limits.cell_groups_max = 1;
  EXPECT_EQ(Find(request, &regions_).regions[0].origin, RegionOrigin::kCut);
  request.options.limits.cell_groups_max = 200;
  measurer_.group_failure = [](const GroupProblem& problem) {
    return Contains(problem.graph, OpKind::kSigmoid) ? Err(StatusCode::kUnavailable, "gone")
                                                     : OkStatus();
  };
  EXPECT_EQ(Find(request, &regions_).regions[0].origin, RegionOrigin::kCut);
  EXPECT_THAT(regions_.entries(), IsEmpty());
}

TEST_F(KnownRegionsTest, TheKeyHoldsWhatASearchDependsOn) {
  const SearchRequest request = Request(Modules(2, "tanh"), kDetour);
  const auto key = [&](const SearchRequest& changed) {
    return Find(changed).regions.at(0).key.depends_on;
  };
  std::set<std::string> keys = {key(request)};
  SearchRequest changed = request;
  changed.environment = "device=other";
  EXPECT_TRUE(keys.insert(key(changed)).second);
  changed = request;
  changed.policy.cold_cache = true;
  EXPECT_TRUE(keys.insert(key(changed)).second);
  changed = request;
  changed.options.beta = 3;
  EXPECT_TRUE(keys.insert(key(changed)).second);
  changed = request;
  changed.options.limits.detour_max = 3;
  EXPECT_TRUE(keys.insert(key(changed)).second);
  const RuleSet fewer = TestRules("gain [exact]: tanh(abs(abs(x))) => sigmoid(x)\n");
  changed = request;
  changed.rules = &fewer;
  EXPECT_TRUE(keys.insert(key(changed)).second);
  changed = request;
  changed.input = TestGraph(Modules(2, "relu"));
  EXPECT_TRUE(keys.insert(key(changed)).second);
  changed = request;
  changed.input = TestGraph(Modules(4, "tanh", 60));  // Other copies, other weights.
  changed.options.limits.time_max = Nanos{1'000'000};
  EXPECT_FALSE(keys.insert(key(changed)).second);
}

// Two forms, of which the store knows one: searches that time stopped at many points are repeated.
TEST_F(KnownRegionsTest, ASearchThatKnewRegionsIsReplayed) {
  FindKnown(3, 1);
  const RegionEntry known = entry();
  SearchRequest request = Request(
      Modules(2, "tanh") + "z = sigmoid(matmul(tanh(x2), const f32[8,8] seed 90))\noutput z\n",
      kDetour);
  std::set<std::vector<RegionOrigin>> seen;
  for (int64_t ticks = 1; ticks <= 400; ++ticks) {
    MemoryRegions before;
    before.entries()[regions_.entries().begin()->first] = known;
    request.options.limits = {.time_max = Nanos{ticks}};
    CountingClock clock;
    const auto timed = FindPlan(request, measurer_, clock, &before);
    ASSERT_TRUE(timed.ok()) << Message(timed.status());
    std::vector<RegionOrigin> origins;
    for (const RegionUse& use : timed->regions) origins.push_back(use.origin);
    seen.insert(origins);
    request.options.limits = ReplayLimits(request.options.limits, *timed);
    MemoryRegions again{timed->regions};
    const SearchResult replay = Find(request, &again);
    EXPECT_EQ(timed->graph.digest(), replay.graph.digest()) << ticks;
    EXPECT_EQ(EncodePlan(timed->plan), EncodePlan(replay.plan)) << ticks;
    EXPECT_EQ(timed->cell_graphs, replay.cell_graphs) << ticks;
    EXPECT_EQ(timed->cell_takes, replay.cell_takes) << ticks;
    EXPECT_EQ(timed->groups_measured, replay.groups_measured) << ticks;
  }
  EXPECT_GE(seen.size(), 3u);
}

// Forms that are searched several at once.
class SeveralFormsTest : public KnownRegionsTest {
 protected:
  // Seven forms, in two waves, one of them twice; the cells differ in how much they gain.
  SeveralFormsTest() {
    std::string text = "input x0 f32[4,8]\n";
    const std::vector<std::string> ends = {"tanh", "exp", "tanh", "abs",
                                           "sqrt", "neg", "erf",  "sin"};
    for (size_t i = 0; i < ends.size(); ++i) {
      text += fmt::format(
          "a{0} = relu(x{0})\n"
          "b{0} = matmul(a{0}, const f32[8,8] seed {1})\n"
          "c{0} = {2}(tanh(matmul(a{0}, const f32[8,8] seed {3})))\n"
          "x{4} = add(b{0}, c{0})\n",
          i, 2 * i + 1, ends[i], 2 * i + 2, i + 1);
    }
    request_ = Request(text + fmt::format("output y = x{}\n", ends.size()),
                       "gain [exact]: tanh(x) => sigmoid(x)\n"
                       "swap [exact]: relu(x) => abs(x)\n"
                       "turn [exact]: abs(x) => neg(x)\n");
    request_.options.limits = {.rounds_max = 1, .graphs_max = 5, .refines_max = 0};
    measurer_.group_ns = nullptr;
  }
  // All that a search tells, without the clock's seconds.
  static std::string Told(const SearchResult& result) {
    std::string text = EncodePlan(result.plan) + result.graph.digest().Hex();
    text +=
        fmt::format("{} {} {} {} {} {}\n", result.cell_graphs, result.cell_groups,
                    result.cell_takes, result.groups_measured, result.groups_asked, result.graphs);
    for (const RegionUse& use : result.regions) {
      text += fmt::format("{} {} ", use.key.digest().Short(), static_cast<int>(use.origin));
      text += EncodeRegionEntry(use.entry);
    }
    for (const SearchedRegion& form : result.log.regions) {
      text += fmt::format("{} {} {} {} {}\n", form.best_ns, form.seen, form.pruned, form.groups,
                          form.taken);
    }
    return text;
  }

  SearchRequest request_;
};

TEST_F(SeveralFormsTest, WhatIsFoundDoesNotDependOnTheNumberOfThreads) {
  std::set<int> forms_reached;
  for (const bool may_know : {false, true}) {
    for (const int graphs_max : {1, 12, 19, 20, 30, 40, 60, 3000}) {
      for (const int groups_max : {0, 1, 3, 200}) {
        request_.options.limits.cell_graphs_max = graphs_max;
        request_.options.limits.cell_groups_max = groups_max;
        std::string one;
        for (const int threads : {1, 2, 4}) {
          SCOPED_TRACE(fmt::format("{} graphs, {} groups, {} threads, {}", graphs_max, groups_max,
                                   threads, may_know));
          request_.threads = threads;
          MemoryRegions regions = regions_;
          const SearchResult result = Find(request_, may_know ? &regions : nullptr);
          EXPECT_LE(result.cell_groups, groups_max);
          if (one.empty()) one = Told(result);
          EXPECT_EQ(Told(result), one);
          forms_reached.insert(
              static_cast<int>(std::ranges::count_if(result.regions, [](const RegionUse& use) {
                return use.origin != RegionOrigin::kNotReached;
              })));
        }
      }
    }
    request_.options.limits.cell_graphs_max = 30;  // So the store has some of them.
    request_.options.limits.cell_groups_max = 200;
    Find(request_, &regions_);
  }
  EXPECT_THAT(forms_reached, testing::IsSupersetOf({1, 2, 3, 7}));
}

TEST_F(SeveralFormsTest, ASearchStoppedByTimeIsReplayedByItsCounts) {
  const SearchLimits limits = request_.options.limits;
  std::set<std::pair<int, int>> cuts;
  for (int64_t ticks = 50; ticks <= 3000; ticks += 1 + ticks / 15) {
    request_.options.limits = limits;
    request_.options.limits.time_max = Nanos{ticks};
    request_.threads = 1 + static_cast<int>(ticks % 3);
    CountingClock clock;
    const auto timed = FindPlan(request_, measurer_, clock);
    ASSERT_TRUE(timed.ok()) << Message(timed.status());
    int reached = 0, cut = 0;
    for (const RegionUse& use : timed->regions) {
      reached += use.origin != RegionOrigin::kNotReached;
      cut += use.origin == RegionOrigin::kCut;
    }
    cuts.emplace(reached, cut);
    request_.options.limits = ReplayLimits(request_.options.limits, *timed);
    request_.threads = 1;
    const SearchResult replay = Find(request_);
    EXPECT_EQ(EncodePlan(timed->plan), EncodePlan(replay.plan)) << ticks;
    EXPECT_EQ(timed->graph.digest(), replay.graph.digest()) << ticks;
    EXPECT_EQ(timed->cell_graphs, replay.cell_graphs) << ticks;
    EXPECT_EQ(timed->cell_takes, replay.cell_takes) << ticks;
    EXPECT_EQ(timed->cell_groups, replay.cell_groups) << ticks;
    EXPECT_EQ(timed->groups_measured, replay.groups_measured) << ticks;
  }
  EXPECT_GE(cuts.size(), 4u);
}

TEST_F(SeveralFormsTest, ProgressAndCancelComeFromOneThreadAtATime) {
  request_.threads = 4;
  std::atomic<int> inside{0}, together{0};
  int told = 0, asked = 0;
  const auto come = [&](int* count) {
    together += inside++ > 0;
    ++*count;
    --inside;
  };
  request_.on_progress = [&](const SearchProgress&) { come(&told); };
  request_.cancelled = [&] { return come(&asked), false; };
  Find(request_);
  EXPECT_EQ(together, 0);
  EXPECT_GT(told, 10);
  EXPECT_GT(asked, 10);
  int left = asked / 2;
  request_.cancelled = [&] { return left-- <= 0; };
  EXPECT_EQ(Find(request_).stop_reason, StopReason::kCancelled);
}

TEST_F(KnownRegionsTest, AStoreThatFailsIsAWarning) {
  class Broken : public RegionStore {
   public:
    StatusOr<RegionEntry> Find(const RegionKey&, int) override {
      return Err(StatusCode::kUnavailable, "the disk is gone");
    }
    Status Put(const RegionKey&, const RegionEntry&, int) override {
      return Err(StatusCode::kResourceExhausted, "the disk is full");
    }
  };
  Broken broken;
  const SearchResult result = Find(Request(Modules(3, "tanh"), kDetour), &broken);
  EXPECT_EQ(result.timing.verdict, Verdict::kFaster);
  EXPECT_THAT(result.warnings, ElementsAre("the disk is gone", "the disk is full"));
}

}  // namespace
}  // namespace ag
