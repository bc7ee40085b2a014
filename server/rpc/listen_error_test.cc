#include "server/rpc/listen_error.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "base/handle.h"

namespace ag {
namespace {

TEST(ListenError, SaysWhatIsInTheWay) {
  const Fd taken(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&in), sizeof(in)), 0);
  ASSERT_EQ(::listen(taken.get(), 1), 0);
  socklen_t size = sizeof(in);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&in), &size), 0);
  const std::string in_use = fmt::format("127.0.0.1:{}", ntohs(in.sin_port));

  const TempDir folder = *TempDir::Make("listen");
  const std::string file = folder.path() + "/file", gone = folder.path() + "/no/socket";
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  const struct {
    std::string address, status;
  } kCases[] = {
      {in_use, "UNAVAILABLE: cannot listen on " + in_use + ": address in use"},
      {"unix:" + file, "UNAVAILABLE: cannot listen on unix:" + file + ": address in use"},
      {"unix:" + gone,
       "FAILED_PRECONDITION: cannot listen on unix:" + gone + ": No such file or directory"},
      {"203.0.113.1:7450",
       "FAILED_PRECONDITION: cannot listen on 203.0.113.1:7450: Cannot assign requested address"},
      {"localhost",
       "INVALID_ARGUMENT: cannot listen on localhost: expected HOST:PORT or unix:PATH"},
      {"localhost:http",
       "INVALID_ARGUMENT: cannot listen on localhost:http: expected HOST:PORT or unix:PATH"},
      {"localhost:70000",
       "INVALID_ARGUMENT: cannot listen on localhost:70000: expected HOST:PORT or unix:PATH"},
      {"[::1:x]:0", "INVALID_ARGUMENT: cannot listen on [::1:x]:0: Name or service not known"},
      {"127.0.0.1:0", "INTERNAL: cannot listen on 127.0.0.1:0"},
  };
  for (const auto& c : kCases) EXPECT_EQ(ToString(ListenError(c.address)), c.status);
}

TEST(ListenError, TheBoundPortIsSaid) {
  EXPECT_EQ(BoundAddress("127.0.0.1:0", 41234), "127.0.0.1:41234");
  EXPECT_EQ(BoundAddress("[::1]:0", 41234), "[::1]:41234");
  EXPECT_EQ(BoundAddress("unix:/tmp/s:0", 1), "unix:/tmp/s:0");
}

TEST(ListenError, LeavesNoSocketBehind) {
  const TempDir folder = *TempDir::Make("listen");
  const std::string path = folder.path() + "/socket";
  EXPECT_EQ(ToString(ListenError("unix:" + path)), "INTERNAL: cannot listen on unix:" + path);
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace ag
