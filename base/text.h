// Small string helpers: taking text apart, numbers as text, and "did you mean". Pure functions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ag {

// The pieces between separators, empty ones included: Split("a,,b", ',') is {"a", "", "b"} and
// Split("", ',') is {""}. The pieces point into `text`.
std::vector<std::string_view> Split(std::string_view text, char separator);

// `text` without white space at both ends.
std::string_view Trim(std::string_view text);

// The items as fmt prints them, with `separator` between them: Join(ints, "x") is "1x3x224x224".
template <class Range>
std::string Join(const Range& items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

// The whole of `text` as a decimal number; no white space and no '+'. kInvalidArgument, with the
// text in the message, when it is something else or out of range.
StatusOr<int64_t> ParseInt(std::string_view text);
StatusOr<double> ParseDouble(std::string_view text);  // Also inf, -inf and nan.

// The shortest text that ParseDouble turns into the same value: "0.1", "1", "1e+30", "-inf", "nan".
std::string FormatDouble(double value);

// The least number of insertions, removals, replacements and swaps of neighbors between `a` and `b`
// (optimal string alignment). Time is the product of the lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate that `word` was most likely meant to be: case is ignored first, then the fewest
// edits, at most a third of the word's length and at least one; of equals the first. "": none.
std::string Closest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'relu'?" for the end of a message, or "".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace ag
