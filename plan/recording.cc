#include "plan/recording.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "plan/problem_text.h"

namespace ag {
namespace {

constexpr std::string_view kHeaderWord = "autograph-measurements ";

Status Invalid(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

std::string FormatTimes(const RecordedGroup& group) {
  const Measurement& m = group.measurement;
  std::string others;
  for (const auto& [kernel, ns] : m.alternatives) {
    others +=
        fmt::format("{}{}@{}", others.empty() ? "" : ",", EscapeWord(kernel), FormatDouble(ns));
  }
  return fmt::format(
      "ns={} low={} high={} samples={} discarded={} canary={} time={}{} kernel={} others={}",
      FormatDouble(m.latency.median_ns), FormatDouble(m.latency.low_ns),
      FormatDouble(m.latency.high_ns), m.samples, m.discarded, FormatDouble(m.canary_ns),
      group.measured_unix_seconds, m.simulated ? " simulated=1" : "", EscapeWord(m.kernel), others);
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

// "winograd@2300,repacked@2500"
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

StatusOr<RecordedGroup> ParseGroup(std::string_view text) {
  constexpr int64_t kCountMax = 1'000'000'000;
  constexpr int64_t kSecondsMax = 1'000'000'000'000;
  RecordedGroup group;
  Measurement& m = group.measurement;
  AG_LET(m.latency.median_ns, TakeTime("ns", &text));
  AG_LET(m.latency.low_ns, TakeTime("low", &text));
  AG_LET(m.latency.high_ns, TakeTime("high", &text));
  AG_LET(const int64_t samples, TakeCount("samples", kCountMax, &text));
  AG_LET(const int64_t discarded, TakeCount("discarded", kCountMax, &text));
  m.samples = static_cast<int>(samples);
  m.discarded = static_cast<int>(discarded);
  AG_LET(m.canary_ns, TakeTime("canary", &text));
  AG_LET(group.measured_unix_seconds, TakeCount("time", kSecondsMax, &text));
  if (text.starts_with("simulated=")) {
    AG_LET(const int64_t simulated, TakeCount("simulated", 1, &text));
    m.simulated = simulated == 1;
  }
  AG_LET(const std::string kernel, TakeWord("kernel", &text));
  AG_LET(m.kernel, UnescapeWord(kernel));
  AG_LET(const std::string others, TakeWord("others", &text));
  AG_TRY(ParseOthers(others, &m));
  AG_TRY(CheckMeasurement(m));
  AG_LET(group.problem, ParseGroupProblem(text));
  return group;
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
    if (word != "spec") {
      return Invalid(fmt::format("expected spec, environment or group, got '{}'", word));
    }
    // The spec's own parser names the line: each of its lines stays where it is in the file.
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
    recording_.groups.push_back(std::move(group));
    return OkStatus();
  }

  Recording recording_;
  Environment environment_;
  std::string spec_text_;
  bool has_spec_ = false;
  std::map<Digest, int> lines_;
};

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
  std::vector<std::pair<Environment, std::pair<std::string, std::string>>> lines;
  for (const RecordedGroup& group : recording.groups) {
    lines.push_back({group.environment, {FormatGroupProblem(group.problem), FormatTimes(group)}});
  }
  std::ranges::sort(lines);
  const Environment* environment = nullptr;
  for (const auto& [of, line] : lines) {
    if (environment == nullptr || *environment != of) text += fmt::format("environment {}\n", of);
    environment = &of;
    text += fmt::format("group {} {}\n", line.second, line.first);
  }
  return text;
}

StatusOr<Recording> ParseRecording(std::string_view text) { return Parser().Parse(text); }

}  // namespace ag
