#include "server/jobs.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "server/job_wire.h"

namespace ag {
namespace {

// A runner that holds jobs until they are released, then answers as the test says.
class FakeJobRunner : public JobRunner {
 public:
  StatusOr<JobResult> Run(const Job& job, const JobControl& control) override {
    ++runs;
    AG_TRY(control.enter(JobState::kSearching));
    if (during) during(control);
    while (hold && !control.cancelled()) RealClock().SleepFor(std::chrono::milliseconds(1));
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (!answer.ok()) return answer.status();
    JobResult result = *answer;
    result.output = job.request.model;
    result.environment = "e";
    return result;
  }
  std::atomic<int> runs{0};
  std::atomic<bool> hold{false};
  std::function<void(const JobControl&)> during;  // May be null.
  StatusOr<JobResult> answer = Searched();

  static JobResult Searched(const std::string& stop_reason = "exhausted", int rounds = 1) {
    JobResult result;
    result.stop_reason = stop_reason;
    result.rounds = rounds;
    return result;
  }
};

struct JobsBench {
  TempDir dir = *TempDir::Make("jobs-test-");
  std::unique_ptr<JobsDb> db;
  std::unique_ptr<CacheDb> cache;
  std::shared_ptr<BlobDir> blobs = *BlobDir::Open(dir.path() + "/blobs");
  Digest model = *blobs->Put("model");
  FakeJobRunner runner;
  JobsOptions options;
  std::unique_ptr<Jobs> jobs;

  JobsBench() {
    options.find_offer = [](const std::string& device) -> StatusOr<DeviceOffer> {
      if (device == "gone") return Err(StatusCode::kUnavailable, "no worker offers device gone");
      return DeviceOffer{"cpu", "", "e", false};
    };
    Restart();
  }
  void Restart() {
    jobs.reset();
    db.reset();
    cache.reset();
    db = *JobsDb::Open({dir.path() + "/jobs.db", ""}, RealClock());
    CacheDbOptions cache_options;
    cache_options.path = dir.path() + "/cache.db";
    cache = *CacheDb::Open(cache_options, RealClock());
    jobs = *Jobs::Start({db.get(), cache.get(), blobs.get()}, runner, RealClock(), options);
  }
  JobRequest Request(const std::string& request_id = "") {
    JobRequest request;
    request.request_id = request_id;
    request.model = model;
    return request;
  }
  Job WaitTerminal(int64_t id) {
    Job job = *jobs->Get(id);
    while (!IsTerminal(job.state)) job = *jobs->Wait(id, job.version, std::chrono::seconds(5));
    return job;
  }
  Job WaitState(int64_t id, JobState state) {
    Job job = *jobs->Get(id);
    while (job.state != state) job = *jobs->Wait(id, job.version, std::chrono::seconds(5));
    return job;
  }
};

TEST(Jobs, AJobRunsAndItsAnswerIsRemembered) {
  JobsBench b;
  const Job job = *b.jobs->Accept(b.Request());
  EXPECT_EQ(job.name(), "jobs/1");
  EXPECT_EQ(job.request.device, "cpu");
  EXPECT_EQ(b.WaitTerminal(job.id).state, JobState::kSucceeded);
  const Job again = *b.jobs->Accept(b.Request());
  EXPECT_EQ(again.state, JobState::kSucceeded);
  EXPECT_TRUE(again.result->cache.model_hit);
  EXPECT_NE(again.id, job.id);
  EXPECT_EQ(b.runner.runs, 1);
  JobRequest fresh = b.Request();
  fresh.skip_model_cache = true;
  EXPECT_EQ(b.WaitTerminal(b.jobs->Accept(fresh)->id).state, JobState::kSucceeded);
  EXPECT_EQ(b.runner.runs, 2);
}

TEST(Jobs, ARememberedAnswerWithoutItsBytesIsAMiss) {
  JobsBench b;
  JobResult result = FakeJobRunner::Searched();
  result.report = Sha256("gone");
  b.runner.answer = result;
  b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_FALSE(IsTerminal(b.jobs->Accept(b.Request())->state));
}

// Answers that a later run could improve are not stored.
TEST(Jobs, AnAnswerCutShortIsNotRemembered) {
  struct Case {
    std::string_view name, reason;
    int rounds;
    bool busy, is_remembered;
  };
  for (const Case& c : std::vector<Case>{
           {"complete", "exhausted", 1, false, true},
           {"complete on a busy machine", "rounds", 4, true, true},
           {"stopped by its budget", "time", 1, false, true},
           {"stopped on a busy machine", "time", 1, true, false},
           {"not searched", "time", 0, false, false},
           {"not searched on a busy machine", "time", 0, true, false},
       }) {
    SCOPED_TRACE(c.name);
    JobsBench b;
    b.runner.answer = FakeJobRunner::Searched(std::string(c.reason), c.rounds);
    b.runner.answer->busy = c.busy;
    b.WaitTerminal(b.jobs->Accept(b.Request())->id);
    b.runner.hold = true;  // A second run would not end.
    EXPECT_EQ(IsTerminal(b.jobs->Accept(b.Request())->state), c.is_remembered);
  }
}

TEST(Jobs, AnAnswerStoppedByTimeIsNotThatOfALongerBudget) {
  JobsBench b;
  b.runner.answer = FakeJobRunner::Searched("time", 1);
  JobRequest request = b.Request();
  request.time_seconds = 40;
  b.WaitTerminal(b.jobs->Accept(request)->id);
  EXPECT_EQ(b.jobs->Accept(request)->state, JobState::kSucceeded);
  request.time_seconds = 80;
  b.runner.hold = true;
  EXPECT_FALSE(IsTerminal(b.jobs->Accept(request)->state));
}

TEST(Jobs, AnUnsearchedAnswerOfAnOlderVersionIsAMiss) {
  JobsBench b;
  JobRequest request = b.Request();
  request.device = "cpu";
  const JobResult old = [&] {
    JobResult result = FakeJobRunner::Searched("time", 0);
    result.output = b.model;
    return result;
  }();
  const std::string key = fmt::format("{}environment=e\nrules=\n", AnswerText(request));
  ASSERT_TRUE(b.cache->PutModel({key, EncodeJobResult(old), old.output}).ok());
  ASSERT_TRUE(b.cache->FindModel(key).has_value());
  b.runner.hold = true;
  EXPECT_FALSE(IsTerminal(b.jobs->Accept(b.Request())->state));
}

TEST(Jobs, ALookUpAnswersFromTheCacheOrNotAtAll) {
  JobsBench b;
  JobRequest look_up = b.Request();
  look_up.only_cached = true;
  EXPECT_EQ(ToString(b.jobs->Accept(look_up).status()),
            "NOT_FOUND: no answer for model " + b.model.Short() + " on cpu is remembered");
  EXPECT_TRUE(b.jobs->List({})->empty());
  b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_EQ(b.jobs->Accept(look_up)->state, JobState::kSucceeded);
  look_up.model = Sha256("never uploaded");
  EXPECT_EQ(b.jobs->Accept(look_up).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(b.runner.runs, 1);
}

TEST(Jobs, ARequestIdNamesOneBody) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request("id"));
  EXPECT_EQ(b.jobs->Accept(b.Request("id"))->id, job.id);
  JobRequest other = b.Request("id");
  other.seed = 7;
  EXPECT_EQ(ToString(b.jobs->Accept(other).status()),
            "INVALID_ARGUMENT: request_id id was used before with another request");
}

TEST(Jobs, EqualRequestsInFlightAreOne) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request("a"));
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->id, job.id);
  EXPECT_EQ(b.jobs->Accept(b.Request())->id, job.id);
  JobRequest other = b.Request();
  other.seed = 7;
  EXPECT_NE(b.jobs->Accept(other)->id, job.id);
  b.Restart();
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->id, job.id) << "the second id was not durable";
}

TEST(Jobs, SaysWhatToDoFirst) {
  JobsBench b;
  JobRequest missing = b.Request();
  missing.model = Sha256("other");
  EXPECT_EQ(b.jobs->Accept(missing).status().code(), StatusCode::kFailedPrecondition);
  JobRequest nowhere = b.Request();
  nowhere.device = "gone";
  EXPECT_EQ(b.jobs->Accept(nowhere).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(b.jobs->List({})->empty());
}

TEST(Jobs, OneJobAtATimePerDevice) {
  JobsBench b;
  b.runner.hold = true;
  const Job first = *b.jobs->Accept(b.Request());
  JobRequest other = b.Request();
  other.seed = 7;
  const Job second = *b.jobs->Accept(other);
  b.WaitState(first.id, JobState::kSearching);
  EXPECT_EQ(b.jobs->Get(second.id)->state, JobState::kQueued);
  EXPECT_EQ(b.jobs->Get(second.id)->progress.waits_for, "jobs/1, which runs on device cpu");
  EXPECT_EQ(b.jobs->Get(first.id)->progress.waits_for, "");
  b.runner.hold = false;
  EXPECT_EQ(b.WaitTerminal(second.id).state, JobState::kSucceeded);
}

TEST(Jobs, ProgressOnlyGrowsAndKeepsItsLastValues) {
  JobsBench b;
  std::vector<JobProgress> seen;
  const auto look = [&] { seen.push_back(b.jobs->Get(1)->progress); };
  b.runner.during = [&](const JobControl& control) {
    control.on_wait("the measuring lock, held by process 7");
    look();
    control.on_progress({.stage = "rewriting", .graphs = 5, .best_speedup = 1.5, .fraction = 0.75});
    look();
    control.on_wait("");
    control.on_progress({.stage = "measuring plans", .graphs = 9, .best_speedup = 1.5});
    look();
    ASSERT_TRUE(control.enter(JobState::kConfirming).ok());
    look();
  };
  b.runner.answer = Err(StatusCode::kUnimplemented, "no");
  JobRequest request = b.Request();
  request.time_seconds = 6e5;
  const Job job = b.WaitTerminal(b.jobs->Accept(request)->id);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].waits_for, "the measuring lock, held by process 7");
  EXPECT_EQ(seen[1].waits_for, seen[0].waits_for);
  EXPECT_EQ(seen[2].waits_for, "");
  EXPECT_EQ(seen[2].stage, "measuring plans");
  EXPECT_EQ(seen[3].stage, "") << "it was the search's";
  double fraction = 0, elapsed = 0;
  for (const JobProgress& progress : seen) {
    EXPECT_GE(progress.fraction, fraction);
    EXPECT_GE(progress.elapsed_seconds, elapsed);
    fraction = progress.fraction;
    elapsed = progress.elapsed_seconds;
  }
  EXPECT_EQ(fraction, 0.75);
  EXPECT_GT(elapsed, 0);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.progress.graphs, 9);
  EXPECT_EQ(job.progress.best_speedup, 1.5);
  EXPECT_EQ(job.progress.fraction, 1);
  EXPECT_GE(job.progress.elapsed_seconds, elapsed);
}

TEST(Jobs, TheFractionFollowsTheTime) {
  JobsBench b;
  b.runner.hold = true;
  JobRequest request = b.Request();
  request.time_seconds = 1e-9;
  const Job job = *b.jobs->Accept(request);
  EXPECT_EQ(b.WaitState(job.id, JobState::kSearching).progress.fraction, 0.99);
}

TEST(Jobs, ARowTellsWhatTheResultDoes) {
  JobsBench b;
  JobResult result;
  result.graphs = 12;
  result.speedup.median = 1.25;
  result.seconds = 3;
  b.runner.answer = result;
  const int64_t id = b.WaitTerminal(b.jobs->Accept(b.Request())->id).id;
  b.Restart();
  const JobProgress progress = b.jobs->Get(id)->progress;
  EXPECT_EQ(progress.graphs, 12);
  EXPECT_EQ(progress.best_speedup, 1.25);
  EXPECT_EQ(progress.elapsed_seconds, 3);
  EXPECT_EQ(progress.fraction, 1);
}

TEST(Jobs, CancelsQueuedAndRunning) {
  JobsBench b;
  b.runner.hold = true;
  const Job first = *b.jobs->Accept(b.Request());
  JobRequest other = b.Request();
  other.seed = 7;
  const Job second = *b.jobs->Accept(other);
  b.WaitState(first.id, JobState::kSearching);
  EXPECT_EQ(b.jobs->Cancel(second.id)->state, JobState::kCancelled);
  ASSERT_TRUE(b.jobs->Cancel(first.id).ok());
  EXPECT_EQ(b.WaitTerminal(first.id).state, JobState::kCancelled);
  EXPECT_EQ(b.jobs->Cancel(first.id)->state, JobState::kCancelled);
  EXPECT_EQ(b.jobs->Cancel(99).status().code(), StatusCode::kNotFound);
}

TEST(Jobs, AFailureKeepsItsReason) {
  JobsBench b;
  b.runner.answer = Err(StatusCode::kUnimplemented, "Loop: no pattern takes it");
  const Job job = b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_EQ(job.state, JobState::kFailed);
  b.Restart();
  EXPECT_EQ(ToString(b.jobs->Get(job.id)->error), "UNIMPLEMENTED: Loop: no pattern takes it");
}

TEST(Jobs, AJobInFlightIsResumedByTheNextStart) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request());
  const uint64_t version = b.WaitState(job.id, JobState::kSearching).version;
  b.Restart();
  EXPECT_EQ(b.jobs->Get(job.id)->resumed, 1);
  EXPECT_GT(b.jobs->Get(job.id)->version, version);
  b.runner.hold = false;
  EXPECT_EQ(b.WaitTerminal(job.id).state, JobState::kSucceeded);
  EXPECT_EQ(b.runner.runs, 2);
}

TEST(Jobs, AJobThatNeverFinishesIsGivenUp) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request());
  for (int i = 0; i < 6; ++i) b.Restart();
  EXPECT_EQ(Message(b.jobs->Get(job.id)->error),
            "resumed 5 times and never finished: it may be what stops the coordinator");
}

TEST(Jobs, ACancelSurvivesARestart) {
  JobsBench b;
  JobRow row;
  row.state = "SEARCHING";
  row.request = EncodeJobRequest(b.Request());
  row.cancel = true;
  const int64_t id = *b.db->Insert(row, "", "");
  b.Restart();
  EXPECT_EQ(b.jobs->Get(id)->state, JobState::kCancelled);
}

}  // namespace
}  // namespace ag
