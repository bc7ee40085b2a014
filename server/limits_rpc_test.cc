// Clients that send too much, or nothing: what they may hold, and what others get meanwhile.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "base/digest.h"
#include "base/file.h"
#include "server/server.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

struct LimitsBench {
  TempDir dir = *TempDir::Make("limits-");
  std::unique_ptr<Server> server;

  explicit LimitsBench(const TransferLimits& transfers = {}) {
    ServerOptions options;
    options.data_dir = dir.path() + "/data";
    options.listen = "127.0.0.1:0";
    options.transfers = transfers;
    auto started = Server::Start(options);
    AG_CHECK(started.ok());
    server = *std::move(started);
  }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server->address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
};

// An upload that has sent the first of its bytes and stands still.
class StalledUpload {
 public:
  explicit StalledUpload(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Blobs::NewStub(channel)), writer_(stub_->Upload(&context_, &response_)) {
    v1::UploadRequest chunk;
    chunk.set_digest(Sha256("all").Hex());
    chunk.set_size_bytes(3);
    chunk.set_data("a");
    writer_->Write(chunk);
  }
  ~StalledUpload() {
    context_.TryCancel();
    if (!finished_) writer_->Finish();
  }
  grpc::Status Finish() {
    finished_ = true;
    return writer_->Finish();
  }

 private:
  grpc::ClientContext context_;
  v1::UploadResponse response_;
  std::unique_ptr<v1::Blobs::Stub> stub_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
  bool finished_ = false;
};

grpc::Status Upload(const std::shared_ptr<grpc::Channel>& channel, const std::string& bytes) {
  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto stub = v1::Blobs::NewStub(channel);
  const auto writer = stub->Upload(&context, &response);
  v1::UploadRequest chunk;
  chunk.set_digest(Sha256(bytes).Hex());
  chunk.set_size_bytes(static_cast<int64_t>(bytes.size()));
  chunk.set_data(bytes);
  chunk.set_last(true);
  writer->Write(chunk);
  writer->WritesDone();
  return writer->Finish();
}

TEST(Limits, AMessageIsAtMostFourMebibytes) {
  LimitsBench b;
  const auto channel = b.Connect();
  v1::OptimizeRequest request;
  request.set_model_digest(Sha256("m").Hex());
  request.set_model_name(std::string(5 << 20, 'x'));
  grpc::ClientContext context;
  v1::Job job;
  EXPECT_EQ(v1::Optimizer::NewStub(channel)->Optimize(&context, request, &job).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(Limits, EveryListOfARequestIsBounded) {
  LimitsBench b;
  const auto channel = b.Connect();
  const auto said = [&](const std::function<void(v1::OptimizeRequest*)>& fill) {
    v1::OptimizeRequest request;
    request.set_model_digest(Sha256("m").Hex());
    fill(&request);
    grpc::ClientContext context;
    v1::Job job;
    return v1::Optimizer::NewStub(channel)->Optimize(&context, request, &job).error_message();
  };
  EXPECT_EQ(said([](auto* r) {
              for (int i = 0; i < 1001; ++i) r->add_shapes()->set_input(std::to_string(i));
            }),
            "shapes: number of inputs: 1001 is not in 0..1000");
  EXPECT_EQ(said([](auto* r) {
              for (int i = 0; i < 65; ++i)
                (i == 0 ? r->add_shapes() : r->mutable_shapes(0))->add_dims(1);
            }),
            "shapes: number of sizes: 65 is not in 0..64");
  EXPECT_EQ(said([](auto* r) {
              for (int i = 0; i < 1001; ++i) r->add_disabled_rules("x");
            }),
            "disabled_rules: number: 1001 is not in 0..1000");
  v1::FindMissingRequest find;
  for (int i = 0; i < 10'001; ++i) find.add_digests(Sha256("m").Hex());
  grpc::ClientContext context;
  v1::FindMissingResponse missing;
  EXPECT_EQ(v1::Blobs::NewStub(channel)->FindMissing(&context, find, &missing).error_message(),
            "digests: 10001, at most 10000");
}

TEST(Limits, NamesOfRequestsHaveNoControlCharacters) {
  LimitsBench b;
  const auto channel = b.Connect();
  const auto said = [&](const std::function<void(v1::OptimizeRequest*)>& fill) {
    v1::OptimizeRequest request;
    request.set_model_digest(Sha256("m").Hex());
    fill(&request);
    grpc::ClientContext context;
    v1::Job job;
    return v1::Optimizer::NewStub(channel)->Optimize(&context, request, &job).error_message();
  };
  EXPECT_EQ(said([](auto* r) { r->set_device("cpu\n2026 error: forged"); }),
            "device: a control character in 'cpu 2026 error: forged'");
  EXPECT_EQ(said([](auto* r) { r->set_client("\x1b[2J"); }),
            "client: a control character in '\\x1b[2J'");
  EXPECT_EQ(said([](auto* r) { r->set_request_id("\x7f"); }),
            "request_id: a control character in '\\x7f'");
  EXPECT_EQ(said([](auto* r) {
              r->add_inputs()->set_name("a\rb");
              r->mutable_inputs(0)->set_digest(Sha256("i").Hex());
            }),
            "inputs: a control character in 'a\\x0db'");
}

TEST(Limits, ATransferThatStandsStillIsEnded) {
  LimitsBench b({.idle_max = 300ms});
  StalledUpload stalled(b.Connect());
  EXPECT_EQ(stalled.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(Limits, StalledTransfersMakeRoom) {
  LimitsBench b({.in_all = 8, .per_peer = 4});
  std::vector<std::unique_ptr<StalledUpload>> stalled;
  const auto hostile = b.Connect(), other = b.Connect();
  for (int i = 0; i < 8; ++i) {
    stalled.push_back(std::make_unique<StalledUpload>(i < 4 ? hostile : other));
  }
  RealClock().SleepFor(1500ms);  // They stand still for long enough.
  const grpc::Status fifth = Upload(hostile, "x");
  EXPECT_TRUE(fifth.ok()) << fifth.error_message();
  const auto honest = b.Connect();
  for (int i = 0; i < 10; ++i) {
    const grpc::Status status = Upload(honest, std::string("honest") + std::to_string(i));
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

TEST(Limits, AConnectionHasAShareOfTheTransfers) {
  LimitsBench b({.in_all = 8, .per_peer = 2});
  const auto channel = b.Connect();
  StalledUpload first(channel), second(channel);
  RealClock().SleepFor(300ms);  // Their calls have begun.
  StalledUpload third(channel);
  EXPECT_EQ(third.Finish().error_message(), "2 transfers of this connection are open already");
  EXPECT_TRUE(Upload(b.Connect(), "x").ok()) << "another connection has its own";
}

}  // namespace
}  // namespace ag
