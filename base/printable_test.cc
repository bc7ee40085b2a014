#include "base/printable.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(Printable, OneLineHasNoControlBytes) {
  EXPECT_EQ(OneLine("plan '\x1b[31m\r' of\na\tb\x7f\xc3"),
            "plan '\\x1b[31m\\x0d' of a b\\x7f\\xc3");
  EXPECT_EQ(OneLine(std::string(4001, 'a')), std::string(4000, 'a') + "...");
}

TEST(Printable, KeepsWhatATerminalOnlyShows) {
  EXPECT_EQ(Printable("mod\u00e8le \u6a21\n\tb"), "mod\u00e8le \u6a21\n\tb");
  EXPECT_EQ(Printable("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(Printable("\u009b31m"), "\\xc2\\x9b31m") << "the same as ESC [";
  EXPECT_EQ(Printable("a\u202egpj.exe"), "a\\xe2\\x80\\xaegpj.exe");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_TRUE(IsPrintable("mod\u00e8le"));
  EXPECT_FALSE(IsPrintable("two\nlines"));
  EXPECT_FALSE(IsPrintable("\xc3"));
  EXPECT_EQ(ToString(CheckPrintable("device", "cpu")), "OK");
  EXPECT_EQ(ToString(CheckPrintable("device", "a\x1b")),
            "INVALID_ARGUMENT: device: a control character in 'a\\x1b'");
}

}  // namespace
}  // namespace ag
