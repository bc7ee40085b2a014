// TLS at a real server, and what it opens without.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "autograph/v1/optimizer.grpc.pb.h"
#include "base/file.h"
#include "net/channel.h"
#include "net/testing/certificates.h"
#include "server/server.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

class TlsRpcTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Server>> Start(const TlsFiles& tls) {
    ServerOptions options;
    options.data_dir = folder_.path() + "/data";
    options.listen = "127.0.0.1:0";
    options.tls = tls;
    options.tls.reload_seconds = 1;
    return Server::Start(options);
  }
  // Calls on a new connection.
  static grpc::Status Call(const std::string& address,
                           const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(address, credentials, arguments);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::Capabilities response;
    return v1::Optimizer::NewStub(channel)->GetCapabilities(&context, {}, &response);
  }
  static grpc::Status Call(const std::string& address, const TlsFiles& files) {
    return Call(address, *TlsChannelCredentials(files));
  }
  // Credentials from the files' bytes, whatever is wrong with them.
  static std::shared_ptr<grpc::ChannelCredentials> Unchecked(const TlsFiles& files) {
    return grpc::SslCredentials({*ReadFile(files.ca), *ReadFile(files.key), *ReadFile(files.cert)});
  }

  const TempDir folder_ = *TempDir::Make("tls-rpc");
  TestAuthority ours_{folder_.path(), "ours"}, other_{folder_.path(), "other"};
};

constexpr grpc::StatusCode kNoConnection = grpc::StatusCode::UNAVAILABLE;

TEST_F(TlsRpcTest, OneSide) {
  TlsFiles files = ours_.Make("server");
  files.ca.clear();
  const auto server = *Start(files);
  const std::string address = server->address();
  EXPECT_TRUE(Call(address, {.ca = ours_.ca()}).ok());
  EXPECT_EQ(Call(address, {.ca = other_.ca()}).error_code(), kNoConnection);
  EXPECT_EQ(Call(address, grpc::InsecureChannelCredentials()).error_code(), kNoConnection);
}

TEST_F(TlsRpcTest, ACertificateOfAnotherHost) {
  TlsFiles files = ours_.Make("server");
  files.ca.clear();
  const auto server = *Start(files);
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride("elsewhere.example");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel(
      server->address(), *TlsChannelCredentials({.ca = ours_.ca()}), arguments);
  grpc::ClientContext context;
  v1::Capabilities response;
  EXPECT_EQ(v1::Optimizer::NewStub(channel)->GetCapabilities(&context, {}, &response).error_code(),
            kNoConnection);
}

TEST_F(TlsRpcTest, BothSides) {
  const auto server = *Start(ours_.Make("server"));
  const std::string address = server->address();
  EXPECT_TRUE(Call(address, ours_.Make("client")).ok());
  EXPECT_EQ(Call(address, {.ca = ours_.ca()}).error_code(), kNoConnection) << "no certificate";
  TlsFiles stranger = other_.Make("stranger");
  stranger.ca = ours_.ca();
  EXPECT_EQ(Call(address, stranger).error_code(), kNoConnection) << "another authority's";
  EXPECT_EQ(Call(address, grpc::InsecureChannelCredentials()).error_code(), kNoConnection);
  const TlsFiles expired = ours_.Make("expired", TestAuthority::kExpired);
  EXPECT_EQ(Call(address, Unchecked(expired)).error_code(), kNoConnection) << "expired";
  const TlsFiles early = ours_.Make("early", TestAuthority::kNotYet);
  EXPECT_EQ(Call(address, Unchecked(early)).error_code(), kNoConnection) << "not valid yet";
  EXPECT_TRUE(Call(address, Unchecked(ours_.Make("client"))).ok());
}

TEST_F(TlsRpcTest, AnExpiredCertificateStopsTheStart) {
  const TlsFiles expired = ours_.Make("expired", TestAuthority::kExpired);
  const Status status = Start(expired).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Message(status).starts_with(expired.cert + ": the certificate expired on "));
}

TEST_F(TlsRpcTest, TheFilesAreReadAnew) {
  TlsFiles files = ours_.Make("server");
  files.ca.clear();
  const auto server = *Start(files);
  EXPECT_TRUE(Call(server->address(), {.ca = ours_.ca()}).ok());
  EXPECT_FALSE(Call(server->address(), {.ca = other_.ca()}).ok());
  other_.Make("server");
  bool is_new = false;
  for (int i = 0; i < 200 && !is_new; ++i) {
    RealClock().SleepFor(std::chrono::milliseconds(50));
    is_new = Call(server->address(), {.ca = other_.ca()}).ok();
  }
  EXPECT_TRUE(is_new);
  EXPECT_FALSE(Call(server->address(), {.ca = ours_.ca()}).ok());
}

TEST_F(TlsRpcTest, NothingPlainListensBeyondThisMachine) {
  ServerOptions options;
  options.data_dir = folder_.path() + "/data";
  const auto start = [&] { return ToString(Server::Start(options).status()); };
  const std::string service =
      "INVALID_ARGUMENT: the service at {} would be open to other machines in plain text: give "
      "--tls-cert and --tls-key, or allow it with --insecure";
  for (const char* address : {"0.0.0.0:0", ":0", "[::]:0"}) {
    options.listen = address;
    EXPECT_EQ(start(), fmt::format(fmt::runtime(service), address));
  }
  options.listen = "0.0.0.0:0";
  options.insecure = true;
  EXPECT_EQ(start(), "OK");
  options.insecure = false;
  options.tls = ours_.Make("server");
  EXPECT_EQ(start(), "OK");
  options.metrics = "0.0.0.0:0";
  EXPECT_EQ(start(),
            "INVALID_ARGUMENT: metrics at 0.0.0.0:0 would be open to other machines in plain text: "
            "listen on 127.0.0.1, or allow it with --insecure");
  const std::vector<std::string> near = {"127.0.0.1:0", "localhost:0",
                                         "unix:" + folder_.path() + "/s"};
  for (const std::string& address : near) {
    ServerOptions plain;
    plain.data_dir = options.data_dir;
    plain.listen = address;
    EXPECT_EQ(ToString(Server::Start(plain).status()), "OK") << address;
  }
}

}  // namespace
}  // namespace ag
