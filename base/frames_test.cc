#include "base/frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

class FramesTest : public testing::Test {
 protected:
  FramesTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a_.reset(ends[0]);
    b_.reset(ends[1]);
  }
  // Returns a frame's header with a length that SendFrame would not write.
  static std::string Header(uint32_t type, uint64_t length) {
    ByteWriter writer;
    writer.U32(type);
    writer.U64(length);
    return writer.Take();
  }
  void SendRaw(std::string_view bytes) {
    ASSERT_EQ(::send(a_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  Fd a_;
  Fd b_;
};

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  return bytes;
}

TEST_F(FramesTest, CarriesPayloadsOfEverySize) {
  // More than the socket's buffer, and more than the first buffer of the receiver.
  const size_t sizes[] = {0, 1, 4096, 1'000'000, (1 << 20) + 1, 5'000'000};
  std::thread sender([&] {
    for (const size_t size : sizes) {
      EXPECT_EQ(ToString(SendFrame(a_.get(), static_cast<uint32_t>(size % 97), Pattern(size))),
                "OK");
    }
  });
  for (const size_t size : sizes) {
    const Frame frame = ReceiveFrame(b_.get(), {.timeout = 10s}).value();
    EXPECT_EQ(frame.type, size % 97);
    EXPECT_TRUE(frame.payload == Pattern(size)) << size;
    EXPECT_TRUE(frame.fds.empty());
  }
  sender.join();
}

TEST_F(FramesTest, CarriesFileDescriptorsWithTheirFrame) {
  std::vector<Fd> files;
  std::vector<int> raw;
  for (size_t i = 0; i < kFrameFdsMax; ++i) {
    files.emplace_back(::memfd_create("frames_test", MFD_CLOEXEC));
    raw.push_back(files.back().get());
    const std::string bytes = fmt::format("file {}", i);
    ASSERT_EQ(::write(raw.back(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  ASSERT_EQ(ToString(SendFrame(a_.get(), 1, "none")), "OK");
  ASSERT_EQ(ToString(SendFrame(a_.get(), 2, "all", raw)), "OK");
  ASSERT_EQ(ToString(SendFrame(a_.get(), 3, "", {raw[5]})), "OK");
  EXPECT_EQ(ReceiveFrame(b_.get()).value().fds.size(), 0u);
  const Frame all = ReceiveFrame(b_.get()).value();
  ASSERT_EQ(all.fds.size(), kFrameFdsMax);
  for (size_t i = 0; i < kFrameFdsMax; ++i) {
    EXPECT_EQ(MappedFile::FromFd(all.fds[i].get()).value()->bytes(), fmt::format("file {}", i));
    EXPECT_EQ(::fcntl(all.fds[i].get(), F_GETFD), FD_CLOEXEC);
  }
  const Frame one = ReceiveFrame(b_.get()).value();
  ASSERT_EQ(one.fds.size(), 1u);
  EXPECT_EQ(MappedFile::FromFd(one.fds[0].get()).value()->bytes(), "file 5");
  raw.push_back(raw[0]);
  EXPECT_EQ(ToString(SendFrame(a_.get(), 4, "", raw)),
            "INVALID_ARGUMENT: frame 4: expected at most 16 file descriptors, got 17");
}

TEST_F(FramesTest, ReadsBytesThatComeOneByOne) {
  const std::string bytes = Header(7, 3) + "abc" + Header(8, 0);
  std::thread sender([&] {
    for (const char c : bytes) SendRaw({&c, 1});
  });
  EXPECT_EQ(ReceiveFrame(b_.get()).value().payload, "abc");
  EXPECT_EQ(ReceiveFrame(b_.get()).value().type, 8u);
  sender.join();
}

TEST_F(FramesTest, SaysWhenThePeerIsGone) {
  const struct {
    const char* name;
    std::string sent;
    const char* expected;
  } cases[] = {
      {"at once", "", "UNAVAILABLE: frame: the peer is gone after 0 of 12 header bytes"},
      {"in a header", Header(7, 3).substr(0, 5),
       "UNAVAILABLE: frame: the peer is gone after 5 of 12 header bytes"},
      {"in a payload", Header(7, 3) + "ab",
       "UNAVAILABLE: frame 7: the peer is gone after 2 of 3 bytes"},
  };
  for (const auto& c : cases) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a_.reset(ends[0]);
    b_.reset(ends[1]);
    SendRaw(c.sent);
    a_.reset();
    EXPECT_EQ(ToString(ReceiveFrame(b_.get()).status()), c.expected) << c.name;
    EXPECT_EQ(ToString(SendFrame(b_.get(), 9, "x")), "UNAVAILABLE: frame 9: the peer is gone");
  }
}

TEST_F(FramesTest, SaysWhenThePeerDiesWithUnreadBytes) {
  ASSERT_EQ(ToString(SendFrame(b_.get(), 1, "never read")), "OK");
  a_.reset();
  EXPECT_EQ(ToString(ReceiveFrame(b_.get()).status()),
            "UNAVAILABLE: frame: the peer is gone after 0 of 12 header bytes");
}

TEST_F(FramesTest, TimeoutBeforeAFrameMayBeFollowedByAnotherTry) {
  EXPECT_EQ(ToString(ReceiveFrame(b_.get(), {.timeout = 1ms}).status()),
            "DEADLINE_EXCEEDED: frame: timeout of 1 ms after 0 of 12 header bytes");
  ASSERT_EQ(ToString(SendFrame(a_.get(), 1, "abc")), "OK");
  EXPECT_EQ(ReceiveFrame(b_.get(), {.timeout = 10s}).value().payload, "abc");
}

TEST_F(FramesTest, TimeoutInAFrameEndsTheSocket) {
  SendRaw(Header(7, 100) + "abc");
  EXPECT_EQ(ToString(ReceiveFrame(b_.get(), {.timeout = 1ms}).status()),
            "DEADLINE_EXCEEDED: frame 7: timeout of 1 ms after 3 of 100 bytes");
  EXPECT_EQ(ToString(ReceiveFrame(b_.get()).status()),
            "UNAVAILABLE: frame: the peer is gone after 0 of 12 header bytes");
  EXPECT_EQ(ToString(SendFrame(a_.get(), 8, "x")), "UNAVAILABLE: frame 8: the peer is gone");
}

TEST_F(FramesTest, RefusesAnOversizedFrameAndItsRest) {
  ASSERT_EQ(ToString(SendFrame(a_.get(), 7, Pattern(1000))), "OK");
  EXPECT_EQ(ToString(ReceiveFrame(b_.get(), {.payload_bytes_max = 999}).status()),
            "RESOURCE_EXHAUSTED: frame 7: expected at most 999 bytes, got 1000");
  EXPECT_EQ(ToString(ReceiveFrame(b_.get()).status()),
            "UNAVAILABLE: frame: the peer is gone after 0 of 12 header bytes");
}

// Lets the process have `bytes` of address space more than it has.
void LimitMemory(uint64_t bytes) {
  const std::string sizes = ReadFile("/proc/self/statm").value();  // The first one is in pages.
  const rlim_t limit = std::stoull(sizes) * static_cast<uint64_t>(::getpagesize()) + bytes;
  const rlimit both{limit, limit};
  AG_CHECK(::setrlimit(RLIMIT_AS, &both) == 0);
}

// The length says 4 GiB, but 3 bytes come: a process that may have 256 MiB more receives them.
TEST_F(FramesTest, AClaimedLengthAllocatesNothing) {
  SendRaw(Header(7, uint64_t{1} << 32) + "abc");
  a_.reset();
  const pid_t child = ::fork();
  if (child == 0) {
    LimitMemory(uint64_t{256} << 20);
    const std::string got = ToString(ReceiveFrame(b_.get()).status());
    ::_exit(got == "UNAVAILABLE: frame 7: the peer is gone after 3 of 4294967296 bytes" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(FramesTest, RefusesTooManyFileDescriptorsAndClosesThem) {
  int raw[kFrameFdsMax + 1];
  for (int& fd : raw) fd = b_.get();
  const std::string header = Header(7, 0);
  iovec part{const_cast<char*>(header.data()), header.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(raw))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(raw));
  std::copy(std::begin(raw), std::end(raw), reinterpret_cast<int*>(CMSG_DATA(rights)));
  ASSERT_EQ(::sendmsg(a_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(header.size()));
  const size_t open_before = ListDir("/proc/self/fd").value().size();
  EXPECT_EQ(ToString(ReceiveFrame(b_.get()).status()),
            "RESOURCE_EXHAUSTED: frame: file descriptors were lost: more than 16 came, or this "
            "process may have no more");
  EXPECT_EQ(ListDir("/proc/self/fd").value().size(), open_before);
}

TEST_F(FramesTest, SignalsDoNotInterrupt) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};  // Without SA_RESTART: system calls return EINTR.
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const std::string payload = Pattern(3'000'000);
  std::atomic<bool> done{false};
  std::thread sender([&] { EXPECT_EQ(ToString(SendFrame(a_.get(), 1, payload)), "OK"); });
  std::thread receiver([&] {
    EXPECT_TRUE(ReceiveFrame(b_.get(), {.timeout = 10s}).value().payload == payload);
    done = true;
  });
  while (!done) {
    ::pthread_kill(receiver.native_handle(), SIGUSR1);
    ::pthread_kill(sender.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  sender.join();
  receiver.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace ag
