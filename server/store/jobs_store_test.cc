// The conformance suite of JobsStore: each engine passes it.
#include "server/store/jobs_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/reason.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

using Ids = std::vector<int64_t>;

class JobsStoreTest : public testing::TestWithParam<StoreEngine> {
 protected:
  JobsStoreTest() { Reopen(); }
  void Reopen() {
    store_ = {};
    store_ = *place_->Open("");
    db_ = store_.jobs.get();
  }
  int64_t Add(const JobRow& row, const std::string& request_id = "") {
    return *db_->Insert(row, request_id, "body");
  }
  Ids List(const JobsStore::ListOptions& options = {}) {
    Ids ids;
    const std::vector<JobRow> rows = *db_->List(options);
    for (const JobRow& row : rows) ids.push_back(row.id);
    return ids;
  }

  std::unique_ptr<StorePlace> place_ = GetParam().make();
  Store store_;
  JobsStore* db_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Engines, JobsStoreTest, testing::ValuesIn(JobsEngines()),
                         [](const auto& info) { return info.param.name; });

// A row in which no column has its default. `salt` makes it another one.
JobRow FullRow(const std::string& salt, int n) {
  const std::string odd = std::string("'\"\0\xff;--", 7) + salt;
  return {.state = "FAILED" + salt,
          .terminal = true,
          .device = "device" + odd,
          .request = "request" + odd + std::string(100'000, 'r'),
          .result = "result" + odd,
          .error_code = n + 1,
          .error_message = "message" + odd,
          .error_reason = "REASON" + salt,
          .created_unix_seconds = n + 2,
          .finished_unix_seconds = n + 3,
          .version = static_cast<uint64_t>(n) + (uint64_t{1} << 40),
          .resumed = n + 4,
          .crashes = n + 5,
          .cancel = true,
          .dedupe_key = "key" + odd,
          .client = "client" + odd,
          .waiters = n + 6,
          .tenant = "tenant" + salt,
          .device_seconds = n + 0.25};
}

void ExpectEqual(const JobRow& a, const JobRow& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.terminal, b.terminal);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.error_code, b.error_code);
  EXPECT_EQ(a.error_message, b.error_message);
  EXPECT_EQ(a.error_reason, b.error_reason);
  EXPECT_EQ(a.created_unix_seconds, b.created_unix_seconds);
  EXPECT_EQ(a.finished_unix_seconds, b.finished_unix_seconds);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.resumed, b.resumed);
  EXPECT_EQ(a.crashes, b.crashes);
  EXPECT_EQ(a.cancel, b.cancel);
  EXPECT_EQ(a.dedupe_key, b.dedupe_key);
  EXPECT_EQ(a.client, b.client);
  EXPECT_EQ(a.waiters, b.waiters);
  EXPECT_EQ(a.tenant, b.tenant);
  EXPECT_EQ(a.device_seconds, b.device_seconds);
}

TEST_P(JobsStoreTest, RowsComeBackWhole) {
  JobRow row = FullRow("", 10);
  row.id = Add(row);
  ExpectEqual(*db_->Get(row.id), row);
  Reopen();
  ExpectEqual(*db_->Get(row.id), row);
  ExpectEqual(db_->List({})->at(0), row);
  JobRow empty;
  empty.id = Add(empty);
  ExpectEqual(*db_->Get(empty.id), empty);
}

TEST_P(JobsStoreTest, AnUpdateKeepsWhatTheRequestSaid) {
  const JobRow before = FullRow("", 10);
  JobRow row = FullRow("new", 20);
  row.id = Add(before);
  row.terminal = row.cancel = false;
  ASSERT_TRUE(db_->Update(row).ok());
  row.request = before.request;
  row.created_unix_seconds = before.created_unix_seconds;
  row.client = before.client;
  row.tenant = before.tenant;
  row.dedupe_key = before.dedupe_key;
  ExpectEqual(*db_->Get(row.id), row);
  Reopen();
  ExpectEqual(*db_->Get(row.id), row);
}

TEST_P(JobsStoreTest, TheEpochGrowsWithEveryStart) {
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_EQ(*db_->OpenEpoch(), epoch);
    Reopen();
  }
}

TEST_P(JobsStoreTest, RequestIdsNameOneJobEach) {
  const int64_t id = Add(NewJob(), "first");
  EXPECT_EQ((*db_->FindRequestId("first"))->job, id);
  EXPECT_EQ((*db_->FindRequestId("first"))->body_digest, "body");
  EXPECT_FALSE(db_->FindRequestId("second")->has_value());
  ASSERT_TRUE(db_->Join(id, "second", "other body").ok());
  EXPECT_EQ((*db_->FindRequestId("second"))->job, id);
  EXPECT_EQ((*db_->FindRequestId("second"))->body_digest, "other body");
  ASSERT_TRUE(db_->Join(id, "", "").ok());
  EXPECT_EQ(db_->Get(id)->waiters, 3);
  ASSERT_TRUE(db_->Leave(id, "second").ok());
  ASSERT_TRUE(db_->Leave(id, "").ok());
  Reopen();
  EXPECT_TRUE((*db_->FindRequestId("second"))->left);
  EXPECT_FALSE((*db_->FindRequestId("first"))->left);
  EXPECT_FALSE(db_->FindRequestId("")->has_value());
  EXPECT_EQ(db_->Get(id)->waiters, 1);
}

TEST_P(JobsStoreTest, AKnownRequestIdChangesNothing) {
  const int64_t id = Add(NewJob(), "first");
  const int64_t other = Add(NewJob());
  const std::string error = "INVALID_ARGUMENT: request_id first names jobs/1 already";
  EXPECT_EQ(ToString(db_->Insert(NewJob(), "first", "other").status()), error);
  EXPECT_EQ(ReasonOf(db_->Join(other, "first", "other")), "REQUEST_ID_REUSED");
  EXPECT_EQ(ToString(db_->Join(other, "first", "other")), error);
  EXPECT_EQ(List(), (Ids{other, id})) << "the refused insert left a row";
  EXPECT_EQ(db_->Get(other)->waiters, 1) << "the refused request waits";
  EXPECT_EQ((*db_->FindRequestId("first"))->body_digest, "body");
}

TEST_P(JobsStoreTest, AllRowsChangeOrNone) {
  std::vector<JobRow> rows(2, NewJob());
  for (JobRow& row : rows) {
    row.id = *db_->Insert(row, "", "");
    row.resumed = 5;
  }
  JobRow unknown = NewJob();
  unknown.id = 77;
  rows.push_back(unknown);
  EXPECT_EQ(ToString(db_->UpdateAll(rows)), "NOT_FOUND: no job jobs/77");
  EXPECT_EQ(db_->Get(rows[0].id)->resumed, 0);
  rows.pop_back();
  EXPECT_TRUE(db_->UpdateAll(rows).ok());
  for (const JobRow& row : rows) EXPECT_EQ(db_->Get(row.id)->resumed, 5);
}

TEST_P(JobsStoreTest, UnknownJobsAreNotFound) {
  EXPECT_EQ(ToString(db_->Get(7).status()), "NOT_FOUND: no job jobs/7");
  EXPECT_EQ(ReasonOf(db_->Get(7).status()), "JOB_MISSING");
  JobRow row = NewJob();
  row.id = 7;
  EXPECT_EQ(ToString(db_->Update(row)), "NOT_FOUND: no job jobs/7");
  EXPECT_TRUE(db_->UpdateAll({}).ok());
  EXPECT_EQ(ToString(db_->Join(7, "", "")), "NOT_FOUND: no job jobs/7");
  EXPECT_EQ(ToString(db_->Join(7, "id", "body")), "NOT_FOUND: no job jobs/7");
  EXPECT_EQ(ToString(db_->Leave(7, "")), "NOT_FOUND: no job jobs/7");
  EXPECT_FALSE(db_->FindRequestId("id")->has_value()) << "a name of no job";
  EXPECT_TRUE(db_->Remove({7}).ok());
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(db_->CountByState()->empty());
}

TEST_P(JobsStoreTest, ListsNewestFirstInPages) {
  for (int i = 0; i < 60; ++i) Add(NewJob());
  EXPECT_EQ(List().size(), 50u) << "unless told otherwise";
  Ids all;
  JobsStore::ListOptions options = {.rows_max = 7};
  for (Ids page = List(options); !page.empty(); page = List(options)) {
    EXPECT_LE(page.size(), 7u);
    all.insert(all.end(), page.begin(), page.end());
    options.before_id = page.back();
  }
  EXPECT_EQ(all, List({.rows_max = 1000}));
  ASSERT_EQ(all.size(), 60u);
  EXPECT_EQ(all.front(), 60);
  EXPECT_EQ(all.back(), 1);
}

TEST_P(JobsStoreTest, ListsWhatFitsEveryFilter) {
  for (int i = 1; i <= 8; ++i) {
    JobRow row = NewJob();
    row.state = i % 2 == 0 ? "FAILED" : "QUEUED";
    row.device = i <= 4 ? "cpu" : "cuda:0";
    row.tenant = i % 3 == 0 ? "alice" : i % 3 == 1 ? "bob" : "";
    row.created_unix_seconds = 100 + i;
    EXPECT_EQ(Add(row), i);
  }
  const struct {
    const char* name;
    JobsStore::ListOptions options;
    Ids ids;
  } cases[] = {
      {"state", {.state = "FAILED"}, {8, 6, 4, 2}},
      {"unknown state", {.state = "FAIL"}, {}},
      {"device", {.device = "cpu"}, {4, 3, 2, 1}},
      {"tenant", {.tenant = "alice"}, {6, 3}},
      {"another tenant", {.tenant = "bob"}, {7, 4, 1}},
      {"without a token", {.tenant = ""}, {8, 5, 2}},
      {"unknown tenant", {.tenant = "ali"}, {}},
      {"since", {.created_since = 107}, {8, 7}},
      {"before", {.before_id = 3}, {2, 1}},
      {"all",
       {.state = "FAILED",
        .before_id = 8,
        .rows_max = 1,
        .tenant = "alice",
        .created_since = 102,
        .device = "cuda:0"},
       {6}},
      {"a page of a filter", {.state = "QUEUED", .before_id = 6, .rows_max = 2}, {5, 3}},
  };
  for (const auto& c : cases) EXPECT_EQ(List(c.options), c.ids) << c.name;
}

TEST_P(JobsStoreTest, FindsTheNewestUnfinishedOfAKey) {
  const int64_t first = Add(NewJob("a"));
  JobRow second = NewJob("a");
  second.id = Add(second);
  const int64_t other = Add(NewJob("b"));
  EXPECT_EQ((*db_->FindUnfinished("a"))->id, second.id);
  EXPECT_FALSE(db_->FindUnfinished("c")->has_value());
  second.terminal = true;
  ASSERT_TRUE(db_->Update(second).ok());
  EXPECT_EQ((*db_->FindUnfinished("a"))->id, first);
  Reopen();
  const std::vector<JobRow> rows = *db_->Unfinished();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, first) << "the oldest first";
  EXPECT_EQ(rows[1].id, other);
}

TEST_P(JobsStoreTest, CountsByState) {
  for (const char* state : {"QUEUED", "FAILED", "QUEUED"}) {
    JobRow row = NewJob();
    row.state = state;
    Add(row);
  }
  const auto counts = *db_->CountByState();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].state, "FAILED");
  EXPECT_EQ(counts[0].jobs, 1);
  EXPECT_EQ(counts[1].state, "QUEUED");
  EXPECT_EQ(counts[1].jobs, 2);
}

TEST_P(JobsStoreTest, RemovesWhatEnded) {
  for (int i = 1; i <= 6; ++i) {
    JobRow row = NewJob();
    row.terminal = i % 2 == 0;
    Add(row, fmt::format("request-{}", i));
  }
  const auto ended = [&](int64_t after, int rows_max) {
    Ids ids;
    const std::vector<JobRow> rows = *db_->Ended(after, rows_max);
    for (const JobRow& row : rows) ids.push_back(row.id);
    return ids;
  };
  EXPECT_EQ(ended(0, 2), (Ids{2, 4}));
  EXPECT_EQ(ended(4, 2), (Ids{6}));
  ASSERT_TRUE(db_->Remove({}).ok());
  ASSERT_TRUE(db_->Remove({1, 6, 4, 77}).ok());
  EXPECT_EQ(List(), (Ids{5, 3, 2, 1})) << "1 has not ended";
  EXPECT_TRUE(db_->FindRequestId("request-1")->has_value());
  EXPECT_FALSE(db_->FindRequestId("request-6")->has_value());
  Reopen();
  EXPECT_EQ(Add(NewJob(), "request-6"), 7) << "the name of a removed job is free, its id is not";
}

TEST_P(JobsStoreTest, AddsUpDeviceSecondsByHours) {
  ASSERT_TRUE(db_->AddDeviceUse({"alice", 10, 1.5}, 0).ok());
  ASSERT_TRUE(db_->AddDeviceUse({"alice", 10, 2}, 0).ok());
  ASSERT_TRUE(db_->AddDeviceUse({"alice", 11, 4}, 0).ok());
  ASSERT_TRUE(db_->AddDeviceUse({"bob", 10, 8}, 10).ok());
  Reopen();
  const auto used = [&](int64_t since) {
    std::map<std::pair<std::string, int64_t>, double> seconds;
    const auto rows = *db_->DeviceUseSince(since);
    for (const auto& row : rows) seconds[{row.tenant, row.hour}] += row.seconds;
    return seconds;
  };
  using Used = std::map<std::pair<std::string, int64_t>, double>;
  EXPECT_EQ(used(0), (Used{{{"alice", 10}, 3.5}, {{"alice", 11}, 4}, {{"bob", 10}, 8}}));
  EXPECT_EQ(used(11), (Used{{{"alice", 11}, 4}}));
  ASSERT_TRUE(db_->AddDeviceUse({"bob", 12, 1}, 11).ok());
  EXPECT_EQ(used(0), (Used{{{"alice", 11}, 4}, {{"bob", 12}, 1}})) << "hour 10 is forgotten";
}

TEST_P(JobsStoreTest, ABlobHasItsTenants) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(db_->OwnBlob("alice", "d1").ok());
  ASSERT_TRUE(db_->OwnBlob("bob", "d1").ok());
  ASSERT_TRUE(db_->OwnBlob("bob", "d2").ok());
  Reopen();
  EXPECT_TRUE(*db_->OwnsBlob("alice", "d1"));
  EXPECT_TRUE(*db_->OwnsBlob("bob", "d2"));
  EXPECT_FALSE(*db_->OwnsBlob("alice", "d2"));
  EXPECT_FALSE(*db_->OwnsBlob("", "d1"));
  ASSERT_TRUE(db_->DisownBlob("d1", "alice").ok());
  ASSERT_TRUE(db_->DisownBlob("d1", "carol").ok());
  EXPECT_FALSE(*db_->OwnsBlob("alice", "d1"));
  EXPECT_TRUE(*db_->IsBlobOwned("d1")) << "by bob";
  ASSERT_TRUE(db_->OwnBlob("alice", "d1").ok());
  ASSERT_TRUE(db_->DisownBlob("d1", "").ok());
  EXPECT_FALSE(*db_->IsBlobOwned("d1"));
  EXPECT_TRUE(*db_->IsBlobOwned("d2"));
  ASSERT_TRUE(db_->DisownBlob("d3", "").ok());
}

TEST_P(JobsStoreTest, ACopyHasTheRowsOfItsMoment) {
  const int64_t id = Add(NewJob(), "first");
  const TempDir folder = *TempDir::Make("store-copy-");
  const Status saved = db_->SaveCopy(folder.path());
  if (!GetParam().saves_copies) {
    EXPECT_EQ(saved.code(), StatusCode::kUnimplemented);
    return;
  }
  ASSERT_TRUE(saved.ok()) << ToString(saved);
  Add(NewJob(), "second");
  EXPECT_FALSE(db_->SaveCopy(folder.path()).ok()) << "there is one";
  const Store copy = *OpenStore({.folder = folder.path()}, place_->clock);
  EXPECT_EQ(copy.jobs->Get(id)->request, NewJob().request);
  EXPECT_EQ(copy.jobs->List({})->size(), 1u);
  EXPECT_FALSE(copy.jobs->FindRequestId("second")->has_value());
}

// Writers and readers at once: what a call acknowledged is there for every later call, whole.
TEST_P(JobsStoreTest, ThreadsSeeWhatWasAcknowledged) {
  constexpr int kWriters = 3, kJobs = 12;
  std::atomic<int64_t> newest = 0;
  std::atomic<int> writing = kWriters;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < kJobs; ++i) {
        JobRow row = NewJob();
        row.tenant = fmt::format("tenant-{}", w);
        const std::string name = fmt::format("{}-{}", w, i);
        row.id = *db_->Insert(row, name, "body");
        EXPECT_EQ((*db_->FindRequestId(name))->job, row.id);
        EXPECT_TRUE(db_->Join(row.id, name + "-more", "body").ok());
        row.state = row.result = "SUCCEEDED";
        row.waiters = 2;
        EXPECT_TRUE(db_->Update(row).ok());
        newest = row.id;
      }
      --writing;
    });
  }
  threads.emplace_back([&] {
    while (writing > 0) {
      const int64_t id = newest;
      EXPECT_TRUE(id == 0 || db_->Get(id)->result == "SUCCEEDED") << id;
      const std::vector<JobRow> rows = *db_->List({});
      for (const JobRow& row : rows) EXPECT_EQ(row.state == "SUCCEEDED", row.result == row.state);
    }
  });
  for (std::thread& thread : threads) thread.join();
  Reopen();
  EXPECT_EQ(List().size(), size_t{kWriters * kJobs});
  for (int w = 0; w < kWriters; ++w) {
    EXPECT_EQ(List({.tenant = fmt::format("tenant-{}", w)}).size(), size_t{kJobs});
  }
}

}  // namespace
}  // namespace ag
