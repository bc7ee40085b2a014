#include "base/trace.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

constexpr char kText[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Trace, IsReadAndWritten) {
  const Trace trace = ParseTrace(kText);
  EXPECT_EQ(trace.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace.parent_id, "00f067aa0ba902b7");
  EXPECT_EQ(trace.ToString(), kText);
  EXPECT_EQ(Trace().ToString(), "");
}

TEST(Trace, WhatIsNoneIsIgnored) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01"}) {
    EXPECT_EQ(ParseTrace(text).trace_id, "") << text;
  }
  EXPECT_EQ(ParseTrace("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").trace_id,
            "4bf92f3577b34da6a3ce929d0e0e4736")
      << "a later version may be longer";
}

TEST(Trace, ASpanIsNewAndItsTraceIsNot) {
  const Trace trace = ParseTrace(kText), next = NextSpan(trace);
  EXPECT_EQ(next.trace_id, trace.trace_id);
  EXPECT_NE(next.parent_id, trace.parent_id);
  EXPECT_EQ(ParseTrace(next.ToString()).parent_id, next.parent_id);
  const Trace fresh = NextSpan(Trace());
  EXPECT_EQ(ParseTrace(fresh.ToString()).trace_id, fresh.trace_id);
  EXPECT_NE(fresh.trace_id, NewTrace().trace_id);
}

}  // namespace
}  // namespace ag
