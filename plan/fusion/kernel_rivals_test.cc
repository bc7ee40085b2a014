#include "plan/fusion/kernel_rivals.h"

#include <gtest/gtest.h>

#include "plan/format/plan_codec.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using Choices = std::vector<KernelChoice>;

// A relu as the plan of one group.
struct Relu {
  const Graph graph = GraphOf("input i0 f32[4]\noutput o0 = relu(i0)\n");
  Plan plan;
  Relu() {
    plan = SingleGroupPlan({.graph = graph,
                            .pattern = "chain",
                            .input_layouts = {Layout::kPlain},
                            .output_layouts = {Layout::kPlain}});
    plan.groups[0].kernel = "a";
  }
};

Measurement Times(double a_ns, std::vector<std::pair<std::string, double>> others) {
  Measurement measurement{.latency = {a_ns, a_ns, a_ns}, .kernel = "a"};
  measurement.alternatives = std::move(others);
  return measurement;
}

TEST(CloseRivals, AreTheFastestBesideThePlansOwn) {
  Measurement simulated = Times(100, {{"b", 100}});
  simulated.simulated = true;
  const struct {
    const char* name;
    const char* own;
    std::optional<Measurement> measured;
    Choices rivals;
  } kCases[] = {
      {"close", "a", Times(100, {{"c", 119}, {"b", 110}}), {{0, "b"}}},
      {"too far", "a", Times(100, {{"b", 121}}), {}},
      {"alone", "a", Times(100, {}), {}},
      {"not measured", "a", std::nullopt, {}},
      {"simulated", "a", simulated, {}},
      {"the plan's is not the fastest", "b", Times(100, {{"b", 110}}), {{0, "a"}}},
      {"the plan's is not known", "z", Times(100, {{"b", 110}}), {{0, "a"}}},
  };
  for (const auto& c : kCases) {
    Relu relu;
    relu.plan.groups[0].kernel = c.own;
    const auto rivals =
        CloseRivals(relu.graph, relu.plan, [&](const GroupProblem&) { return c.measured; });
    EXPECT_EQ(rivals, c.rivals) << c.name;
    relu.plan.policy.cold_cache = true;
    EXPECT_EQ(CloseRivals(relu.graph, relu.plan, [&](const GroupProblem&) { return c.measured; }),
              Choices())
        << c.name;
  }
}

TEST(CloseRivals, ViewsAreNotAskedFor) {
  Relu relu;
  relu.plan.groups[0].pattern = kViewPattern;
  const auto never = [](const GroupProblem&) -> std::optional<Measurement> {
    ADD_FAILURE();
    return std::nullopt;
  };
  EXPECT_EQ(CloseRivals(relu.graph, relu.plan, never), Choices());
}

TEST(WithKernels, ChangesThoseAlone) {
  Relu relu;
  EXPECT_EQ(WithKernels(relu.plan, {{0, "b"}}).groups[0].kernel, "b");
  EXPECT_EQ(EncodePlan(WithKernels(relu.plan, {})), EncodePlan(relu.plan));
}

}  // namespace
}  // namespace ag
