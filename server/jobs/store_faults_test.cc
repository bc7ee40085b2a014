// A coordinator's work on its store while the n-th write, sync, rename or removal fails, for every
// n: over both databases and the blobs together. Then what was acknowledged is there once, nothing
// is half there, a check of the store finds nothing, and the work can be completed.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "autograph/v1/optimizer.pb.h"
#include "base/blobs.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/mutex.h"
#include "plan/fusion/group_problem.h"
#include "server/jobs/backup.h"
#include "server/jobs/jobs.h"
#include "server/store/open_store.h"
#include "server/store/testing/fault_vfs.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// Unix seconds; all blobs of the test are long unused at kToday.
constexpr int64_t kLongAgo = 1'000'000'000, kToday = 4'000'000'000;
constexpr char kModel[] = "the model's bytes", kOutput[] = "the output's bytes";
constexpr char kOldOutput[] = "the output of a job of long ago";
constexpr char kUnwanted[] = "a model that its tenant deletes";
constexpr char kUnwantedOutput[] = "the output for the model that its tenant deletes";
// The jobs of a store at the beginning: too old, and for the unwanted model.
constexpr int64_t kOldJob = 1, kUnwantedJob = 2;
// Rounds of a request, which say how its job ends.
constexpr int kEndsWell = 1, kIsCancelled = 2, kFails = 3;

std::string HexOf(std::string_view bytes) { return Sha256(bytes).Hex(); }

// Holds jobs until those of their rounds are released.
class GateRunner : public JobRunner {
 public:
  StatusOr<JobOutcome> Run(const Job& job, const JobControl& control) override {
    AG_TRY(control.enter(v1::Job::SEARCHING));
    {
      MutexLock lock(mutex_);
      wake_ = control.on_progress;
    }
    const int rounds = static_cast<int>(job.request.budget().rounds());
    while (released < rounds && !control.cancelled()) {
      RealClock().SleepFor(std::chrono::milliseconds(1));
    }
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (rounds == kFails) return Err(StatusCode::kInternal, "no plan");
    AG_LET(const Digest output, blobs->Put(kOutput));
    JobOutcome outcome;
    outcome.result.set_output_digest(output.Hex());
    outcome.result.set_environment("e");
    outcome.result.set_search(v1::Result::COMPLETE);
    return outcome;
  }
  // Wakes the threads of the jobs, which wait a second after a fault.
  void Wake() {
    MutexLock lock(mutex_);
    if (wake_) wake_({});
  }
  void Reset() {
    released = 0;
    MutexLock lock(mutex_);
    wake_ = nullptr;
  }
  std::atomic<int> released = 0;  // Jobs of so many rounds, and of fewer, go on.
  std::shared_ptr<BlobDir> blobs;

 private:
  Mutex mutex_;
  std::function<void(const v1::Progress&)> wake_ AG_GUARDED_BY(mutex_);
};

// A coordinator without its RPCs: the stores of one folder, the threads that run jobs, and the work
// as steps.
class Coordinator {
 public:
  explicit Coordinator(std::string folder) : folder_(std::move(folder)) {
    clock_.Advance(std::chrono::seconds(kToday - FakeClock::kUnixStart));
  }
  ~Coordinator() { Close(); }

  // Starts a process; `has_ended` says that it does nothing more. Null: it never ends.
  Status Open(std::function<bool()> has_ended = nullptr) {
    Close();  // What a start that failed has opened.
    has_ended_ = std::move(has_ended);
    AG_LET(store_, OpenStore({.folder = folder_}, clock_));
    AG_LET(blobs_, BlobDir::Open(folder_ + "/blobs"));
    AG_LET(const uint64_t epoch, store_.jobs->OpenEpoch());
    EXPECT_GT(epoch, std::exchange(epoch_, epoch)) << "it was acknowledged before";
    runner_.blobs = blobs_;
    JobsOptions options;
    options.runners = 1;
    options.find_offers = [](const std::string&) {
      return std::vector<DeviceOffer>{{.device = "cpu", .environment = "e"}};
    };
    AG_LET(jobs_, Jobs::Start({store_.jobs.get(), store_.cache.get(), blobs_.get()}, runner_,
                              clock_, options));
    return OkStatus();
  }
  void Close() {
    jobs_.reset();
    runner_.Reset();
    store_ = {};
    blobs_.reset();
  }
  int64_t CountJobs() { return static_cast<int64_t>(store_.jobs->List({})->size()); }

  // One piece of the work. It is acknowledged when `run` returns OK; a step that is not may be run
  // again. `is_done` says of an open store whether the step is there, and fails the test when half
  // of it is.
  struct Step {
    const char* name;
    std::function<Status()> run;
    std::function<bool()> is_done;
  };
  std::vector<Step> Serving();  // A tenant's calls, from an upload until all that is old has gone.
  std::vector<Step> BackingUp();  // The store and back.

 private:
  // Saves the rows into a fresh folder, then what they name, as a client that fetches a backup.
  Status Backup() {
    backup_ = fmt::format("{}-backup-{}", folder_, ++backups_);
    std::filesystem::create_directories(backup_);
    AG_TRY(jobs_->SaveDatabases(backup_));
    AG_LET(const auto blobs, BlobDir::Open(backup_ + "/blobs"));
    AG_LET(const auto digests, blobs_->List());
    for (const Digest& digest : digests) {
      AG_LET(const auto bytes, blobs_->Get(digest));
      AG_TRY(blobs->Put(bytes->bytes(), BlobDir::Durable::kAfterSync).status());
    }
    return blobs->Sync();
  }

  StatusOr<Job> Accept(const std::string& request_id, int rounds) {
    v1::OptimizeRequest request;
    request.set_request_id(request_id);
    request.set_model_digest(HexOf(kModel));
    request.mutable_budget()->set_rounds(rounds);
    return jobs_->Accept(request, ann_);
  }
  // Returns the row of the job that a request of ann's names, if there is one.
  std::optional<JobRow> RowOf(const std::string& request_id) {
    const auto known = *store_.jobs->FindRequestId("ann/" + request_id);
    if (!known.has_value()) return std::nullopt;
    const auto row = store_.jobs->Get(known->job);
    EXPECT_TRUE(row.ok()) << request_id << " names what is not there";
    return row.ok() ? std::optional(*row) : std::nullopt;
  }
  // Has the jobs of so many rounds go on, and waits until this one has ended.
  Status Await(int64_t id, int rounds) {
    runner_.released = rounds;
    AG_LET(Job job, jobs_->Get(id));
    while (!IsTerminal(job.state)) {
      if (has_ended_ && has_ended_()) {
        return AsHostFault(Err(StatusCode::kResourceExhausted, "the process has ended"));
      }
      clock_.Advance(std::chrono::seconds(1));  // The pause after a fault.
      runner_.Wake();
      RealClock().SleepFor(std::chrono::milliseconds(1));
      AG_LET(job, jobs_->Get(id));
    }
    return OkStatus();
  }
  // A client's request, which is repeated under its name until it is answered.
  Step Request(const char* name, const std::string& request_id, int rounds);

  std::vector<Step> Uploading();
  std::vector<Step> Measuring();
  std::vector<Step> Requesting();
  std::vector<Step> Running();
  std::vector<Step> Forgetting();

  const Tenant ann_ = {.name = "ann"};
  const std::string folder_;
  std::function<bool()> has_ended_;
  FakeClock clock_;
  Store store_;
  std::shared_ptr<BlobDir> blobs_;
  GateRunner runner_;
  std::unique_ptr<Jobs> jobs_;
  uint64_t epoch_ = 0;
  std::string backup_;
  int backups_ = 0;
};

std::vector<Coordinator::Step> Coordinator::Uploading() {
  return {
      {"upload the model", [this] { return blobs_->Put(kModel).status(); },
       [this] { return blobs_->Has(Sha256(kModel)) && blobs_->Verify(Sha256(kModel)).ok(); }},
      {"own the model", [this] { return jobs_->OwnBlob(ann_, Sha256(kModel)); },
       [this] { return *store_.jobs->OwnsBlob("ann", HexOf(kModel)); }},
  };
}

std::vector<Coordinator::Step> Coordinator::Measuring() {
  return {
      {"put a measurement", [this] { return store_.cache->Put(NewRow("p")); },
       [this] { return FindRow(*store_.cache, "p").has_value(); }},
      {"import measurements",
       [this] {
         return store_.cache->Import({NewRow("q"), NewRow("r")}, "me").status();
       },
       [this] {
         const bool has_one = FindRow(*store_.cache, "q").has_value();
         EXPECT_EQ(FindRow(*store_.cache, "r").has_value(), has_one);
         return has_one;
       }},
      {"count hits", [this] { return store_.cache->Count(1, 1, {GroupKey("p", "cpu=x")}); },
       [this] {
         const CacheStats stats = *store_.cache->Stats();
         const auto row = FindRow(*store_.cache, "p");
         EXPECT_EQ(stats.hits, stats.misses);
         EXPECT_EQ(stats.hits, row.has_value() ? row->hits : 0);
         EXPECT_LE(stats.hits, 1) << "counted twice";
         return stats.hits > 0;
       }},
      {"count device time",
       [this] {
         return store_.jobs->AddDeviceUse({"ann", 9, 1}, 0);
       },
       [this] {
         const auto used = *store_.jobs->DeviceUseSince(0);
         EXPECT_TRUE(used.empty() || used[0].seconds == 1) << "counted twice";
         return !used.empty();
       }},
      {"write the snapshot", [this] { return store_.cache->WriteSnapshot(); },
       [this] {
         const TempDir other = *TempDir::Make("store-faults-");
         const StoreOptions options = {.folder = other.path(), .below = folder_};
         const Store above = *OpenStore(options, clock_);
         return FindRow(*above.cache, "p").has_value();
       }},
  };
}

std::vector<Coordinator::Step> Coordinator::BackingUp() {
  return {
      {"back up", [this] { return Backup(); },
       [this] {
         const auto facts = CheckStore(backup_, clock_);
         return facts.ok() && facts->problems.empty() && facts->answers == 2;
       }},
      {"restore", [this] { return RestoreStore(backup_, backup_ + "-new", clock_).status(); },
       [this] {
         const auto facts = CheckStore(backup_ + "-new", clock_);
         return facts.ok() && facts->problems.empty() && facts->answers == 2;
       }},
  };
}

Coordinator::Step Coordinator::Request(const char* name, const std::string& request_id,
                                       int rounds) {
  return {name, [=, this] { return Accept(request_id, rounds).status(); },
          [=, this] {
            const auto row = RowOf(request_id);
            v1::OptimizeRequest request;
            EXPECT_TRUE(!row.has_value() || (request.ParseFromString(row->request) &&
                                             request.model_digest() == HexOf(kModel)));
            return row.has_value();
          }};
}

std::vector<Coordinator::Step> Coordinator::Requesting() {
  return {
      Request("accept a job", "first", kEndsWell),
      Request("accept an equal request", "second", kEndsWell),
      Request("accept another job", "third", kIsCancelled),
      {"cancel it",
       [this] {
         AG_TRY(jobs_->Cancel(RowOf("third")->id).status());
         return Await(RowOf("third")->id, 0);
       },
       [this] {
         const auto job = RowOf("third");
         const bool is_cancelled = job.has_value() && job->state == "CANCELLED";
         EXPECT_EQ(job.has_value() && job->terminal, is_cancelled);
         return is_cancelled;
       }},
      {"withdraw the equal request",
       [this] { return jobs_->Cancel(RowOf("first")->id, {.request_id = "second"}).status(); },
       [this] {
         const auto first = RowOf("first"), second = RowOf("second");
         if (!second.has_value()) return false;
         EXPECT_EQ(second->id, first->id) << "equal requests share a job";
         const bool has_left = (*store_.jobs->FindRequestId("ann/second"))->left;
         EXPECT_EQ(first->waiters, has_left ? 1 : 2);
         return has_left;
       }},
  };
}

std::vector<Coordinator::Step> Coordinator::Running() {
  // Whether the job has ended with the output, not one of both alone.
  const auto has_succeeded = [this](const std::string& request_id) {
    const auto job = RowOf(request_id);
    const bool has_ended = job.has_value() && job->state == "SUCCEEDED";
    EXPECT_EQ(job.has_value() && job->terminal, has_ended);
    v1::Result result;
    EXPECT_TRUE(!has_ended ||
                (result.ParseFromString(job->result) && result.output_digest() == HexOf(kOutput)));
    EXPECT_TRUE(!has_ended || blobs_->Verify(Sha256(kOutput)).ok());
    EXPECT_TRUE(!has_ended || *store_.jobs->OwnsBlob("ann", HexOf(kOutput)));
    return has_ended;
  };
  return {
      {"run the job", [this] { return Await(RowOf("first")->id, kEndsWell); },
       [=] { return has_succeeded("first"); }},
      // From the cache; by a job where the cache could not store the answer.
      {"answer again",
       [this] {
         AG_LET(const Job job, Accept("fourth", kEndsWell));
         if (job.id == 0) {  // An answer that is not stored.
           return AsHostFault(Err(StatusCode::kResourceExhausted, "it may be lost"));
         }
         return Await(job.id, kEndsWell);
       },
       [=] { return has_succeeded("fourth"); }},
      {"run a job that fails",
       [this] {
         AG_LET(const Job job, Accept("fifth", kFails));
         return Await(job.id, kFails);
       },
       [this] {
         const auto job = RowOf("fifth");
         const bool has_ended = job.has_value() && job->state == "FAILED";
         EXPECT_EQ(job.has_value() && job->terminal, has_ended);
         EXPECT_TRUE(!has_ended || job->error_message == "no plan");
         return has_ended;
       }},
  };
}

std::vector<Coordinator::Step> Coordinator::Forgetting() {
  return {
      {"forget a worker's measurements",
       [this] { return store_.cache->Forget({.worker = "w-broken"}).status(); },
       [this] {
         const bool has_row = FindRow(*store_.cache, "broken", "cpu=z").has_value();
         EXPECT_EQ(store_.cache->FindModel("rests on it").has_value(), has_row);
         return !has_row;
       }},
      {"delete a model",
       [this] {
         const Status deleted = jobs_->DeleteModel(Sha256(kUnwanted), ann_).status();
         return deleted.code() == StatusCode::kNotFound ? OkStatus() : deleted;
       },
       [this] {
         const bool is_gone = !blobs_->Has(Sha256(kUnwanted));
         EXPECT_TRUE(!is_gone || !store_.jobs->Get(kUnwantedJob).ok()) << "its row names it";
         return is_gone && !*store_.jobs->IsBlobOwned(HexOf(kUnwanted));
       }},
      {"remove what is old",
       [this] { return jobs_->RemoveOld({.job_age_max = std::chrono::hours(24)}).status(); },
       [this] {
         int blobs = 0;
         for (const char* output : {kOldOutput, kUnwantedOutput}) {
           blobs += int{blobs_->Has(Sha256(output)) || *store_.jobs->IsBlobOwned(HexOf(output))};
         }
         EXPECT_TRUE(blobs > 0 || !store_.jobs->Get(kOldJob).ok()) << "its row names what is gone";
         return blobs == 0;
       }},
  };
}

std::vector<Coordinator::Step> Join(const std::vector<std::vector<Coordinator::Step>>& parts) {
  std::vector<Coordinator::Step> steps;
  for (const auto& part : parts) steps.insert(steps.end(), part.begin(), part.end());
  return steps;
}

std::vector<Coordinator::Step> Coordinator::Serving() {
  return Join({Uploading(), Requesting(), Measuring(), Running(), Forgetting()});
}

struct Work {
  std::vector<Coordinator::Step> (Coordinator::*steps)();
  int64_t jobs_after = 0;  // In the store.
};
const Work kServing = {.steps = &Coordinator::Serving, .jobs_after = 4};
const Work kBackingUp = {.steps = &Coordinator::BackingUp, .jobs_after = 2};

class StoreFaultsTest : public testing::Test {
 protected:
  // Makes a store with a job that ended long ago, one for the unwanted model, and a row of a worker
  // that is broken.
  StoreFaultsTest() {
    std::filesystem::create_directory(origin_);
    FakeClock clock;
    const Store store = *OpenStore({.folder = origin_}, clock);
    const auto blobs = *BlobDir::Open(origin_ + "/blobs");
    const std::pair<const char*, const char*> ended[] = {{"", kOldOutput},
                                                         {kUnwanted, kUnwantedOutput}};
    for (const auto& [model, output] : ended) {
      v1::OptimizeRequest request;
      v1::Result result;
      if (*model != 0) request.set_model_digest(blobs->Put(model)->Hex());
      result.set_output_digest(blobs->Put(output)->Hex());
      JobRow row = NewJob();
      row.request = request.SerializeAsString();
      row.state = "SUCCEEDED";
      row.terminal = true;
      row.tenant = "ann";
      row.result = result.SerializeAsString();
      row.finished_unix_seconds = *model != 0 ? kToday : kLongAgo;
      EXPECT_TRUE(store.jobs->Insert(row, "", "").ok());
      for (const std::string& blob : {request.model_digest(), result.output_digest()}) {
        EXPECT_TRUE(blob.empty() || store.jobs->OwnBlob("ann", blob).ok());
      }
      if (*model != 0) continue;
      EXPECT_TRUE(store.cache->PutModel({"old", row.result, {}}).ok());
    }
    CacheRow row = NewRow("broken");
    row.environment = "cpu=z";
    row.worker = "w-broken";
    EXPECT_TRUE(store.cache->Put(row).ok());
    EXPECT_TRUE(store.cache->PutModel({"rests on it", "", {}, {.environment = "cpu=z"}}).ok());
  }

  // Works, from a copy of the store, with call n failing, for n = 1 and on until the work needs no
  // more calls. With `retry` one call fails, and the step is done again in the same process; else
  // all later ones fail as well: the process has ended, or the disk is full.
  void ForEveryCall(const Work& work, bool retry) {
    int n = 1;
    for (bool fired = true; fired && !HasFatalFailure(); ++n) {
      const int error = n % 2 == 0 ? ENOSPC : EIO;
      SCOPED_TRACE(fmt::format("n={} error={}", n, error));
      fired = Run(work, {.n = n, .error = error, .all_later = !retry});
    }
    EXPECT_GT(n, 50);
  }

 private:
  // Returns whether the fault came.
  bool Run(const Work& work, const file_ops::FileFault::Options& options) {
    const TempDir dir = *TempDir::Make("store-faults-");
    const std::string folder = dir.path() + "/data";
    std::filesystem::copy(origin_, folder, std::filesystem::copy_options::recursive);
    Coordinator coordinator(folder);
    const auto steps = (coordinator.*work.steps)();
    const bool retry = !options.all_later;
    size_t acknowledged = 0;
    bool fired = false;
    {
      const file_ops::FileFault fault(options);
      const auto has_ended = [&] { return !retry && fault.Fired(); };
      Status worked = coordinator.Open(has_ended);
      if (!worked.ok() && retry) worked = coordinator.Open(has_ended);
      while (worked.ok() && acknowledged < steps.size()) {
        worked = steps[acknowledged].run();
        if (!worked.ok() && retry) worked = steps[acknowledged].run();
        if (worked.ok()) ++acknowledged;
      }
      EXPECT_TRUE(worked.ok() || (!retry && IsHostFault(worked))) << ToString(worked);
      coordinator.Close();  // Writes nothing more where all later calls fail.
      fired = fault.Fired();
    }
    ExpectSound(folder);
    Complete(coordinator, steps, acknowledged);
    EXPECT_EQ(coordinator.CountJobs(), work.jobs_after);
    return fired;
  }

  static void ExpectSound(const std::string& folder) {
    FakeClock clock;
    const auto facts = CheckStore(folder, clock);
    ASSERT_TRUE(facts.ok()) << ToString(facts.status());
    EXPECT_TRUE(facts->problems.empty()) << facts->problems[0];
  }

  // Looks at what is there after a new start, and does the rest of the work.
  static void Complete(Coordinator& coordinator, const std::vector<Coordinator::Step>& steps,
                       size_t acknowledged) {
    ASSERT_TRUE(coordinator.Open().ok());
    for (size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE(steps[i].name);
      const bool is_done = steps[i].is_done();
      EXPECT_TRUE(is_done || i >= acknowledged) << "it was acknowledged";
      EXPECT_TRUE(!is_done || i <= acknowledged) << "it was not begun";
      if (is_done) continue;
      const Status done = steps[i].run();
      ASSERT_TRUE(done.ok()) << ToString(done);
      EXPECT_TRUE(steps[i].is_done());
    }
  }

  const FaultVfs vfs_;
  const TempDir home_ = *TempDir::Make("store-faults-");
  const std::string origin_ = home_.path() + "/origin";
};

TEST_F(StoreFaultsTest, ServingWhileEveryLaterCallFails) { ForEveryCall(kServing, false); }
TEST_F(StoreFaultsTest, ServingWhileOneCallFails) { ForEveryCall(kServing, true); }
TEST_F(StoreFaultsTest, ABackupWhileEveryLaterCallFails) { ForEveryCall(kBackingUp, false); }
TEST_F(StoreFaultsTest, ABackupWhileOneCallFails) { ForEveryCall(kBackingUp, true); }

}  // namespace
}  // namespace ag
