// Tests of the client against services that the test plays: what the client sends, and how it
// treats answers that are cut, late or wrong.
#include "client/cpp/client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <filesystem>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/file.h"
#include "net/testing/certificates.h"
#include "net/tokens.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

constexpr size_t kMiB = size_t{1} << 20;

class FakeBlobs : public v1::Blobs::Service {
 public:
  std::map<std::string, std::string> blobs;
  std::vector<std::string> chunks;  // "offset size last" of each chunk that arrived.
  int cut_upload_after = -1;        // Chunks.
  int64_t announced = -2;           // The announced size instead of the true one.
  size_t cut_download_after = SIZE_MAX;

  grpc::Status FindMissing(grpc::ServerContext*, const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override {
    for (const std::string& hex : request->digests()) {
      if (!blobs.contains(hex)) response->add_missing(hex);
    }
    return grpc::Status::OK;
  }

  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse*) override {
    v1::UploadRequest chunk;
    std::string hex, bytes;
    int64_t size = -1;
    for (int n = 0; reader->Read(&chunk); ++n) {
      if (n == cut_upload_after) return {grpc::StatusCode::UNAVAILABLE, "disk gone"};
      if (n == 0) {
        hex = chunk.digest();
        size = chunk.size_bytes();
      }
      chunks.push_back(
          fmt::format("{} {} {}", chunk.offset(), chunk.data().size(), chunk.last() ? "last" : ""));
      bytes += chunk.data();
    }
    if (static_cast<int64_t>(bytes.size()) != size || Sha256(bytes).Hex() != hex) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "upload: other bytes than announced"};
    }
    blobs[hex] = bytes;
    return grpc::Status::OK;
  }

  grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    const auto found = blobs.find(request->digest());
    if (found == blobs.end()) return {grpc::StatusCode::NOT_FOUND, "no such blob"};
    const std::string& bytes = found->second;
    size_t begin = 0;
    do {
      if (begin >= cut_download_after) return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
      v1::DownloadResponse chunk;
      if (begin == 0) {
        chunk.set_size_bytes(announced != -2 ? announced : static_cast<int64_t>(bytes.size()));
      }
      chunk.set_data(bytes.substr(begin, kMiB));
      begin += chunk.data().size();
      if (!writer->Write(chunk)) break;
    } while (begin < bytes.size());
    return grpc::Status::OK;
  }
};

class FakeOptimizer : public v1::Optimizer::Service {
 public:
  struct Watch {
    std::vector<v1::Job::State> states;
    grpc::Status end;
    uint64_t best_version = 0;
    bool stays = false;  // The stream stays open after the states, until the client leaves.
  };
  std::deque<Watch> watches;  // One per call; when none is left: UNAVAILABLE.
  int watched = 0;
  v1::Capabilities capabilities;
  v1::OptimizeRequest optimized;

  grpc::Status Optimize(grpc::ServerContext*, const v1::OptimizeRequest* request,
                        v1::Job* job) override {
    optimized = *request;
    job->set_name("jobs/1");
    *job->mutable_request() = *request;
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* job) override {
    if (request->name() != "jobs/1") {
      return {grpc::StatusCode::NOT_FOUND, "no job " + request->name()};
    }
    job->set_name(request->name());
    return grpc::Status::OK;
  }
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* job) override {
    job->set_name(request->name());
    job->set_state(v1::Job::CANCELLED);
    return grpc::Status::OK;
  }
  grpc::Status PublishBest(grpc::ServerContext*, const v1::PublishBestRequest* request,
                           v1::Job* job) override {
    job->set_name(request->name());
    job->set_best_version(4);
    return grpc::Status::OK;
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    for (int i = 0; i < request->page_size(); ++i) response->add_jobs();
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    ++watched;
    if (watches.empty()) return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
    const Watch watch = watches.front();
    watches.pop_front();
    for (const v1::Job::State state : watch.states) {
      v1::Job job;
      job.set_name(request->name());
      job.set_state(state);
      job.set_best_version(watch.best_version);
      if (!writer->Write(job)) break;
    }
    while (watch.stays && !context->IsCancelled()) RealClock().SleepFor(1ms);
    return watch.end;
  }
  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    *response = capabilities;
    return grpc::Status::OK;
  }
};

class FakeCache : public v1::Cache::Service {
 public:
  int records = 3;
  std::vector<double> imported;

  grpc::Status GetStats(grpc::ServerContext*, const v1::GetCacheStatsRequest*,
                        v1::CacheStats*) override {
    return {grpc::StatusCode::FAILED_PRECONDITION, "the cache is being rebuilt"};
  }
  grpc::Status Export(grpc::ServerContext*, const v1::ExportCacheRequest*,
                      grpc::ServerWriter<v1::CacheRecord>* writer) override {
    for (int i = 0; i < records; ++i) {
      v1::CacheRecord record;
      record.set_measured_unix_seconds(i);
      if (!writer->Write(record)) break;
    }
    return grpc::Status::OK;
  }
  grpc::Status Import(grpc::ServerContext*, grpc::ServerReader<v1::CacheRecord>* reader,
                      v1::ImportCacheResponse*) override {
    v1::CacheRecord record;
    while (reader->Read(&record)) {
      if (record.measured_unix_seconds() < 0)
        return {grpc::StatusCode::INVALID_ARGUMENT, "record 1: no time"};
      imported.push_back(record.measured_unix_seconds());
    }
    return grpc::Status::OK;
  }
};

class FakeWorkers : public v1::Workers::Service {
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    response->add_workers()->set_worker_id("w");
    return grpc::Status::OK;
  }
};

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    for (grpc::Service* service :
         std::initializer_list<grpc::Service*>{&blobs_, &optimizer_, &cache_, &workers_}) {
      builder.RegisterService(service);
    }
    server_ = builder.BuildAndStart();
    client_ = std::make_unique<Client>(server_->InProcessChannel({}));
  }
  void TearDown() override { server_->Shutdown(); }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) {
    AG_CHECK(WriteFileAtomically(Path(name), bytes).ok());
    return Path(name);
  }
  Digest Offer(const std::string& bytes) {
    blobs_.blobs[Sha256(bytes).Hex()] = bytes;
    return Sha256(bytes);
  }

  // Makes the server a local one, with its blob folder here.
  std::string Share(const Digest& digest, const std::string& bytes) {
    const std::string dir = Path("blobs");
    AG_CHECK(MakeDirs(dir + "/" + digest.Hex().substr(0, 2)).ok());
    Write("blobs/proof", "");
    Write("blobs/" + digest.Hex().substr(0, 2) + "/" + digest.Hex(), bytes);
    optimizer_.capabilities.set_shared_blob_dir(dir);
    optimizer_.capabilities.set_shared_blob_proof("proof");
    return dir;
  }

  const TempDir folder_ = *TempDir::Make("client-test");
  FakeBlobs blobs_;
  FakeOptimizer optimizer_;
  FakeCache cache_;
  FakeWorkers workers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
};

using Texts = std::vector<std::string>;

// --- Upload

TEST_F(ClientTest, UploadsInChunksWhatIsMissing) {
  const std::string bytes = std::string(2 * kMiB, 'a') + "end";
  const std::string path = Write("model", bytes);
  Texts progress;
  const auto digest = client_->UploadFile(path, [&](int64_t done, int64_t total) {
    progress.push_back(fmt::format("{}/{}", done, total));
  });
  ASSERT_EQ(ToString(digest.status()), "OK");
  EXPECT_EQ(*digest, Sha256(bytes));
  EXPECT_EQ(blobs_.blobs[digest->Hex()], bytes);
  EXPECT_EQ(blobs_.chunks, (Texts{"0 1048576 ", "1048576 1048576 ", "2097152 3 last"}));
  EXPECT_EQ(progress, (Texts{"1048576/2097155", "2097152/2097155", "2097155/2097155"}));

  blobs_.chunks.clear();
  EXPECT_EQ(*client_->UploadFile(path), *digest);
  EXPECT_EQ(blobs_.chunks, Texts()) << "the server has it";
}

TEST_F(ClientTest, UploadsWholeChunksAndNothing) {
  const struct {
    const char* name;
    size_t bytes;
    Texts chunks;
  } kCases[] = {
      {"empty", 0, {"0 0 last"}},
      {"one chunk", kMiB, {"0 1048576 last"}},
      {"two chunks", 2 * kMiB, {"0 1048576 ", "1048576 1048576 last"}},
  };
  for (const auto& c : kCases) {
    blobs_.chunks.clear();
    EXPECT_EQ(ToString(client_->UploadFile(Write("m", std::string(c.bytes, 'x'))).status()), "OK")
        << c.name;
    EXPECT_EQ(blobs_.chunks, c.chunks) << c.name;
  }
}

TEST_F(ClientTest, ACutUploadIsSentAgain) {
  const std::string path = Write("model", std::string(3 * kMiB, 'a'));
  for (const int chunks : {0, 1, 2}) {
    blobs_.cut_upload_after = chunks;
    EXPECT_EQ(ToString(client_->UploadFile(path).status()),
              "UNAVAILABLE: upload " + path + ": disk gone");
    EXPECT_TRUE(blobs_.blobs.empty());
  }
  blobs_.cut_upload_after = -1;
  EXPECT_EQ(ToString(client_->UploadFile(path).status()), "OK");
  EXPECT_EQ(blobs_.blobs.size(), 1u);
}

TEST_F(ClientTest, AMissingFileIsSaid) {
  EXPECT_EQ(ToString(client_->UploadFile(Path("none")).status()),
            "NOT_FOUND: read " + Path("none") + ": No such file or directory");
}

// --- Download

TEST_F(ClientTest, DownloadsBytesAndFiles) {
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string(kMiB + 1, 'b')}) {
    const Digest digest = Offer(bytes);
    const auto read = client_->DownloadBytes(digest);
    ASSERT_EQ(ToString(read.status()), "OK") << bytes.size();
    EXPECT_EQ(*read, bytes);
    EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK") << bytes.size();
    EXPECT_EQ(*ReadFile(Path("out")), bytes);
  }
}

TEST_F(ClientTest, WhatCameWrongIsNotWritten) {
  const std::string bytes(2 * kMiB, 'a');
  const Digest digest = Sha256(bytes);
  const std::string noun = "download " + digest.Short() + ": ";
  const struct {
    const char* name;
    std::string served;
    int64_t announced;
    size_t cut_after;
    std::string status;
  } kCases[] = {
      {"other bytes", std::string(2 * kMiB, 'b'), -2, SIZE_MAX,
       "DATA_LOSS: " + noun + "the bytes have another digest"},
      {"too few", bytes.substr(1), -2, SIZE_MAX,
       "DATA_LOSS: " + noun + "the bytes have another digest"},
      {"cut", bytes, -2, kMiB, "UNAVAILABLE: " + noun + "Socket closed"},
      {"huge", bytes, int64_t{80} << 30, SIZE_MAX,
       "RESOURCE_EXHAUSTED: blob " + digest.Short() + " is larger than 68719476736 bytes"},
      {"a negative size does no harm", bytes, -1, SIZE_MAX, "OK"},
  };
  for (const auto& c : kCases) {
    Write("out", "old");
    blobs_.blobs = {{digest.Hex(), c.served}};
    blobs_.announced = c.announced;
    blobs_.cut_download_after = c.cut_after;
    const Status status = client_->DownloadFile(digest, Path("out"));
    EXPECT_EQ(ToString(status), c.status) << c.name;
    EXPECT_EQ(*ReadFile(Path("out")), status.ok() ? bytes : "old") << c.name;
  }
}

TEST_F(ClientTest, DownloadKeepsItsLimit) {
  const Digest digest = Offer(std::string(100, 'a'));
  EXPECT_EQ(ToString(client_->DownloadBytes(digest, 100).status()), "OK");
  const std::string limit =
      "RESOURCE_EXHAUSTED: blob " + digest.Short() + " is larger than 99 bytes";
  EXPECT_EQ(ToString(client_->DownloadBytes(digest, 99).status()), limit);
  blobs_.announced = 1;  // A server that announces little and sends much.
  EXPECT_EQ(ToString(client_->DownloadBytes(digest, 99).status()), limit);
  EXPECT_EQ(ToString(client_->DownloadBytes(Sha256("x")).status()),
            "NOT_FOUND: download " + Sha256("x").Short() + ": no such blob");
}

// On the server's host the file is copied from the blob folder.
TEST_F(ClientTest, CopiesFromASharedFolder) {
  const Digest digest = Sha256("abc");
  const std::string dir = Share(digest, "abc");
  EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK");
  EXPECT_EQ(*ReadFile(Path("out")), "abc");
  EXPECT_EQ(*ListDir(folder_.path()), (Texts{"blobs", "out"})) << "nothing else is left";
  EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("none/out"))),
            "NOT_FOUND: write " + Path("none/out") + ": No such file or directory");
}

// A repeated request finds its answer in the file that it wrote before.
TEST_F(ClientTest, WritesOnlyWhatIsNotThere) {
  const auto inode = [&] {
    struct stat info {};
    AG_CHECK(::stat(Path("out").c_str(), &info) == 0);
    return info.st_ino;
  };
  const Digest digest = Sha256("abc");
  Share(digest, "abc");
  const auto look = [&] {
    const auto hour = std::chrono::hours(1);
    std::filesystem::last_write_time(Path("out"),
                                     std::filesystem::file_time_type::clock::now() - hour);
    client_->LookAhead(Path("out"));
  };
  Write("out", "abd");  // The same size with other bytes.
  look();
  const auto other = inode();
  EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK");
  EXPECT_EQ(*ReadFile(Path("out")), "abc");
  const auto first = inode();
  EXPECT_NE(first, other);
  look();
  EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK");
  EXPECT_EQ(inode(), first);
  EXPECT_EQ(*ReadFile(Path("out")), "abc");
  look();
  Write("out", "abd");  // Another process writes it in between.
  EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK");
  EXPECT_EQ(*ReadFile(Path("out")), "abc");
}

// A fault of the folder only costs a download.
TEST_F(ClientTest, DownloadsWhatTheFolderLacks) {
  const Digest digest = Offer("abc");
  const struct {
    const char* name;
    std::string bytes, proof;
  } kCases[] = {
      {"other bytes there", "abd", "proof"},
      {"no proof", "abd", "none"},
      {"a proof elsewhere", "abd", "../blobs/proof"},
      {"no word of one", "abd", ""},
  };
  for (const auto& c : kCases) {
    Share(digest, c.bytes);
    std::filesystem::remove(Path("out"));
    optimizer_.capabilities.set_shared_blob_proof(c.proof);
    EXPECT_EQ(ToString(client_->DownloadFile(digest, Path("out"))), "OK") << c.name;
    EXPECT_EQ(*ReadFile(Path("out")), "abc") << c.name;
    EXPECT_EQ(*ListDir(folder_.path()), (Texts{"blobs", "out"})) << c.name;
  }
}

// --- Watch

TEST_F(ClientTest, WatchFollowsAJobToItsEnd) {
  const grpc::Status gone{grpc::StatusCode::UNAVAILABLE, "Socket closed"};
  using Job = v1::Job;
  const struct {
    const char* name;
    std::deque<FakeOptimizer::Watch> watches;
    Texts seen;
    std::string end;
    int calls;
  } kCases[] = {
      {"at once", {{{Job::SUCCEEDED}, grpc::Status::OK, true}}, {"SUCCEEDED"}, "SUCCEEDED", 1},
      {"in steps",
       {{{Job::QUEUED, Job::SEARCHING, Job::FAILED}, grpc::Status::OK}},
       {"QUEUED", "SEARCHING", "FAILED"},
       "FAILED",
       1},
      {"cut and taken up",
       {{{Job::QUEUED}, gone}, {{}, gone}, {{Job::SEARCHING}, gone}, {{Job::CANCELLED}, {}}},
       {"QUEUED", "SEARCHING", "CANCELLED"},
       "CANCELLED",
       4},
      {"ended without an end",
       {{{Job::QUEUED}, grpc::Status::OK}, {{Job::SUCCEEDED}, grpc::Status::OK}},
       {"QUEUED", "SUCCEEDED"},
       "SUCCEEDED",
       2},
      {"unknown", {{{}, {grpc::StatusCode::NOT_FOUND, "no job"}}}, {}, "NOT_FOUND: no job", 1},
      {"gone for good", {}, {}, "UNAVAILABLE: Socket closed", 3},
      {"gone after all", {{{Job::QUEUED}, gone}}, {"QUEUED"}, "UNAVAILABLE: Socket closed", 4},
  };
  for (const auto& c : kCases) {
    optimizer_.watches = c.watches;
    optimizer_.watched = 0;
    Texts seen;
    const auto job = client_->Watch("jobs/1",
                                    [&](const v1::Job& state) {
                                      seen.push_back(v1::Job::State_Name(state.state()));
                                      return true;
                                    },
                                    {.attempts_max = 3, .pause = 0ns});
    EXPECT_EQ(job.ok() ? v1::Job::State_Name(job->state()) : ToString(job.status()), c.end)
        << c.name;
    EXPECT_EQ(seen, c.seen) << c.name;
    EXPECT_EQ(optimizer_.watched, c.calls) << c.name;
  }
}

TEST_F(ClientTest, AWatcherMayLeave) {
  optimizer_.watches = {{{v1::Job::QUEUED, v1::Job::SEARCHING}, grpc::Status::OK, true}};
  const auto job = client_->Watch("jobs/1", [](const v1::Job&) { return false; });
  EXPECT_EQ(ToString(job.status()), "CANCELLED: stopped watching jobs/1");
  EXPECT_EQ(optimizer_.watched, 1);
}

TEST_F(ClientTest, WatchNeedsNoListener) {
  optimizer_.watches = {{{v1::Job::QUEUED, v1::Job::SUCCEEDED}, grpc::Status::OK}};
  EXPECT_EQ(client_->Watch("jobs/1", nullptr)->state(), v1::Job::SUCCEEDED);
}

// It waits for a best that is newer than the call, or for the job's end.
TEST_F(ClientTest, TheBestSoFarIsWaitedFor) {
  optimizer_.watches = {{.states = {v1::Job::SEARCHING}, .best_version = 4},
                        {.states = {v1::Job::SEARCHING}, .best_version = 5, .stays = true}};
  optimizer_.watches[0].end = {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
  int seen = 0;
  const auto count = [&](const v1::Job&) { return ++seen > 0; };
  auto job = client_->PublishBest("jobs/1", count);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->best_version(), 5u);
  EXPECT_EQ(seen, 1);
  optimizer_.watches = {{.states = {v1::Job::SEARCHING, v1::Job::SUCCEEDED}, .best_version = 4}};
  job = client_->PublishBest("jobs/1", nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::Job::SUCCEEDED);
  optimizer_.watches = {{.states = {v1::Job::SEARCHING}, .best_version = 4, .stays = true}};
  EXPECT_EQ(client_->PublishBest("jobs/1", [](const v1::Job&) { return false; }).status().code(),
            StatusCode::kCancelled);
}

// --- Calls

TEST_F(ClientTest, CallsCarryRequestsAndAnswers) {
  v1::OptimizeRequest request;
  request.set_model_name("m.onnx");
  request.set_seed(7);
  EXPECT_EQ(client_->Optimize(request)->name(), "jobs/1");
  EXPECT_EQ(optimizer_.optimized.DebugString(), request.DebugString());
  EXPECT_EQ(client_->GetJob("jobs/1")->name(), "jobs/1");
  EXPECT_EQ(ToString(client_->GetJob("jobs/2").status()), "NOT_FOUND: no job jobs/2");
  v1::CancelJobRequest cancel;
  cancel.set_name("jobs/1");
  EXPECT_EQ(client_->CancelJob(cancel)->state(), v1::Job::CANCELLED);
  v1::ListJobsRequest list;
  list.set_page_size(2);
  EXPECT_EQ(client_->ListJobs(list)->jobs_size(), 2);
  EXPECT_EQ(client_->ListWorkers()->workers(0).worker_id(), "w");
  EXPECT_EQ(ToString(client_->GetCacheStats().status()),
            "FAILED_PRECONDITION: the cache is being rebuilt");
  EXPECT_EQ(client_->ListMeasurements({}).status().code(), StatusCode::kUnimplemented);
}

TEST_F(ClientTest, ExportsAndImportsRecords) {
  std::vector<double> seen;
  const auto take = [&](const v1::CacheRecord& record) {
    seen.push_back(record.measured_unix_seconds());
    return seen.size() < 5 ? OkStatus() : Err(StatusCode::kResourceExhausted, "disk full");
  };
  EXPECT_EQ(ToString(client_->ExportCache("", take)), "OK");
  EXPECT_EQ(seen, (std::vector<double>{0, 1, 2}));
  cache_.records = 1000;
  EXPECT_EQ(ToString(client_->ExportCache("", take)), "RESOURCE_EXHAUSTED: disk full");
  EXPECT_EQ(seen.size(), 5u);

  std::deque<double> give = {1, 2, 3};
  const auto next = [&](v1::CacheRecord* record) {
    if (give.empty()) return false;
    record->set_measured_unix_seconds(give.front());
    give.pop_front();
    return true;
  };
  EXPECT_EQ(ToString(client_->ImportCache(next).status()), "OK");
  EXPECT_EQ(cache_.imported, (std::vector<double>{1, 2, 3}));
  give = {-1};
  EXPECT_EQ(ToString(client_->ImportCache(next).status()), "INVALID_ARGUMENT: record 1: no time");
}

// Keeps what the last call said of itself.
class FakeDoor : public v1::Optimizer::Service {
 public:
  std::string authorization;
  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities*) override {
    const auto& metadata = context->client_metadata();
    const auto found = metadata.find("authorization");
    authorization =
        found == metadata.end() ? "none" : std::string(found->second.data(), found->second.size());
    return grpc::Status::OK;
  }
};

// A server at a port of its own.
struct Door {
  FakeDoor service;
  std::unique_ptr<grpc::Server> server;
  std::string address;

  explicit Door(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~Door() { server->Shutdown(std::chrono::system_clock::now()); }
  std::string Call(const ChannelOptions& options) {
    return ToString((*Client::Connect(address, options))->GetCapabilities().status());
  }
};

TEST(Client, SendsItsToken) {
  const TempDir folder = *TempDir::Make("client-token");
  Door door(grpc::InsecureServerCredentials());
  EXPECT_EQ(door.Call({}), "OK");
  EXPECT_EQ(door.service.authorization, "none");
  EXPECT_EQ(door.Call({.token = "autograph_1"}), "OK");
  EXPECT_EQ(door.service.authorization, "Bearer autograph_1");

  const std::string path = folder.path() + "/token";
  ASSERT_TRUE(WriteTokenFile(path, "autograph_2").ok());
  const auto client = *Client::Connect(door.address, {.token_file = path});
  ASSERT_TRUE(client->GetCapabilities().ok());
  EXPECT_EQ(door.service.authorization, "Bearer autograph_2");
  ASSERT_TRUE(WriteFileAtomically(path, "autograph_3").ok());
  ASSERT_TRUE(client->GetCapabilities().ok());
  EXPECT_EQ(door.service.authorization, "Bearer autograph_3") << "the file was not read anew";
  ASSERT_TRUE(std::filesystem::remove(path));
  ASSERT_TRUE(client->GetCapabilities().ok());
  EXPECT_EQ(door.service.authorization, "Bearer autograph_3") << "the last that could be read";
}

TEST(Client, TlsThatFailsSaysWhy) {
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  const TempDir folder = *TempDir::Make("client-tls");
  TestAuthority authority(folder.path(), "ours"), other(folder.path(), "other");
  const auto server_of = [](const TlsFiles& files) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({*ReadFile(files.key), *ReadFile(files.cert)});
    return grpc::SslServerCredentials(options);
  };
  const TlsFiles ours = {.ca = authority.ca()};
  Door good(server_of(authority.Make("good")));
  EXPECT_EQ(good.Call({.tls = ours, .token = "autograph_1"}), "OK");
  EXPECT_EQ(good.service.authorization, "Bearer autograph_1");
  const std::string stranger = good.Call({.tls = {.ca = other.ca()}});
  EXPECT_THAT(stranger, StartsWith("UNAVAILABLE: no TLS connection to " + good.address + ": "));
  EXPECT_THAT(stranger, HasSubstr("certificate verify failed"));
  EXPECT_EQ(good.Call({}), "UNAVAILABLE: no server at " + good.address +
                               ": is autographd running? (one with TLS needs --tls-ca)");

  Door expired(server_of(authority.Make("expired", TestAuthority::kExpired)));
  EXPECT_THAT(expired.Call({.tls = ours}), HasSubstr("certificate verify failed"));

  Door plain(grpc::InsecureServerCredentials());
  EXPECT_THAT(plain.Call({.tls = ours}),
              StartsWith("UNAVAILABLE: no TLS connection to " + plain.address + ": "));
}

TEST(Client, AServerThatIsNotThereIsNamed) {
  // No process listens on port 1 of the loopback.
  const auto client = *Client::Connect("127.0.0.1:1", {});
  const std::string none = "no server at 127.0.0.1:1: is autographd running?";
  EXPECT_EQ(ToString(client->GetCapabilities().status()), "UNAVAILABLE: " + none);
  EXPECT_EQ(ToString(client->DownloadFile(Sha256(""), "/tmp/never")),
            "UNAVAILABLE: download " + Sha256("").Short() + ": " + none);
  EXPECT_EQ(ToString(client->Watch("jobs/1", nullptr, {.attempts_max = 1}).status()),
            "UNAVAILABLE: " + none);
}

}  // namespace
}  // namespace ag
