#include "server/jobs/retention.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "autograph/v1/optimizer.pb.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr int64_t kNow = 1'000'000'000;
constexpr int64_t kDay = 86400;

struct RetentionBench {
  TempDir dir = *TempDir::Make("retention-");
  Store store = *OpenStore({.folder = dir.path()}, RealClock());
  JobsStore* const jobs = store.jobs.get();
  CacheStore* const cache = store.cache.get();
  std::shared_ptr<BlobDir> blobs = *BlobDir::Open(dir.path() + "/blobs");

  JobStores stores() { return {jobs, cache, blobs.get()}; }
  // A blob that was last used at `used`.
  std::string Blob(const std::string& bytes, int64_t used) {
    const Digest digest = *blobs->Put(bytes);
    const timespec times[] = {{used, 0}, {used, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, blobs->PathOf(digest).c_str(), times, 0), 0);
    return digest.Hex();
  }
  // A job for a model, with an answer that is remembered.
  int64_t Job(const std::string& model, const std::string& output, int64_t finished,
              const std::string& tenant = "") {
    v1::OptimizeRequest request;
    request.set_model_digest(model);
    v1::Result result;
    result.set_output_digest(output);
    JobRow row;
    row.state = finished > 0 ? "SUCCEEDED" : "SEARCHING";
    row.terminal = finished > 0;
    row.request = request.SerializeAsString();
    if (finished > 0) row.result = result.SerializeAsString();
    row.finished_unix_seconds = finished;
    row.tenant = tenant;
    const int64_t id = *jobs->Insert(row, fmt::format("id {} {}", model, finished), "body");
    if (finished > 0) {
      EXPECT_TRUE(cache
                      ->PutModel({KeyOf(model, tenant),
                                  row.result,
                                  *ParseDigest(output),
                                  {.model = model, .tenant = tenant}})
                      .ok());
    }
    return id;
  }
  static std::string KeyOf(const std::string& model, const std::string& tenant) {
    return "{\"model_digest\":\"" + model + "\"}\n" +
           (tenant.empty() ? "" : "tenant=" + tenant + "\n");
  }
  bool Has(const std::string& hex) { return blobs->Has(*ParseDigest(hex)); }
  bool Knows(const std::string& model, const std::string& tenant = "") {
    return cache->FindModel(KeyOf(model, tenant)).has_value();
  }
};

TEST(Retention, OldJobsGoWithWhatOnlyTheyName) {
  RetentionBench b;
  const int64_t before = kNow - 40 * kDay;
  const std::string old_model = b.Blob("old", before), shared = b.Blob("shared", before);
  const std::string new_model = b.Blob("new", before), output = b.Blob("output", before);
  const int64_t old = b.Job(old_model, shared, before);
  const int64_t young = b.Job(new_model, shared, kNow - kDay);
  b.Job(old_model + "", output, before + 1);
  EXPECT_TRUE(*HasOld(b.stores(), {}, kNow, 0));
  const auto removed = *RemoveOld(b.stores(), {}, kNow, 0);
  EXPECT_EQ(removed.jobs, 2);
  EXPECT_EQ(removed.answers, 1);
  EXPECT_EQ(removed.blobs, 2);
  EXPECT_EQ(removed.bytes, 3 + 6);
  EXPECT_FALSE(b.Has(old_model) || b.Has(output));
  EXPECT_TRUE(b.Has(shared) && b.Has(new_model));
  EXPECT_FALSE(b.Knows(old_model));
  EXPECT_TRUE(b.Knows(new_model));
  EXPECT_EQ(b.jobs->Get(old).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(b.jobs->Get(young).ok());
  EXPECT_FALSE(b.jobs->FindRequestId(fmt::format("id {} {}", old_model, before))->has_value());
  EXPECT_FALSE(*HasOld(b.stores(), {}, kNow, 0));
  EXPECT_EQ(RemoveOld(b.stores(), {}, kNow, 0)->jobs, 0) << "a second look finds nothing";
}

TEST(Retention, WhatIsInUseStays) {
  RetentionBench b;
  const std::string upload = b.Blob("upload", kNow - 60), weights = b.Blob("weights", kNow - 7200);
  const std::string lost = b.Blob("lost", kNow - 20'000);
  const std::string model = b.Blob("model", kNow - 90 * kDay);
  b.Job(model, "", 0);  // It runs since three hours.
  const auto removed = *RemoveOld(b.stores(), {}, kNow, kNow - 10'800);
  EXPECT_EQ(removed.blobs, 1);
  EXPECT_FALSE(b.Has(lost));
  EXPECT_TRUE(b.Has(upload)) << "somebody may be about to ask for it";
  EXPECT_TRUE(b.Has(weights)) << "the job that runs may use it";
  EXPECT_TRUE(b.Has(model)) << "a job that has not ended names it";
  EXPECT_EQ(RemoveOld(b.stores(), {}, kNow, 0)->blobs, 1) << "no job runs: the weights go";
  EXPECT_EQ(RemoveOld(b.stores(), {.job_age_max = Nanos{0}}, kNow + 365 * kDay, 0)->jobs, 0);
}

TEST(Retention, BeyondTheSpaceTheOldestJobsGo) {
  RetentionBench b;
  std::vector<std::string> models;
  for (int i = 0; i < 4; ++i) {
    models.push_back(b.Blob(std::string(1000, static_cast<char>('a' + i)), kNow - kDay));
    b.Job(models.back(), models.back(), kNow - 10'000 + i);
  }
  const auto removed = *RemoveOld(b.stores(), {.blob_bytes_max = 2500}, kNow, 0);
  EXPECT_EQ(removed.jobs, 2);
  EXPECT_EQ(removed.answers, 2);
  EXPECT_EQ(removed.bytes, 2000);
  EXPECT_FALSE(b.Has(models[0]) || b.Has(models[1]));
  EXPECT_TRUE(b.Has(models[2]) && b.Has(models[3]));
}

TEST(Retention, AUsedBlobIsYoung) {
  RetentionBench b;
  const std::string blob = b.Blob("bytes", kNow - kDay);
  EXPECT_EQ(b.blobs->Entries()->at(0).used_unix_seconds, kNow - kDay);
  ASSERT_TRUE(b.blobs->Put("bytes").ok());
  EXPECT_GT(b.blobs->Entries()->at(0).used_unix_seconds, kNow) << "today";
  EXPECT_EQ(b.blobs->Entries()->at(0).bytes, 5);
}

// A job stores the weights of its model again while the old ones are removed one by one.
TEST(Retention, ABlobThatIsUsedMeanwhileStays) {
  RetentionBench b;
  const std::string used = b.Blob("used", kNow - kDay), unused = b.Blob("unused", kNow - kDay);
  const std::vector<BlobDir::Entry> entries = *b.blobs->Entries();
  ASSERT_EQ(entries.size(), 2u);
  ASSERT_TRUE(b.blobs->Put("used").ok());
  for (const BlobDir::Entry& entry : entries) {
    const bool is_used = entry.digest.Hex() == used;
    EXPECT_EQ(b.blobs->IsAsBefore(entry), !is_used);
    EXPECT_EQ(*b.blobs->RemoveUnused(entry), !is_used);
    EXPECT_EQ(b.Has(entry.digest.Hex()), is_used);
  }
  EXPECT_FALSE(*b.blobs->RemoveUnused(entries[entries[0].digest.Hex() == used])) << "gone";
}

TEST(Retention, AModelGoesWithAllThatCameOfIt) {
  RetentionBench b;
  const Tenant alice = {.name = "alice", .sees_all = false};
  const std::string model = b.Blob("model", kNow), other = b.Blob("other", kNow);
  const std::string hers = b.Blob("hers", kNow), his = b.Blob("his", kNow);
  for (const char* tenant : {"alice", "bob"}) ASSERT_TRUE(b.jobs->OwnBlob(tenant, model).ok());
  b.Job(model, hers, kNow - 1, "alice");
  b.Job(model, his, kNow - 2, "bob");
  b.Job(other, other, kNow - 3, "alice");
  const auto removed = *RemoveModel(b.stores(), *ParseDigest(model), alice);
  EXPECT_EQ(removed.jobs, 1);
  EXPECT_EQ(removed.answers, 1);
  EXPECT_EQ(removed.blobs, 1);
  EXPECT_FALSE(b.Has(hers));
  EXPECT_TRUE(b.Has(model) && b.Has(his) && b.Has(other)) << "bob has the model too";
  EXPECT_FALSE(*b.jobs->OwnsBlob("alice", model));
  EXPECT_TRUE(*b.jobs->OwnsBlob("bob", model));
  EXPECT_TRUE(b.Knows(model, "bob"));
  EXPECT_EQ(RemoveModel(b.stores(), *ParseDigest(model), Tenant{})->jobs, 1);
  EXPECT_FALSE(b.Has(model) || b.Has(his));
  EXPECT_TRUE(b.Has(other));
}

}  // namespace
}  // namespace ag
