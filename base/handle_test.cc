#include "base/handle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <type_traits>
#include <vector>

namespace ag {
namespace {

std::vector<int>& Freed() {
  static std::vector<int> freed;
  return freed;
}
struct FakeTraits {
  using Raw = int;
  static constexpr Raw kNone = 0;
  static void Free(Raw raw) { Freed().push_back(raw); }
};
using Fake = UniqueHandle<FakeTraits>;

static_assert(!std::is_copy_constructible_v<Fake> && !std::is_copy_assignable_v<Fake>);
static_assert(std::is_nothrow_move_constructible_v<Fake>);

using Freeds = std::vector<int>;

TEST(HandleTest, FreesOnce) {
  Freed().clear();
  {
    Fake a(1);
    Fake b(std::move(a));
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): empty, as handle.h says.
    EXPECT_EQ(b.get(), 1);
    Fake c(2);
    c = std::move(b);
    EXPECT_EQ(Freed(), Freeds({2}));
    c = std::move(*&c);  // Self-move.
    EXPECT_EQ(c.get(), 1);
    const Fake none;
  }
  EXPECT_EQ(Freed(), Freeds({2, 1}));
}

TEST(HandleTest, ReleaseResetAndOut) {
  Freed().clear();
  Fake a(1);
  EXPECT_EQ(a.release(), 1);
  EXPECT_EQ(Freed(), Freeds());
  a.reset(2);
  *a.out() = 3;
  EXPECT_EQ(Freed(), Freeds({2}));
  a.reset();
  a.reset();
  EXPECT_EQ(Freed(), Freeds({2, 3}));
}

TEST(HandleTest, FdCloses) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  { const Fd fd(raw); }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

}  // namespace
}  // namespace ag
