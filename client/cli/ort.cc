#include "client/cli/ort.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/thread.h"
#include "client/cli/context.h"
#include "client/cli/timing_text.h"
#include "device/api/device_name.h"
#include "device/profile/profile.h"
#include "runtime/timing/time_files.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBlocksMax = 45;  // As for whole plans (device/profile).
constexpr double kEffectMin = 0.01;

}  // namespace

StatusOr<OrtTimes> TimeInOrt(const OrtRequest& request) {
  AG_CHECK(request.models.size() == 1 || request.models.size() == 2);
  TimeFilesRequest to_time;
  for (const std::string& model : request.models) {
    to_time.files.push_back({model, FileRuntime::kOnnxRuntime});
  }
  for (const std::string& text : request.shapes) {
    AG_LET(const auto shape, ParseNamedSizes(text));
    to_time.shapes[shape.first] = Shape(shape.second.begin(), shape.second.end());
  }
  for (const auto& [name, tensor] : request.inputs) {
    to_time.shapes.emplace(name, tensor.type().shape);
  }
  AG_LET(const TempDir folder, TempDir::Make("autograph-inputs"));
  to_time.inputs = folder.path() + "/inputs";
  AG_TRY(WriteFileAtomically(to_time.inputs, EncodeInputSet(request.inputs)));
  to_time.threads = request.threads;
  to_time.seconds = request.seconds;
  to_time.blocks_max = kBlocksMax;
  to_time.answer_max = request.start_max;
  to_time.stop = [] { return StopSignal() != 0; };
  AG_LET(const FileTimes measured, TimeFiles(to_time));
  for (const FileRunner& runner : measured.runners) AG_TRY(runner.status);
  if (measured.blocks.empty()) return Err(StatusCode::kInternal, "ONNX Runtime took no times");
  OrtTimes times;
  times.version = measured.runners[0].version;
  times.threads = request.threads;
  times.first = LatencyOf(measured, 0);
  times.second.latency = times.first;
  times.second.blocks = static_cast<int>(measured.blocks.size());
  if (request.models.size() == 1) return times;
  times.second.latency = LatencyOf(measured, 1);
  const Ratio ratio = RatioOf(measured, 0, 1);
  times.second.speedup = ratio.median;
  times.second.speedup_low = ratio.low;
  times.second.speedup_high = ratio.high;
  times.second.verdict = Judge(ratio.low, ratio.high, kEffectMin);
  return times;
}

int OrtThreads(const std::string& device) {
  const StatusOr<DeviceName> name = ParseDeviceName(device);
  const bool cores = name.ok() && name->kind == DeviceName::Kind::kCpu && name->cores > 0;
  return cores ? name->cores : UsableCores();
}

bool WantsOrt(const OrtFlags& flags, const std::string& device) {
  if (flags.mode == "off") return false;
  if (flags.mode == "require") return true;
  const StatusOr<DeviceName> name = ParseDeviceName(device);
  return name.ok() && name->kind == DeviceName::Kind::kCpu;
}

Status CheckOrt(const OrtFlags& flags) {
  if (flags.mode != "require") return OkStatus();
  const Status found = FindOnnxRuntime().status();
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
               {std::string(first) + "_latency", LatencyJson(times->first)}};
  const PlanTiming& t = times->second;
  if (second == nullptr) return json;
  json[std::string(second) + "_latency"] = LatencyJson(t.latency);
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
