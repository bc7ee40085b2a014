#include "client/cli/progress.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

namespace v1 = autograph::v1;

v1::Job Searching() {
  v1::Job job;
  job.set_state(v1::Job::SEARCHING);
  job.mutable_request()->mutable_budget()->set_time_seconds(60);
  v1::Progress& p = *job.mutable_progress();
  p.set_stage("measuring plans");
  p.set_round(2);
  p.set_graphs(310);
  p.set_groups_measured(40);
  p.set_candidates(8);
  p.set_best_speedup(1.07);
  p.set_elapsed_seconds(12.5);
  p.set_fraction(0.5);
  return job;
}

TEST(Progress, ALineSaysAllThatIsKnown) {
  v1::Job job = Searching();
  EXPECT_EQ(ProgressLine(job),
            "searching, round 2: measuring plans  best 1.070x over our plan of the input  0:12 of "
            "1:00  310 graphs, 40 groups, 8 plans");
  v1::Progress& p = *job.mutable_progress();
  p.set_waits_for("a worker of device cpu");
  p.set_best_speedup(1);
  p.set_round(0);
  p.set_elapsed_seconds(3725);
  EXPECT_EQ(ProgressLine(job),
            "searching: measuring plans  1:02:05 of 1:00  waits for a worker of device cpu  310 "
            "graphs, 40 groups, 8 plans");
  p.set_best_speedup(1.07);
  job.set_state(v1::Job::SUCCEEDED);
  EXPECT_EQ(
      ProgressLine(job),
      "succeeded  1:02:05 of 1:00  waits for a worker of device cpu  310 graphs, 40 groups, 8 "
      "plans");
  job.set_state(v1::Job::SEARCHING);
  job.clear_progress();
  job.clear_request();
  EXPECT_EQ(ProgressLine(job), "searching");
}

// The order in which parts are left out when there is less room.
TEST(Progress, TheLineFits) {
  const v1::Job works = Searching();
  v1::Job waits = works;
  waits.mutable_progress()->set_waits_for("the measuring lock, held by process 12345");
  const struct {
    const char* name;
    const v1::Job& job;
    int columns;
    const char* line;
  } kCases[] = {
      {"wide", works, 120,
       "[#####     ]  searching, round 2: measuring plans  best 1.070x  0:13 of 1:00  310 graphs, "
       "40 groups, 8 plans"},
      {"usual", works, 79,
       "[#####     ]  searching, round 2: measuring plans  best 1.070x  0:13 of 1:00"},
      {"no bar", works, 70, "searching, round 2: measuring plans  best 1.070x  0:13 of 1:00"},
      {"no best", works, 55, "searching, round 2: measuring plans  0:13 of 1:00"},
      {"narrow", works, 40, "searching, round 2: measuring plans"},
      {"cut", works, 20, "searching, round 2: "},
      {"it waits, wide", waits, 140,
       "[#####     ]  searching, round 2: measuring plans  best 1.070x  0:13 of 1:00  waits for "
       "the "
       "measuring lock, held by process 12345"},
      {"it waits, usual", waits, 79,
       "waits for the measuring lock, held by process 12345  best 1.070x  0:13 of 1:00"},
      {"it waits, narrow", waits, 55, "waits for the measuring lock, held by process 12345"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(FitProgress(c.job, 0.6, c.columns), c.line) << c.name;
  }
  for (int columns = 20; columns < 200; ++columns) {
    for (const v1::Job* job : std::initializer_list<const v1::Job*>{&works, &waits}) {
      EXPECT_LE(FitProgress(*job, 0, columns).size(), static_cast<size_t>(columns));
    }
  }
}

// Without a terminal, one line is printed when a stage begins, one more when it waits, and none for
// each number.
TEST(Progress, PrintsALinePerStage) {
  ::testing::internal::CaptureStderr();
  const Context context(CommonFlags{});
  ASSERT_FALSE(context.terminal());
  {
    ProgressPrinter printer(context);
    v1::Job job;
    job.set_state(v1::Job::SEARCHING);
    v1::Progress& p = *job.mutable_progress();
    p.set_stage("measuring groups");
    printer.Show(job);
    p.set_elapsed_seconds(1);
    p.set_chosen_sizes("these were chosen: --shape x=1x3");
    printer.Show(job);
    p.set_waits_for("the measuring lock, held by process 7");
    printer.Show(job);
    p.set_waits_for("the measuring lock, held by process 8");
    printer.Show(job);
    p.clear_waits_for();
    p.set_stage("rewriting");
    p.set_round(1);
    printer.Show(job);
    p.set_stage("measuring groups");
    p.set_round(0);
    printer.Show(job);
    printer.ShowBytes("uploading", 1, 2);
    job.set_state(v1::Job::CONFIRMING);
    p.clear_stage();
    printer.Show(job);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "searching: measuring groups\n"
            "these were chosen: --shape x=1x3\n"
            "searching: measuring groups  0:01  waits for the measuring lock, held by process 7\n"
            "searching, round 1: rewriting  0:01\n"
            "confirming  0:01\n");
}

}  // namespace
}  // namespace ag
