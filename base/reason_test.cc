#include "base/reason.h"

#include <gtest/gtest.h>

#include <set>

namespace ag {
namespace {

TEST(Reason, TravelsWithTheStatus) {
  const Status plain = Err(StatusCode::kNotFound, "no job jobs/7");
  EXPECT_EQ(ReasonOf(plain), "NOT_FOUND");
  EXPECT_EQ(RetryPauseOf(plain), std::nullopt);
  const Status busy = Within(
      RetryAfter(std::chrono::seconds(2),
                 Because(Reason::kTooManyWatches, Err(StatusCode::kResourceExhausted, "full"))),
      "watch");
  EXPECT_EQ(ReasonOf(busy), "TOO_MANY_WATCHES");
  EXPECT_EQ(RetryPauseOf(busy), std::chrono::seconds(2));
  EXPECT_EQ(Message(busy), "watch: full");
}

TEST(Reason, AFaultOfTheHostIsTriedAgain) {
  const Status full = AsHostFault(Err(StatusCode::kResourceExhausted, "no space"));
  EXPECT_EQ(ReasonOf(full), "HOST_FAULT");
  EXPECT_EQ(RetryPauseOf(full), std::chrono::seconds(5));
}

TEST(Reason, AnOkStatusHasNone) {
  EXPECT_EQ(ReasonOf(Because(Reason::kNoWorker, OkStatus())), "");
  EXPECT_EQ(RetryPauseOf(RetryAfter(std::chrono::seconds(1), OkStatus())), std::nullopt);
}

TEST(Reason, OneThatIsNotKnownHereIsKept) {
  const Status status = WithReason("NEWER_THAN_THIS", std::nullopt, absl::InternalError("x"));
  EXPECT_EQ(ReasonOf(status), "NEWER_THAN_THIS");
}

TEST(Reason, EachHasANameOfItsOwn) {
  const auto all = ReasonNames();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(ReasonName(Reason::kNoWorker), "NO_WORKER");
  EXPECT_EQ(ReasonName(Reason::kHostFault), "HOST_FAULT");
}

}  // namespace
}  // namespace ag
