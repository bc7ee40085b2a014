#include "worker/executor_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "autograph/v1/worker.pb.h"
#include "base/file.h"
#include "device/open_device.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

constexpr std::string_view kTanh = "input x f32[8]; output y = tanh(x)";

class ExecutorProcessTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<ExecutorProcess>> Start(const std::string& device,
                                                   const std::string& program = "",
                                                   Nanos open_time_max = 60s) {
    return ExecutorProcess::Start({.open = {device, folder_.path() + "/blobs"},
                                   .program = program,
                                   .open_time_max = open_time_max,
                                   .poll = 1ms,
                                   .stop_grace = 20ms},
                                  RealClock());
  }

  // Returns an executor for the spec "small" with this line added.
  std::unique_ptr<ExecutorProcess> Open(std::string_view line) {
    auto executor = Start(testing::SimDevice(folder_.path(), line));
    AG_CHECK(executor.ok());
    return *std::move(executor);
  }

  static std::string Groups(const std::vector<std::string_view>& graphs) {
    const auto device = OpenDevice("sim:small");
    v1::WorkItem item;
    item.set_attempt("e1.1");
    for (const std::string_view text : graphs) {
      item.mutable_groups()->add_problems(testing::Problem(text, (*device)->spec()));
    }
    return item.SerializeAsString();
  }

  // Runs the item; seen_ has "index message" of each result.
  ExecutorProcess::End Run(ExecutorProcess& executor, const std::string& item,
                           Nanos no_progress_max = 60s) {
    seen_.clear();
    return executor.Run(
        item, no_progress_max,
        [this](const std::string& bytes) {
          v1::ItemResult result;
          AG_CHECK(result.ParseFromString(bytes));
          seen_.push_back(fmt::format("{} {}", result.index(), result.message()));
          return result.index() < 0;
        },
        [] { return false; });
  }

  // Returns a program that is a shell script.
  std::string Script(const std::string& text) {
    const std::string path = folder_.path() + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  const TempDir folder_ = *TempDir::Make("executor-process-test");
  std::vector<std::string> seen_;
};

using Seen = std::vector<std::string>;

// Returns the text of an end; the pid in the message is the child's.
std::string Text(const ExecutorProcess::End& end, pid_t pid) {
  std::string text =
      fmt::format("alive={} index={} {}", end.alive, end.index, ToString(end.status));
  const std::string number = std::to_string(pid);
  if (const size_t at = text.find(number); at != std::string::npos) {
    text.replace(at, number.size(), "PID");
  }
  return text;
}

TEST_F(ExecutorProcessTest, SaysWhatItsDeviceIs) {
  const auto executor = Start("sim:small");
  ASSERT_EQ(ToString(executor.status()), "OK");
  const auto device = OpenDevice("sim:small");
  const DeviceFacts& facts = (*executor)->facts();
  EXPECT_EQ(facts.spec, FormatDeviceSpec((*device)->spec()));
  EXPECT_EQ(facts.environment, (*device)->environment());
  EXPECT_TRUE(facts.simulated);
}

TEST_F(ExecutorProcessTest, SaysWhyItDoesNotOpen) {
  const std::string no_program = folder_.path() + "/none";
  const struct {
    const char* name;
    std::string device, program, message;
  } kCases[] = {
      {"device word", "gpu", "",
       "INVALID_ARGUMENT: device \"gpu\": expected one of cpu, cpu:<cores>, cuda:<ordinal>, "
       "sim:<spec>"},
      {"no such spec", "sim:" + folder_.path() + "/none.spec", "",
       "NOT_FOUND: read " + folder_.path() + "/none.spec: No such file or directory"},
      {"no program", "sim:small", no_program,
       "NOT_FOUND: start " + no_program + ": No such file or directory"},
      {"leaves at once", "sim:small", "/bin/true",
       "UNAVAILABLE: open executor: executor died: it left by itself"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(Start(c.device, c.program).status()), c.message) << c.name;
  }
}

TEST_F(ExecutorProcessTest, AChildThatNeverOpensIsKilled) {
  const auto executor = Start("sim:small", Script("exec sleep 1000"), 50ms);
  EXPECT_EQ(executor.status().code(), StatusCode::kDeadlineExceeded) << executor.status();
}

TEST_F(ExecutorProcessTest, StreamsResultsAndIsKept) {
  const auto executor = Open("");
  for (int i = 0; i < 2; ++i) {
    const auto end = Run(*executor, Groups({testing::kRelu, kTanh}));
    EXPECT_EQ(Text(end, executor->pid()), "alive=true index=-1 OK");
    EXPECT_EQ(seen_, (Seen{"0 ", "1 ", "-1 "}));
  }
}

TEST_F(ExecutorProcessTest, SaysWhatItWaitsFor) {
  const std::string lock = folder_.path() + "/measuring.lock";
  ::setenv("AUTOGRAPH_MEASURING_LOCK", lock.c_str(), 1);
  std::optional<FileLock> held = *FileLock::Wait(lock, FileLock::Mode::kShared);
  const auto executor = *Start("cpu");
  ::unsetenv("AUTOGRAPH_MEASURING_LOCK");
  EXPECT_EQ(executor->WaitsFor(), "");
  std::string waits_for;
  const auto end = executor->Run(
      Groups({"input x f32[4]; output y = relu(x)"}), 60s,
      [](const std::string& bytes) {
        v1::ItemResult result;
        return result.ParseFromString(bytes) && result.index() < 0;
      },
      [&] {
        if (!executor->WaitsFor().empty()) waits_for = executor->WaitsFor();
        if (!waits_for.empty()) held.reset();
        return false;
      });
  EXPECT_TRUE(end.alive) << ToString(end.status);
  EXPECT_EQ(waits_for, fmt::format("the measuring lock, held by process {}", ::getpid()));
  EXPECT_EQ(executor->WaitsFor(), "");
}

TEST_F(ExecutorProcessTest, ABadItemIsAResult) {
  const auto executor = Open("");
  EXPECT_TRUE(Run(*executor, "garbage").alive);
  EXPECT_EQ(seen_, Seen{"-1 work item: not a WorkItem message"});
  EXPECT_TRUE(Run(*executor, Groups({testing::kRelu})).alive);
  EXPECT_EQ(seen_, (Seen{"0 ", "-1 "}));
}

// The result of each device fault in a batch whose second group has the fault.
TEST_F(ExecutorProcessTest, NamesTheEntryThatTookItDown) {
  const struct {
    const char* line;
    const char* end;
    Seen seen;
  } kCases[] = {
      {"fault crash Softmax",
       "alive=false index=1 UNAVAILABLE: executor died: child PID: killed by SIGABRT",
       {"0 "}},
      {"fault hang Softmax",
       "alive=false index=1 DEADLINE_EXCEEDED: no progress for 2.0 s",
       {"0 "}},
      {"fault sticky Softmax",
       "alive=false index=1 UNAVAILABLE: device lost: small: sticky error, open the device anew",
       {"0 "}},
      {"fault wrong Softmax",
       "alive=true index=-1 OK",
       {"0 ",
        "1 kernel sim_a of a softmax group differs from the reference by 2.72 of the largest value",
        "2 ", "-1 "}},
  };
  for (const auto& c : kCases) {
    const auto executor = Open(c.line);
    const pid_t pid = executor->pid();
    const auto end = Run(*executor, Groups({testing::kRelu, testing::kSoftmax, kTanh}), 2s);
    EXPECT_EQ(Text(end, pid), c.end) << c.line;
    EXPECT_EQ(seen_, c.seen) << c.line;
    EXPECT_EQ(::kill(pid, 0) == 0, end.alive) << c.line;
  }
}

TEST_F(ExecutorProcessTest, AKilledOneIsNoticed) {
  const auto executor = Open("");
  ::kill(executor->pid(), SIGKILL);
  const auto end = Run(*executor, Groups({testing::kRelu}));
  EXPECT_EQ(Text(end, executor->pid()),
            "alive=false index=-1 UNAVAILABLE: executor died: child PID: killed by SIGKILL");
}

TEST_F(ExecutorProcessTest, OneThatDiesWithoutWorkIsNoticedAtALook) {
  const auto executor = Open("");
  EXPECT_EQ(ToString(executor->Look()), "OK");
  EXPECT_TRUE(Run(*executor, Groups({testing::kRelu})).alive) << "a look takes nothing away";
  const pid_t pid = executor->pid();
  ::kill(pid, SIGKILL);
  Status looked;
  for (int i = 0; i < 2000 && looked.ok(); ++i) {
    looked = executor->Look();
    if (looked.ok()) RealClock().SleepFor(5ms);
  }
  EXPECT_EQ(ToString(looked),
            fmt::format("UNAVAILABLE: executor died: child {}: killed by SIGKILL", pid));
}

TEST_F(ExecutorProcessTest, StopsWhatNobodyWants) {
  const auto executor = Open("fault hang Softmax");
  const auto end = executor->Run(
      Groups({testing::kSoftmax}), 60s, [](const std::string&) { return false; },
      [] { return true; });
  EXPECT_FALSE(end.alive);
  EXPECT_EQ(ToString(end.status), "CANCELLED: stopped");
  EXPECT_EQ(::kill(executor->pid(), 0), -1);
}

TEST_F(ExecutorProcessTest, AnItemThatEndsWithinTheGraceKeepsItsExecutor) {
  const auto executor = Start("sim:small");
  ASSERT_EQ(ToString(executor.status()), "OK");
  // The item is unwanted and wanted again in turn: the grace begins anew each time and never ends.
  bool unwanted = false;
  const auto end = (*executor)->Run(
      Groups({testing::kRelu}), 60s,
      [](const std::string& bytes) {
        v1::ItemResult result;
        return result.ParseFromString(bytes) && result.index() < 0;
      },
      [&] { return unwanted = !unwanted; });
  EXPECT_TRUE(end.alive) << end.status;
}

TEST_F(ExecutorProcessTest, DiesWithItsHandle) {
  auto executor = Open("");
  const pid_t pid = executor->pid();
  ASSERT_EQ(::kill(pid, 0), 0);
  executor.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace ag
