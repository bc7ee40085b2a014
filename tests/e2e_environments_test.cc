// Workers that serve one device in two environments (two kinds of hosts under one name): each runs
// jobs of its own, and a job whose environment leaves is planned anew for the other one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/measuring_lock.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;

class Environments : public ::testing::Test {
 protected:
  // The device's spec, whose text is part of the environment.
  void WriteSpec(int launch_ns) {
    std::string spec = *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/small.spec");
    const std::string line = "launch_ns 100\n";
    spec.replace(spec.find(line), line.size(), fmt::format("launch_ns {}\n", launch_ns));
    ASSERT_TRUE(WriteFileAtomically(folder_.path() + "/own.spec", spec).ok());
  }
  std::string device() const { return "sim:" + folder_.path() + "/own.spec"; }

  // A coordinator with a worker of one environment.
  Cluster Start(const std::string& settle = "0", const std::vector<std::string>& more = {}) {
    WriteSpec(100);
    std::vector<std::string> flags = {
        "--other-environment", "0.3", "--reconnect", "0.2", "--settle", settle};
    flags.insert(flags.end(), more.begin(), more.end());
    return Cluster({.device = device(), .coordinator_flags = flags});
  }
  // A second worker, of another environment.
  Background StartOther(Cluster& cluster) {
    WriteSpec(300);
    Background worker({Program("autograph-worker"), "--server", cluster.address(), "--device",
                       device(), "--id", "other"},
                      folder_.path() + "/other.log", cluster.variables());
    EXPECT_TRUE(Eventually([&] { return Serves(cluster, "other"); })) << worker.Log();
    return worker;
  }
  static bool Serves(Cluster& cluster, const std::string& id) {
    const auto workers =
        json::parse(cluster.Cli({"workers", "list", "--json"}).out, nullptr, false);
    if (!workers.is_array()) return false;
    for (const json& worker : workers) {
      if (worker.value("worker_id", "") == id) return worker.value("health", "") == "SERVING";
    }
    return false;
  }
  static std::string EnvironmentOf(const json& job) {
    return job.value("result", json::object()).value("environment", "");
  }

  TempDir folder_ = *TempDir::Make("environments-");
};

TEST_F(Environments, AJobWhoseEnvironmentLeavesIsPlannedAnew) {
  Cluster cluster = Start();
  cluster.worker().Signal(SIGSTOP);  // The job comes as far as its first measurement.
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"});
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  const Background other = StartOther(cluster);
  cluster.KillWorker();
  const json ended = cluster.Watch(job);
  EXPECT_EQ(ended.value("state", ""), "SUCCEEDED") << ended.dump(2) << cluster.Logs();
  EXPECT_THAT(cluster.Logs(), ::testing::HasSubstr("planned anew for another one"));
  // Its answer is of the environment that is there: it is remembered, and a new request has it.
  const std::string again = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"});
  EXPECT_EQ(EnvironmentOf(cluster.Watch(again)), EnvironmentOf(ended));
}

TEST_F(Environments, AJobWhoseWorkerStandsStillIsPlannedAnew) {
  Cluster cluster = Start("0", {"--worker-expiry", "600", "--job-overrun", "0.5"});
  cluster.worker().Signal(SIGSTOP);
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--budget", "2s"});
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; })) << cluster.Logs();
  const Background other = StartOther(cluster);
  const json ended = cluster.Watch(job);
  EXPECT_EQ(ended.value("state", ""), "SUCCEEDED") << ended.dump(2) << cluster.Logs();
  EXPECT_THAT(cluster.Logs(), ::testing::HasSubstr("has had the job's work without a result"));
}

TEST_F(Environments, NoJobIsPlannedForAWorkerThatHasJustCome) {
  Cluster cluster = Start("5");
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const Background other = StartOther(cluster);
  std::vector<std::string> jobs;
  for (const char* model : {"tiny_cnn", "tiny_sru"}) {
    jobs.push_back(cluster.Submit(cluster.Zoo(model), {"--rounds", "1"}));
  }
  std::set<std::string> environments;
  for (const std::string& job : jobs) environments.insert(EnvironmentOf(cluster.Watch(job)));
  EXPECT_EQ(environments.size(), 1u) << cluster.Logs();
  EXPECT_FALSE(environments.contains(""));
}

TEST_F(Environments, EachRunsJobsOfItsOwn) {
  Cluster cluster = Start();
  const Background other = StartOther(cluster);
  std::vector<std::string> jobs;
  {
    const auto held = FileLock::Wait(cluster.measuring_lock(), FileLock::Mode::kExclusive);
    ASSERT_TRUE(held.ok());
    for (const char* model : {"tiny_cnn", "tiny_resnet"}) {
      jobs.push_back(cluster.Submit(cluster.Zoo(model), {"--rounds", "1"}));
    }
    for (const std::string& job : jobs) {
      EXPECT_TRUE(Eventually([&] {
        const json progress = cluster.Show(job).value("progress", json::object());
        return progress.value("waits_for", "").starts_with("the measuring lock");
      })) << job
          << " waits for the other one's device";
    }
  }
  std::set<std::string> environments;
  for (const std::string& job : jobs) environments.insert(EnvironmentOf(cluster.Watch(job)));
  EXPECT_EQ(environments.size(), 2u) << cluster.Logs();
  EXPECT_FALSE(environments.contains(""));
}

}  // namespace
}  // namespace ag
