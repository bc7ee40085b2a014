// Messages that do not decode, sent as bytes to every service.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "server/server.h"

namespace ag {
namespace {

const std::string kGarbage = "\xff\xff\xff";

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(kGarbage);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status;
}

TEST(Undecodable, EveryCallSaysSo) {
  const TempDir dir = *TempDir::Make("undecodable-");
  ServerOptions options;
  options.data_dir = dir.path() + "/data";
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = (*server)->InProcessChannel();
  for (const char* name :
       {"Optimizer/Optimize", "Optimizer/GetJob", "Optimizer/ListJobs", "Optimizer/WatchJob",
        "Optimizer/CancelJob", "Optimizer/PublishBest", "Blobs/FindMissing", "Blobs/Download",
        "Cache/ListMeasurements", "Cache/Export"}) {
    const std::string method = std::string("/autograph.v1.") + name;
    const grpc::Status status = Call(channel, method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_EQ(status.error_message(), "the request of " + method + " does not decode");
  }
  for (const char* name : {"Blobs/Upload", "Cache/Import", "Workers/Synchronize"}) {
    const grpc::Status status = Call(channel, std::string("/autograph.v1.") + name);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status.error_message(), testing::EndsWith("a message does not decode")) << name;
  }
}

}  // namespace
}  // namespace ag
