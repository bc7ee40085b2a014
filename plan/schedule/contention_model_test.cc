#include "plan/schedule/contention_model.h"

#include <gtest/gtest.h>

#include "plan/testing/testing.h"

namespace ag {
namespace {

TEST(SpeedUnderContention, ByHand) {
  const struct {
    const char* name;
    int running;
    double wanted, overlap, speed;
  } kCases[] = {
      {"alone, whatever the rest", 1, 8, 0, 1},
      {"nothing runs", 0, 0, 0, 1},
      {"few cores, by the spec", 2, 4, 1, 1},
      {"all cores each, by the spec", 2, 16, 1, 0.5},
      {"more than there are, by the spec", 2, 10, 1, 0.8},
      {"few cores, in turn", 2, 4, 0, 0.5},
      {"three in turn", 3, 6, 0, 1.0 / 3},
      {"few cores, half way", 2, 4, 0.5, 0.75},
      {"more than there are, half way", 2, 10, 0.5, 0.65},
      {"all cores each, not noticed", 2, 16, 2, 1},
      {"all cores each, half noticed", 2, 16, 1.5, 0.75},
      {"few cores cannot be faster than alone", 2, 4, 1.5, 1},
  };
  for (const auto& c : kCases) {
    EXPECT_DOUBLE_EQ(SpeedUnderContention(c.running, c.wanted, 8, c.overlap), c.speed) << c.name;
  }
}

TEST(ShareOf, IsMeasuredWhereThatIsKnown) {
  DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  spec.cores = 8;
  const Graph graph = GraphOf("input x f32[400]\noutput a = exp(x)\n");
  Group group{.outputs = {{graph.outputs()[0].edge}}};
  const struct {
    const char* name;
    int64_t block_outputs;
    int cores, stream_cores, active_cores, share;
  } kCases[] = {
      {"all", 0, 0, 0, 0, 8},
      {"the stream's", 0, 0, 2, 0, 2},
      {"its own before the stream's", 0, 3, 2, 0, 3},
      {"as many as it has blocks", 100, 0, 0, 0, 4},
      {"as measured", 100, 0, 0, 6, 6},
      {"as measured, up to what there is", 100, 0, 0, 60, 8},
  };
  for (const auto& c : kCases) {
    spec.block_outputs = c.block_outputs;
    group.cores = c.cores;
    EXPECT_EQ(ShareOf(graph, group, c.stream_cores, c.active_cores, spec), c.share) << c.name;
  }
}

PairTime Pair(double a_ns, double b_ns, int a_cores, int b_cores) {
  return {.ns = {a_ns, b_ns}, .cores = {a_cores, b_cores}};
}

TEST(TogetherNs, TheShorterOneEndsFirst) {
  EXPECT_DOUBLE_EQ(TogetherNs(Pair(100, 40, 8, 8), 8, 1), 140);
  EXPECT_DOUBLE_EQ(TogetherNs(Pair(40, 100, 2, 4), 8, 1), 100);
  EXPECT_DOUBLE_EQ(TogetherNs(Pair(100, 40, 2, 4), 8, 0), 140);
  EXPECT_DOUBLE_EQ(TogetherNs(Pair(100, 40, 2, 4), 8, 0.5), 40 / 0.75 + 60);
}

std::vector<PairTime> Pairs(double overlap) {
  std::vector<PairTime> pairs = {Pair(100, 40, 2, 4), Pair(90, 80, 5, 5), Pair(70, 70, 8, 8),
                                 Pair(500, 300, 1, 1), Pair(10, 400, 8, 3)};
  for (PairTime& pair : pairs) pair.together_ns = TogetherNs(pair, 8, overlap);
  return pairs;
}

TEST(FitOverlap, FindsWhatTheTimesWereMadeBy) {
  for (const double overlap : {0.0, 0.07, 0.6, 1.0, 1.4, 2.0}) {
    EXPECT_DOUBLE_EQ(FitOverlap(Pairs(overlap), 8), overlap);
  }
}

TEST(FitOverlap, OneBadMeasurementDoesNotCount) {
  std::vector<PairTime> pairs = Pairs(0.6);
  pairs[0].together_ns *= 10;
  EXPECT_DOUBLE_EQ(FitOverlap(pairs, 8), 0.6);
}

TEST(FitOverlap, NothingIsSaidByNothing) {
  EXPECT_EQ(FitOverlap({}, 8), 1);
  // Between 0 and 1 the model is the same for groups that want all cores.
  std::vector<PairTime> full = {Pair(100, 100, 8, 8)};
  full[0].together_ns = 200;
  EXPECT_EQ(FitOverlap(full, 8), 1);
  full[0].together_ns = 300;  // Longer than one group after the other.
  EXPECT_EQ(FitOverlap(full, 8), 1);
}

}  // namespace
}  // namespace ag
