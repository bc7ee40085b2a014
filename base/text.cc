#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace ag {
namespace {

template <class T>
StatusOr<T> ParseNumber(std::string_view text, std::string_view noun) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && rest == end) {
    return Err(StatusCode::kInvalidArgument, "'{}' is out of range for {}", text, noun);
  }
  if (error != std::errc() || rest != end) {
    return Err(StatusCode::kInvalidArgument, "expected {}, got '{}'", noun, text);
  }
  return value;
}

// ASCII only, so independent of the locale.
std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

StatusOr<int64_t> ParseInt(std::string_view text) {
  return ParseNumber<int64_t>(text, "a whole number");
}

StatusOr<double> ParseDouble(std::string_view text) {
  return ParseNumber<double>(text, "a number");
}

StatusOr<std::pair<std::string, std::vector<int64_t>>> ParseNamedSizes(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Err(StatusCode::kInvalidArgument, "{}: expected NAME=1x3x224x224", text);
  }
  std::vector<int64_t> sizes;
  for (const std::string_view part : Split(text.substr(equals + 1), 'x')) {
    const auto size = ParseInt(part);
    if (!size.ok() || *size < 0) {
      return Err(StatusCode::kInvalidArgument, "{}: \"{}\" is not a size", text, part);
    }
    sizes.push_back(*size);
  }
  return std::make_pair(std::string(text.substr(0, equals)), std::move(sizes));
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";  // The sign and payload of a NaN mean nothing.
  std::array<char, 32> text;            // The longest is "-2.2250738585072014e-308", 24 characters.
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  AG_CHECK(error == std::errc());
  return std::string(text.data(), end);
}

size_t EditDistance(std::string_view a, std::string_view b) {
  // Row i holds the distances of a's first i characters to every prefix of b.
  std::vector<size_t> row(b.size() + 1);
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> before_previous(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_previous.swap(previous);
    previous.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, previous[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_previous[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string Closest(std::string_view word, std::span<const std::string> candidates) {
  const std::string lower = LowerCase(word);
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= best_distance) continue;
    const size_t distance = EditDistance(lower, LowerCase(candidate));
    if (distance >= best_distance || distance >= longer) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string closest = Closest(word, candidates);
  return closest.empty() ? "" : fmt::format("; did you mean '{}'?", closest);
}

}  // namespace ag
