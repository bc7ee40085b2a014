// Jobs and results as text for people; ToJson (wire/json_wire.h) shows them to programs. Pure
// functions.
#pragma once

#include <string>

#include "autograph/v1/optimizer.pb.h"
#include "client/cli/context.h"

namespace ag {

// Returns one sentence that says what was gained.
std::string Headline(const autograph::v1::Job& job);

// Returns the verdict with its speedup, where there is one: "FASTER 1.250x".
std::string VerdictText(const autograph::v1::Result& result);

// Returns how to run the output, which is at `path`, where it is fastest.
std::string HowToRun(const autograph::v1::Result& result, const std::string& path);

// Returns the headline and the result table.
std::string ResultTable(const autograph::v1::Job& job);

// Returns one row of the table, without the line's end.
std::string TableRow(const char* name, const std::string& value);

std::string StateText(autograph::v1::Job::State state);  // "searching"

}  // namespace ag
