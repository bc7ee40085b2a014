// A group problem as one line of text, for recordings (docs/recording.md). Pure functions.
//   pattern=conv precision=fp32 cores=0 in=plain out=plain graph=input i0 f32[1,3,8,8]; v1 = ...
// The graph is its text form (graph/text_form.h) with "; " for line ends. A synthetic constant has
// the word "synthetic" for its data. A cold problem has "cold_cache=1" after the cores.
#pragma once

#include <string>
#include <string_view>

#include "plan/fusion/group_problem.h"

namespace ag {

// Returns the line. A problem that the text form cannot express (for example an unusual NaN in a
// constant) becomes "problem=" and base64 of its canonical bytes, so every line parses back.
std::string FormatGroupProblem(const GroupProblem& problem);

// Returns the problem. kInvalidArgument says what is wrong; hostile text never crashes.
StatusOr<GroupProblem> ParseGroupProblem(std::string_view text);

// Escape and unescape the words of these lines: %XX replaces characters that a word may not
// contain.
std::string EscapeWord(std::string_view word);
StatusOr<std::string> UnescapeWord(std::string_view text);

// Removes "KEY=value" and the following blank from the front of `text` and returns the value.
// kInvalidArgument: another word is there.
StatusOr<std::string> TakeWord(std::string_view key, std::string_view* text);

}  // namespace ag
