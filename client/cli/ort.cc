#include "client/cli/ort.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/measuring_lock.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/text.h"
#include "client/cli/context.h"
#include "client/cli/timing_text.h"
#include "device/api/device_name.h"
#include "device/cpu/host.h"
#include "device/profile/interval.h"
#include "device/profile/profile.h"
#include "embedded/cli_scripts.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

// As for finals (device/profile): fewer blocks than this say nothing, and FASTER must be sure.
constexpr int kBlocksMin = 9;
constexpr int kBlocksMax = 45;
constexpr double kRatioConfidence = 0.998;
constexpr double kEffectMin = 0.01;

// The first program of this name in PATH; a name with a slash is a path already.
StatusOr<std::string> FindProgram(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else if (const char* path = std::getenv("PATH"); path != nullptr) {
    for (const std::string_view folder : Split(path, ':')) {
      if (!folder.empty()) candidates.push_back(std::string(folder) + "/" + name);
    }
  }
  for (const std::string& candidate : candidates) {
    std::error_code error;
    if (!std::filesystem::is_directory(candidate, error) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return Err(StatusCode::kNotFound, "there is no {} to ask for ONNX Runtime", name);
}

StatusOr<std::string> FindPython() {
  const char* chosen = std::getenv("AUTOGRAPH_PYTHON");
  return FindProgram(chosen != nullptr && *chosen != 0 ? chosen : "python3");
}

// What the child writes until it closes its end.
StatusOr<std::string> ReadAnswer(const ChildProcess& child, Nanos time_max) {
  constexpr size_t kAnswerMax = size_t{4} << 20;
  constexpr int kPollMs = 50;
  const Nanos begin = RealClock().Now();
  std::string answer;
  while (answer.size() < kAnswerMax) {
    if (StopSignal() != 0) return Err(StatusCode::kCancelled, "interrupted");
    if (RealClock().Now() - begin > time_max) {
      return Err(StatusCode::kDeadlineExceeded, "ONNX Runtime did not answer in {:.0f} s",
                 std::chrono::duration<double>(time_max).count());
    }
    pollfd waiting = {child.socket(), POLLIN, 0};
    if (poll(&waiting, 1, kPollMs) <= 0) continue;
    char piece[4096];
    const ssize_t size = recv(child.socket(), piece, sizeof(piece), 0);
    if (size <= 0) return answer;
    answer.append(piece, static_cast<size_t>(size));
  }
  return Err(StatusCode::kInternal, "ONNX Runtime's script wrote more than it may");
}

StatusOr<Json> Ask(const Json& request, Nanos time_max) {
  AG_LET(const std::string python, FindPython());
  const std::string script(CliScripts().front().text);
  AG_LET(ChildProcess child, ChildProcess::Spawn({python, {"-c", script, request.dump()}, {}}));
  AG_LET(const std::string text, ReadAnswer(child, time_max));
  const Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    const Status ended = child.WaitFor(std::chrono::seconds(1));
    return Err(StatusCode::kInternal, "{} gave no answer about ONNX Runtime{}{}", python,
               ended.ok() ? "" : ": ", Message(ended));
  }
  const auto said = [&](const char* key) { return answer[key].get<std::string>(); };
  const auto has = [&](const char* key) { return answer.contains(key) && answer[key].is_string(); };
  if (has("missing")) {
    return Err(StatusCode::kNotFound, "ONNX Runtime is not installed for {}: {}", python,
               said("missing"));
  }
  if (has("error")) return Err(StatusCode::kInvalidArgument, "ONNX Runtime: {}", said("error"));
  if (!has("version")) {
    return Err(StatusCode::kInternal, "{} gave an answer without a version", python);
  }
  return answer;
}

// Blocks of `places` times each, all of them finite and above 0.
StatusOr<std::vector<std::vector<double>>> BlocksOf(const Json& answer, size_t places) {
  std::vector<std::vector<double>> blocks;
  const Json list = answer.value("blocks", Json::array());
  for (const Json& block : list) {
    std::vector<double> ns;
    for (const Json& time : block) {
      if (time.is_number()) ns.push_back(time.get<double>());
    }
    const bool valid = std::ranges::all_of(ns, [](double t) { return std::isfinite(t) && t > 0; });
    if (!valid || ns.size() != places) {
      return Err(StatusCode::kInternal, "ONNX Runtime's script answered with times that are none");
    }
    blocks.push_back(std::move(ns));
  }
  if (blocks.empty()) return Err(StatusCode::kInternal, "ONNX Runtime's script took no times");
  return blocks;
}

OrtTimes Evaluate(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> first, second, ratios;
  for (const std::vector<double>& b : blocks) {
    first.push_back(b.front());
    if (b.size() == 1) continue;
    first.push_back(b[3]);
    second.insert(second.end(), {b[1], b[2]});
    ratios.push_back((b[0] + b[3]) / (b[1] + b[2]));
  }
  OrtTimes times;
  times.first = Summarize(first, 1);
  times.second.latency = times.first;
  times.second.blocks = static_cast<int>(blocks.size());
  if (ratios.empty()) return times;
  times.second.latency = Summarize(second, 1);
  const Latency ratio = MedianInterval(ratios, kRatioConfidence);
  times.second.speedup = ratio.median_ns;
  times.second.speedup_low = ratio.low_ns;
  times.second.speedup_high = ratio.high_ns;
  times.second.verdict = times.second.blocks < kBlocksMin
                             ? Verdict::kAmbiguous
                             : Judge(ratio.low_ns, ratio.high_ns, kEffectMin);
  return times;
}

}  // namespace

StatusOr<OrtTimes> TimeInOrt(const OrtRequest& request) {
  AG_CHECK(request.models.size() == 1 || request.models.size() == 2);
  Json shapes = Json::object();
  for (const std::string& text : request.shapes) {
    AG_LET(const auto shape, ParseShapeFlag(text));
    shapes[shape.first] = shape.second;
  }
  const Json asked = {{"models", request.models},
                      {"threads", request.threads},
                      {"seconds", request.seconds},
                      {"blocks_max", kBlocksMax},
                      {"shapes", shapes}};
  const Nanos sampling(static_cast<int64_t>(request.seconds * 1e9));
  AG_LET(const FileLock alone, FileLock::Wait(MeasuringLockPath(), FileLock::Mode::kExclusive));
  AG_LET(const Json answer, Ask(asked, sampling + request.start_max));
  AG_LET(const auto blocks, BlocksOf(answer, request.models.size() == 2 ? 4 : 1));
  OrtTimes times = Evaluate(blocks);
  times.version = answer["version"].get<std::string>();
  times.threads = request.threads;
  return times;
}

StatusOr<std::string> FindOrt() {
  const Json asked = {{"models", Json::array()}, {"shapes", Json::object()}};
  AG_LET(const Json answer, Ask(asked, OrtRequest().start_max));
  return answer["version"].get<std::string>();
}

int OrtThreads(const std::string& device) {
  const StatusOr<DeviceName> name = ParseDeviceName(device);
  const bool cores = name.ok() && name->kind == DeviceName::Kind::kCpu && name->cores > 0;
  return cores ? name->cores : cpu::UsableCores();
}

bool WantsOrt(const OrtFlags& flags, const std::string& device) {
  if (flags.mode == "off") return false;
  if (flags.mode == "require") return true;
  const StatusOr<DeviceName> name = ParseDeviceName(device);
  return name.ok() && name->kind == DeviceName::Kind::kCpu;
}

Status CheckOrt(const OrtFlags& flags) {
  if (flags.mode != "require") return OkStatus();
  const Status found = FindOrt().status();
  if (found.ok() || found.code() == StatusCode::kCancelled) return found;
  return Err(StatusCode::kUnavailable,
             "{}; install it (pip install onnxruntime), name a Python that has it in "
             "AUTOGRAPH_PYTHON, or leave --ort require out",
             Message(found));
}

std::string OrtAbsence(const Status& status, bool dim) {
  const std::string line = fmt::format("no times from ONNX Runtime: {}", Message(status));
  return dim ? "\033[2m" + line + "\033[0m" : line;
}

Json OrtJson(const StatusOr<OrtTimes>& times, const char* first, const char* second) {
  if (!times.ok()) return {{"error", Message(times.status())}};
  Json json = {{"version", times->version},
               {"threads", times->threads},
               {std::string(first) + "_latency_ms", LatencyJson(times->first)}};
  const PlanTiming& t = times->second;
  if (second == nullptr) return json;
  json[std::string(second) + "_latency_ms"] = LatencyJson(t.latency);
  json["speedup"] = t.speedup;
  json["speedup_low"] = t.speedup_low;
  json["speedup_high"] = t.speedup_high;
  json["verdict"] = VerdictName(t.verdict);
  json["blocks"] = t.blocks;
  return json;
}

std::string OrtText(const OrtTimes& times, const char* first, const char* second) {
  std::string text = fmt::format("{} {:.3f} ms", first, times.first.median_ns / 1e6);
  const PlanTiming& t = times.second;
  if (second != nullptr) {
    text += fmt::format(", {} {:.3f} ms: {:.3f}x ({:.3f} to {:.3f}) {}", second,
                        t.latency.median_ns / 1e6, t.speedup, t.speedup_low, t.speedup_high,
                        VerdictName(t.verdict));
  }
  return text + fmt::format("  [{}, {} threads]", times.version, times.threads);
}

}  // namespace ag
