#include "server/pipeline/job_frames.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(JobFrames, AJobComesAsItWasSent) {
  JobStart start;
  start.id = 7;
  start.offer = {"cpu", "spec", "environment", true, "1.2"};
  start.options.limits.nodes_max = 5;
  start.options.blob_root = "/blobs";
  start.options.more_rules = "a => b";
  start.options.search_threads = 6;
  start.options.hang_time_max = Nanos{-3};
  start.options.child.time_max = Nanos{11};
  start.memory_bytes = uint64_t{1} << 40;
  start.log_level = "warn";
  const auto read = DecodeFields<JobStart>(EncodeFields(start));
  ASSERT_TRUE(read.ok()) << ToString(read.status());
  EXPECT_EQ(read->id, 7);
  EXPECT_EQ(read->offer.environment, "environment");
  EXPECT_TRUE(read->offer.simulated);
  EXPECT_EQ(read->options.limits.nodes_max, 5);
  EXPECT_EQ(read->options.blob_root, "/blobs");
  EXPECT_EQ(read->options.more_rules, "a => b");
  EXPECT_EQ(read->options.search_threads, 6);
  EXPECT_EQ(read->options.hang_time_max, Nanos{-3});
  EXPECT_EQ(read->options.child.time_max, Nanos{11});
  EXPECT_EQ(read->memory_bytes, uint64_t{1} << 40);
  EXPECT_EQ(read->log_level, "warn");
}

TEST(JobFrames, ARowKeepsItsStatusAndItsMeasurement) {
  JobCacheRow sent{.found = true, .status = EncodeStatus(Err(StatusCode::kDataLoss, "broken"))};
  sent.row.problem = "p";
  sent.row.measurement.kernel = "k";
  sent.row.is_checked = false;
  const auto read = DecodeFields<JobCacheRow>(EncodeFields(sent));
  ASSERT_TRUE(read.ok()) << ToString(read.status());
  EXPECT_EQ(ToString(DecodeStatus(read->status)), "DATA_LOSS: broken");
  EXPECT_EQ(read->row.problem, "p");
  EXPECT_EQ(read->row.measurement.kernel, "k");
  EXPECT_FALSE(read->row.is_checked);
}

TEST(JobFrames, FlagsAreAllSent) {
  const JobFlags flags{.cancelled = true, .stopping = false, .best_asked = 7};
  const auto read = DecodeFields<JobFlags>(EncodeFields(flags));
  ASSERT_TRUE(read.ok()) << ToString(read.status());
  EXPECT_EQ(*read, flags);
}

TEST(JobFrames, AnOutcomeOrItsErrorComesAsItWasSent) {
  JobOutcome sent{.winner_refused = true};
  sent.result.set_speedup(1.5);
  const auto there = [](const StatusOr<JobOutcome>& outcome) {
    return OutcomeOf(*DecodeFields<JobEnd>(EncodeFields(ToEnd(outcome))));
  };
  const auto read = there(sent);
  ASSERT_TRUE(read.ok()) << ToString(read.status());
  EXPECT_EQ(read->result.speedup(), 1.5);
  EXPECT_TRUE(read->winner_refused);
  EXPECT_FALSE(read->busy);
  EXPECT_EQ(ToString(there(Err(StatusCode::kUnavailable, "no worker")).status()),
            "UNAVAILABLE: no worker");
  EXPECT_EQ(OutcomeOf({.status = EncodeStatus(OkStatus()), .result = "\xff"}).status().code(),
            StatusCode::kDataLoss);
}

TEST(JobFrames, CutBytesAreDataLoss) {
  const std::string bytes = EncodeFields(JobEnd{"status", "result", true, false});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeFields<JobEnd>(bytes.substr(0, size)).status().code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace ag
