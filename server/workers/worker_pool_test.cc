#include "server/workers/worker_pool.h"

#include <gtest/gtest.h>

#include "server/workers/dispatcher.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kEpoch = 3;

// A pool with workers whose reports the test writes.
struct PoolBench {
  WorkerPool pool{kEpoch, {}};
  Nanos now{1'000'000'000'000};
  std::map<std::string, WorkerReport> states;
  std::map<std::string, uint64_t> sessions;
  uint64_t next_session = 1;
  uint64_t next_sequence = 1;

  Status Connect(const std::string& id) {
    const uint64_t session = next_session++;
    const Status status = pool.Connect(now, id, session);
    if (!status.ok()) return status;
    sessions[id] = session;
    WorkerReport& state = states[id];
    state.worker_id = id;
    state.device = "cpu";
    state.environment = "e";
    state.device_spec = "spec";
    state.health = WorkerHealth::kServing;
    Say(id);
    return status;
  }
  void Say(const std::string& id) { pool.Report(now, sessions[id], states[id]); }
  Desired Hear(const std::string& id) { return pool.TakeDesired(id); }
  // Takes the desired work and reports it.
  std::string Begin(const std::string& id) {
    const Desired desired = Hear(id);
    if (!desired.lease.has_value()) return "";
    states[id].attempt = desired.lease->attempt;
    Say(id);
    return desired.lease->attempt;
  }
  uint64_t Send(const std::string& id, const std::string& attempt, EntryResult entry,
                uint64_t epoch = kEpoch) {
    WorkerReport report = states[id];
    for (Latency* latency : {&entry.measurement.latency, &entry.timing.latency}) {
      if (latency->median_ns == 0) *latency = {100, 90, 110};
    }
    report.results.push_back({next_sequence, epoch, attempt, std::move(entry)});
    pool.Report(now, sessions[id], report);
    return next_sequence++;
  }
  void End(const std::string& id, const std::string& attempt, Status status = OkStatus()) {
    states[id].attempt.clear();
    Send(id, attempt, {.index = -1, .status = std::move(status)});
  }
  void Crash(const std::string& id, const std::string& attempt, int index) {
    states[id].attempt.clear();
    Send(id, attempt,
         {.index = index,
          .status = Err(StatusCode::kUnavailable, "SIGSEGV"),
          .executor_died = true});
  }
  uint64_t Submit(int groups) {
    v1::WorkItem work;
    for (int i = 0; i < groups; ++i)
      work.mutable_groups()->add_problems(fmt::format("problem {}", i));
    return Submit(std::move(work));
  }
  uint64_t SubmitPlans(int candidates) {
    v1::WorkItem work;
    for (int i = 0; i < candidates; ++i) work.mutable_plans()->add_candidates();
    return Submit(std::move(work));
  }
  uint64_t Submit(v1::WorkItem work) {
    return pool.Submit(now, {"cpu", "e", std::make_shared<const v1::WorkItem>(std::move(work))});
  }
  // Lets time pass in which every worker says that it lives, and nothing new.
  void Pass(Nanos time) {
    for (const Nanos end = now + time; now < end; now += 1s) {
      for (const auto& [id, session] : sessions) Say(id);
      pool.Tick(now);
    }
  }
  std::vector<std::string> Leased(const std::string& id) {
    const Desired desired = Hear(id);
    if (!desired.lease.has_value() || desired.lease->work == nullptr) return {};
    const auto& problems = desired.lease->work->groups().problems();
    return {problems.begin(), problems.end()};
  }
  bool Acknowledged(const std::string& id, uint64_t sequence) {
    const auto list = Hear(id).acknowledged;
    return std::find(list.begin(), list.end(), sequence) != list.end();
  }
};

EntryResult Group(int index) { return {.index = index}; }

TEST(WorkerPool, ADrainedWorkerIsAdmittedAgain) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  EXPECT_EQ(ToString(b.pool.Admit("a")), "NOT_FOUND: no worker a is drained");
  b.Submit(1);
  EntryResult negative = Group(0);
  negative.measurement.latency = {-1, -1, -1};
  b.Send("a", b.Begin("a"), negative);
  ASSERT_TRUE(b.Hear("a").drain);
  const uint64_t before = b.pool.revision("a");
  ASSERT_EQ(ToString(b.pool.Admit("a")), "OK");
  EXPECT_GT(b.pool.revision("a"), before) << "it is told";
  EXPECT_FALSE(b.Hear("a").drain);
  b.states["a"].attempt.clear();
  b.Say("a");
  EXPECT_TRUE(b.Hear("a").lease.has_value());
}

TEST(WorkerPool, AWorkerWhoseFigureCannotBeIsDrained) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("bad").ok());
  const uint64_t item = b.Submit(2);
  std::string attempt = b.Begin("bad");
  b.Send("bad", attempt, Group(0));
  EntryResult negative = Group(1);
  negative.measurement.latency = {-1, -1, -1};
  const uint64_t sequence = b.Send("bad", attempt, negative);
  EXPECT_EQ(b.pool.Take(item).size(), 1u) << "what came before was right";
  EXPECT_TRUE(b.Acknowledged("bad", sequence));
  EXPECT_TRUE(b.Hear("bad").drain);
  EXPECT_FALSE(b.Hear("bad").lease.has_value());
  EXPECT_EQ(b.pool.WaitsFor(item), "a worker of device cpu") << "the drained one does not count";
  b.states["bad"].attempt.clear();
  b.pool.Disconnect(b.now, "bad", b.sessions["bad"]);
  ASSERT_TRUE(b.Connect("bad").ok());
  EXPECT_FALSE(b.Hear("bad").lease.has_value()) << "coming back is no remedy";
  const WorkerView view = b.pool.Workers(b.now)[0];
  EXPECT_EQ(view.state.health, WorkerHealth::kDraining);
  EXPECT_EQ(view.state.reason, "it sent a figure that cannot be: measurement: a time of -1 ns");
  ASSERT_TRUE(b.Connect("good").ok());
  attempt = b.Begin("good");
  b.Send("good", attempt, Group(0));
  EXPECT_EQ(b.pool.Take(item).size(), 1u);
  EXPECT_TRUE(b.pool.Ended(item));
}

TEST(WorkerPool, ABatchRunsToItsEnd) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(2);
  const std::string attempt = b.Begin("w");
  EXPECT_EQ(attempt, "e3.1");
  b.Send("w", attempt, Group(0));
  b.Send("w", attempt, Group(1));
  EXPECT_FALSE(b.pool.Ended(item));
  EXPECT_EQ(b.pool.Take(item).size(), 2u);
  EXPECT_TRUE(b.pool.Ended(item));
  b.End("w", attempt);
  EXPECT_FALSE(b.Hear("w").lease.has_value());
}

TEST(WorkerPool, KnowsHowLongWorkersHaveHadAnItem) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(1);
  const uint64_t waiting = b.Submit(1);
  b.Begin("w");
  b.now += 2s;
  EXPECT_EQ(b.pool.DeviceTime(b.now, item), 2s);
  EXPECT_EQ(b.pool.DeviceTime(b.now, waiting), 0s);
  b.states["w"].attempt.clear();
  b.Say("w");  // Lets go of it; the other item is next.
  b.now += 3s;
  EXPECT_EQ(b.pool.DeviceTime(b.now, item) + b.pool.DeviceTime(b.now, waiting), 5s);
}

TEST(WorkerPool, TheWorkIsSentUntilItIsInHand) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  b.Submit(1);
  EXPECT_NE(b.Hear("w").lease->work, nullptr);
  EXPECT_NE(b.Hear("w").lease->work, nullptr) << "a lost message must do no harm";
  b.Begin("w");
  EXPECT_EQ(b.Hear("w").lease->work, nullptr);
}

TEST(WorkerPool, SaysWhatAnItemWaitsFor) {
  PoolBench b;
  const uint64_t item = b.Submit(1);
  EXPECT_EQ(b.pool.WaitsFor(item), "a worker of device cpu");
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t another = b.Submit(1);
  EXPECT_EQ(b.pool.WaitsFor(item), "");
  EXPECT_EQ(b.pool.WaitsFor(another), "a free worker of device cpu");
  b.states["w"].waits_for = "the measuring lock, held by process 7";
  EXPECT_EQ(b.pool.WaitsFor(item), "") << "said of something else";
  b.Begin("w");
  EXPECT_EQ(b.pool.WaitsFor(item), "the measuring lock, held by process 7");
}

TEST(WorkerPool, AResultIsAcknowledgedWhenItIsDurable) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(2);
  const std::string attempt = b.Begin("w");
  const uint64_t sequence = b.Send("w", attempt, Group(0));
  EXPECT_FALSE(b.Acknowledged("w", sequence));
  const auto deliveries = b.pool.Take(item);
  // A result that is sent again before it is stored is taken once and acknowledged after.
  b.next_sequence = sequence;
  b.Send("w", attempt, Group(0));
  EXPECT_TRUE(b.pool.Take(item).empty());
  EXPECT_FALSE(b.Acknowledged("w", sequence));
  b.pool.Durable(deliveries[0]);
  EXPECT_TRUE(b.Acknowledged("w", sequence));
}

TEST(WorkerPool, ResultsOfAnotherEpochAreRefused) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(1);
  const std::string attempt = b.Begin("w");
  const uint64_t sequence = b.Send("w", attempt, Group(0), kEpoch - 1);
  EXPECT_TRUE(b.Acknowledged("w", sequence)) << "so that the worker forgets it";
  EXPECT_TRUE(b.pool.Take(item).empty());
}

TEST(WorkerPool, ASilentWorkerLosesItsItemAndItsLateResultIsRefused) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("slow").ok());
  const uint64_t item = b.Submit(1);
  const std::string late = b.Begin("slow");
  b.now += 29s;
  b.pool.Tick(b.now);
  EXPECT_EQ(b.pool.waiting(), 0);
  ASSERT_TRUE(b.Connect("fresh").ok());
  b.now += 2s;
  b.Say("fresh");
  b.pool.Tick(b.now);
  const std::string attempt = b.Begin("fresh");
  EXPECT_NE(attempt, "");
  EXPECT_NE(attempt, late);
  ASSERT_TRUE(b.Connect("slow").ok());
  b.Send("slow", late, Group(0));
  EXPECT_TRUE(b.pool.Take(item).empty());
  b.Send("fresh", attempt, Group(0));
  EXPECT_EQ(b.pool.Take(item).size(), 1u);
}

TEST(WorkerPool, ACutStreamMayComeBack) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(1);
  const std::string attempt = b.Begin("w");
  b.pool.Disconnect(b.now, "w", b.sessions["w"]);
  b.now += 4s;
  b.pool.Tick(b.now);
  ASSERT_TRUE(b.Connect("w").ok());
  b.Send("w", attempt, Group(0));
  EXPECT_EQ(b.pool.Take(item).size(), 1u);
}

TEST(WorkerPool, ACutStreamThatStaysAwayLosesItsItem) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  b.Submit(1);
  b.Begin("w");
  b.pool.Disconnect(b.now, "w", b.sessions["w"]);
  b.now += 6s;
  b.pool.Tick(b.now);
  EXPECT_EQ(b.pool.waiting(), 1);
  EXPECT_TRUE(b.pool.Workers(b.now).empty());
}

TEST(WorkerPool, WorkOfAQuietWorkerGoesToAnother) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  const uint64_t item = b.Submit(2);
  const std::string first = b.Begin("a");
  b.Pass(50s);
  b.Send("a", first, Group(0));
  b.Pass(50s);
  ASSERT_TRUE(b.Connect("b").ok());
  b.Pass(5s);
  EXPECT_FALSE(b.Hear("b").lease.has_value()) << "a sent a result 55 s ago";
  b.Pass(10s);
  const std::string second = b.Begin("b");
  ASSERT_NE(second, "");
  EXPECT_EQ(b.Leased("a").size(), 0U);
  b.Send("a", first, Group(1));
  EXPECT_EQ(b.pool.Take(item).size(), 1U) << "a result that comes too late is refused";
  b.Send("b", second, Group(0));  // Its first entry is the item's second.
  EXPECT_EQ(b.pool.Take(item).size(), 1U);
  EXPECT_TRUE(b.pool.Ended(item));
}

TEST(WorkerPool, AQuietWorkerRestsWhileAnotherServes) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  b.Submit(1);
  b.Begin("a");
  ASSERT_TRUE(b.Connect("b").ok());
  b.Pass(61s);
  ASSERT_NE(b.Begin("b"), "");
  b.states["a"].attempt.clear();
  b.Say("a");
  b.Submit(1);
  EXPECT_FALSE(b.Hear("a").lease.has_value()) << "it waits for b";
  b.Pass(10min);
  EXPECT_TRUE(b.Hear("a").lease.has_value()) << "it has rested";
}

TEST(WorkerPool, AQuietWorkerKeepsWhatNobodyElseCanDo) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  const uint64_t item = b.Submit(1);
  const std::string attempt = b.Begin("a");
  b.Pass(300s);
  b.Send("a", attempt, Group(0));
  EXPECT_EQ(b.pool.Take(item).size(), 1U);
}

TEST(WorkerPool, ATimeThatWorkWasGivenIsNotQuiet) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  v1::WorkItem work;
  work.mutable_plans()->add_candidates();
  work.set_end_within_seconds(100);
  b.Submit(work);
  b.Begin("a");
  ASSERT_TRUE(b.Connect("b").ok());
  b.Pass(155s);
  EXPECT_FALSE(b.Hear("b").lease.has_value());
  b.Pass(10s);
  EXPECT_TRUE(b.Hear("b").lease.has_value());
}

TEST(WorkerPool, AWorkerSettlesWithItsEnvironment) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  const auto is_settled = [&] { return b.pool.Workers(b.now)[0].is_settled; };
  b.Pass(9s);
  EXPECT_FALSE(is_settled());
  b.Pass(1s);
  EXPECT_TRUE(is_settled());
  b.pool.Disconnect(b.now, "a", b.sessions["a"]);
  ASSERT_TRUE(b.Connect("a").ok());
  EXPECT_FALSE(is_settled()) << "it left";
  b.Pass(10s);
  ASSERT_TRUE(is_settled());
  b.states["a"].environment = "another";
  b.Say("a");
  EXPECT_FALSE(is_settled());
}

TEST(SettledOffers, AreAllWhereNoneIs) {
  const DeviceOffer settled = {.device = "cpu", .environment = "e", .is_settled = true};
  const DeviceOffer fresh = {.device = "cpu", .environment = "liar"};
  const auto chosen = SettledOffers({fresh, settled});
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].environment, "e");
  EXPECT_EQ(SettledOffers({fresh, fresh}).size(), 2U);
}

TEST(WorkerPool, ARestartedWorkerGetsANewAttempt) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  b.Submit(1);
  const std::string attempt = b.Begin("w");
  b.pool.Disconnect(b.now, "w", b.sessions["w"]);
  b.states["w"].attempt.clear();
  ASSERT_TRUE(b.Connect("w").ok());
  const std::string again = b.Begin("w");
  EXPECT_NE(again, "");
  EXPECT_NE(again, attempt);
}

TEST(WorkerPool, AnItemThatLosesThreeWorkersFails) {
  PoolBench b;
  const uint64_t item = b.Submit(2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(b.Connect("w").ok());
    EXPECT_NE(b.Begin("w"), "") << i;
    b.pool.Disconnect(b.now, "w", b.sessions["w"]);
    b.states["w"].attempt.clear();
    b.now += 6s;
    b.pool.Tick(b.now);
  }
  const auto deliveries = b.pool.Take(item);
  ASSERT_EQ(deliveries.size(), 2u);
  EXPECT_EQ(Message(deliveries[0].result.status), "lost 3 workers, the last: worker w is gone");
  EXPECT_FALSE(deliveries[0].quarantined);
}

TEST(WorkerPool, ACrashedEntryIsTriedTwiceThenQuarantined) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(3);
  std::string attempt = b.Begin("w");
  b.Send("w", attempt, Group(0));
  b.Crash("w", attempt, 1);
  EXPECT_EQ(b.pool.Take(item).size(), 1u);
  // The other entries come first, the one that crashed comes last.
  EXPECT_EQ(b.Leased("w"), (std::vector<std::string>{"problem 2", "problem 1"}));
  attempt = b.Begin("w");
  b.Send("w", attempt, Group(0));
  b.Crash("w", attempt, 1);
  const auto deliveries = b.pool.Take(item);
  ASSERT_EQ(deliveries.size(), 2u);
  EXPECT_EQ(deliveries[0].entry, 2);
  EXPECT_EQ(deliveries[1].entry, 1);
  EXPECT_TRUE(deliveries[1].quarantined);
  EXPECT_EQ(Message(deliveries[1].result.status),
            "quarantined after 2 crashed executors, the last: SIGSEGV");
  EXPECT_TRUE(b.pool.Ended(item));
}

TEST(WorkerPool, TheSecondTryGoesToAnotherWorkerWhereThereIsOne) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("a").ok());
  b.Submit(1);
  const std::string attempt = b.Begin("a");
  ASSERT_TRUE(b.Connect("b").ok());
  b.Crash("a", attempt, 0);
  EXPECT_FALSE(b.Hear("a").lease.has_value());
  EXPECT_TRUE(b.Hear("b").lease.has_value());
}

TEST(WorkerPool, APlanSetIsTimedAnewAfterACrash) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.SubmitPlans(3);
  for (int i = 0; i < 2; ++i) {
    const std::string attempt = b.Begin("w");
    b.Send("w", attempt, {.index = 0});
    b.Crash("w", attempt, 1);
  }
  const std::string attempt = b.Begin("w");
  b.Send("w", attempt, {.index = 0});
  b.Send("w", attempt, {.index = 1});
  b.End("w", attempt);
  const auto deliveries = b.pool.Take(item);
  ASSERT_EQ(deliveries.size(), 3u);
  EXPECT_EQ(deliveries[0].entry, 1);
  EXPECT_TRUE(deliveries[0].quarantined);
  EXPECT_EQ(deliveries[1].entry, 0);
  EXPECT_EQ(deliveries[2].entry, 2) << "index 1 of the smaller set";
}

TEST(WorkerPool, AnInputThatCrashesEndsThePlanSet) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.SubmitPlans(2);
  for (int i = 0; i < 2; ++i) b.Crash("w", b.Begin("w"), 0);
  EXPECT_EQ(b.pool.Take(item).size(), 2u);
  EXPECT_TRUE(b.pool.Ended(item));
}

TEST(WorkerPool, AnErrorOfTheWholeItemFailsTheRest) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(2);
  const std::string attempt = b.Begin("w");
  b.Send("w", attempt, Group(1));
  b.End("w", attempt, Err(StatusCode::kDataLoss, "bad batch"));
  const auto deliveries = b.pool.Take(item);
  ASSERT_EQ(deliveries.size(), 2u);
  EXPECT_EQ(Message(deliveries[1].result.status), "bad batch");
  EXPECT_TRUE(b.pool.Ended(item));
}

TEST(WorkerPool, WorkersThatDoNotServeGetNothing) {
  for (const WorkerHealth health :
       {WorkerHealth::kStarting, WorkerHealth::kNotServing, WorkerHealth::kDraining}) {
    PoolBench b;
    ASSERT_TRUE(b.Connect("w").ok());
    b.states["w"].health = health;
    b.Say("w");
    b.Submit(1);
    EXPECT_FALSE(b.Hear("w").lease.has_value()) << WorkerHealthName(health);
    EXPECT_EQ(b.pool.waiting(), 1);
  }
}

TEST(WorkerPool, AnotherEnvironmentGetsNothing) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  b.states["w"].environment = "other";
  b.Say("w");
  const uint64_t item = b.Submit(1);
  EXPECT_FALSE(b.Hear("w").lease.has_value());
  for (int i = 0; i < 9; ++i) {
    b.now += 1s;
    b.Say("w");
    b.pool.Tick(b.now);
  }
  EXPECT_TRUE(b.pool.Take(item).empty()) << "its own environment may come back";
  b.now += 1s;
  b.pool.Tick(b.now);
  EXPECT_EQ(Message(b.pool.Take(item).at(0).result.status),
            "no worker offers device cpu with environment e");
}

TEST(WorkerPool, WithoutAnyWorkerAnItemWaitsLonger) {
  PoolBench b;
  const uint64_t item = b.Submit(1);
  b.now += 14min;
  b.pool.Tick(b.now);
  EXPECT_TRUE(b.pool.Take(item).empty());
  b.now += 2min;
  b.pool.Tick(b.now);
  EXPECT_EQ(Message(b.pool.Take(item).at(0).result.status),
            "no worker offers device cpu with environment e");
}

TEST(WorkerPool, OnlyAChangedOfferCounts) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  b.states["w"].device_spec = "spec";
  b.Say("w");
  b.states["w"].device_spec.clear();  // Unchanged since it was last sent.
  uint64_t revision = b.pool.offers_revision();
  b.Say("w");
  EXPECT_EQ(b.pool.offers_revision(), revision) << "the same once more";
  b.states["w"].environment = "other";
  b.Say("w");
  EXPECT_GT(b.pool.offers_revision(), revision);
  revision = b.pool.offers_revision();
  b.pool.Disconnect(b.now, "w", b.sessions["w"]);
  b.now += 6s;
  b.pool.Tick(b.now);
  EXPECT_GT(b.pool.offers_revision(), revision) << "it left";
}

TEST(WorkerPool, AnIdIsTakenOnce) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  EXPECT_EQ(Message(b.Connect("w")), "another live worker is called w");
  b.now += 31s;
  EXPECT_TRUE(b.Connect("w").ok()) << "the silent one has lost its name";
}

TEST(WorkerPool, AWithdrawnItemStopsItsWorker) {
  PoolBench b;
  ASSERT_TRUE(b.Connect("w").ok());
  const uint64_t item = b.Submit(1);
  const std::string attempt = b.Begin("w");
  const uint64_t before = b.pool.revision("w");
  b.pool.Withdraw(item);
  EXPECT_GT(b.pool.revision("w"), before);
  EXPECT_FALSE(b.Hear("w").lease.has_value());
  const uint64_t sequence = b.Send("w", attempt, Group(0));
  EXPECT_TRUE(b.Acknowledged("w", sequence));
}

}  // namespace
}  // namespace ag
