#include "plan/format/recording.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "plan/format/problem_text.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

constexpr std::string_view kHeaderWord = "autograph-measurements ";

std::string FormatTimes(const Measurement& m, int64_t measured_unix_seconds) {
  return fmt::format("ns={} low={} high={} samples={} discarded={} canary={} time={}{}",
                     FormatDouble(m.latency.median_ns), FormatDouble(m.latency.low_ns),
                     FormatDouble(m.latency.high_ns), m.samples, m.discarded,
                     FormatDouble(m.canary_ns), measured_unix_seconds,
                     m.simulated ? " simulated=1" : "");
}

std::string FormatGroupTimes(const RecordedGroup& group) {
  const Measurement& m = group.measurement;
  std::string others;
  for (const auto& [kernel, ns] : m.alternatives) {
    others +=
        fmt::format("{}{}@{}", others.empty() ? "" : ",", EscapeWord(kernel), FormatDouble(ns));
  }
  const std::string busy =
      m.active_cores > 0 ? fmt::format(" active_cores={}", m.active_cores) : "";
  return fmt::format("{}{} kernel={} others={}", FormatTimes(m, group.measured_unix_seconds), busy,
                     EscapeWord(m.kernel), others);
}

StatusOr<double> TakeTime(std::string_view key, std::string_view* text) {
  AG_LET(const std::string word, TakeWord(key, text));
  const StatusOr<double> value = ParseDouble(word);
  if (!value.ok()) return Within(value.status(), key);
  return *value;
}

StatusOr<int64_t> TakeCount(std::string_view key, int64_t high, std::string_view* text) {
  AG_LET(const std::string word, TakeWord(key, text));
  const StatusOr<int64_t> value = ParseInt(word);
  if (!value.ok() || *value < 0 || *value > high) {
    return Invalid(fmt::format("{}: expected 0 to {}, got '{}'", key, high, word));
  }
  return *value;
}

// Parses "winograd@2300,repacked@2500".
Status ParseOthers(const std::string& text, Measurement* measurement) {
  if (text.empty()) return OkStatus();
  for (const std::string_view other : Split(text, ',')) {
    const size_t at = other.find('@');
    const StatusOr<double> ns = ParseDouble(at == other.npos ? "" : other.substr(at + 1));
    if (!ns.ok() || !(*ns > 0) || *ns > 1e18) {
      return Invalid(fmt::format("others: expected kernel@nanoseconds, got '{}'", other));
    }
    AG_LET(std::string kernel, UnescapeWord(other.substr(0, at)));
    measurement->alternatives.emplace_back(std::move(kernel), *ns);
  }
  return OkStatus();
}

// Parses the words that FormatTimes writes.
Status TakeTimes(std::string_view* text, Measurement* m, int64_t* measured_unix_seconds) {
  constexpr int64_t kCountMax = 1'000'000'000;
  constexpr int64_t kSecondsMax = 1'000'000'000'000;
  AG_LET(m->latency.median_ns, TakeTime("ns", text));
  AG_LET(m->latency.low_ns, TakeTime("low", text));
  AG_LET(m->latency.high_ns, TakeTime("high", text));
  AG_LET(const int64_t samples, TakeCount("samples", kCountMax, text));
  AG_LET(const int64_t discarded, TakeCount("discarded", kCountMax, text));
  m->samples = static_cast<int>(samples);
  m->discarded = static_cast<int>(discarded);
  AG_LET(m->canary_ns, TakeTime("canary", text));
  AG_LET(*measured_unix_seconds, TakeCount("time", kSecondsMax, text));
  if (!text->starts_with("simulated=")) return OkStatus();
  AG_LET(const int64_t simulated, TakeCount("simulated", 1, text));
  m->simulated = simulated == 1;
  return OkStatus();
}

StatusOr<RecordedGroup> ParseGroup(std::string_view text) {
  RecordedGroup group;
  Measurement& m = group.measurement;
  AG_TRY(TakeTimes(&text, &m, &group.measured_unix_seconds));
  if (text.starts_with("active_cores=")) {
    AG_LET(const int64_t busy, TakeCount("active_cores", kCoresMax, &text));
    m.active_cores = static_cast<int>(busy);
  }
  AG_LET(const std::string kernel, TakeWord("kernel", &text));
  AG_LET(m.kernel, UnescapeWord(kernel));
  AG_LET(const std::string others, TakeWord("others", &text));
  AG_TRY(ParseOthers(others, &m));
  AG_TRY(CheckMeasurement(m));
  AG_LET(group.problem, ParseGroupProblem(text));
  return group;
}

// Parses "groups=1,4 first=direct second=tiled"; the numbers count in `groups`.
StatusOr<PairProblem> ParsePair(std::string_view text, const std::vector<GroupProblem>& groups) {
  AG_LET(const std::string numbers, TakeWord("groups", &text));
  const std::vector<std::string_view> words = Split(numbers, ',');
  PairProblem pair;
  for (size_t i = 0; i < pair.groups.size(); ++i) {
    const StatusOr<int64_t> number = ParseInt(words.size() == 2 ? words[i] : "");
    if (!number.ok() || *number < 1 || *number > static_cast<int64_t>(groups.size())) {
      return Invalid(fmt::format("groups: expected two numbers from 1 to {}, got '{}'",
                                 groups.size(), numbers));
    }
    pair.groups[i] = groups[static_cast<size_t>(*number) - 1];
    AG_LET(const std::string kernel, TakeWord(i == 0 ? "first" : "second", &text));
    AG_LET(pair.kernels[i], UnescapeWord(kernel));
  }
  if (!text.empty()) return Invalid(fmt::format("expected no more words, got '{}'", text));
  pair = MakePair(std::move(pair));
  const Status checked = CheckPairProblem(pair);
  if (!checked.ok()) return Invalid(Message(checked));
  return pair;
}

class Parser {
 public:
  StatusOr<Recording> Parse(std::string_view text) {
    int number = 0;
    for (const std::string_view line : Split(text, '\n')) {
      ++number;
      if (number == 1 && line != kRecordingHeader) {
        return Invalid(
            fmt::format("line 1: expected '{}', got '{}'", kRecordingHeader, line.substr(0, 40)));
      }
      spec_text_ += "\n";
      if (number > 1) AG_TRY(ParseLine(line, number), "line {}", number);
    }
    if (has_spec_) {
      AG_LET(recording_.spec, ParseDeviceSpec(std::string_view(spec_text_).substr(1)));
    }
    return std::move(recording_);
  }

 private:
  Status ParseLine(std::string_view line, int number) {
    if (line.empty() || line[0] == '#') return OkStatus();
    const size_t blank = line.find(' ');
    const std::string_view word = line.substr(0, blank);
    const std::string_view rest = blank == line.npos ? "" : line.substr(blank + 1);
    if (word == "environment") {
      environment_ = rest;
      return rest.empty() ? Invalid("environment: expected a value") : OkStatus();
    }
    if (word == "group") return AddGroup(rest, number);
    if (word == "pair") return AddPair(rest, number);
    if (word != "spec") {
      return Invalid(fmt::format("expected spec, environment, group or pair, got '{}'", word));
    }
    // The spec's own parser names lines, so each line keeps its place in the file.
    spec_text_ += rest;
    has_spec_ = true;
    return OkStatus();
  }

  Status AddGroup(std::string_view text, int number) {
    if (environment_.empty()) return Invalid("group: no environment was said before");
    AG_LET(RecordedGroup group, ParseGroup(text));
    group.environment = environment_;
    const std::string bytes = EncodeGroupProblem(group.problem);
    const auto [known, is_new] = lines_.emplace(GroupKey(bytes, environment_), number);
    if (!is_new) return Invalid(fmt::format("the group of line {} again", known->second));
    counted_[environment_].push_back(group.problem);
    recording_.groups.push_back(std::move(group));
    return OkStatus();
  }

  Status AddPair(std::string_view text, int number) {
    if (environment_.empty()) return Invalid("pair: no environment was said before");
    RecordedPair pair;
    pair.environment = environment_;
    AG_TRY(TakeTimes(&text, &pair.measurement, &pair.measured_unix_seconds));
    AG_TRY(CheckMeasurement(pair.measurement));
    AG_LET(pair.problem, ParsePair(text, counted_[environment_]));
    const Digest key = GroupKey(EncodePairProblem(pair.problem), environment_);
    const auto [known, is_new] = lines_.emplace(key, number);
    if (!is_new) return Invalid(fmt::format("the pair of line {} again", known->second));
    recording_.pairs.push_back(std::move(pair));
    return OkStatus();
  }

  Recording recording_;
  Environment environment_;
  std::string spec_text_;
  bool has_spec_ = false;
  std::map<Environment, std::vector<GroupProblem>> counted_;  // In the order of their lines.
  std::map<Digest, int> lines_;
};

// A group as its line, and its bytes, by which pairs find it.
struct RecordedGroupLine {
  std::string problem;
  std::string times;
  std::string bytes;
  auto operator<=>(const RecordedGroupLine&) const = default;
};

// Returns the lines of the pairs whose groups are in `groups`, in order.
std::vector<std::string> PairLines(const std::vector<const RecordedPair*>& pairs,
                                   const std::vector<RecordedGroupLine>& groups) {
  std::map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < groups.size(); ++i) numbers.emplace(groups[i].bytes, i + 1);
  std::vector<std::tuple<size_t, size_t, std::string>> lines;
  for (const RecordedPair* pair : pairs) {
    const auto first = numbers.find(EncodeGroupProblem(pair->problem.groups[0]));
    const auto second = numbers.find(EncodeGroupProblem(pair->problem.groups[1]));
    if (first == numbers.end() || second == numbers.end()) continue;
    lines.emplace_back(
        first->second, second->second,
        fmt::format("{} groups={},{} first={} second={}",
                    FormatTimes(pair->measurement, pair->measured_unix_seconds), first->second,
                    second->second, EscapeWord(pair->problem.kernels[0]),
                    EscapeWord(pair->problem.kernels[1])));
  }
  std::ranges::sort(lines);
  std::vector<std::string> sorted;
  for (auto& [a, b, line] : lines) sorted.push_back(std::move(line));
  return sorted;
}

}  // namespace

bool IsRecording(std::string_view text) { return text.starts_with(kHeaderWord); }

std::string FormatRecording(const Recording& recording) {
  std::string text = std::string(kRecordingHeader) + "\n";
  if (recording.spec.has_value()) {
    DeviceSpec spec = *recording.spec;
    spec.extra.clear();
    const std::string spec_text = FormatDeviceSpec(spec);
    for (const std::string_view line : Split(Trim(spec_text), '\n')) {
      text += fmt::format("spec {}\n", line);
    }
  }
  std::map<Environment, std::vector<RecordedGroupLine>> groups;
  for (const RecordedGroup& group : recording.groups) {
    groups[group.environment].push_back({FormatGroupProblem(group.problem), FormatGroupTimes(group),
                                         EncodeGroupProblem(group.problem)});
  }
  std::map<Environment, std::vector<const RecordedPair*>> pairs;
  for (const RecordedPair& pair : recording.pairs) pairs[pair.environment].push_back(&pair);
  for (auto& [environment, lines] : groups) {
    std::ranges::sort(lines);
    text += fmt::format("environment {}\n", environment);
    for (const RecordedGroupLine& line : lines) {
      text += fmt::format("group {} {}\n", line.times, line.problem);
    }
    for (const std::string& line : PairLines(pairs[environment], lines)) {
      text += fmt::format("pair {}\n", line);
    }
  }
  return text;
}

StatusOr<Recording> ParseRecording(std::string_view text) { return Parser().Parse(text); }

}  // namespace ag
