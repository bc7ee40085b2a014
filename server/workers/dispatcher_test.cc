#include "server/workers/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace ag {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

v1::WorkItem Groups(int count) {
  v1::WorkItem work;
  work.mutable_groups();
  for (int i = 0; i < count; ++i) work.mutable_groups()->add_problems(fmt::format("problem {}", i));
  return work;
}

v1::WorkItem Plans(int count, int blocks_max) {
  v1::WorkItem work;
  work.mutable_plans()->set_blocks_max(blocks_max);
  for (int i = 0; i < count; ++i) {
    work.mutable_plans()->add_candidates()->set_plan(fmt::format("plan {}", i));
  }
  return work;
}

TEST(PartsOf, GroupsAreDealtOut) {
  EXPECT_THAT(PartsOf(Groups(5), 2), ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3)));
  EXPECT_THAT(PartsOf(Groups(5), 1), ElementsAre(ElementsAre(0, 1, 2, 3, 4)));
  EXPECT_THAT(PartsOf(Groups(2), 7), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(PartsOf(Groups(0), 3), ElementsAre(IsEmpty()));
}

TEST(PartsOf, EachPartOfARankedSetHasTheInput) {
  EXPECT_THAT(PartsOf(Plans(4, 5), 2), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(0, 2)));
  EXPECT_THAT(PartsOf(Plans(2, 5), 3), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(PartsOf(Plans(1, 5), 3), ElementsAre(ElementsAre(0)));
}

TEST(PartsOf, AVerdictIsTakenOnOneDevice) {
  EXPECT_THAT(PartsOf(Plans(4, 0), 2), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(PartsOf(v1::WorkItem(), 2), ElementsAre(ElementsAre(0)));
}

// Workers that answer an entry each time they are asked to go on.
class Workers {
 public:
  explicit Workers(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}

  void Connect(const std::string& id) {
    WorkerReport& state = states_[id];
    state.worker_id = id;
    state.device = "cpu";
    state.environment = "e";
    state.device_spec = "spec";
    state.health = WorkerHealth::kServing;
    ASSERT_TRUE(dispatcher_.Connect(id, Session(id)).ok());
    dispatcher_.Report(Session(id), state);
  }
  // Does all that the worker is given until `stop`.
  void Work(const std::string& id, const std::function<bool()>& stop) {
    uint64_t revision = 0;
    while (!stop()) {
      const auto sent = dispatcher_.WaitToSend(id, revision, std::chrono::milliseconds(5));
      revision = sent.revision;
      if (!sent.changed || !sent.desired.lease || sent.desired.lease->work == nullptr) continue;
      const v1::WorkItem& work = *sent.desired.lease->work;
      WorkerReport report = states_[id];
      report.attempt = sent.desired.lease->attempt;
      dispatcher_.Report(Session(id), report);
      for (int entry = 0; entry < EntryCount(work); ++entry) {
        done_[id].push_back(work.has_groups() ? work.groups().problems(entry)
                                              : work.plans().candidates(entry).plan());
        EntryResult result{.index = entry};
        result.measurement.latency = result.timing.latency = {100, 90, 110};
        report.results.push_back({++sequence_[id], kEpoch, report.attempt, result});
      }
      const std::string attempt = std::exchange(report.attempt, "");
      report.results.push_back({++sequence_[id], kEpoch, attempt, {.index = -1}});
      dispatcher_.Report(Session(id), report);
    }
  }
  const std::vector<std::string>& done(const std::string& id) { return done_[id]; }

  static constexpr uint64_t kEpoch = 3;

 private:
  static uint64_t Session(const std::string& id) { return static_cast<uint64_t>(id.back()); }

  Dispatcher& dispatcher_;
  std::map<std::string, WorkerReport> states_;
  std::map<std::string, uint64_t> sequence_;
  std::map<std::string, std::vector<std::string>> done_;
};

struct Ran {
  Status status;
  std::vector<int> told;
};

// Runs the item with two workers, both of which are idle.
Ran RunOnTwo(const v1::WorkItem& work, std::vector<std::string>* of_a,
             std::vector<std::string>* of_b) {
  Dispatcher dispatcher(Workers::kEpoch, {}, RealClock());
  Workers workers(dispatcher);
  workers.Connect("a");
  workers.Connect("b");
  workers.done("a"), workers.done("b");  // The map does not grow under the threads.
  std::atomic<bool> has_ended = false;
  const auto stop = [&] { return has_ended.load(); };
  std::thread a([&] { workers.Work("a", stop); }), b([&] { workers.Work("b", stop); });
  Ran ran;
  ran.status = dispatcher.Run(
      {"cpu", "e", std::make_shared<const v1::WorkItem>(work)},
      [&](const Delivery& delivery) { ran.told.push_back(delivery.entry); }, nullptr);
  has_ended = true;
  a.join();
  b.join();
  *of_a = workers.done("a");
  *of_b = workers.done("b");
  return ran;
}

TEST(Dispatcher, IdleWorkersShareABatchOfGroups) {
  std::vector<std::string> of_a, of_b;
  const Ran ran = RunOnTwo(Groups(5), &of_a, &of_b);
  EXPECT_TRUE(ran.status.ok()) << Message(ran.status);
  EXPECT_THAT(ran.told, UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(of_a, ElementsAre("problem 0", "problem 2", "problem 4"));
  EXPECT_THAT(of_b, ElementsAre("problem 1", "problem 3"));
}

TEST(Dispatcher, IdleWorkersShareCandidatesThatAreRanked) {
  std::vector<std::string> of_a, of_b;
  const Ran ran = RunOnTwo(Plans(4, 5), &of_a, &of_b);
  EXPECT_TRUE(ran.status.ok()) << Message(ran.status);
  EXPECT_THAT(ran.told, UnorderedElementsAre(0, 1, 2, 3)) << "the input is told once";
  EXPECT_THAT(of_a, ElementsAre("plan 0", "plan 1", "plan 3"));
  EXPECT_THAT(of_b, ElementsAre("plan 0", "plan 2"));
}

TEST(Dispatcher, OneWorkerTimesCandidatesForAVerdict) {
  std::vector<std::string> of_a, of_b;
  const Ran ran = RunOnTwo(Plans(3, 0), &of_a, &of_b);
  EXPECT_TRUE(ran.status.ok()) << Message(ran.status);
  EXPECT_THAT(ran.told, UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(of_a, ElementsAre("plan 0", "plan 1", "plan 2"));
  EXPECT_THAT(of_b, IsEmpty());
}

}  // namespace
}  // namespace ag
