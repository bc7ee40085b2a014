// Models that cost a lot to optimize, with real processes: the coordinator stays small, a cancelled
// job ends at once, and a job that goes beyond its limits ends with a message while others run on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/onnx/wire.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

OnnxModel OneInput() {
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  return model;
}

std::string SumModel(int inputs) {
  OnnxModel model = OneInput();
  model.nodes = {{.op_type = "Sum", .outputs = {"y"}}};
  model.nodes[0].inputs.assign(static_cast<size_t>(inputs), "x");
  return *SerializeModel(model);
}

std::string AddsModel(int adds) {
  OnnxModel model = OneInput();
  std::vector<std::string> names = {"x"};
  for (int i = 1; i < adds; ++i) names.push_back("t" + std::to_string(i));
  names.push_back("y");
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    model.nodes.push_back({.op_type = "Add", .inputs = {names[i], "x"}, .outputs = {names[i + 1]}});
  }
  return *SerializeModel(model);
}

// Branches of two operators beside each other, and the sum of them all.
std::string BranchesModel(int branches) {
  OnnxModel model = OneInput();
  OnnxNode sum = {.op_type = "Sum", .outputs = {"y"}};
  for (int i = 0; i < branches; ++i) {
    const std::string a = fmt::format("a{}", i), b = fmt::format("b{}", i);
    model.nodes.push_back({.op_type = "Relu", .inputs = {"x"}, .outputs = {a}});
    model.nodes.push_back({.op_type = "Add", .inputs = {a, "x"}, .outputs = {b}});
    sum.inputs.push_back(b);
  }
  model.nodes.push_back(sum);
  return *SerializeModel(model);
}

// The most memory that the process has had so far, in MB.
double PeakMb(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1000;
  }
  return -1;
}

std::string ErrorOf(const json& job) {
  return job.value("error", json::object()).value("message", "");
}

class JobLimits : public ::testing::Test {
 protected:
  std::string Write(Cluster& cluster, const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(cluster.path(name), bytes).ok());
    return cluster.path(name);
  }
  bool IsRunning(Cluster& cluster, const std::string& job) {
    return !ChildrenOf(cluster.coordinator().pid(), "--child=job").empty() &&
           cluster.StateOf(job) != "QUEUED";
  }
};

TEST_F(JobLimits, AMillionInputsLeaveTheCoordinatorSmallAndOtherJobsAlone) {
  Cluster cluster(
      {.coordinator_flags = {"--per-device", "4", "--job-overrun", "2", "--job-memory", "2000"}});
  const std::string large =
      cluster.Submit(Write(cluster, "sum.onnx", SumModel(1'000'000)), {"--budget", "5s"});
  std::vector<std::string> others;
  for (const char* model : {"tiny_cnn", "tiny_nasnet", "tiny_resnet"}) {
    others.push_back(cluster.Submit(cluster.Zoo(model), {"--rounds", "1", "--budget", "5s"}));
  }
  for (const std::string& other : others) {
    EXPECT_EQ(cluster.Watch(other).value("state", ""), "SUCCEEDED") << cluster.Logs();
  }
  const json ended = cluster.Watch(large);
  EXPECT_TRUE(ended.contains("result") || !ErrorOf(ended).empty()) << ended.dump();
  RecordProperty("end", ended.value("state", "") + ": " + ErrorOf(ended));
  EXPECT_LT(PeakMb(cluster.coordinator().pid()), 100);
}

TEST_F(JobLimits, TwentyThousandAddsAreCancelledWithinASecond) {
  Cluster cluster;
  const std::string job =
      cluster.Submit(Write(cluster, "adds.onnx", AddsModel(20'000)), {"--budget", "10m"});
  ASSERT_TRUE(Eventually([&] { return IsRunning(cluster, job); })) << cluster.Logs();
  Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; },
             2);  // In the clean-up or behind it.
  const auto begin = steady_clock::now();
  EXPECT_EQ(cluster.Cli({"jobs", "cancel", job}).code, 0);
  EXPECT_TRUE(Eventually([&] { return cluster.StateOf(job) == "CANCELLED"; }, 5));
  EXPECT_LT(std::chrono::duration<double>(steady_clock::now() - begin).count(), 1);
  EXPECT_TRUE(ChildrenOf(cluster.coordinator().pid(), "--child=job").empty());
  EXPECT_LT(PeakMb(cluster.coordinator().pid()), 100);
}

TEST_F(JobLimits, GraphsOfOddFormsAreAnsweredByBothSearches) {
  Cluster cluster({.coordinator_flags = {"--per-device", "2"}});
  const std::string models[] = {Write(cluster, "one.onnx", AddsModel(1)),
                                Write(cluster, "deep.onnx", AddsModel(3'000)),
                                Write(cluster, "wide.onnx", BranchesModel(500))};
  std::vector<std::string> jobs;
  for (const std::string& model : models) {
    for (const char* search : {"ours", "paper"}) {
      jobs.push_back(cluster.Submit(model, {"--search", search, "--budget", "6s"}));
    }
  }
  for (const std::string& job : jobs) {
    const json ended = cluster.Watch(job);
    EXPECT_EQ(ended.value("state", ""), "SUCCEEDED") << ended.dump() << cluster.Logs();
  }
}

TEST_F(JobLimits, FiveHundredBranchesAreCancelledWithinASecond) {
  Cluster cluster;
  for (const char* search : {"ours", "paper"}) {
    const std::string job = cluster.Submit(Write(cluster, "wide.onnx", BranchesModel(500)),
                                           {"--search", search, "--budget", "10m"});
    ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == "SEARCHING"; }));
    const auto begin = steady_clock::now();
    EXPECT_EQ(cluster.Cli({"jobs", "cancel", job}).code, 0);
    EXPECT_TRUE(Eventually([&] { return cluster.StateOf(job) == "CANCELLED"; }, 5));
    EXPECT_LT(std::chrono::duration<double>(steady_clock::now() - begin).count(), 1) << search;
  }
}

TEST_F(JobLimits, AJobBeyondItsBudgetOrItsMemoryEndsWithAMessage) {
  {
    Cluster cluster({.coordinator_flags = {"--job-overrun", "0.5"}});
    const json late = cluster.Watch(
        cluster.Submit(Write(cluster, "adds.onnx", AddsModel(20'000)), {"--budget", "1s"}));
    EXPECT_EQ(late.value("state", ""), "FAILED");
    EXPECT_THAT(ErrorOf(late), HasSubstr("more than the budget of 1.0 s and 0.5 s"));
  }
  Cluster cluster({.coordinator_flags = {"--job-memory", "48"}});
  const json large = cluster.Watch(
      cluster.Submit(Write(cluster, "adds.onnx", AddsModel(20'000)), {"--budget", "1m"}));
  EXPECT_EQ(large.value("state", ""), "FAILED");
  EXPECT_EQ(ErrorOf(large), "the job's process reached its memory limit of 48 MiB");
}

TEST_F(JobLimits, ACrashOfAJobsProcessFailsThatJobOnly) {
  Cluster cluster;
  const std::string job =
      cluster.Submit(Write(cluster, "adds.onnx", AddsModel(20'000)), {"--budget", "10m"});
  ASSERT_TRUE(Eventually([&] { return IsRunning(cluster, job); })) << cluster.Logs();
  kill(ChildrenOf(cluster.coordinator().pid(), "--child=job").at(0), SIGSEGV);
  const json crashed = cluster.Watch(job);
  EXPECT_EQ(crashed.value("state", ""), "FAILED");
  EXPECT_THAT(ErrorOf(crashed), HasSubstr("the job's process crashed: child "));
  EXPECT_THAT(ErrorOf(crashed), HasSubstr("killed by SIGSEGV"));
  const json next = cluster.Watch(cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"}));
  EXPECT_EQ(next.value("state", ""), "SUCCEEDED") << cluster.Logs();
}

}  // namespace
}  // namespace ag
