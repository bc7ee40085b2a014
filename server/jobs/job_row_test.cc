#include "server/jobs/job_row.h"

#include <gtest/gtest.h>

#include "base/reason.h"

namespace ag {
namespace {

JobRow RowOf(const Job& job) {
  return ToRow(job, {.request = job.request.SerializeAsString(),
                     .created_unix_seconds = job.created_unix_seconds});
}

TEST(JobRow, AJobComesBack) {
  Job job;
  job.id = 7;
  job.state = v1::Job::FAILED;
  job.error = Because(Reason::kBlobMissing, Err(StatusCode::kFailedPrecondition, "no model"));
  job.request.set_device("cpu");
  job.client = "c";
  job.tenant = "t";
  job.waiters = 3;
  job.created_unix_seconds = 11;
  job.finished_unix_seconds = 12;
  job.version = 5;
  job.resumed = 2;
  job.crashes = 1;
  job.device_seconds = 1.5;
  const Job back = FromRow(RowOf(job)).value();
  EXPECT_EQ(back.id, 7);
  EXPECT_EQ(back.state, v1::Job::FAILED);
  EXPECT_EQ(ToString(back.error), ToString(job.error));
  EXPECT_EQ(ReasonOf(back.error), ReasonOf(job.error));
  EXPECT_EQ(back.request.device(), "cpu");
  EXPECT_EQ(back.client + back.tenant, "ct");
  EXPECT_EQ(back.waiters, 3);
  EXPECT_EQ(back.created_unix_seconds, 11);
  EXPECT_EQ(back.finished_unix_seconds, 12);
  EXPECT_EQ(back.version, 5u);
  EXPECT_EQ(back.resumed, 2);
  EXPECT_EQ(back.crashes, 1);
  EXPECT_EQ(back.device_seconds, 1.5);
  EXPECT_FALSE(back.result.has_value());
}

TEST(JobRow, AResultTellsOfItsProgress) {
  Job job;
  job.state = v1::Job::SUCCEEDED;
  job.result.emplace().set_rounds(4);
  const Job back = FromRow(RowOf(job)).value();
  EXPECT_EQ(back.progress.round(), 4);
  EXPECT_EQ(back.progress.fraction(), 1);
}

TEST(JobRow, ACancelledJobHasNoWaiters) {
  JobRow row = RowOf(Job());
  row.cancel = true;
  EXPECT_EQ(FromRow(row)->waiters, 0);
}

TEST(JobRow, RequestsOfTenantsHaveNamesOfTheirOwn) {
  EXPECT_EQ(StoredId("ann", "r"), "ann/r");
  EXPECT_EQ(StoredId("", "r"), "r");
  EXPECT_EQ(StoredId("ann", ""), "");
}

TEST(JobRow, WhatDoesNotParseIsSaid) {
  JobRow row = RowOf(Job());
  row.result = "\xff";
  EXPECT_EQ(ToString(FromRow(row).status()), "DATA_LOSS: stored result does not parse");
  row = RowOf(Job());
  row.request = "\xff";
  EXPECT_EQ(ToString(FromRow(row).status()), "DATA_LOSS: stored request does not parse");
  row.state = "ASLEEP";
  EXPECT_EQ(ToString(FromRow(row).status()), "DATA_LOSS: no job state is called ASLEEP");
}

}  // namespace
}  // namespace ag
