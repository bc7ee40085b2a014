#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace ag {
namespace {

Status Missing() { return Err(StatusCode::kNotFound, "key {}: not in {}", 7, "store"); }
StatusOr<int> Number(bool ok) {
  if (!ok) return Missing();
  return 41;
}
StatusOr<int> Next(bool ok) {
  AG_LET(const int number, Number(ok));
  return number + 1;
}
Status Plain(const Status& status) {
  AG_TRY(status);
  return OkStatus();
}
Status Named(const Status& status) {
  AG_TRY(status, "job {}", 3);
  return OkStatus();
}
StatusOr<int> OfStatusOr(bool ok) {
  AG_TRY(Number(ok), "number");
  return 1;
}
StatusOr<std::unique_ptr<int>> MoveOnly() { return std::make_unique<int>(5); }
StatusOr<std::unique_ptr<int>> MovedThrough() {
  AG_LET(std::unique_ptr<int> value, MoveOnly());
  return value;
}

TEST(StatusTest, MacrosAndMessages) {
  const struct {
    const char* name;
    Status status;
    const char* expected;
  } cases[] = {
      {"ok", OkStatus(), "OK"},
      {"error", Missing(), "NOT_FOUND: key 7: not in store"},
      {"within keeps ok", Within(OkStatus(), "job"), "OK"},
      {"within", Within(Missing(), "job 3"), "NOT_FOUND: job 3: key 7: not in store"},
      {"try ok", Plain(OkStatus()), "OK"},
      {"try", Plain(Missing()), "NOT_FOUND: key 7: not in store"},
      {"try with a noun, ok", Named(OkStatus()), "OK"},
      {"try with a noun", Named(Missing()), "NOT_FOUND: job 3: key 7: not in store"},
      {"try a value", OfStatusOr(true).status(), "OK"},
      {"try no value", OfStatusOr(false).status(), "NOT_FOUND: number: key 7: not in store"},
      {"let", Next(false).status(), "NOT_FOUND: key 7: not in store"},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(c.status), c.expected) << c.name;
  EXPECT_EQ(Next(true).value(), 42);
  EXPECT_EQ(*MovedThrough().value(), 5);
}

// gtest runs this suite first: a death test forks and needs a process with one thread.
TEST(StatusDeathTest, CheckStopsTheProcess) {
  AG_CHECK(1 + 1 == 2);
  EXPECT_DEATH(AG_CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: AG_CHECK failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace ag
