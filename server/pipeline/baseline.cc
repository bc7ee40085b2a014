#include "server/pipeline/baseline.h"

namespace ag {
namespace {

constexpr int kBlocksMax = 21;
constexpr double kFreshLow = 0.97, kFreshHigh = 1.03;

// Places of the files in one set; -1: it is not in it.
struct Places {
  int onnxruntime_input = -1;
  int untuned = -1;
  int output = -1;
  int second = -1;  // The output once more, in a process of its own.
  int onnxruntime_output = -1;
};

int Add(v1::FileSet& set, const Digest& file, bool in_onnxruntime) {
  v1::FileToTime* added = set.add_files();
  added->set_digest(file.Hex());
  added->set_in_onnxruntime(in_onnxruntime);
  return set.files_size() - 1;
}

// `request` has shapes, inputs and seconds.
v1::FileSet SetOf(const auto& request) {
  v1::FileSet set;
  *set.mutable_shapes() = request.shapes;
  set.set_inputs(request.inputs);
  set.set_seconds_max(request.seconds);
  set.set_blocks_max(kBlocksMax);
  return set;
}

// Beside ONNX Runtime our untuned session is timed in a set of its own: two of our sessions at once
// are enough for the memory of a large model.
bool IsOneSetEnough(const BaselineRequest& request) {
  return request.onnxruntime.empty() || request.output == request.input;
}

Places AddFiles(const BaselineRequest& request, v1::FileSet& set) {
  Places places;
  const bool is_input = request.output == request.input;
  if (!request.onnxruntime.empty()) places.onnxruntime_input = Add(set, request.input, true);
  if (request.runs_here) {
    if (IsOneSetEnough(request)) places.untuned = Add(set, request.input, false);
    if (!is_input) places.output = Add(set, request.output, false);
    places.second = Add(set, request.output, false);
  }
  if (is_input) places.output = places.untuned;
  // ONNX Runtime on an unchanged graph is today's way, no gain of ours; for a model that runs
  // nowhere else it stands for the output all the same.
  if (!request.onnxruntime.empty() && request.rewritten) {
    places.onnxruntime_output = Add(set, request.output, true);
  } else if (!request.runs_here) {
    places.onnxruntime_output = places.onnxruntime_input;
  }
  return places;
}

class Reading {
 public:
  Reading(const FileTimes& times, const Places& places) : times_(times), places_(places) {}

  bool Has(int place) const { return place >= 0 && times_.HasTimes(static_cast<size_t>(place)); }
  Latency Of(int place) const { return LatencyOf(times_, static_cast<size_t>(place)); }
  // Nothing for one and the same process.
  std::optional<Ratio> Over(int baseline, int file) const {
    if (baseline == file || !Has(baseline) || !Has(file)) return std::nullopt;
    return RatioOf(times_, static_cast<size_t>(baseline), static_cast<size_t>(file));
  }
  bool IsOnnxRuntime(int place) const {
    return place == places_.onnxruntime_input || place == places_.onnxruntime_output;
  }
  std::string RuntimeOf(int place) const {
    if (!IsOnnxRuntime(place)) return std::string(kOurRuntime);
    return "ONNX Runtime " + times_.runners[static_cast<size_t>(place)].version;
  }

 private:
  const FileTimes& times_;
  const Places& places_;
};

void NoteFailures(const FileTimes& times, const Places& places, BaselineResult* result) {
  const std::pair<int, const char*> kNamed[] = {
      {places.onnxruntime_input, "ONNX Runtime on the input"},
      {places.untuned, "our session on the input"},
      {places.output, "our session on the output"},
      {places.onnxruntime_output, "ONNX Runtime on the output"},
  };
  int noted = -1;
  for (const auto& [place, what] : kNamed) {
    if (place < 0 || place == noted) continue;
    const Status& status = times.runners[static_cast<size_t>(place)].status;
    if (!status.ok()) result->notes.push_back(fmt::format("{}: {}", what, Message(status)));
    noted = place;
  }
}

// The place where the output is fastest; -1: nowhere.
int FastestOutput(const Reading& reading, const Places& places) {
  const int ours = places.output, theirs = places.onnxruntime_output;
  if (!reading.Has(theirs)) return reading.Has(ours) ? ours : -1;
  if (!reading.Has(ours)) return theirs;
  return reading.Of(theirs).median_ns < reading.Of(ours).median_ns ? theirs : ours;
}

// What is today's and what is the output's is one and the same when nothing was changed and ONNX
// Runtime is the faster of both.
void Conclude(const Reading& reading, const Places& places, BaselineResult* result) {
  const int today =
      reading.Has(places.onnxruntime_input) ? places.onnxruntime_input : places.untuned;
  const int output = FastestOutput(reading, places);
  if (!reading.Has(today) || output < 0) return;
  result->baseline = reading.RuntimeOf(today);
  if (today == places.untuned) result->baseline += ", untuned";
  result->output_runtime = reading.RuntimeOf(output);
  result->output_in_onnxruntime = reading.IsOnnxRuntime(output);
  result->input_latency = reading.Of(today);
  result->output_latency = reading.Of(output);
  const std::optional<Ratio> over = reading.Over(today, output);
  if (over) result->speedup = *over;
  result->verdict = IsFaster(result->speedup) ? v1::Result::FASTER : v1::Result::NO_GAIN_FOUND;
  if (today == places.onnxruntime_input) result->over_onnxruntime = over;
}

// Everything but `over_untuned` where that needs a set of its own.
StatusOr<BaselineResult> CompareInOneSet(const BaselineRequest& request, PoolMeasurer& measurer) {
  BaselineResult result;
  v1::FileSet set = SetOf(request);
  const Places places = AddFiles(request, set);
  if (set.files().empty()) return result;
  StatusOr<FileTimes> timed = measurer.TimeFiles(std::move(set));
  if (timed.status().code() == StatusCode::kDeadlineExceeded) {
    result.is_time_over = true;
    result.notes.push_back("the budget is too short: " + Message(timed.status()));
    return result;
  }
  AG_LET(FileTimes times, std::move(timed));
  if (request.carries_plan && places.output >= 0) {
    FileRunner& runner = times.runners[static_cast<size_t>(places.output)];
    if (runner.status.ok() && !runner.carried_plan) {
      runner.status = Err(StatusCode::kInternal, "a fresh session does not run the file's plan");
    }
  }
  NoteFailures(times, places, &result);
  const Reading reading(times, places);
  Conclude(reading, places, &result);
  result.over_untuned = reading.Over(places.untuned, places.output);
  result.fresh_session = reading.Over(places.output, places.second);
  return result;
}

// ONNX Runtime does not run the input: then today's way is our session.
StatusOr<BaselineResult> CompareWithoutOnnxRuntime(BaselineRequest request,
                                                   const std::vector<std::string>& notes,
                                                   PoolMeasurer& measurer) {
  request.onnxruntime.clear();
  AG_LET(BaselineResult result, CompareInOneSet(request, measurer));
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace

StatusOr<BaselineResult> CompareWithBaseline(const BaselineRequest& request,
                                             PoolMeasurer& measurer) {
  const Nanos before = request.time_left ? request.time_left() : Nanos::max();
  AG_LET(BaselineResult result, CompareInOneSet(request, measurer));
  if (IsOneSetEnough(request) || !request.runs_here || result.is_time_over) return result;
  if (result.verdict == v1::Result::NOT_MEASURED) {
    return CompareWithoutOnnxRuntime(request, result.notes, measurer);
  }
  const Nanos left = request.time_left ? request.time_left() : Nanos::max();
  if (left <= Nanos{0} || left < before - left) {
    result.notes.push_back("our untuned session on the input: the budget is spent");
    return result;
  }
  const FilePair ours{.before = request.input,
                      .after = request.output,
                      .shapes = request.shapes,
                      .seconds = request.seconds,
                      .inputs = request.inputs};
  const StatusOr<Ratio> over_untuned = CompareFiles(ours, measurer);
  if (over_untuned.status().code() == StatusCode::kCancelled) return over_untuned.status();
  if (over_untuned.ok()) {
    result.over_untuned = *over_untuned;
  } else {
    result.notes.push_back("our sessions: " + Message(over_untuned.status()));
  }
  return result;
}

BaselineResult UnchangedInput(const BaselineResult& measured) {
  if (measured.verdict == v1::Result::NOT_MEASURED) return measured;
  BaselineResult result;
  result.verdict = v1::Result::NO_GAIN_FOUND;
  result.baseline = measured.baseline;
  result.output_in_onnxruntime = !measured.baseline.starts_with(kOurRuntime);
  result.output_runtime = result.output_in_onnxruntime ? measured.baseline : kOurRuntime;
  result.input_latency = result.output_latency = measured.input_latency;
  result.notes = {"our session on the input alone: the budget is spent"};
  return result;
}

bool AgreesWithFreshSession(const BaselineResult& result) {
  if (!result.fresh_session) return true;
  const Ratio& ratio = *result.fresh_session;
  return (ratio.low <= 1 && ratio.high >= 1) ||
         (ratio.low >= kFreshLow && ratio.high <= kFreshHigh);
}

StatusOr<Ratio> CompareFiles(const FilePair& pair, PoolMeasurer& measurer) {
  v1::FileSet set = SetOf(pair);
  Add(set, pair.before, pair.in_onnxruntime);
  Add(set, pair.after, pair.in_onnxruntime);
  set.mutable_files(0)->set_plan(pair.plan_before);
  AG_LET(const FileTimes times, measurer.TimeFiles(std::move(set)));
  for (const FileRunner& runner : times.runners) AG_TRY(runner.status);
  if (times.blocks.empty()) return Err(StatusCode::kInternal, "no block of files was timed");
  return RatioOf(times, 0, 1);
}

}  // namespace ag
