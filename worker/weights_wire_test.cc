#include "worker/weights_wire.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/file.h"
#include "device/open_device.h"
#include "wire/candidate_wire.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// Two products, and a small constant that travels inside the graph.
constexpr std::string_view kModel =
    "input x f32[4,32]; w = const f32[32,32] seed 1; v = const f32[32,8] seed 2;"
    "b = const f32[8] {1,2,3,4,5,6,7,8}; output y = add(matmul(matmul(x, w), v), b)";
constexpr std::string_view kOther =
    "input x f32[4,32]; w = const f32[32,32] seed 1; u = const f32[32,16] seed 3;"
    "output y = matmul(matmul(x, w), u)";

v1::Candidate Wire(std::string_view text) {
  static const auto device = *OpenDevice("sim:small");
  v1::Candidate candidate;
  ToProto(testing::Planned(text, device->spec()), &candidate);
  return candidate;
}

std::vector<Digest> Seeds(const std::vector<std::pair<TensorType, uint64_t>>& tensors) {
  std::vector<Digest> digests;
  for (const auto& [type, seed] : tensors) digests.push_back(SyntheticTensor(type, seed).Name());
  std::sort(digests.begin(), digests.end());
  return digests;
}

const TensorType kW{DType::kFloat32, {32, 32}};
const TensorType kV{DType::kFloat32, {32, 8}};
const TensorType kU{DType::kFloat32, {32, 16}};

TEST(WeightsOf, NamesEachLargeConstantOnce) {
  v1::WorkItem plans, check, show, groups, qualify;
  *plans.mutable_plans()->add_candidates() = Wire(kModel);
  *plans.mutable_plans()->add_candidates() = Wire(kOther);
  *check.mutable_check()->mutable_reference() = Wire(kOther);
  *check.mutable_check()->mutable_candidate() = Wire(kModel);
  *show.mutable_show()->mutable_check() = check.check();
  groups.mutable_groups()->add_problems("not looked at");
  qualify.mutable_qualify();
  const auto all = Seeds({{kW, 1}, {kV, 2}, {kU, 3}});
  EXPECT_EQ(*WeightsOf(plans.SerializeAsString()), all);
  EXPECT_EQ(*WeightsOf(check.SerializeAsString()), all);
  EXPECT_EQ(*WeightsOf(show.SerializeAsString()), all);
  EXPECT_EQ(*WeightsOf(groups.SerializeAsString()), std::vector<Digest>());
  EXPECT_EQ(*WeightsOf(qualify.SerializeAsString()), std::vector<Digest>());
}

TEST(WeightsOf, ARefinementNeedsThoseOfItsCandidate) {
  v1::WorkItem plans, refine;
  *plans.mutable_plans()->add_candidates() = Wire(kModel);
  *refine.mutable_refine()->mutable_candidate() = Wire(kModel);
  EXPECT_EQ(*WeightsOf(refine.SerializeAsString()), *WeightsOf(plans.SerializeAsString()));
  EXPECT_FALSE(WeightsOf(refine.SerializeAsString())->empty());
}

TEST(WeightsOf, NamesTheSetsOfInputs) {
  const std::string a = Sha256("a").Hex(), b = Sha256("b").Hex();
  v1::WorkItem plans, check, files;
  plans.mutable_plans()->set_inputs(a);
  *check.mutable_check()->mutable_reference() = Wire(kModel);
  *check.mutable_check()->mutable_candidate() = Wire(kModel);
  check.mutable_check()->add_inputs()->set_digest(a);
  check.mutable_check()->add_inputs()->set_kind("usual");
  files.mutable_files()->set_inputs(a);
  files.mutable_files()->add_compare_inputs(b);
  const auto names = [](const v1::WorkItem& item) {
    std::set<std::string> hex;
    const auto digests = WeightsOf(item.SerializeAsString());
    for (const Digest& digest : *digests) hex.insert(digest.Hex());
    return hex;
  };
  EXPECT_EQ(names(plans), std::set<std::string>{a});
  EXPECT_TRUE(names(check).contains(a));
  EXPECT_EQ(names(files), (std::set<std::string>{a, b}));
}

TEST(WeightsOf, AnEmptyTensorHasNoBytesToFetch) {
  v1::WorkItem item;
  *item.mutable_plans()->add_candidates() =
      Wire("input x f32[2,3]; e = const f32[2,0] seed 1; output y = concat(x, e) axis=1");
  EXPECT_EQ(*WeightsOf(item.SerializeAsString()), std::vector<Digest>());
}

TEST(WeightsOf, GarbageIsAStatus) {
  EXPECT_EQ(ToString(WeightsOf("garbage").status()),
            "DATA_LOSS: work item: not a WorkItem message");
  v1::WorkItem item;
  *item.mutable_plans()->add_candidates() = Wire(kModel);
  std::string* graph = item.mutable_plans()->mutable_candidates(0)->mutable_graph();
  for (graph->pop_back(); graph->size() > 3; graph->resize(graph->size() / 2)) {
    EXPECT_FALSE(WeightsOf(item.SerializeAsString()).ok()) << graph->size();
  }
}

TEST(IsSharedBlobDir, IsProvedByAFile) {
  const TempDir folder = *TempDir::Make("weights-test");
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/proof", "").ok());
  EXPECT_TRUE(IsSharedBlobDir(folder.path(), "proof"));
  EXPECT_FALSE(IsSharedBlobDir(folder.path(), "other"));
  EXPECT_FALSE(IsSharedBlobDir(folder.path(), ""));
  EXPECT_FALSE(IsSharedBlobDir("", "proof"));
  EXPECT_FALSE(IsSharedBlobDir(folder.path() + "/x", "../proof")) << "a proof is a name, no path";
}

// A coordinator's blob service with one fault at a time.
class FaultyBlobs : public v1::Blobs::Service {
 public:
  std::map<std::string, std::string> blobs;  // By hexadecimal digest.
  int64_t extra_size = 0;                    // Announced in addition to the true size.
  bool silent = false;                       // Ends without a message.
  size_t dies_after = SIZE_MAX;              // Bytes after which the call breaks.
  bool hangs = false;                        // Sends nothing until it is cancelled.
  std::vector<std::string> asked;

  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    asked.push_back(request->digest());
    while (hangs && !context->IsCancelled()) RealClock().SleepFor(Nanos{1'000'000});
    const auto found = blobs.find(request->digest());
    if (found == blobs.end()) return {grpc::StatusCode::NOT_FOUND, "no such blob"};
    if (silent) return grpc::Status::OK;
    const std::string& bytes = found->second;
    for (size_t begin = 0; begin < bytes.size(); begin += 1000) {
      if (begin >= dies_after) return {grpc::StatusCode::UNAVAILABLE, "Socket closed"};
      v1::DownloadResponse chunk;
      if (begin == 0) chunk.set_size_bytes(static_cast<int64_t>(bytes.size()) + extra_size);
      chunk.set_data(bytes.substr(begin, 1000));
      if (!writer->Write(chunk)) break;
    }
    return grpc::Status::OK;
  }
};

class FetchWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
  }
  void TearDown() override { server_->Shutdown(); }

  Digest Offer(char fill, size_t bytes) {
    const std::string data(bytes, fill);
    service_.blobs[Sha256(data).Hex()] = data;
    return Sha256(data);
  }

  Status Fetch(const std::vector<Digest>& digests, int64_t bytes_max = 1 << 20) {
    cache_.emplace(*BlobCache::Open(folder_.path(), bytes_max));
    return FetchWeights(digests, *channel_, *cache_, [this](grpc::ClientContext* call) {
      if (call != nullptr && cancel_) call->TryCancel();
    });
  }

  bool Has(const Digest& digest) { return cache_->blobs().Has(digest); }

  FaultyBlobs service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  const TempDir folder_ = *TempDir::Make("fetch-weights-test");
  std::optional<BlobCache> cache_;
  bool cancel_ = false;
};

TEST_F(FetchWeightsTest, FetchesWhatIsMissingOnce) {
  const Digest a = Offer('a', 2500), b = Offer('b', 10);
  EXPECT_EQ(ToString(Fetch({a})), "OK");
  EXPECT_EQ(ToString(Fetch({a, b})), "OK");
  EXPECT_EQ(service_.asked, (std::vector<std::string>{a.Hex(), b.Hex()}));
  EXPECT_EQ(ToString(cache_->blobs().Verify(a)), "OK");
  EXPECT_EQ(ToString(cache_->blobs().Verify(b)), "OK");
}

// Faults on the way; nothing of a failed download is kept.
TEST_F(FetchWeightsTest, SaysWhatWentWrongAndKeepsNothing) {
  const Digest a = Offer('a', 2500);
  const std::string right = service_.blobs[a.Hex()];
  const std::string wrong = std::string(2499, 'a') + "b";
  const std::string noun = "fetch weight " + a.Short() + ": ";
  const struct {
    const char* name;
    std::function<void(FaultyBlobs&)> spoil;
    std::string message;
  } kCases[] = {
      {"wrong bytes", [&](FaultyBlobs& s) { s.blobs[a.Hex()] = wrong; },
       "DATA_LOSS: " + noun + "blob: expected digest " + a.Hex() + ", got " + Sha256(wrong).Hex() +
           " of 2500 bytes"},
      {"not there", [](FaultyBlobs& s) { s.blobs.clear(); }, "NOT_FOUND: " + noun + "no such blob"},
      {"dies in the middle", [](FaultyBlobs& s) { s.dies_after = 1000; },
       "UNAVAILABLE: " + noun + "Socket closed"},
      {"more than announced", [](FaultyBlobs& s) { s.extra_size = -1; },
       "DATA_LOSS: " + noun + "more came than the 2499 bytes announced"},
      {"a negative size", [](FaultyBlobs& s) { s.extra_size = -3000; },
       "DATA_LOSS: " + noun + "a size of -500 bytes"},
      {"no message", [](FaultyBlobs& s) { s.silent = true; },
       "DATA_LOSS: " + noun + "no message came"},
  };
  for (const auto& c : kCases) {
    service_.blobs = {{a.Hex(), right}};
    service_.dies_after = SIZE_MAX;
    service_.extra_size = 0;
    service_.silent = false;
    c.spoil(service_);
    EXPECT_EQ(ToString(Fetch({a})), c.message) << c.name;
    EXPECT_FALSE(Has(a)) << c.name;
    EXPECT_EQ(*ListDir(folder_.path() + "/tmp"), std::vector<std::string>()) << c.name;
  }
}

TEST_F(FetchWeightsTest, WhatCameBeforeACutIsNotFetchedAgain) {
  const Digest small = Offer('a', 500), large = Offer('b', 2500);
  service_.dies_after = 1000;
  EXPECT_EQ(Fetch({small, large}).code(), StatusCode::kUnavailable);
  service_.dies_after = SIZE_MAX;
  EXPECT_EQ(ToString(Fetch({small, large})), "OK");
  EXPECT_EQ(service_.asked, (std::vector<std::string>{small.Hex(), large.Hex(), large.Hex()}));
}

TEST_F(FetchWeightsTest, KeepsTheBound) {
  const Digest a = Offer('a', 600), b = Offer('b', 600), c = Offer('c', 400);
  EXPECT_EQ(ToString(Fetch({a}, 1000)), "OK");
  EXPECT_EQ(ToString(Fetch({b, c}, 1000)), "OK");
  EXPECT_FALSE(Has(a));
  EXPECT_TRUE(Has(b));
  EXPECT_TRUE(Has(c));
  EXPECT_EQ(ToString(Fetch({a, b}, 1000)),
            "RESOURCE_EXHAUSTED: fetch weight " + a.Short() + ": blob cache " + folder_.path() +
                ": 600 bytes do not fit beside 600 bytes in use; the limit is 1000");
  EXPECT_TRUE(Has(b));
}

TEST_F(FetchWeightsTest, ACancelledCallEnds) {
  const Digest a = Offer('a', 10);
  service_.hangs = true;
  cancel_ = true;
  EXPECT_EQ(Fetch({a}).code(), StatusCode::kCancelled);
}

TEST_F(FetchWeightsTest, ACoordinatorThatIsGoneIsUnavailable) {
  const Digest a = Offer('a', 10);
  // No process listens on port 1 of the loopback.
  channel_ = grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
  EXPECT_EQ(Fetch({a}).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace ag
