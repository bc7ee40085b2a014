// Small string helpers: splitting, numbers as text, and "did you mean". Pure functions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace ag {

// Returns the pieces between separators, also empty ones: Split("a,,b", ',') is {"a", "", "b"} and
// Split("", ',') is {""}. The pieces point into `text`.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Returns `text` without white space at both ends; it points into `text`.
std::string_view Trim(std::string_view text);

// Returns the items as fmt prints them, with `separator` between them: Join(ints, "x") is
// "1x3x224x224".
template <class Range>
std::string Join(const Range& items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

// Returns the whole of `text` as a decimal number, without white space and without '+'.
// kInvalidArgument, with the text in the message: it is no such number or out of range.
StatusOr<int64_t> ParseInt(std::string_view text);
StatusOr<double> ParseDouble(std::string_view text);  // Also inf, -inf and nan.

// Parses "NAME=1x3x224x224" into a name and sizes of 0 or more. kInvalidArgument says what is
// wrong.
StatusOr<std::pair<std::string, std::vector<int64_t>>> ParseNamedSizes(std::string_view text);

// Returns the shortest text that ParseDouble turns into the same value: "0.1", "1", "1e+30",
// "-inf", "nan".
std::string FormatDouble(double value);

// Returns the least number of insertions, removals, replacements and swaps of neighbors that turn
// `a` into `b` (optimal string alignment). Time is the product of the lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the candidate that `word` was probably meant to be: the one with the fewest edits,
// ignoring case; the first one of equals. "": none is near enough, that is at most a third of the
// word's length in edits, and at least one edit is always allowed.
std::string Closest(std::string_view word, std::span<const std::string> candidates);

// Returns "; did you mean 'relu'?" for the end of a message, or "".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace ag
