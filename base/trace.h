// The trace context of W3C (https://www.w3.org/TR/trace-context): a text that names the trace and
// the span which a piece of work belongs to. It goes from a client by the coordinator to workers,
// and each logs the trace's id. Pure functions but for NewTrace and NextSpan.
#pragma once

#include <string>
#include <string_view>

namespace ag {

struct Trace {
  std::string trace_id;   // 32 hexadecimal digits, not all zero.
  std::string parent_id;  // 16 hexadecimal digits, not all zero: the span of who asked.
  std::string flags = "01";

  // "00-<trace_id>-<parent_id>-<flags>"; "" without an id.
  std::string ToString() const;
};

// Parses a traceparent of version 00, or the part of it that later versions keep. A text that is
// none gives a trace without an id, as the standard wants it: such a header is ignored.
Trace ParseTrace(std::string_view text);

Trace NewTrace();                    // With random ids.
Trace NextSpan(const Trace& trace);  // The same trace with a random parent_id; of none: a new one.

// The trace of the environment variable TRACEPARENT, by which tools hand on a trace.
Trace TraceOfEnvironment();

}  // namespace ag
