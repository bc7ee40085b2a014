// A group problem in one line of text: what recordings are made of (docs/recording.md).
//   pattern=conv precision=fp32 cores=0 in=plain out=plain graph=input i0 f32[1,3,8,8]; v1 = ...
// The graph is its text form (graph/text_form.h) with "; " for line ends; a constant that stands
// for data of its type is written "synthetic". A cold problem has "cold_cache=1" after the cores.
#pragma once

#include <string>
#include <string_view>

#include "plan/group_problem.h"

namespace ag {

// A problem that the text form cannot say, as one with an unusual NaN in a constant, is written as
// "problem=" and base64 of its canonical bytes instead: what is written always reads back.
std::string FormatGroupProblem(const GroupProblem& problem);

// kInvalidArgument says what is wrong; hostile text never crashes.
StatusOr<GroupProblem> ParseGroupProblem(std::string_view text);

// Words of these lines: what a word may not hold stands as %XX in it.
std::string EscapeWord(std::string_view word);
StatusOr<std::string> UnescapeWord(std::string_view text);

// Takes "KEY=value" and the blank after it off the front of `text`. kInvalidArgument: another word
// stands there.
StatusOr<std::string> TakeWord(std::string_view key, std::string_view* text);

}  // namespace ag
