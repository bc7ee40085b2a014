#include "server/jobs/jobs.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/blobs.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/reason.h"
#include "server/store/open_store.h"
#include "server/store/testing/fault_vfs.h"

namespace ag {
namespace {

// A runner that holds jobs until they are released, then answers as the test says.
class FakeJobRunner : public JobRunner {
 public:
  StatusOr<JobOutcome> Run(const Job& job, const JobControl& control) override {
    ++runs;
    if (on_run) on_run(job);
    AG_TRY(control.enter(v1::Job::SEARCHING));
    if (during) during(control);
    while (hold && !control.cancelled()) RealClock().SleepFor(std::chrono::milliseconds(1));
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (!answer.ok()) return answer.status();
    JobOutcome outcome = *answer;
    outcome.result.set_output_digest(job.request.model_digest());
    outcome.result.set_environment("e");
    return outcome;
  }
  std::atomic<int> runs{0};
  std::atomic<bool> hold{false};
  std::function<void(const Job&)> on_run;         // May be null.
  std::function<void(const JobControl&)> during;  // May be null.
  StatusOr<JobOutcome> answer = Searched();

  static JobOutcome Searched(v1::Result::SearchState search = v1::Result::COMPLETE) {
    JobOutcome outcome;
    outcome.result.set_search(search);
    return outcome;
  }
};

struct JobsBench {
  TempDir dir = *TempDir::Make("jobs-test-");
  Store store;
  JobsStore* db = nullptr;
  std::shared_ptr<BlobDir> blobs = *BlobDir::Open(dir.path() + "/blobs");
  Digest model = *blobs->Put("model");
  FakeJobRunner runner;
  JobsOptions options;
  std::vector<std::string> environments = {"e"};  // Of the workers. Set before Restart.
  std::unique_ptr<Jobs> jobs;

  JobsBench() {
    options.find_offers = [this](const std::string& device) -> StatusOr<std::vector<DeviceOffer>> {
      if (device == "gone") return Err(StatusCode::kUnavailable, "no worker offers device gone");
      std::vector<DeviceOffer> offers;
      for (const std::string& e : environments) offers.push_back({"cpu", "", e, false});
      return offers;
    };
    Restart();
  }
  void Restart() {
    jobs.reset();
    store = {};
    store = *OpenStore({.folder = dir.path()}, RealClock());
    db = store.jobs.get();
    jobs = *Jobs::Start({db, store.cache.get(), blobs.get()}, runner, RealClock(), options);
  }
  // Restarts as after a crash: the store says what it said when the process ended.
  void Crash(int64_t id) {
    WaitState(id, v1::Job::SEARCHING);
    const JobRow before = *db->Get(id);
    jobs.reset();
    ASSERT_TRUE(db->Update(before).ok());
    Restart();
  }
  v1::OptimizeRequest Request(const std::string& request_id = "") {
    v1::OptimizeRequest request;
    request.set_request_id(request_id);
    request.set_model_digest(model.Hex());
    return request;
  }
  Job WaitTerminal(int64_t id) {
    Job job = *jobs->Get(id);
    while (!IsTerminal(job.state)) job = *jobs->Wait(id, job.version, std::chrono::seconds(5));
    return job;
  }
  // Waits until the job is put off, and returns what it waits for.
  std::string WaitPutOff(int64_t id) {
    Job job = *jobs->Get(id);
    while (!IsTerminal(job.state) && job.progress.waits_for().empty()) {
      job = *jobs->Wait(id, job.version, std::chrono::seconds(5));
    }
    EXPECT_EQ(job.state, v1::Job::QUEUED);
    return job.progress.waits_for();
  }
  Job WaitState(int64_t id, v1::Job::State state) {
    Job job = *jobs->Get(id);
    while (job.state != state) job = *jobs->Wait(id, job.version, std::chrono::seconds(5));
    return job;
  }
};

TEST(Jobs, AJobRunsAndItsAnswerIsRemembered) {
  JobsBench b;
  const Job job = *b.jobs->Accept(b.Request());
  EXPECT_EQ(job.name(), "jobs/1");
  EXPECT_EQ(job.request.device(), "cpu");
  EXPECT_EQ(job.progress.best_speedup(), 1);
  EXPECT_EQ(b.WaitTerminal(job.id).state, v1::Job::SUCCEEDED);
  const Job again = *b.jobs->Accept(b.Request());
  EXPECT_EQ(again.state, v1::Job::SUCCEEDED);
  EXPECT_TRUE(again.result->cache().model_hit());
  EXPECT_EQ(again.id, 0) << "an answer without a request_id is no job";
  EXPECT_EQ(b.jobs->List({})->jobs.size(), 1u);
  const Job named = *b.jobs->Accept(b.Request("id"));
  EXPECT_EQ(named.name(), "jobs/2");
  EXPECT_EQ(b.jobs->Accept(b.Request("id"))->id, named.id);
  EXPECT_EQ(b.runner.runs, 1);
  v1::OptimizeRequest fresh = b.Request();
  fresh.set_skip_model_cache(true);
  EXPECT_EQ(b.WaitTerminal(b.jobs->Accept(fresh)->id).state, v1::Job::SUCCEEDED);
  EXPECT_EQ(b.runner.runs, 2);
}

TEST(Jobs, ARememberedAnswerWithoutItsBytesIsAMiss) {
  JobsBench b;
  b.runner.answer->result.set_report_digest(Sha256("gone").Hex());
  b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_FALSE(IsTerminal(b.jobs->Accept(b.Request())->state));
}

// Answers that a later run could improve are not stored.
TEST(Jobs, AnAnswerCutShortIsNotRemembered) {
  struct Case {
    std::string_view name;
    v1::Result::SearchState search;
    bool busy, winner_refused, is_remembered;
  };
  for (const Case& c : std::vector<Case>{
           {"complete", v1::Result::COMPLETE, false, false, true},
           {"complete on a busy machine", v1::Result::COMPLETE, true, false, true},
           {"the winner was refused", v1::Result::COMPLETE, false, true, false},
           {"stopped by its budget", v1::Result::STOPPED, false, false, true},
           {"stopped on a busy machine", v1::Result::STOPPED, true, false, false},
           {"not searched", v1::Result::NOT_SEARCHED, false, false, false},
           {"not searched on a busy machine", v1::Result::NOT_SEARCHED, true, false, false},
       }) {
    SCOPED_TRACE(c.name);
    JobsBench b;
    b.runner.answer = FakeJobRunner::Searched(c.search);
    b.runner.answer->busy = c.busy;
    b.runner.answer->winner_refused = c.winner_refused;
    b.WaitTerminal(b.jobs->Accept(b.Request())->id);
    b.runner.hold = true;  // A second run would not end.
    EXPECT_EQ(IsTerminal(b.jobs->Accept(b.Request())->state), c.is_remembered);
  }
}

TEST(Jobs, AnAnswerStoppedByTimeIsNotThatOfALongerBudget) {
  JobsBench b;
  b.runner.answer = FakeJobRunner::Searched(v1::Result::STOPPED);
  v1::OptimizeRequest request = b.Request();
  request.mutable_budget()->set_time_seconds(40);
  b.WaitTerminal(b.jobs->Accept(request)->id);
  EXPECT_EQ(b.jobs->Accept(request)->state, v1::Job::SUCCEEDED);
  request.mutable_budget()->set_time_seconds(80);
  b.runner.hold = true;
  EXPECT_FALSE(IsTerminal(b.jobs->Accept(request)->state));
}

TEST(Jobs, ALookUpAnswersFromTheCacheOrNotAtAll) {
  JobsBench b;
  v1::OptimizeRequest look_up = b.Request();
  look_up.set_only_cached(true);
  EXPECT_EQ(ToString(b.jobs->Accept(look_up).status()),
            "NOT_FOUND: no answer for model " + b.model.Short() + " on cpu is remembered");
  EXPECT_TRUE(b.jobs->List({})->jobs.empty());
  b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_EQ(b.jobs->Accept(look_up)->state, v1::Job::SUCCEEDED);
  look_up.set_model_digest(Sha256("never uploaded").Hex());
  EXPECT_EQ(b.jobs->Accept(look_up).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(b.runner.runs, 1);
}

TEST(Jobs, TenantsShareNothing) {
  JobsBench b;
  const Tenant alice = {.name = "alice", .sees_all = false},
               bob = {.name = "bob", .sees_all = false};
  EXPECT_EQ(
      ToString(b.jobs->Accept(b.Request(), alice).status()),
      "FAILED_PRECONDITION: model " + b.model.Hex() + " is not here; upload it and call again");
  ASSERT_TRUE(b.jobs->OwnBlob(alice, b.model).ok());
  ASSERT_TRUE(b.jobs->OwnBlob(bob, b.model).ok());
  b.runner.hold = true;
  b.options.per_device = 1;
  const Job one = *b.jobs->Accept(b.Request("id"), alice);
  b.WaitState(one.id, v1::Job::SEARCHING);
  const Job other = *b.jobs->Accept(b.Request("id"), bob);
  EXPECT_NE(one.id, other.id) << "an equal request in flight, under the same id";
  EXPECT_EQ(b.jobs->Accept(b.Request("id"), alice)->id, one.id);
  EXPECT_EQ(b.jobs->Accept(b.Request(), alice)->id, one.id);
  EXPECT_EQ(b.jobs->Get(one.id)->waiters, 2);
  EXPECT_EQ(b.jobs->Get(other.id)->progress.waits_for(),
            "another tenant's job, which runs on device cpu");
  EXPECT_EQ(b.jobs->Cancel(one.id, {.request_id = "id"})->waiters, 1);
  b.runner.hold = false;
  b.WaitTerminal(one.id);
  b.WaitTerminal(other.id);
  EXPECT_EQ(b.runner.runs, 2) << "bob had alice's answer";
  EXPECT_EQ(b.jobs->Accept(b.Request(), bob)->state, v1::Job::SUCCEEDED) << "his own answer";
  EXPECT_EQ(b.jobs->List({.tenant = "alice"})->jobs.size(), 1u);
  EXPECT_EQ(b.jobs->List({.tenant = "bob"})->jobs.size(), 1u);
  v1::OptimizeRequest look_up = b.Request();
  look_up.set_only_cached(true);
  EXPECT_EQ(b.jobs->Accept(look_up, {.name = "carol", .sees_all = false}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(b.jobs->Accept(look_up).status().code(), StatusCode::kNotFound);
}

TEST(Jobs, AreListedByWhatTheyAreFor) {
  JobsBench b;
  const Digest other = *b.blobs->Put("another model");
  std::vector<int64_t> ids;
  for (int i = 0; i < 6; ++i) {
    v1::OptimizeRequest request = b.Request();
    request.set_device("cpu");
    request.set_seed(static_cast<uint64_t>(i) + 1);
    if (i % 3 == 0) request.set_model_digest(other.Hex());
    ids.push_back(b.jobs->Accept(request)->id);
    b.WaitTerminal(ids.back());
  }
  const auto listed = [&](const Jobs::ListOptions& options) {
    const Jobs::Listed page = *b.jobs->List(options);
    std::vector<int64_t> found;
    for (const Job& job : page.jobs) found.push_back(job.id);
    found.push_back(page.next_before_id);
    return found;
  };
  EXPECT_EQ(listed({.model_digest = other.Hex()}), (std::vector<int64_t>{ids[3], ids[0], 0}));
  const Jobs::ListOptions first = {.rows_max = 1, .model_digest = other.Hex()};
  EXPECT_EQ(listed(first), (std::vector<int64_t>{ids[3], ids[3]}));
  Jobs::ListOptions second = first;
  second.before_id = ids[3];
  EXPECT_EQ(listed(second), (std::vector<int64_t>{ids[0], ids[0]}));
  second.before_id = ids[0];
  EXPECT_EQ(listed(second), (std::vector<int64_t>{0}));
  EXPECT_EQ(listed({.device = "cuda:0"}), (std::vector<int64_t>{0}));
  EXPECT_EQ(listed({.device = "cpu", .created_since = 1}).size(), 7u);
  EXPECT_EQ(listed({.created_since = RealClock().UnixSeconds() + 3600}), (std::vector<int64_t>{0}));
}

TEST(Jobs, EachEnvironmentOfADeviceRunsJobsAndHasAnswers) {
  JobsBench b;
  b.environments = {"d", "e"};
  b.runner.hold = true;
  std::vector<int64_t> ids;
  for (const int rounds : {1, 2, 3}) {
    v1::OptimizeRequest request = b.Request();
    request.mutable_budget()->set_rounds(rounds);
    ids.push_back(b.jobs->Accept(request)->id);
  }
  b.WaitState(ids[0], v1::Job::SEARCHING);
  b.WaitState(ids[1], v1::Job::SEARCHING);
  EXPECT_EQ(b.jobs->Get(ids[2])->state, v1::Job::QUEUED) << "one job for each environment";
  b.runner.hold = false;
  for (const int64_t id : ids) b.WaitTerminal(id);
  v1::OptimizeRequest request = b.Request();
  request.mutable_budget()->set_rounds(2);
  request.set_only_cached(true);
  EXPECT_EQ(b.jobs->Accept(request)->state, v1::Job::SUCCEEDED) << "an answer of environment e";
}

TEST(Jobs, AFaultOfTheHostPutsAJobOff) {
  JobsBench b;
  b.runner.answer = AsHostFault(Err(StatusCode::kResourceExhausted, "write m: the disk is full"));
  const int64_t id = b.jobs->Accept(b.Request())->id;
  const int64_t other = b.jobs->Accept(b.Request("other"))->id;
  EXPECT_EQ(other, id) << "it is still in hand";
  EXPECT_EQ(b.WaitPutOff(id), "the coordinator's host: write m: the disk is full");
  EXPECT_EQ(b.db->Get(id)->state, "QUEUED") << "a crash now does not count against it";
  b.runner.answer = FakeJobRunner::Searched();
  EXPECT_EQ(b.WaitTerminal(id).state, v1::Job::SUCCEEDED);
  EXPECT_EQ(b.runner.runs, 2);
}

TEST(Jobs, AJobThatIsPutOffCanBeCancelled) {
  JobsBench b;
  b.runner.answer = AsHostFault(Err(StatusCode::kResourceExhausted, "start a thread: none"));
  const int64_t id = b.jobs->Accept(b.Request())->id;
  b.WaitPutOff(id);
  ASSERT_TRUE(b.jobs->Cancel(id).ok());
  EXPECT_EQ(b.WaitTerminal(id).state, v1::Job::CANCELLED);
}

TEST(Jobs, AFaultOfTheHostThatStaysFailsTheJob) {
  JobsBench b;
  b.options.host_fault_max = Nanos{-1};
  b.Restart();
  b.runner.answer = AsHostFault(Err(StatusCode::kResourceExhausted, "write m: the disk is full"));
  const Job job = b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_EQ(job.state, v1::Job::FAILED);
  EXPECT_EQ(Message(job.error), "write m: the disk is full");
}

// The disk becomes full when the job begins.
TEST(Jobs, AFullDiskLosesNoJobAndHidesNoAnswer) {
  const FaultVfs vfs;
  std::optional<file_ops::FileFault> full;
  JobsBench b;
  const int64_t known = b.jobs->Accept(b.Request())->id;
  b.WaitTerminal(known);
  v1::OptimizeRequest next = b.Request();
  next.mutable_budget()->set_rounds(7);
  b.runner.on_run = [&](const Job&) {
    if (b.runner.runs != 2) return;
    full.emplace(file_ops::FileFault::Options{.error = ENOSPC, .all_later = true});
  };
  const int64_t id = b.jobs->Accept(next)->id;
  EXPECT_NE(b.WaitPutOff(id).find("disk is full"), std::string::npos);
  for (const char* request_id : {"", "id"}) {
    const StatusOr<Job> answer = b.jobs->Accept(b.Request(request_id));
    ASSERT_TRUE(answer.ok()) << ToString(answer.status());
    EXPECT_TRUE(answer->result->cache().model_hit());
    EXPECT_EQ(answer->id, 0) << "nothing could be stored";
  }
  full.reset();
  EXPECT_EQ(b.WaitTerminal(id).state, v1::Job::SUCCEEDED);
}

TEST(Jobs, AModelIsDeletedWhenNoneOfItsJobsIsInHand) {
  JobsBench b;
  b.runner.hold = true;
  const int64_t id = b.jobs->Accept(b.Request())->id;
  b.WaitState(id, v1::Job::SEARCHING);
  EXPECT_EQ(ToString(b.jobs->DeleteModel(b.model, {}).status()),
            "FAILED_PRECONDITION: jobs/1 is SEARCHING: cancel it, or wait for its end");
  b.runner.hold = false;
  b.WaitTerminal(id);
  const auto removed = b.jobs->DeleteModel(b.model, {});
  ASSERT_TRUE(removed.ok()) << ToString(removed.status());
  EXPECT_EQ(removed->jobs, 1);
  EXPECT_EQ(removed->answers, 1);
  EXPECT_FALSE(b.blobs->Has(b.model));
  EXPECT_EQ(b.jobs->Get(id).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(b.jobs->DeleteModel(b.model, {}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(b.jobs->Accept(b.Request()).status().code(), StatusCode::kFailedPrecondition);
}

// What a job has made is its tenant's, also after a restart.
TEST(Jobs, AResultBelongsToItsTenant) {
  JobsBench b;
  const Tenant alice = {.name = "alice", .sees_all = false},
               bob = {.name = "bob", .sees_all = false};
  const Digest report = *b.blobs->Put("report");
  b.runner.answer->result.set_report_digest(report.Hex());
  ASSERT_TRUE(b.jobs->OwnBlob(alice, b.model).ok());
  EXPECT_FALSE(*b.jobs->MaySee(alice, report));
  b.WaitTerminal(b.jobs->Accept(b.Request(), alice)->id);
  b.Restart();
  EXPECT_TRUE(*b.jobs->MaySee(alice, report));
  EXPECT_TRUE(*b.jobs->MaySee({}, report)) << "where there are no tokens";
  EXPECT_FALSE(*b.jobs->MaySee(bob, report));
  EXPECT_FALSE(*b.jobs->MaySee(bob, b.model));
}

TEST(Jobs, ARequestIdNamesOneBody) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request("id"));
  EXPECT_EQ(b.jobs->Accept(b.Request("id"))->id, job.id);
  v1::OptimizeRequest other = b.Request("id");
  other.set_seed(7);
  EXPECT_EQ(ToString(b.jobs->Accept(other).status()),
            "INVALID_ARGUMENT: request_id id was used before with another request");
}

TEST(Jobs, EqualRequestsInFlightAreOne) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request("a"));
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->id, job.id);
  EXPECT_EQ(b.jobs->Accept(b.Request())->id, job.id);
  v1::OptimizeRequest other = b.Request();
  other.set_seed(7);
  EXPECT_NE(b.jobs->Accept(other)->id, job.id);
  b.Restart();
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->id, job.id) << "the second id was not durable";
}

TEST(Jobs, InputsAreUploadedFirstAndPartOfTheKey) {
  JobsBench b;
  v1::OptimizeRequest request = b.Request();
  v1::InputSet* set = request.add_inputs();
  set->set_name("mine");
  set->set_digest(Sha256("never uploaded").Hex());
  EXPECT_EQ(ToString(b.jobs->Accept(request).status()),
            "FAILED_PRECONDITION: inputs mine: " + set->digest() +
                " is not here; upload it and call again");
  set->set_digest(b.model.Hex());
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(request);
  EXPECT_EQ(b.jobs->Accept(request)->id, job.id);
  EXPECT_NE(b.jobs->Accept(b.Request())->id, job.id);
}

TEST(AcceptedRequest, SetsOfInputsHaveNamesAndDigests) {
  const std::string digest = Sha256("a").Hex();
  const struct {
    const char* name;
    std::vector<std::pair<std::string, std::string>> sets;
    std::string status;
  } kCases[] = {
      {"two", {{"a", digest}, {"b", digest}}, "OK"},
      {"no name", {{"", digest}}, "INVALID_ARGUMENT: inputs: a set has no name"},
      {"no digest", {{"a", "12"}}, "INVALID_ARGUMENT: inputs a: "},
      {"one name",
       {{"a", digest}, {"a", digest}},
       "INVALID_ARGUMENT: inputs: two sets are called a"},
      {"too many", std::vector<std::pair<std::string, std::string>>(65, {"a", digest}),
       "INVALID_ARGUMENT: inputs: 65 sets, at most 64"},
  };
  for (const auto& c : kCases) {
    v1::OptimizeRequest request;
    request.set_model_digest(digest);
    for (const auto& [name, hex] : c.sets) {
      v1::InputSet* set = request.add_inputs();
      set->set_name(name);
      set->set_digest(hex);
    }
    const std::string status = ToString(AcceptedRequest(request).status());
    EXPECT_TRUE(status.starts_with(c.status)) << c.name << ": " << status;
  }
}

TEST(AcceptedRequest, TheMethodOfTheSearchDecidesItsParameters) {
  v1::OptimizeRequest request;
  request.set_model_digest(Sha256("a").Hex());
  const v1::OptimizeRequest ours = *AcceptedRequest(request);
  EXPECT_EQ(ours.search(), v1::OptimizeRequest::OURS);
  EXPECT_EQ(ours.budget().candidates(), 8);
  EXPECT_EQ(ours.budget().cell_graphs(), 3000);
  EXPECT_EQ(ours.budget().stale_graphs(), 500);
  EXPECT_EQ(ours.piece_nodes(), 0);
  request.set_search(v1::OptimizeRequest::PAPER);
  request.set_region_nodes(90);
  const v1::OptimizeRequest paper = *AcceptedRequest(request);
  EXPECT_EQ(paper.budget().candidates(), 20);
  EXPECT_GT(paper.budget().rounds(), 1000);
  EXPECT_EQ(paper.budget().cell_graphs(), 0);
  EXPECT_EQ(paper.budget().stale_graphs(), 0);
  EXPECT_EQ(paper.piece_nodes(), 40);
  EXPECT_EQ(paper.region_nodes(), 90);
  request.mutable_budget()->set_cell_graphs(0);
  EXPECT_TRUE(AcceptedRequest(request).ok());
}

TEST(AcceptedRequest, ParametersOfAnotherMethodAreRefused) {
  v1::OptimizeRequest request;
  request.set_model_digest(Sha256("a").Hex());
  request.set_piece_nodes(40);
  EXPECT_EQ(ToString(AcceptedRequest(request).status()),
            "INVALID_ARGUMENT: piece_nodes: only the paper's search has pieces and regions");
  request.set_search(v1::OptimizeRequest::PAPER_WITHOUT_DP);
  EXPECT_TRUE(AcceptedRequest(request).ok());
  request.mutable_budget()->set_cell_graphs(1);
  EXPECT_EQ(ToString(AcceptedRequest(request).status()),
            "INVALID_ARGUMENT: budget.cell_graphs: only our search has cells");
  request.mutable_budget()->set_cell_graphs(0);
  request.mutable_budget()->set_stale_graphs(1);
  EXPECT_EQ(ToString(AcceptedRequest(request).status()),
            "INVALID_ARGUMENT: budget.stale_graphs: the paper searches each region to its end");
}

TEST(Jobs, SaysWhatToDoFirst) {
  JobsBench b;
  v1::OptimizeRequest missing = b.Request();
  missing.set_model_digest(Sha256("other").Hex());
  EXPECT_EQ(b.jobs->Accept(missing).status().code(), StatusCode::kFailedPrecondition);
  v1::OptimizeRequest nowhere = b.Request();
  nowhere.set_device("gone");
  EXPECT_EQ(b.jobs->Accept(nowhere).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(b.jobs->List({})->jobs.empty());
}

TEST(Jobs, OneJobAtATimePerDevice) {
  JobsBench b;
  b.runner.hold = true;
  const Job first = *b.jobs->Accept(b.Request());
  v1::OptimizeRequest other = b.Request();
  other.set_seed(7);
  const Job second = *b.jobs->Accept(other);
  b.WaitState(first.id, v1::Job::SEARCHING);
  EXPECT_EQ(b.jobs->Get(second.id)->state, v1::Job::QUEUED);
  EXPECT_EQ(b.jobs->Get(second.id)->progress.waits_for(), "jobs/1, which runs on device cpu");
  EXPECT_EQ(b.jobs->Get(first.id)->progress.waits_for(), "");
  b.runner.hold = false;
  EXPECT_EQ(b.WaitTerminal(second.id).state, v1::Job::SUCCEEDED);
}

v1::Progress ProgressOf(const std::string& stage, int graphs, double fraction) {
  v1::Progress progress;
  progress.set_stage(stage);
  progress.set_graphs(graphs);
  progress.set_best_speedup(1.5);
  progress.set_fraction(fraction);
  return progress;
}

TEST(Jobs, ProgressOnlyGrowsAndKeepsItsLastValues) {
  JobsBench b;
  std::vector<v1::Progress> seen;
  const auto look = [&] { seen.push_back(b.jobs->Get(1)->progress); };
  b.runner.during = [&](const JobControl& control) {
    control.on_wait("the measuring lock, held by process 7");
    look();
    v1::Progress sizes;
    sizes.set_chosen_sizes("x=1x3");
    control.on_progress(sizes);
    control.on_progress(ProgressOf("rewriting", 5, 0.75));
    look();
    control.on_wait("");
    control.on_progress(ProgressOf("measuring plans", 9, 0));
    look();
    ASSERT_TRUE(control.enter(v1::Job::CONFIRMING).ok());
    look();
  };
  b.runner.answer = Err(StatusCode::kUnimplemented, "no");
  v1::OptimizeRequest request = b.Request();
  request.mutable_budget()->set_time_seconds(6e5);
  const Job job = b.WaitTerminal(b.jobs->Accept(request)->id);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].waits_for(), "the measuring lock, held by process 7");
  EXPECT_EQ(seen[1].waits_for(), seen[0].waits_for());
  EXPECT_EQ(seen[1].chosen_sizes(), "x=1x3") << "they are said once";
  EXPECT_EQ(seen[2].waits_for(), "");
  EXPECT_EQ(seen[2].stage(), "measuring plans");
  EXPECT_EQ(seen[3].stage(), "") << "it was the search's";
  double fraction = 0, elapsed = 0;
  for (const v1::Progress& progress : seen) {
    EXPECT_GE(progress.fraction(), fraction);
    EXPECT_GE(progress.elapsed_seconds(), elapsed);
    fraction = progress.fraction();
    elapsed = progress.elapsed_seconds();
  }
  EXPECT_EQ(fraction, 0.75);
  EXPECT_GT(elapsed, 0);
  EXPECT_EQ(job.state, v1::Job::FAILED);
  EXPECT_EQ(job.progress.graphs(), 9);
  EXPECT_EQ(job.progress.best_speedup(), 1.5);
  EXPECT_EQ(job.progress.fraction(), 1);
  EXPECT_GE(job.progress.elapsed_seconds(), elapsed);
}

TEST(Jobs, TheFractionFollowsTheTime) {
  JobsBench b;
  b.runner.hold = true;
  v1::OptimizeRequest request = b.Request();
  request.mutable_budget()->set_time_seconds(1e-9);
  const Job job = *b.jobs->Accept(request);
  EXPECT_EQ(b.WaitState(job.id, v1::Job::SEARCHING).progress.fraction(), 0.99);
}

TEST(Jobs, ARowTellsWhatTheResultDoes) {
  JobsBench b;
  v1::Result& result = b.runner.answer->result;
  result.set_graphs(12);
  result.set_speedup(1.25);
  result.set_seconds(3);
  const int64_t id = b.WaitTerminal(b.jobs->Accept(b.Request())->id).id;
  b.Restart();
  const v1::Progress progress = b.jobs->Get(id)->progress;
  EXPECT_EQ(progress.graphs(), 12);
  EXPECT_EQ(progress.best_speedup(), 1.25);
  EXPECT_EQ(progress.elapsed_seconds(), 3);
  EXPECT_EQ(progress.fraction(), 1);
}

TEST(Jobs, CancelsQueuedAndRunning) {
  JobsBench b;
  b.runner.hold = true;
  const Job first = *b.jobs->Accept(b.Request());
  v1::OptimizeRequest other = b.Request();
  other.set_seed(7);
  const Job second = *b.jobs->Accept(other);
  b.WaitState(first.id, v1::Job::SEARCHING);
  EXPECT_EQ(b.jobs->Cancel(second.id)->state, v1::Job::CANCELLED);
  ASSERT_TRUE(b.jobs->Cancel(first.id).ok());
  EXPECT_EQ(b.WaitTerminal(first.id).state, v1::Job::CANCELLED);
  EXPECT_EQ(b.jobs->Cancel(first.id)->state, v1::Job::CANCELLED);
  EXPECT_EQ(b.jobs->Cancel(99).status().code(), StatusCode::kNotFound);
}

// Asks of two callers before an answer share it; an error is shown beside the best of before.
TEST(Jobs, TheBestSoFarIsShownWhileAJobRuns) {
  JobsBench b;
  b.runner.hold = true;
  std::atomic<bool> may_answer = false;
  const Digest report = *b.blobs->Put("{}");
  b.runner.during = [&](const JobControl& control) {
    const auto wait = [&](int asked) {
      while (!may_answer || control.best_asked() < asked) {
        if (control.cancelled()) return;
        RealClock().SleepFor(std::chrono::milliseconds(1));
      }
    };
    wait(2);
    JobOutcome best;
    best.result.set_output_digest(b.model.Hex());
    best.result.set_report_digest(report.Hex());
    best.result.set_speedup(1.5);
    control.on_best(best);
    wait(3);
    control.on_best(Err(StatusCode::kUnavailable, "no worker"));
  };
  const Tenant ours{.name = "ours", .sees_all = false};
  ASSERT_TRUE(b.jobs->OwnBlob(ours, b.model).ok());
  const Job job = *b.jobs->Accept(b.Request(), ours);
  const auto wait = [&](uint64_t version) {
    Job seen = *b.jobs->Get(job.id);
    while (seen.best_version < version) {
      seen = *b.jobs->Wait(job.id, seen.version, std::chrono::seconds(5));
    }
    return seen;
  };
  EXPECT_EQ(b.jobs->PublishBest(job.id)->best_version, 0u);
  EXPECT_FALSE(b.jobs->PublishBest(job.id)->best_so_far.has_value());
  may_answer = true;
  Job seen = wait(1);
  EXPECT_EQ(seen.best_so_far->speedup(), 1.5);
  EXPECT_FALSE(IsTerminal(seen.state));
  EXPECT_FALSE(seen.result.has_value());
  EXPECT_TRUE(*b.jobs->MaySee(ours, report)) << "the tenant may download it";
  v1::Job shown;
  ToProto(seen, &shown);
  EXPECT_EQ(shown.best_so_far().speedup(), 1.5);
  EXPECT_FALSE(shown.has_best_error());
  ToSummary(seen, &shown);
  EXPECT_FALSE(shown.has_best_so_far());
  ASSERT_TRUE(b.jobs->PublishBest(job.id).ok());
  seen = wait(2);
  EXPECT_EQ(seen.best_error.code(), StatusCode::kUnavailable);
  EXPECT_EQ(seen.best_so_far->speedup(), 1.5);
  ASSERT_TRUE(b.jobs->Cancel(job.id).ok());
  EXPECT_EQ(b.WaitTerminal(job.id).state, v1::Job::CANCELLED);
  EXPECT_EQ(b.jobs->PublishBest(job.id)->state, v1::Job::CANCELLED);
  EXPECT_EQ(b.jobs->PublishBest(99).status().code(), StatusCode::kNotFound);
}

TEST(Jobs, ACancelLeavesTheOtherWaiters) {
  JobsBench b;
  b.runner.hold = true;
  const int64_t id = b.jobs->Accept(b.Request("a"))->id;
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->id, id);
  EXPECT_EQ(b.jobs->Accept(b.Request())->waiters, 3);
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->waiters, 3) << "a repeated call is the same request";
  b.WaitState(id, v1::Job::SEARCHING);
  EXPECT_EQ(b.jobs->Cancel(id, {.request_id = "a"})->waiters, 2);
  EXPECT_EQ(b.jobs->Cancel(id, {.request_id = "a"})->waiters, 2) << "it has left already";
  EXPECT_EQ(b.jobs->Cancel(id)->waiters, 1);
  EXPECT_EQ(ToString(b.jobs->Cancel(id, {.request_id = "c"}).status()),
            "INVALID_ARGUMENT: request_id c is not of jobs/1");
  b.Restart();
  EXPECT_EQ(b.jobs->Get(id)->waiters, 1) << "it was not durable";
  b.WaitState(id, v1::Job::SEARCHING);
  ASSERT_TRUE(b.jobs->Cancel(id, {.request_id = "b"}).ok());
  EXPECT_EQ(b.WaitTerminal(id).state, v1::Job::CANCELLED) << "nobody waits any more";
}

TEST(Jobs, ACancelForAllAsksNobody) {
  JobsBench b;
  b.runner.hold = true;
  const int64_t id = b.jobs->Accept(b.Request("a"))->id;
  EXPECT_EQ(b.jobs->Accept(b.Request("b"))->waiters, 2);
  EXPECT_EQ(b.jobs->Cancel(id, {.for_all = true})->waiters, 0);
  EXPECT_EQ(b.WaitTerminal(id).state, v1::Job::CANCELLED);
  EXPECT_NE(b.jobs->Accept(b.Request())->id, id) << "nobody joins a job that is to stop";
}

TEST(Jobs, ClientsTakeTurns) {
  JobsBench b;
  Mutex mutex;
  std::vector<std::string> order;
  b.runner.on_run = [&](const Job& job) {
    MutexLock lock(mutex);
    order.push_back(job.client);
  };
  b.runner.hold = true;
  uint64_t seed = 0;
  int64_t last = 0;
  const auto submit = [&](const std::string& client) {
    v1::OptimizeRequest request = b.Request();
    request.set_seed(++seed);
    request.set_client(client);
    last = b.jobs->Accept(request)->id;
    return last;
  };
  b.WaitState(submit("many"), v1::Job::SEARCHING);
  for (int i = 0; i < 99; ++i) submit("many");
  const int64_t last_of_many = last;
  for (const char* client : {"one", "two", "two"}) submit(client);
  b.runner.hold = false;
  b.WaitTerminal(last_of_many);
  b.WaitTerminal(last);
  MutexLock lock(mutex);
  ASSERT_EQ(order.size(), 103u);
  order.resize(6);
  EXPECT_EQ(order, (std::vector<std::string>{"many", "one", "two", "many", "two", "many"}));
}

TEST(Jobs, PriorityOrdersTheJobsOfOneClient) {
  JobsBench b;
  Mutex mutex;
  std::vector<std::string> order;
  b.runner.on_run = [&](const Job& job) {
    MutexLock lock(mutex);
    order.push_back(fmt::format("{} {}", job.client, job.request.priority()));
  };
  b.runner.hold = true;
  uint64_t seed = 0;
  std::vector<int64_t> ids;
  const auto submit = [&](const std::string& client, int priority) {
    v1::OptimizeRequest request = b.Request();
    request.set_seed(++seed);
    request.set_client(client);
    request.set_priority(priority);
    ids.push_back(b.jobs->Accept(request)->id);
  };
  submit("a", 0);
  b.WaitState(ids[0], v1::Job::SEARCHING);
  for (const int priority : {-5, 0, 50}) submit("a", priority);
  submit("b", 0);
  b.runner.hold = false;
  for (const int64_t id : ids) b.WaitTerminal(id);
  MutexLock lock(mutex);
  EXPECT_EQ(order, (std::vector<std::string>{"a 0", "b 0", "a 50", "a 0", "a -5"}));
}

TEST(Jobs, ACheckAcceptsNothing) {
  JobsBench b;
  v1::OptimizeRequest request = b.Request("id");
  request.set_validate_only(true);
  const Job checked = *b.jobs->Accept(request);
  EXPECT_EQ(checked.id, 0);
  EXPECT_EQ(checked.state, v1::Job::STATE_UNSPECIFIED);
  request.set_model_digest(Sha256("other").Hex());
  EXPECT_EQ(b.jobs->Accept(request).status().code(), StatusCode::kFailedPrecondition);
  request = b.Request("id");
  b.WaitTerminal(b.jobs->Accept(request)->id);
  request.set_request_id("");
  request.set_validate_only(true);
  EXPECT_EQ(b.jobs->Accept(request)->state, v1::Job::SUCCEEDED);
  EXPECT_EQ(b.jobs->List({})->jobs.size(), 1u);
  EXPECT_EQ(b.runner.runs, 1);
}

TEST(Jobs, ASummaryIsShort) {
  Job job;
  job.request.set_model_name("m");
  for (int i = 0; i < 1000; ++i) {
    job.request.add_shapes()->set_input("x");
    job.request.add_disabled_rules("r");
    job.request.add_shape_sets()->add_shapes()->set_input("x");
  }
  job.error = Err(StatusCode::kInternal, "{}", std::string(3000, 'e'));
  job.state = v1::Job::FAILED;
  job.result.emplace();
  job.result->set_speedup(2);
  for (int i = 0; i < 1000; ++i) {
    job.result->add_warnings("w");
    job.result->add_errors()->set_output("y");
    job.result->mutable_output_facts()->add_operators();
    job.result->mutable_search_log()->add_history();
  }
  v1::Job summary;
  ToSummary(job, &summary);
  EXPECT_EQ(summary.request().model_name(), "m");
  EXPECT_EQ(summary.result().speedup(), 2);
  EXPECT_LT(summary.ByteSizeLong(), 500u);
}

TEST(Jobs, AFailureKeepsItsReason) {
  JobsBench b;
  b.runner.answer = Err(StatusCode::kUnimplemented, "Loop: no pattern takes it");
  const Job job = b.WaitTerminal(b.jobs->Accept(b.Request())->id);
  EXPECT_EQ(job.state, v1::Job::FAILED);
  b.Restart();
  const Status error = b.jobs->Get(job.id)->error;
  EXPECT_EQ(ToString(error), "UNIMPLEMENTED: Loop: no pattern takes it");
  EXPECT_EQ(ReasonOf(error), "UNIMPLEMENTED");
  b.runner.answer = Because(Reason::kNoWorker, Err(StatusCode::kUnavailable, "it left"));
  v1::OptimizeRequest other = b.Request();
  other.set_seed(2);
  const int64_t id = b.WaitTerminal(b.jobs->Accept(other)->id).id;
  b.Restart();
  EXPECT_EQ(ReasonOf(b.jobs->Get(id)->error), "NO_WORKER");
}

TEST(Jobs, AJobInFlightIsResumedByTheNextStart) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request());
  const uint64_t version = b.WaitState(job.id, v1::Job::SEARCHING).version;
  b.Restart();
  EXPECT_EQ(b.jobs->Get(job.id)->resumed, 1);
  EXPECT_GT(b.jobs->Get(job.id)->version, version);
  b.runner.hold = false;
  EXPECT_EQ(b.WaitTerminal(job.id).state, v1::Job::SUCCEEDED);
  EXPECT_EQ(b.runner.runs, 2);
}

TEST(Jobs, AJobThatNeverFinishesIsGivenUp) {
  JobsBench b;
  b.runner.hold = true;
  const Job job = *b.jobs->Accept(b.Request());
  v1::OptimizeRequest other = b.Request();
  other.set_seed(7);
  const Job queued = *b.jobs->Accept(other);
  for (int i = 0; i < 6; ++i) b.Crash(job.id);
  EXPECT_EQ(Message(b.jobs->Get(job.id)->error),
            "the coordinator crashed 6 times while the job ran: the job may be the cause");
  b.runner.hold = false;
  EXPECT_EQ(b.WaitTerminal(queued.id).state, v1::Job::SUCCEEDED) << "it did not run meanwhile";
}

TEST(Jobs, PlannedRestartsCountAgainstNoJob) {
  JobsBench b;
  b.runner.hold = true;
  std::vector<int64_t> ids;
  for (int i = 0; i < 8; ++i) {
    v1::OptimizeRequest request = b.Request();
    request.set_seed(static_cast<uint64_t>(i) + 1);
    ids.push_back(b.jobs->Accept(request)->id);
  }
  for (int i = 0; i < 50; ++i) {
    b.WaitState(ids[0], v1::Job::SEARCHING);
    b.Restart();
  }
  EXPECT_EQ(b.jobs->Get(ids[0])->resumed, 50);
  b.runner.hold = false;
  for (const int64_t id : ids) {
    const Job job = b.WaitTerminal(id);
    EXPECT_EQ(job.state, v1::Job::SUCCEEDED) << job.name() << ": " << Message(job.error);
  }
}

TEST(Jobs, ACancelSurvivesARestart) {
  JobsBench b;
  JobRow row;
  row.state = "SEARCHING";
  row.request = b.Request().SerializeAsString();
  row.cancel = true;
  const int64_t id = *b.db->Insert(row, "", "");
  b.Restart();
  EXPECT_EQ(b.jobs->Get(id)->state, v1::Job::CANCELLED);
}

}  // namespace
}  // namespace ag
