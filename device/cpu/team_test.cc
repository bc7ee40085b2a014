#include "device/cpu/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

TEST(Team, CallsEachPartOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    Team team(threads);
    ASSERT_EQ(team.size(), threads);
    for (int job = 0; job < 2000; ++job) {
      const int parts = job % threads + 1;
      std::vector<std::atomic<int>> calls(parts);
      team.Run(parts, [&](int part) { ++calls[part]; });
      for (int part = 0; part < parts; ++part) ASSERT_EQ(calls[part], 1) << job;
    }
  }
}

// Helpers fall asleep in between.
TEST(Team, WakesItsHelpers) {
  Team team(2);
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<bool> met{false};
    team.Run(2, [&](int part) {
      if (part == 1) met = true;
      while (!met) std::this_thread::yield();
    });
    EXPECT_TRUE(met);
  }
}

TEST(Team, PartsMeetAtBarriers) {
  constexpr int kParts = 3;
  Team team(kParts);
  std::atomic<int> arrived{0}, early{0};
  team.Run(kParts, [&](int) {
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      Team::Here().team->Barrier();
      if (arrived < round * kParts) ++early;
      Team::Here().team->Barrier();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, 100 * kParts);
}

TEST(Team, APartInsideAPartRunsInTurn) {
  Team team(2);
  std::atomic<int> calls{0};
  team.Run(2, [&](int) {
    const std::thread::id own = std::this_thread::get_id();
    Team::Here().team->Run(2, [&](int) {
      EXPECT_EQ(std::this_thread::get_id(), own);
      ++calls;
    });
    ParallelFor(2, 100'000, 1, [&](int64_t begin, int64_t end, int) {
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 100'000);
    });
  });
  EXPECT_EQ(calls, 4);
}

TEST(TeamScope, LendsOneTeamToEachThread) {
  const TeamScope scope(2);
  Team* const own = &scope.team();
  const TeamScope inner(2);
  EXPECT_EQ(&inner.team(), own);
  std::thread([&] {
    const TeamScope other(2);
    EXPECT_NE(&other.team(), own);
  }).join();
}

TEST(TeamScope, KeepsTeamsForLater) {
  std::set<Team*> teams;
  for (int i = 0; i < 5; ++i) {
    const TeamScope scope(7);
    teams.insert(&scope.team());
  }
  EXPECT_EQ(teams.size(), 1u);
  EXPECT_EQ(Team::Here().team, nullptr);
}

void PinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// The helper may only run on a core that a busy loop occupies, so it seldom runs. The caller does
// not wait for it, but computes both parts.
TEST(Team, DoesNotWaitForAHelperWhoDoesNotRun) {
  cpu_set_t usable;
  sched_getaffinity(0, sizeof(usable), &usable);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable)) cores.push_back(core);
  }
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  std::thread([&] {
    PinTo(cores[1]);
    Team team(2);  // Its helper is pinned like the thread that makes it.
    std::atomic<bool> stop{false};
    std::thread loop([&] {
      while (!stop) {
      }
    });
    PinTo(cores[0]);
    int by_caller = 0;
    const std::thread::id own = std::this_thread::get_id();
    for (int job = 0; job < 20'000; ++job) {
      team.Run(2, [&](int part) {
        if (part == 1 && std::this_thread::get_id() == own) ++by_caller;
      });
    }
    EXPECT_GT(by_caller, 0);
    stop = true;
    loop.join();
  }).join();
}

// Two threads at once need two teams. From then on one thread alone uses the same team each time:
// the helpers of another one would have to be woken, and those of the last one still spin.
TEST(TeamScope, TakesTheTeamThatWasUsedLast) {
  const auto current = [] { return Team::Here().team; };
  Team *first = nullptr, *second = nullptr;
  {
    const TeamScope scope(2);
    first = current();
    std::thread([&] {
      const TeamScope other(2);
      second = current();
    }).join();
  }
  EXPECT_NE(first, second);
  for (int run = 0; run < 4; ++run) {
    const TeamScope scope(2);
    EXPECT_EQ(current(), first) << run;
  }
}

}  // namespace
}  // namespace ag::cpu
