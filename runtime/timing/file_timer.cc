#include "runtime/timing/file_timer.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/build_facts.h"
#include "base/frames.h"
#include "base/handle.h"
#include "base/log.h"
#include "base/process.h"
#include "graph/inputs/input_set.h"
#include "graph/onnx/files/model_view.h"
#include "runtime/session.h"
#include "runtime/timing/time_files.h"
#include "runtime/timing/timer_process.h"

namespace ag {
namespace internal {

namespace {

// Allocations from this size on go back to the system when they are freed.
constexpr int kLargeBytes = 256 << 10;
constexpr uint64_t kSeed = 1;

// A session with data to run on.
struct Loaded {
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs, outputs;
  bool cold_cache = false;

  // Returns the mean time of the place's runs.
  StatusOr<double> MeanNs(const Place& place) {
    Executable& executable = session->executable();
    if (cold_cache) return executable.Time({inputs, outputs, 1, Caches::kEvicted});
    if (place.warm && !session->device().simulated()) AG_TRY(executable.Run(inputs, outputs));
    return executable.Time({inputs, outputs, place.runs});
  }
};

// Takes the inputs from the set, where there is one.
Status MakeInputs(const FileTimerRequest& request, Loaded* loaded) {
  std::vector<InputSpec> specs;
  for (const TensorInfo& info : loaded->session->inputs()) {
    specs.push_back({.name = info.name, .type = info.type});
    loaded->inputs.push_back(RandomTensor(info.type, kSeed + loaded->inputs.size()));
  }
  if (request.inputs.empty()) return OkStatus();
  AG_LET(const InputSet set, ReadInputSet(request.inputs));
  return TakeFromSet(set, specs, &loaded->inputs);
}

StatusOr<Loaded> Load(const FileTimerRequest& request) {
  AG_LET(const std::shared_ptr<const ModelView> file, ModelView::Open(request.path));
  SessionOptions options{.device = request.device, .shapes = request.shapes, .owner = file};
  options.plan_bytes = request.plan;
  // Gives back memory that only loading needs, since several such processes live at once. Pages of
  // the file that runs still read come again from the page cache.
  options.drop_pages = [file = file.get()] { file->DropPages(); };
  Loaded loaded;
  loaded.cold_cache = request.cold_cache;
  AG_LET(loaded.session, Session::Load(file->bytes(), options));
  AG_TRY(MakeInputs(request, &loaded));
  loaded.outputs = loaded.session->NewOutputs();
  malloc_trim(0);
  file->DropPages();
  return loaded;
}

bool Say(FILE* channel, const std::string& line) {
  return std::fputs((line + "\n").c_str(), channel) >= 0 && std::fflush(channel) == 0;
}

std::string ErrorLine(const Status& status) {
  std::string text = Message(status);
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return "error " + text;
}

// Answers requests until the other side closes its end.
Status Serve(int socket) {
  AG_LET(const Frame frame, ReceiveFrame(socket));
  AG_LET(const FileTimerRequest request, DecodeFields<FileTimerRequest>(frame.payload));
  // Uses two streams over one socket, because one stdio stream cannot both read and write it.
  FILE* const out = fdopen(dup(socket), "w");
  FILE* const in = fdopen(socket, "r");
  AG_CHECK(in != nullptr && out != nullptr);
  StatusOr<Loaded> loaded = Load(request);
  if (!loaded.ok()) {
    Say(out, ErrorLine(loaded.status()));
    return OkStatus();
  }
  const char* plan = loaded->session->uses_carried_plan() ? "carried" : "own";
  Say(out, fmt::format("ready {} {}", plan, Version()));
  char line[64];
  while (std::fgets(line, sizeof(line), in) != nullptr) {
    char word[8] = "";
    Place place;
    const bool read = std::sscanf(line, "%7s %d", word, &place.runs) == 2;
    place.warm = std::string_view(word) == "warm";
    if (!read || place.runs < 1 || (!place.warm && std::string_view(word) != "run")) {
      return Err(StatusCode::kInvalidArgument, "asked for \"{}\"", line);
    }
    const StatusOr<double> mean = loaded->MeanNs(place);
    if (!Say(out, mean.ok() ? fmt::format("{}", *mean) : ErrorLine(mean.status()))) break;
  }
  return OkStatus();
}

int TimeFileMain(int socket) {
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  InitLog("autograph-time-file", "warn");
  const Status status = Serve(socket);
  if (status.ok()) return 0;
  LogError("time-file: {}", ToString(status));
  return 1;
}

}  // namespace
}  // namespace internal

void RegisterTimeFileRole() { RegisterChildRole(internal::kTimeFileRole, internal::TimeFileMain); }

}  // namespace ag
