#include "server/pipeline/budget.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

constexpr Nanos BudgetSeconds(double seconds) { return Nanos(static_cast<int64_t>(seconds * 1e9)); }
double SecondsOf(Nanos time) { return static_cast<double>(time.count()) / 1e9; }

TEST(Budget, ASmallModelIsSearchedMostOfTheTime) {
  Budget budget(BudgetSeconds(100), BudgetSeconds(40));
  budget.Imported(BudgetSeconds(100.1), BudgetSeconds(0.5));
  EXPECT_EQ(budget.end(), BudgetSeconds(140));
  EXPECT_DOUBLE_EQ(SecondsOf(budget.check_begin()), 139.5);
  EXPECT_DOUBLE_EQ(SecondsOf(budget.comparison_end()), 140 - 10 - 0.4 - 0.5);
  EXPECT_DOUBLE_EQ(SecondsOf(budget.search_end()), 100.1 + 0.8 * (129.1 - 100.1));
}

TEST(Budget, WhatTheBeginningTookIsKeptForTheEnd) {
  Budget budget(BudgetSeconds(0), BudgetSeconds(40));
  budget.Imported(BudgetSeconds(2), BudgetSeconds(1));
  EXPECT_DOUBLE_EQ(SecondsOf(budget.check_begin()), 39);
  EXPECT_DOUBLE_EQ(SecondsOf(budget.comparison_end()), 40 - 10 - 8 - 1);
  budget.Imported(BudgetSeconds(2), BudgetSeconds(30));  // Together at most 28 s.
  EXPECT_DOUBLE_EQ(SecondsOf(budget.check_begin()), 26);
  EXPECT_DOUBLE_EQ(SecondsOf(budget.comparison_end()), 12);
}

// On every machine, slow or fast, each part comes after the one before, and the search has its
// share.
TEST(Budget, PartsStandInOrderWhateverWasMeasured) {
  for (const double total : {0.0, 0.1, 1.0, 40.0, 3600.0}) {
    for (const double import : {0.0, 0.01, 1.0, 20.0, 100.0}) {
      for (const double check : {0.0, 1.0, 100.0}) {
        SCOPED_TRACE(::testing::Message() << total << " " << import << " " << check);
        Budget budget(BudgetSeconds(7), BudgetSeconds(total));
        const Nanos imported = BudgetSeconds(7 + import);
        budget.Imported(imported, BudgetSeconds(check));
        EXPECT_LE(imported, budget.search_end());
        EXPECT_LE(budget.search_end(), budget.comparison_end());
        EXPECT_LE(budget.check_begin(), budget.end());
        const double rest = (1 - Budget::kEndShareMax) * total;
        if (import >= rest) continue;  // The import alone took the search's time.
        EXPECT_LE(budget.comparison_end(), budget.check_begin());
        EXPECT_GE(SecondsOf(budget.search_end() - imported), 0.79 * (rest - import));
      }
    }
  }
}

}  // namespace
}  // namespace ag
