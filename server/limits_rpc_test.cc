// Clients that send too much, or nothing: what they may hold, and what others get meanwhile.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/store.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/handle.h"
#include "base/testing/eventually.h"
#include "base/text.h"
#include "server/server.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

struct LimitsBench {
  TempDir dir = *TempDir::Make("limits-");
  std::unique_ptr<Server> server;

  explicit LimitsBench(const PlaceLimits& transfers = {}, int workers_max = 4) {
    ServerOptions options;
    options.workers_max = workers_max;
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

// Returns what is said of a request that `fill` has changed.
std::string SaidOf(const std::shared_ptr<grpc::Channel>& channel,
                   const std::function<void(v1::OptimizeRequest*)>& fill) {
  v1::OptimizeRequest request;
  request.set_model_digest(Sha256("m").Hex());
  fill(&request);
  grpc::ClientContext context;
  v1::Job job;
  return v1::Optimizer::NewStub(channel)->Optimize(&context, request, &job).error_message();
}

// A call of any method, its messages as bytes.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(nullptr);
    Next();
  }
  ~RawCall() { context_.TryCancel(); }
  void Send(const std::string& message) {
    const grpc::Slice slice(message);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Next();
  }
  // Half-closes, unless the call is to go on.
  grpc::Status Finish(bool half_close = true) {
    if (half_close) {
      call_->WritesDone(nullptr);
      Next();
    }
    grpc::ByteBuffer ignored;
    do {
      call_->Read(&ignored, nullptr);
    } while (Next());
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

std::string Repeated(std::string_view piece, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += piece;
  return all;
}

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
  EXPECT_EQ(SaidOf(channel,
                   [](auto* r) {
                     for (int i = 0; i < 1001; ++i) r->add_shapes()->set_input(std::to_string(i));
                   }),
            "shapes: number of inputs: 1001 is not in 0..1000");
  EXPECT_EQ(SaidOf(channel,
                   [](auto* r) {
                     for (int i = 0; i < 65; ++i)
                       (i == 0 ? r->add_shapes() : r->mutable_shapes(0))->add_dims(1);
                   }),
            "shapes: number of sizes: 65 is not in 0..64");
  EXPECT_EQ(SaidOf(channel,
                   [](auto* r) {
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

// 2 bytes an entry on the wire, 100 and more in memory: 4 MB of them took 300 MB.
TEST(Limits, WhatBecomesLargeInMemoryIsRefusedBeforeItIs) {
  LimitsBench b;
  const auto channel = b.Connect();
  struct Case {
    const char* method;
    std::string message;
  };
  const Case kCases[] = {
      {"Optimizer/Optimize", Repeated(std::string_view("\x2a\0", 2), 200'000)},  // shapes
      {"Blobs/FindMissing", Repeated(std::string_view("\x0a\0", 2), 1'000'000)},
      {"Workers/Synchronize", Repeated(std::string_view("\x4a\0", 2), 200'000)},  // results
  };
  for (const Case& c : kCases) {
    RawCall call(channel, std::string("/autograph.v1.") + c.method);
    call.Send(c.message);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.method;
    EXPECT_THAT(status.error_message(),
                testing::HasSubstr("its lists are too long: they take more than 8388608 bytes"))
        << c.method;
  }
}

// 60 messages of 2 MB: they stayed for good.
TEST(Limits, ARefusedMessageIsGivenBack) {
  LimitsBench b;
  const auto channel = b.Connect();
  const std::string message = Repeated(std::string_view("\x0a\0", 2), 1'000'000);
  const auto held_bytes = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto refused = [&](int times) {
    for (int i = 0; i < times; ++i) {
      RawCall call(channel, "/autograph.v1.Blobs/FindMissing");
      call.Send(message);
      EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    }
  };
  refused(5);  // What a channel keeps.
  const size_t before = held_bytes();
  refused(60);
  EXPECT_TRUE(Eventually([&] { return held_bytes() < before + (size_t{50} << 20); }))
      << held_bytes() - before;
}

TEST(Limits, EveryRequestIsCountedBeforeItIsDecoded) {
  LimitsBench b;
  const auto channel = b.Connect();
  const std::string fields = Repeated("\xf8\x01\x01", 300'000);  // That nobody knows.
  for (const auto* file :
       {v1::FindMissingRequest::descriptor()->file(), v1::CacheRecord::descriptor()->file(),
        v1::Job::descriptor()->file(), v1::WorkerState::descriptor()->file(),
        v1::BackupRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      RawCall call(channel,
                   fmt::format("/{}/{}", service->full_name(), service->method(i)->name()));
      call.Send(fields);
      EXPECT_THAT(call.Finish().error_message(), testing::HasSubstr("its lists are too long"))
          << service->method(i)->full_name();
    }
  }
}

TEST(Limits, StreamsOfWorkersHavePlaces) {
  LimitsBench b({}, /*workers_max=*/2);
  const auto channel = b.Connect();
  RawCall first(channel, "/autograph.v1.Workers/Synchronize");
  RawCall second(channel, "/autograph.v1.Workers/Synchronize");
  v1::WorkerState state;
  state.set_worker_id("a");
  first.Send(state.SerializeAsString());
  state.set_worker_id("b");
  second.Send(state.SerializeAsString());
  ASSERT_TRUE(Eventually([&] {
    grpc::ClientContext context;
    v1::ListWorkersResponse workers;
    v1::Workers::NewStub(channel)->ListWorkers(&context, {}, &workers);
    return workers.workers_size() == 2;
  }));
  RawCall third(channel, "/autograph.v1.Workers/Synchronize");
  const grpc::Status status = third.Finish(/*half_close=*/false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "2 workers are open already");
}

TEST(Limits, NamesOfRequestsHaveNoControlCharacters) {
  LimitsBench b;
  const auto channel = b.Connect();
  EXPECT_EQ(SaidOf(channel, [](auto* r) { r->set_device("cpu\n2026 error: forged"); }),
            "device: a control character in 'cpu 2026 error: forged'");
  EXPECT_EQ(SaidOf(channel, [](auto* r) { r->set_client("\x1b[2J"); }),
            "client: a control character in '\\x1b[2J'");
  EXPECT_EQ(SaidOf(channel, [](auto* r) { r->set_request_id("\x7f"); }),
            "request_id: a control character in '\\x7f'");
  EXPECT_EQ(SaidOf(channel,
                   [](auto* r) {
                     r->add_inputs()->set_name("a\rb");
                     r->mutable_inputs(0)->set_digest(Sha256("i").Hex());
                   }),
            "inputs: a control character in 'a\\x0db'");
}

TEST(Limits, StreamsOfReflectionMakeRoom) {
  constexpr int kPlaces = 128;
  constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  LimitsBench b;
  const auto channel = b.Connect();
  RawCall first(channel, kMethod);
  RealClock().SleepFor(100ms);
  std::vector<std::unique_ptr<RawCall>> others;
  for (int i = 0; i < kPlaces; ++i) others.push_back(std::make_unique<RawCall>(channel, kMethod));
  EXPECT_EQ(first.Finish(/*half_close=*/false).error_code(), grpc::StatusCode::CANCELLED);
}

// A frame of HTTP/2.
std::string Frame(char type, char flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += type;
  frame += flags;
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame.append(payload);
}

// A header without compression, as HPACK has it.
std::string Header(std::string_view name, std::string_view value) {
  std::string header(1, '\0');
  header += static_cast<char>(name.size());
  header += name;
  header += static_cast<char>(value.size());
  return header.append(value);
}

Fd ConnectTo(const std::string& address) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(*ParseInt(address.substr(address.rfind(':') + 1))));
  AG_CHECK(::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
  return fd;
}

// CVE-2023-44487. 240,000 of them took 3.8 GB.
TEST(Limits, AConnectionThatResetsItsCallsIsClosed) {
  LimitsBench b;
  const Fd fd = ConnectTo(b.server->address());
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "");
  const std::string headers = "\x83\x86" + Header(":path", "/autograph.v1.Optimizer/ListJobs") +
                              Header(":authority", "x") +
                              Header("content-type", "application/grpc") + Header("te", "trailers");
  int sent = 0;
  for (; sent < 100'000; ++sent) {
    const auto stream = static_cast<uint32_t>(2 * sent + 1);
    bytes += Frame(1, 4, stream, headers) + Frame(3, 0, stream, std::string_view("\0\0\0\x8", 4));
    if (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
    bytes.clear();
  }
  EXPECT_LT(sent, 100'000);
  // Beyond 1 GiB of memory, this test's too, nobody gets in for a while.
  EXPECT_TRUE(Eventually([&] { return Upload(b.Connect(), "x").ok(); }));
}

TEST(Limits, TextsOfWorkersAreBoundedAndPrintable) {
  LimitsBench b;
  const auto channel = b.Connect();
  const auto said = [&](const std::function<void(v1::WorkerState*)>& fill) {
    v1::WorkerState state;
    state.set_worker_id("w");
    fill(&state);
    RawCall call(channel, "/autograph.v1.Workers/Synchronize");
    call.Send(state.SerializeAsString());
    return call.Finish().error_message();
  };
  EXPECT_EQ(said([](auto* s) { s->set_worker_id("w\x1b[2J"); }),
            "worker_id: a control character in 'w\\x1b[2J'");
  EXPECT_EQ(said([](auto* s) { s->set_device("sim:\nx"); }),
            "device: a control character in 'sim: x'");
  EXPECT_EQ(said([](auto* s) { s->set_environment(std::string(10'001, 'e')); }),
            "environment: 10001 bytes, at most 10000");
  EXPECT_EQ(said([](auto* s) { s->set_device_spec(std::string(1 << 20, 'e')); }),
            "device_spec: 1048576 bytes, at most 262144");
  EXPECT_EQ(said([](auto* s) { s->set_device_spec("nonsense 1\n"); }),
            "device_spec: line 1: unknown word 'nonsense'");
  EXPECT_EQ(said([](auto* s) {
              for (int i = 0; i < 10'001; ++i) s->add_results();
            }),
            "results: 10001, at most 10000");
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
