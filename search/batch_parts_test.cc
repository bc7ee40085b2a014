// Plans of parts of a batch, as a search finds them.
#include <gmock/gmock.h>

#include "plan/format/plan_codec.h"
#include "plan/testing/testing.h"
#include "search/testing/find_plan_test.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::SizeIs;

class BatchPartsTest : public FindPlanTest {};

// Four samples, each in a cache that does not hold two; launches cost next to nothing.
DeviceSpec CachedSpec() {
  return *ParseDeviceSpec(
      "name cached\ndtypes f32\ncores 1\nflops_per_second 1e13\nbytes_per_second 1e9\n"
      "cache_bytes_per_second 1e11\ncache_bytes 60000\nlaunch_ns 10\n"
      "pattern matmul = MatMul layouts plain\npattern softmax = Softmax layouts plain\n"
      "pattern move = Transpose|Reshape|Expand layouts plain\n");
}

TEST_F(BatchPartsTest, RunsThePartsOfABatchWhereThatIsFaster) {
  measurer_ = FakeMeasurer(CachedSpec());
  measurer_.group_ns = [](const GroupProblem& p) { return RooflineNs(p, CachedSpec()); };
  SearchRequest request = Request(R"(
input x f32[4,4096]
output "y" = softmax(softmax(x) axis=1) axis=1
)",
                                  "");
  const auto whole = Find(request);
  ASSERT_EQ(ToString(whole.status()), "OK");
  EXPECT_TRUE(whole->plan.segments.empty());
  EXPECT_EQ(whole->instance_sizes, 0);
  request.options.limits.instance_sizes_max = kInstanceSizesMax;
  const auto parts = Find(request);
  ASSERT_EQ(ToString(parts.status()), "OK");
  ExpectSound(request, *parts);
  EXPECT_EQ(parts->instance_sizes, 2);  // One and two samples.
  EXPECT_EQ(parts->plan.segments.at(0).instances, 4);
  EXPECT_EQ(parts->timing.verdict, Verdict::kFaster);
  EXPECT_GT(parts->timing.speedup, 10);
  EXPECT_EQ(parts->graph.digest(), request.input.digest());
  request.options.limits = ReplayLimits(request.options.limits, *parts);
  const auto replay = Find(request);
  ASSERT_EQ(ToString(replay.status()), "OK");
  EXPECT_EQ(EncodePlan(replay->plan), EncodePlan(parts->plan));
}

// The first layers fit the cache one sample at a time; the last one reads 1 MiB of weights, once.
TEST_F(BatchPartsTest, SegmentsOfABatchHaveSizesOfTheirOwn) {
  measurer_ = FakeMeasurer(CachedSpec());
  measurer_.group_ns = [](const GroupProblem& p) { return RooflineNs(p, CachedSpec()); };
  SearchRequest request = Request(
      "input x f32[4,4096]\nw = const f32[4096,64] seed 1\n"
      "output \"y\" = matmul(softmax(softmax(x) axis=1) axis=1, w)\n",
      "");
  request.options.limits.instance_sizes_max = kInstanceSizesMax;
  const auto result = Find(request);
  ASSERT_EQ(ToString(result.status()), "OK");
  ExpectSound(request, *result);
  ASSERT_THAT(result->plan.segments, SizeIs(2));
  EXPECT_EQ(result->plan.segments[0].instances, 4);
  EXPECT_EQ(result->plan.segments[1].instances, 1);
}

// Half of the cores take less than twice as long, as where all cores wait for each other.
TEST_F(BatchPartsTest, PartsOfABatchRunBesideEachOther) {
  DeviceSpec spec = CachedSpec();
  spec.cores = 2;
  spec.stream_cores = 1;
  spec.cache_bytes = 0;
  measurer_ = FakeMeasurer(spec);
  double half_ns = 1500;
  measurer_.group_ns = [&](const GroupProblem& p) { return p.cores == 1 ? half_ns : 2000.0; };
  SearchRequest request = Request(R"(
input x f32[4,64,64]
v = const f32[64,64] seed 1
w = const f32[64,64] seed 2
output "y" = matmul(matmul(x, v), w)
)",
                                  kReassociate);
  request.spec = spec;
  request.options.limits.instance_sizes_max = kInstanceSizesMax;
  const auto beside = Find(request);
  ASSERT_EQ(ToString(beside.status()), "OK");
  ExpectSound(request, *beside);
  ASSERT_THAT(beside->plan.segments, SizeIs(1));
  EXPECT_EQ(beside->plan.segments[0].instances, 2);
  EXPECT_EQ(beside->plan.beside, 2);
  EXPECT_THAT(beside->rewrites, SizeIs(1));
  EXPECT_NEAR(beside->timing.speedup, 2 * 2000 / 1500., 0.01);  // One product less.
  half_ns = 2500;
  const auto whole = Find(request);
  ASSERT_EQ(ToString(whole.status()), "OK");
  EXPECT_TRUE(whole->plan.segments.empty());
}

TEST_F(BatchPartsTest, RewritesAndPartsGoTogether) {
  measurer_ = FakeMeasurer(CachedSpec());
  measurer_.group_ns = [](const GroupProblem& p) { return RooflineNs(p, CachedSpec()); };
  SearchRequest request = Request(R"(
input x f32[4,64,64]
v = const f32[64,64] seed 1
w = const f32[64,64] seed 2
output "y" = matmul(matmul(x, v), w)
)",
                                  kReassociate);
  request.options.limits.instance_sizes_max = kInstanceSizesMax;
  const auto result = Find(request);
  ASSERT_EQ(ToString(result.status()), "OK");
  ExpectSound(request, *result);
  EXPECT_THAT(result->rewrites, SizeIs(1));
  EXPECT_EQ(result->plan.segments.at(0).instances, 4);
}

}  // namespace
}  // namespace ag
