// The equivalence gate: ten planted wrong rewrites, each caught on the tiny models of every family
// here, and on the eight large ones with AUTOGRAPH_GATE_MODELS=all (scripts/test.sh --long gate).
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/open_device.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_time.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "tests/planted.h"
#include "worker/execute.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

constexpr double kTolerance = 1e-3;

// The model's constants, wherever they are; the executor wants to own its source.
class SharedWeights : public WeightSource {
 public:
  explicit SharedWeights(std::shared_ptr<MemoryWeights> weights) : weights_(std::move(weights)) {}
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    return weights_->Get(digest, type);
  }

 private:
  std::shared_ptr<MemoryWeights> weights_;
};

StatusOr<Candidate> Planned(const Graph& graph, const DeviceSpec& spec) {
  RooflineTimes times(spec);
  AG_LET(Plan plan, MakePlan(graph, spec, Policy(), times, {}, 1));
  return Candidate{graph, std::move(plan)};
}

std::vector<std::string> Models() {
  const char* which = std::getenv("AUTOGRAPH_GATE_MODELS");
  std::vector<std::string> names;
  for (const ZooEntry& entry : Zoo()) {
    if (which == nullptr ? entry.tiny : (std::string(which) == "all" || which == entry.name)) {
      names.emplace_back(entry.name);
    }
  }
  return names;
}

class Gate : public ::testing::TestWithParam<std::string> {};

TEST_P(Gate, CatchesEveryPlantedBugAndPassesTheModelItself) {
  const auto weights = std::make_shared<MemoryWeights>();
  const auto built = BuildZooModel(GetParam(), {}, weights.get());
  ASSERT_TRUE(built.ok()) << built.status();
  const auto graph = CleanUp(*built, BuiltInRules());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto device = OpenDevice("cpu");
  ASSERT_TRUE(device.ok()) << device.status();
  Executor executor(*std::move(device), std::make_unique<SharedWeights>(weights), RealClock(), {},
                    [](int) {});
  const DeviceSpec& spec = executor.device().spec();
  const auto reference = Planned(*built, spec);
  ASSERT_TRUE(reference.ok()) << reference.status();
  std::vector<CheckInputs> inputs;
  for (const InputKind kind : KindsFor(DescribeInputs(*built))) {
    inputs.push_back({.kind = kind, .seed = inputs.size() + 1});
  }
  const auto check = [&](const Graph& candidate) -> StatusOr<bool> {
    AG_LET(const Candidate planned, Planned(candidate, spec));
    AG_LET(const CheckResult checked, executor.Check({.reference = *reference,
                                                      .candidate = planned,
                                                      .inputs = inputs,
                                                      .tolerance = kTolerance}));
    bool equivalent = true;
    for (const OutputError& error : checked.errors) equivalent &= IsEquivalent(error, kTolerance);
    return equivalent;
  };
  const auto itself = check(*graph);
  ASSERT_TRUE(itself.ok()) << itself.status();
  EXPECT_TRUE(*itself) << "the model itself was refused";
  for (const PlantedBug& bug : PlantedBugs()) {
    const int places = PlacesOf(bug, *graph);
    ASSERT_GT(places, 0) << bug.name << " fits nowhere";
    const auto wrong = bug.apply(*graph, places / 2, weights.get());
    ASSERT_TRUE(wrong.ok()) << bug.name << ": " << wrong.status();
    const auto equivalent = check(*wrong);
    ASSERT_TRUE(equivalent.ok()) << bug.name << ": " << equivalent.status();
    EXPECT_FALSE(*equivalent) << bug.name << " at place " << places / 2 << " passed the gate";
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Gate, ::testing::ValuesIn(Models()));

}  // namespace
}  // namespace ag
