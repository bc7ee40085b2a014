#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/frames.h"
#include "base/text.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

// The roles that this test program plays as its own child.

int Echo(int socket) {
  for (;;) {
    const StatusOr<Frame> frame = ReceiveFrame(socket);
    if (!frame.ok()) return frame.status().code() == StatusCode::kUnavailable ? 0 : 1;
    if (!SendFrame(socket, frame->type, frame->payload).ok()) return 1;
  }
}

int ExitThree(int) { return 3; }
int ExitMinusOne(int) { return -1; }

int Abort(int) {
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

int Hang(int) {
  for (;;) ::pause();
}

// Sends the facts about its start that a child can see, one fact per line.
int Facts(int socket) {
  std::vector<std::string> fds = ListDir("/proc/self/fd").value();
  fds.pop_back();  // The descriptor of the listing itself.
  struct sigaction pipe {};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  const char* const variable = std::getenv("AG_TEST");
  const std::string facts = fmt::format(
      "fds {}\ngroup {}\npipe {}\nblocked {}\nstdin {}\nsocket {}\nAG_TEST {}\nPATH {}",
      Join(fds, " "), ::getpgrp() == ::getpid() ? "own" : "shared",
      pipe.sa_handler == SIG_DFL ? "default" : "changed",
      ::sigismember(&blocked, SIGTERM) ? "yes" : "no",
      std::filesystem::read_symlink("/proc/self/fd/0").string(),
      ::fcntl(socket, F_GETFD) == FD_CLOEXEC ? "cloexec" : "inherited",
      variable != nullptr ? variable : "unset", std::getenv("PATH") != nullptr ? "set" : "unset");
  return SendFrame(socket, 0, facts).ok() ? 0 : 1;
}

// Starts a grandchild that hangs with the inherited descriptor, reports it, and hangs too.
int Parent(int socket) {
  const Frame frame = ReceiveFrame(socket).value();
  const ChildProcess child = SpawnRole("hold").value();
  if (!SendFrame(child.socket(), 0, "", {frame.fds[0].get()}).ok()) return 1;
  if (!ReceiveFrame(child.socket()).ok()) return 1;
  if (!SendFrame(socket, 0, "ready").ok()) return 1;
  return Hang(socket);
}

int Hold(int socket) {
  const Frame frame = ReceiveFrame(socket).value();
  if (!SendFrame(socket, 0, "ready").ok()) return 1;
  return Hang(socket);
}

TEST(ProcessTest, TalksAndEnds) {
  ChildProcess child = SpawnRole("echo").value();
  EXPECT_EQ(ToString(SendFrame(child.socket(), 5, "hello")), "OK");
  const Frame frame = ReceiveFrame(child.socket(), {.timeout = 10s}).value();
  EXPECT_EQ(frame.type, 5u);
  EXPECT_EQ(frame.payload, "hello");
  EXPECT_EQ(ToString(child.WaitFor(0ns)),
            fmt::format("DEADLINE_EXCEEDED: child {}: still running after 0 ms", child.pid()));
  ::shutdown(child.socket(), SHUT_RDWR);
  EXPECT_EQ(ToString(child.WaitFor(10s)), "OK");
}

TEST(ProcessTest, SaysHowAChildEnded) {
  const struct {
    const char* role;
    const char* expected;
  } cases[] = {
      {"exit-three", "INTERNAL: child {}: exit code 3"},
      {"exit-minus-one", "INTERNAL: child {}: exit code 255"},
      {"abort", "UNAVAILABLE: child {}: killed by SIGABRT"},
      {"no-such-role", "INTERNAL: child {}: exit code 2"},
  };
  for (const auto& c : cases) {
    ChildProcess child = SpawnRole(c.role).value();
    const std::string expected = fmt::format(fmt::runtime(c.expected), child.pid());
    EXPECT_EQ(ToString(child.Wait()), expected) << c.role;
  }
  ChildProcess killed = SpawnRole("hang").value();
  killed.Kill();
  EXPECT_EQ(ToString(killed.Wait()),
            fmt::format("UNAVAILABLE: child {}: killed by SIGKILL", killed.pid()));
}

// A child that was killed for another reason gets no hint about the limit.
TEST(ProcessTest, SaysThatProcessorTimeIsLimited) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_CPU, &before), 0);
  const auto killed_under = [&](rlim_t seconds) {
    const rlimit low{.rlim_cur = seconds, .rlim_max = before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_CPU, &low), 0);
    ChildProcess killed = SpawnRole("hang").value();
    killed.Kill();
    const std::string text = ToString(killed.Wait());
    return text.substr(text.find(" killed"));
  };
  EXPECT_EQ(killed_under(1000), " killed by SIGKILL");
  // Below this limit the parent itself would end: it has used less than a second so far.
  EXPECT_EQ(killed_under(2),
            " killed by SIGKILL (a process may use 2 s of processor time here: ulimit -t)");
  EXPECT_EQ(::setrlimit(RLIMIT_CPU, &before), 0);
}

TEST(ProcessTest, ChildStartsClean) {
  const Fd leaky(::open("/dev/null", O_RDONLY));  // Without close-on-exec, as some libraries do.
  sigset_t term;
  sigset_t before;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  ::setenv("AG_TEST", "ours", 1);
  ChildProcess child = SpawnRole("facts", {"AG_TEST=theirs"}).value();
  ::unsetenv("AG_TEST");
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(ReceiveFrame(child.socket(), {.timeout = 10s}).value().payload,
            "fds 0 1 2 3\ngroup own\npipe default\nblocked no\nstdin /dev/null\nsocket cloexec\n"
            "AG_TEST theirs\nPATH set");
  EXPECT_EQ(ToString(child.Wait()), "OK");
}

TEST(ProcessTest, DestructionAndAssignmentKill) {
  ChildProcess first = SpawnRole("hang").value();
  const pid_t pid = first.pid();
  first = SpawnRole("hang").value();
  EXPECT_EQ(::kill(pid, 0), -1);  // Reaped: no process has this number.
  const pid_t second_pid = first.pid();
  {
    const ChildProcess second = std::move(first);
    EXPECT_EQ(second.pid(), second_pid);
  }
  EXPECT_EQ(::kill(second_pid, 0), -1);
}

// The descriptor closes when the grandchild, in a process group of its own, is dead.
TEST(ProcessTest, ChildrenDieWithTheirParent) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  ChildProcess parent = SpawnRole("parent").value();
  ASSERT_EQ(ToString(SendFrame(parent.socket(), 0, "", {theirs.get()})), "OK");
  theirs.reset();
  ASSERT_EQ(ReceiveFrame(parent.socket(), {.timeout = 10s}).value().payload, "ready");
  parent.Kill();
  EXPECT_EQ(ToString(ReceiveFrame(ours.get(), {.timeout = 10s}).status()),
            "UNAVAILABLE: frame: the peer is gone after 0 of 12 header bytes");
}

TEST(ProcessTest, AnOrphanExitsAtOnce) {
  ChildProcess child =
      ChildProcess::Spawn({.program = SelfExe(), .args = {"--child=hang", "--parent=2147483647"}})
          .value();
  EXPECT_EQ(ToString(child.Wait()), fmt::format("INTERNAL: child {}: exit code 1", child.pid()));
}

TEST(ProcessTest, SpawnFailureNamesTheProgram) {
  EXPECT_EQ(ToString(ChildProcess::Spawn({.program = "/no/such/program"}).status()),
            "NOT_FOUND: start /no/such/program: No such file or directory");
  EXPECT_EQ(ToString(ChildProcess::Spawn({.program = "/dev/null"}).status()),
            "FAILED_PRECONDITION: start /dev/null: Permission denied");
}

TEST(ProcessTest, RunChildRoleRefusesWhatNobodySpawned) {
  const struct {
    std::vector<const char*> args;
    int code;
    const char* expected;
  } cases[] = {
      {{"prog"}, -1, ""},
      {{"prog", "optimize", "--child=echo"}, -1, ""},
      {{"prog", "--child=nobody", "--parent=1"}, 2, "--child: this program has no role 'nobody'\n"},
      {{"prog", "--child=echo"},
       2,
       "--child is how AutoGraph starts its own processes, not an option for people\n"},
      {{"prog", "--child=echo", "--parent=x"},
       2,
       "--child is how AutoGraph starts its own processes, not an option for people\n"},
  };
  for (const auto& c : cases) {
    testing::internal::CaptureStderr();
    const int code =
        RunChildRole(static_cast<int>(c.args.size()), const_cast<char**>(c.args.data()));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), c.expected);
    EXPECT_EQ(code, c.code);
  }
}

TEST(ProcessTest, SelfExeIsThisProgram) {
  EXPECT_TRUE(SelfExe().ends_with("/base_test")) << SelfExe();
}

}  // namespace
}  // namespace ag

// A test program whose tests spawn roles has its own main: roles first, then the tests.
int main(int argc, char** argv) {
  ag::RegisterChildRole("echo", ag::Echo);
  ag::RegisterChildRole("exit-three", ag::ExitThree);
  ag::RegisterChildRole("exit-minus-one", ag::ExitMinusOne);
  ag::RegisterChildRole("abort", ag::Abort);
  ag::RegisterChildRole("hang", ag::Hang);
  ag::RegisterChildRole("facts", ag::Facts);
  ag::RegisterChildRole("parent", ag::Parent);
  ag::RegisterChildRole("hold", ag::Hold);
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
