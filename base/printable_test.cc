#include "base/printable.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(Printable, OneLineHasNoControlBytes) {
  EXPECT_EQ(OneLine("plan '\x1b[31m\r' of\na\tb\x7f\xc3"),
            "plan '\\x1b[31m\\x0d' of a b\\x7f\\xc3");
  EXPECT_EQ(OneLine(std::string(4001, 'a')), std::string(4000, 'a') + "...");
}

}  // namespace
}  // namespace ag
