#include "worker/agent_state_wire.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/build_facts.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using namespace std::chrono_literals;

v1::DesiredState Desired(uint64_t epoch, const std::string& attempt = "") {
  v1::DesiredState desired;
  desired.set_epoch(epoch);
  if (!attempt.empty()) desired.mutable_work()->set_attempt(attempt);
  return desired;
}

v1::ItemResult Entry(int index) {
  v1::ItemResult result;
  result.set_index(index);
  return result;
}

// Returns "sequence attempt index" of each result that would be sent.
std::vector<std::string> Results(AgentState& state) {
  std::vector<std::string> texts;
  const v1::WorkerState snapshot = state.Snapshot(false);
  for (const v1::ItemResult& r : snapshot.results()) {
    texts.push_back(fmt::format("{} {} {}", r.sequence(), r.attempt(), r.index()));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(AgentState, BeginsAsStarting) {
  AgentState state("w", "sim:small");
  v1::WorkerState expected;
  expected.set_worker_id("w");
  expected.set_device("sim:small");
  expected.set_health(v1::WorkerState::STARTING);
  expected.set_reason("starting");
  expected.set_version(std::string(Version()));
  EXPECT_EQ(state.Snapshot(true).DebugString(), expected.DebugString());
  EXPECT_EQ(ToString(state.health()), "FAILED_PRECONDITION: starting");
  EXPECT_FALSE(state.connected());
  EXPECT_FALSE(state.stopped());
}

TEST(AgentState, TellsHealthAndFacts) {
  AgentState state("w", "sim:small");
  state.SetFacts({"name small\n", "device=small", true});
  state.SetHealth(v1::WorkerState::SERVING, "");
  EXPECT_EQ(ToString(state.health()), "OK");
  const v1::WorkerState whole = state.Snapshot(true);
  EXPECT_EQ(whole.device_spec(), "name small\n");
  EXPECT_EQ(whole.environment(), "device=small");
  EXPECT_TRUE(whole.simulated());
  EXPECT_EQ(state.Snapshot(false).device_spec(), "");
  state.CountRestart();
  state.SetHealth(v1::WorkerState::NOT_SERVING, "executor died");
  EXPECT_EQ(ToString(state.health()), "UNAVAILABLE: executor died");
  EXPECT_EQ(state.Snapshot(false).executor_restarts(), 1);
}

// One answer tells both whether the device serves and whether it is still being opened: two would
// be of different moments.
TEST(AgentState, HealthIsNeverStartingAndUnavailable) {
  for (int i = 0; i < 200; ++i) {
    AgentState state("w", "sim:small");
    std::thread opens([&] { state.SetHealth(v1::WorkerState::SERVING, ""); });
    Status health = state.health();
    while (health.code() == StatusCode::kFailedPrecondition) health = state.health();
    EXPECT_EQ(ToString(health), "OK");
    opens.join();
  }
}

TEST(AgentState, ADrainingWorkerTakesNothingAndStaysSo) {
  AgentState state("w", "sim:small");
  state.SetHealth(v1::WorkerState::SERVING, "");
  v1::DesiredState desired;
  desired.mutable_work()->set_attempt("1");
  state.Desire(desired);
  ASSERT_TRUE(state.WaitForTask(Nanos{0}).has_value());
  state.Begin("1");
  state.Snapshot(false);
  state.Drain();
  EXPECT_TRUE(state.IsBusy());
  EXPECT_TRUE(state.WaitForChange(Nanos{0})) << "looking sends nothing and forgets nothing";
  state.SetHealth(v1::WorkerState::SERVING, "");  // An executor that was opened anew.
  EXPECT_EQ(state.Snapshot(false).health(), v1::WorkerState::DRAINING);
  state.End("1");
  EXPECT_FALSE(state.IsBusy());
  desired.mutable_work()->set_attempt("2");
  state.Desire(desired);
  EXPECT_FALSE(state.WaitForTask(Nanos{0}).has_value());
}

TEST(AgentState, ATaskIsWhatIsDesiredAndNotDone) {
  AgentState state("w", "d");
  EXPECT_FALSE(state.WaitForTask(0s).has_value()) << "nothing was desired";
  v1::DesiredState desired = Desired(3, "e3.1");
  desired.set_shared_blob_dir("/blobs");
  desired.set_shared_blob_proof("proof");
  state.Desire(desired);
  EXPECT_TRUE(state.connected());
  const auto task = state.WaitForTask(0s);
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->item.attempt(), "e3.1");
  EXPECT_EQ(task->epoch, 3u);
  EXPECT_EQ(task->blob_dir, "/blobs");
  EXPECT_EQ(task->blob_proof, "proof");
  EXPECT_TRUE(state.StillWanted("e3.1"));
  EXPECT_FALSE(state.StillWanted("e3.0"));
  state.Begin("e3.1");
  EXPECT_EQ(state.Snapshot(false).attempt(), "e3.1");
  state.End("e3.1");
  EXPECT_EQ(state.Snapshot(false).attempt(), "");
  EXPECT_FALSE(state.WaitForTask(0s).has_value()) << "it has ended";
  state.Desire(Desired(3, "e3.2"));
  EXPECT_TRUE(state.WaitForTask(0s).has_value());
  EXPECT_FALSE(state.StillWanted("e3.1"));
}

TEST(AgentState, DrainAndStopTakeNoTask) {
  AgentState state("w", "d");
  v1::DesiredState desired = Desired(1, "e1.1");
  desired.set_drain(true);
  state.Desire(desired);
  EXPECT_FALSE(state.WaitForTask(0s).has_value());
  state.Desire(Desired(1, "e1.1"));
  EXPECT_TRUE(state.WaitForTask(0s).has_value());
  state.Stop();
  EXPECT_FALSE(state.WaitForTask(60s).has_value());
  EXPECT_FALSE(state.StillWanted("e1.1"));
  EXPECT_TRUE(state.stopped());
  EXPECT_EQ(ToString(state.health()), "UNAVAILABLE: stopping");
}

TEST(AgentState, ResultsAreSentUntilAcknowledged) {
  AgentState state("w", "d");
  state.Desire(Desired(3, "e3.1"));
  const auto task = *state.WaitForTask(0s);
  for (const int index : {0, 1, -1}) state.AddResult(task, Entry(index));
  EXPECT_EQ(Results(state), (Texts{"1 e3.1 0", "2 e3.1 1", "3 e3.1 -1"}));
  v1::DesiredState desired = Desired(3);
  desired.add_acknowledged(2);
  desired.add_acknowledged(77);
  state.Desire(desired);
  EXPECT_EQ(Results(state), (Texts{"1 e3.1 0", "3 e3.1 -1"}));
  EXPECT_EQ(state.Snapshot(false).results(0).epoch(), 3u);
}

TEST(AgentState, WhatDoesNotFitAMessageFollows) {
  AgentState state("w", "d");
  state.Desire(Desired(3, "e3.1"));
  const auto task = *state.WaitForTask(0s);
  for (int i = 0; i < 3; ++i) {
    v1::ItemResult large = Entry(i);
    large.set_message(std::string(1'500'000, 'x'));
    state.AddResult(task, large);
  }
  EXPECT_EQ(Results(state), (Texts{"1 e3.1 0"}));
  EXPECT_FALSE(state.WaitForChange(0s));
  v1::DesiredState desired = Desired(3);
  desired.add_acknowledged(1);
  state.Desire(desired);
  EXPECT_TRUE(state.WaitForChange(0s)) << "there is room for the next";
  EXPECT_EQ(Results(state), (Texts{"2 e3.1 1"}));
}

// A coordinator that was started anew asks again and gets no results of the old epoch.
TEST(AgentState, AnotherEpochForgetsResults) {
  AgentState state("w", "d");
  state.Desire(Desired(3, "e3.1"));
  const auto old = *state.WaitForTask(0s);
  state.AddResult(old, Entry(0));
  state.End("e3.1");
  state.Desire(Desired(4, "e3.1"));
  EXPECT_EQ(Results(state), Texts());
  EXPECT_EQ(state.Snapshot(false).epoch(), 4u);
  EXPECT_TRUE(state.WaitForTask(0s).has_value()) << "even an attempt of the same name is new";
  state.AddResult(old, Entry(1));
  EXPECT_EQ(Results(state), Texts()) << "late results of the old life are dropped";
}

TEST(AgentState, EveryChangeWakesTheSender) {
  AgentState state("w", "d");
  state.Desire(Desired(1, "e1.1"));
  const auto task = *state.WaitForTask(0s);
  const struct {
    const char* name;
    std::function<void()> change;
    bool wakes;
  } kCases[] = {
      {"begin", [&] { state.Begin("e1.1"); }, true},
      {"result", [&] { state.AddResult(task, Entry(0)); }, true},
      {"a wait", [&] { state.SetWaitsFor("the lock"); }, true},
      {"the same wait", [&] { state.SetWaitsFor("the lock"); }, false},
      {"end", [&] { state.End("e1.1"); }, true},
      {"health", [&] { state.SetHealth(v1::WorkerState::SERVING, ""); }, true},
      {"facts", [&] { state.SetFacts({}); }, true},
      {"nudge", [&] { state.Nudge(); }, true},
      {"a question", [&] { (void)state.health(); }, false},
      {"a desired state", [&] { state.Desire(Desired(1)); }, false},
  };
  for (const auto& c : kCases) {
    state.Snapshot(false);
    ASSERT_FALSE(state.WaitForChange(0s)) << c.name;
    c.change();
    EXPECT_EQ(state.WaitForChange(0s), c.wakes) << c.name;
  }
}

TEST(AgentState, AWaitEndsWithItsAttempt) {
  AgentState state("w", "d");
  state.Desire(Desired(1, "e1.1"));
  state.Begin("e1.1");
  state.SetWaitsFor("the lock");
  EXPECT_EQ(state.Snapshot(false).waits_for(), "the lock");
  state.End("e1.1");
  EXPECT_EQ(state.Snapshot(false).waits_for(), "");
}

TEST(AgentState, WaitingThreadsAreWoken) {
  AgentState state("w", "d");
  state.Snapshot(false);
  std::thread sender([&] { EXPECT_TRUE(state.WaitForChange(60s)); });
  state.Nudge();
  sender.join();
  std::thread worker([&] { EXPECT_TRUE(state.WaitForTask(60s).has_value()); });
  state.Desire(Desired(1, "e1.1"));
  worker.join();
}

}  // namespace
}  // namespace ag
