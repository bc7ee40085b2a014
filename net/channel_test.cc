#include "net/channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/tokens.h"

namespace ag {
namespace {

std::string Made(const std::string& address, const ChannelOptions& options) {
  return ToString(MakeChannel(address, options, {}).status());
}

TEST(Channel, ATokenStaysOnThisMachineWithoutTls) {
  const std::string far =
      "INVALID_ARGUMENT: the token would go to 10.0.0.1:7450 in plain text: name the certificate "
      "that signed the server's (--tls-ca), or allow it (--insecure)";
  EXPECT_EQ(Made("10.0.0.1:7450", {.token = "autograph_1"}), far);
  EXPECT_EQ(Made("10.0.0.1:7450", {.token_file = "/none"}), far);
  EXPECT_EQ(Made("10.0.0.1:7450", {.token = "autograph_1", .insecure = true}), "OK");
  EXPECT_EQ(Made("10.0.0.1:7450", {}), "OK");
  EXPECT_EQ(Made("127.0.0.1:7450", {.token = "autograph_1"}), "OK");
  EXPECT_EQ(Made("unix:/tmp/socket", {.token = "autograph_1"}), "OK");
}

TEST(Channel, WrongTokens) {
  const TempDir folder = *TempDir::Make("channel");
  const std::string path = folder.path() + "/token";
  EXPECT_EQ(Made("127.0.0.1:1", {.token = "two words"}),
            "INVALID_ARGUMENT: a token is one word of visible ASCII characters");
  EXPECT_EQ(Made("127.0.0.1:1", {.token_file = path}),
            "NOT_FOUND: read " + path + ": No such file or directory");
  ASSERT_TRUE(WriteTokenFile(path, "autograph_1").ok());
  EXPECT_EQ(Made("127.0.0.1:1", {.token_file = path}), "OK");
}

}  // namespace
}  // namespace ag
