#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/file_facts.h"
#include "base/partial_files.h"
#include "base/signals.h"
#include "base/text.h"
#include "client/cli/counter_examples.h"
#include "client/cli/job_text.h"
#include "client/cli/local_model.h"
#include "client/cli/ort.h"
#include "client/cli/progress.h"
#include "client/cli/verbs.h"
#include "graph/onnx/files/model_file.h"
#include "graph/onnx/files/split.h"
#include "rules/sets/built_in_rules.h"
#include "runtime/timing/time_files.h"
#include "server/jobs/job.h"
#include "wire/json_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Status BindShape(const std::string& text, v1::BoundShape* bound) {
  AG_LET(const auto shape, ParseNamedSizes(text));
  bound->set_input(shape.first);
  for (const int64_t size : shape.second) bound->add_dims(size);
  return OkStatus();
}

StatusOr<v1::OptimizeRequest> MakeRequest(const OptimizeFlags& flags) {
  v1::OptimizeRequest request = flags.request;
  request.set_model_name(BaseName(flags.model.model));
  request.set_device(flags.model.device);
  for (const std::string& text : flags.model.shapes) {
    AG_TRY(BindShape(text, request.add_shapes()));
  }
  for (const std::string& text : flags.shape_sets) {
    v1::ShapeSet* set = request.add_shape_sets();
    for (const std::string_view shape : Split(text, ' ')) {
      if (!shape.empty()) AG_TRY(BindShape(std::string(shape), set->add_shapes()), "--shape-set");
    }
  }
  request.mutable_policy()->set_precision(flags.precision);
  request.mutable_policy()->set_tolerance(flags.tolerance);
  if (!flags.budget.empty()) {
    AG_LET(const double seconds, ParseDuration(flags.budget));
    request.mutable_budget()->set_time_seconds(seconds);
  }
  request.set_seed(flags.seed);
  for (const std::string& rule : flags.without) request.add_disabled_rules(rule);
  v1::OptimizeRequest::Target target;
  v1::OptimizeRequest::OnnxRuntime onnxruntime;
  // The flags' checks let no other words through.
  AG_CHECK(v1::OptimizeRequest::Target_Parse(absl::AsciiStrToUpper(flags.target), &target));
  AG_CHECK(
      v1::OptimizeRequest::OnnxRuntime_Parse(absl::AsciiStrToUpper(flags.ort.mode), &onnxruntime));
  v1::OptimizeRequest::Objective objective;
  AG_CHECK(
      v1::OptimizeRequest::Objective_Parse(absl::AsciiStrToUpper(flags.objective), &objective));
  request.set_objective(objective);
  v1::OptimizeRequest::Search search;
  const std::string method = absl::StrReplaceAll(absl::AsciiStrToUpper(flags.search), {{"-", "_"}});
  AG_CHECK(v1::OptimizeRequest::Search_Parse(method, &search));
  request.set_search(search);
  request.set_target(target);
  request.set_onnxruntime(onnxruntime);
  return request;
}

// The flags that set fields of the request, which errors name.
constexpr std::pair<std::string_view, std::string_view> kFlagsOfFields[] = {
    {"budget.rounds", "--rounds"},
    {"budget.expansions", "--expansions"},
    {"budget.graphs", "--graphs"},
    {"budget.candidates", "--candidates"},
    {"piece_nodes", "--piece-nodes"},
    {"region_nodes", "--region-nodes"},
    {"budget.cell_graphs", "--cell-graphs"},
    {"budget.stale_graphs", "--stale-graphs"},
    {"alpha", "--alpha"},
    {"beta", "--beta"},
    {"streams_max", "--streams"},
    {"budget.time_seconds", "--budget, in seconds"},
    {"policy.tolerance", "--tolerance"},
    {"policy.precision", "--precision"},
    {"disabled_rules", "--without"},
    {"priority", "--priority"},
    {"batch", "--batch"},
    {"objective", "--objective"},
};

// Returns the error of a field as one of the flag that sets it; nothing for any other status.
std::optional<Status> AsFlagError(const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument) return std::nullopt;
  const std::string message = Message(status);
  for (const auto& [field, flag] : kFlagsOfFields) {
    const char behind = message.size() > field.size() ? message[field.size()] : '.';
    if (!message.starts_with(field) || (behind != ':' && behind != ' ')) continue;
    return Err(status.code(), "{}{}", flag, message.substr(field.size()));
  }
  return std::nullopt;
}

// Checks the request as the server will, before anything is read or sent. What other rules a server
// may have is for it to say.
Status CheckFields(const Context& context, const OptimizeFlags& flags,
                   v1::OptimizeRequest request) {
  if (context.flags().server.empty()) {
    AG_TRY(BuiltInRules().CheckNames(flags.without), "--without");
  }
  request.set_model_digest(Digest().Hex());
  return AsFlagError(AcceptedRequest(std::move(request)).status()).value_or(OkStatus());
}

// A thread that looks for Ctrl-C while another call waits for the server, and then takes the
// request off the job once.
class Canceller {
 public:
  Canceller(Context& context, Client& client, v1::CancelJobRequest request)
      : thread_([this, &context, &client, request = std::move(request)] {
          while (!done_ && StopSignal() == 0) RealClock().SleepFor(Nanos{50'000'000});
          if (done_) return;
          context.Note("\nstopping; the best found so far is kept (Ctrl-C again to leave at once)");
          const auto job = client.CancelJob(request);
          goes_on_ = job.ok() && job->state() < v1::Job::SUCCEEDED && job->waiters() > 0;
          answered_ = true;
        }) {}
  // True when the request was taken off and the job goes on for others: there is nothing to wait
  // for. After Ctrl-C waits for the server's answer.
  bool goes_on() const {
    while (StopSignal() != 0 && !answered_) RealClock().SleepFor(Nanos{10'000'000});
    return goes_on_;
  }
  ~Canceller() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::atomic<bool> goes_on_{false}, answered_{false};
  std::thread thread_;
};

// Returns kCancelled when the request was taken off and the job goes on for others.
StatusOr<v1::Job> Follow(Context& context, Client& client, const v1::Job& job) {
  ProgressPrinter printer(context);
  v1::CancelJobRequest cancel;
  cancel.set_name(job.name());
  cancel.set_request_id(job.request().request_id());
  Canceller canceller(context, client, cancel);
  return client.Watch(job.name(), [&](const v1::Job& seen) {
    printer.Show(seen);
    return !canceller.goes_on();
  });
}

// Tells this request from every other one, so that a repeated call is not a second request.
std::string FreshRequestId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// Writes an output that is above 2 GiB as two files, `path` and `path`.data.
Status TakeInTwoFiles(Client& client, const Digest& digest, const std::string& path) {
  const std::string whole = fmt::format("{}.whole.{}", path, ::getpid());
  const PartialFile partial(whole);
  Status taken = client.DownloadFile(digest, whole);
  if (taken.ok()) taken = SplitModel(whole, path);
  std::error_code ignored;
  std::filesystem::remove(whole, ignored);
  return taken;
}

bool IsInTwoFiles(const v1::Job& job) { return job.result().output_bytes() > kProtobufBytesMax; }

// Prints the result after its file was written.
void PrintWritten(Context& context, const v1::Job& job, const OptimizeFlags& flags) {
  if (context.flags().json) {
    context.Print(ToJson(job));
  } else {
    context.Print(ResultTable(job) + TableRow("written", WrittenText(job, flags.output)) + "\n" +
                  TableRow("run it", HowToRun(job.result(), flags.output)) +
                  CounterExampleRows(job, flags.output));
  }
}

int SayCancelled(Context& context, bool written) {
  context.Note(fmt::format("{}; {}",
                           StopSignal() != 0 ? "interrupted" : "cancelled by another client",
                           written ? "the best found so far was written"
                                   : "nothing was verified yet, nothing was written"));
  return kExitInterrupted;
}

int Finish(Context& context, Client& client, const v1::Job& job, const OptimizeFlags& flags) {
  const bool written = job.has_result();
  const Status taken = written ? TakeResult(client, job, flags.output, flags.report) : OkStatus();
  if (!written && context.flags().json) context.Print(ToJson(job));
  if (job.state() == v1::Job::FAILED) {
    const Status error(static_cast<StatusCode>(job.error().code()), job.error().message());
    return context.Fail(Within(error, job.name()));
  }
  if (!taken.ok()) {
    if (context.flags().json) context.Print(ToJson(job));
    return context.Fail(taken);
  }
  if (written) PrintWritten(context, job, flags);
  return job.state() == v1::Job::CANCELLED ? SayCancelled(context, written) : kExitOk;
}

// Says before hashing and sending gigabytes that the server does not take them.
Status CheckSize(Client& client, int64_t bytes) {
  if (bytes <= kProtobufBytesMax) return OkStatus();
  AG_LET(const v1::Capabilities capabilities, client.GetCapabilities());
  if (bytes <= capabilities.model_bytes_max()) return OkStatus();
  return Err(StatusCode::kResourceExhausted,
             "the model has {} bytes with its weights inside, the server takes {} (autographd "
             "--model-bytes-max)",
             bytes, capabilities.model_bytes_max());
}

StatusOr<v1::Job> Submit(Context& context, Client& client, const OptimizeFlags& flags,
                         v1::OptimizeRequest request) {
  ProgressPrinter printer(context);
  AG_LET(ModelFile model, ModelFile::Open(flags.model.model));
  AG_LET(const std::vector<NamedSet> own, OwnInputs(flags.model));
  AG_TRY(CheckSize(client, static_cast<int64_t>(model.size())), "{}", flags.model.model);
  const auto read = [&](const Client::TakePiece& take) { return model.Read(take); };
  AG_LET(const Digest digest, client.Upload(flags.model.model, static_cast<int64_t>(model.size()),
                                            read, [&](int64_t done, int64_t total) {
                                              printer.ShowBytes("uploading", done, total);
                                            }));
  request.set_model_digest(digest.Hex());
  for (const auto& [name, inputs] : own) {
    const std::string bytes = EncodeInputSet(inputs);
    v1::InputSet* set = request.add_inputs();
    set->set_name(name);
    AG_LET(const Digest sent,
           client.Upload("inputs " + name, static_cast<int64_t>(bytes.size()),
                         [&](const Client::TakePiece& take) { return take(bytes); }));
    set->set_digest(sent.Hex());
  }
  return client.Optimize(request);
}

Status CheckUsage(const Context& context, const OptimizeFlags& flags) {
  if (flags.request.keep_bytes() && flags.target == "portable") {
    return Err(StatusCode::kInvalidArgument,
               "--keep-bytes and --target portable exclude each other: a portable output is "
               "rewritten or the input's own bytes");
  }
  if (flags.target == "portable" && flags.ort.mode == "off") {
    return Err(StatusCode::kInvalidArgument,
               "--target portable measures in ONNX Runtime: leave --ort off out");
  }
  if (!flags.detach) {
    if (!flags.output.empty()) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "--output is required (not with --detach)");
  }
  if (context.flags().server.empty()) {
    return Err(StatusCode::kInvalidArgument,
               "--detach needs --server: an embedded service ends with this command");
  }
  return OkStatus();
}

// Checks the files to write: none of them is the model, unless forced, and no two are the same.
Status CheckPlaces(const OptimizeFlags& flags) {
  const std::pair<const char*, std::string> places[] = {{"--output", flags.output},
                                                        {"--report", flags.report}};
  for (const auto& [flag, path] : places) {
    if (path.empty() || flags.force || !IsSameFile(path, flags.model.model)) continue;
    return Err(StatusCode::kInvalidArgument,
               "{} {} is the model itself: choose another file, or --force to replace it", flag,
               path);
  }
  const StatusOr<ModelFile> model = ModelFile::Open(flags.model.model);  // Its error comes later.
  for (const std::string& data : model.ok() ? model->data_paths() : std::vector<std::string>()) {
    for (const auto& [flag, path] : places) {
      const bool may_write_data = flag == std::string_view("--output") && !flags.force;
      const bool takes_its_place = may_write_data && IsSameFile(path + ".data", data);
      if (path.empty() || (!IsSameFile(path, data) && !takes_its_place)) continue;
      return Err(StatusCode::kInvalidArgument,
                 "{} {} has weights of the model: choose another file", flag,
                 takes_its_place ? path + ".data" : path);
    }
  }
  if (!flags.report.empty() &&
      (flags.report == flags.output || IsSameFile(flags.report, flags.output))) {
    return Err(StatusCode::kInvalidArgument, "--output and --report are one file: {}",
               flags.report);
  }
  return OkStatus();
}

// An embedded worker's Python is this process's. kUnavailable: the Python that the user has chosen
// is not there, and ONNX Runtime is required; where it is not, a warning says so.
Status CheckPython(const Context& context, const OptimizeFlags& flags) {
  if (!context.flags().server.empty() || !WantsOrt(flags.ort, flags.model.device)) {
    return OkStatus();
  }
  const Status chosen = CheckChosenPython();
  if (chosen.ok()) return chosen;
  if (flags.ort.mode == "require" || flags.target == "portable") {
    return Err(StatusCode::kUnavailable, "{}", Message(chosen));
  }
  context.Note(fmt::format("warning: {}: it is left out", Message(chosen)));
  return OkStatus();
}

int Optimize(Context& context, const OptimizeFlags& flags, v1::OptimizeRequest request) {
  CatchStopSignals();
  const StatusOr<Client*> client = context.Connect(flags.model.device);
  if (!client.ok()) return context.Fail(client.status());
  if (!flags.detach) (*client)->LookAhead(flags.output);
  const std::string request_id = FreshRequestId();
  request.set_request_id(request_id);
  StatusOr<v1::Job> job = Submit(context, **client, flags, std::move(request));
  if (const auto wrong_flag = AsFlagError(job.status())) return context.FailUsage(*wrong_flag);
  if (!job.ok()) return context.Fail(job.status());
  if (flags.detach) {
    context.Print(context.flags().json ? ToJson(*job) : job->name());
    context.Note(fmt::format("when it is done: autograph jobs fetch {} -o {}", job->name(),
                             flags.output.empty() ? "FILE" : flags.output));
    return kExitOk;
  }
  const bool running = job->state() < v1::Job::SUCCEEDED;
  if (running) {
    v1::Job submitted = *job;
    submitted.mutable_request()->set_request_id(request_id);  // The job may be another's.
    job = Follow(context, **client, submitted);
    if (job.status().code() == StatusCode::kCancelled) {
      return context.Fail(Err(StatusCode::kCancelled, "interrupted; {} goes on, others wait for it",
                              submitted.name()));
    }
  }
  if (!job.ok()) return context.Fail(job.status());
  return Finish(context, **client, *job, flags);
}

}  // namespace

Status TakeResult(Client& client, const v1::Job& job, const std::string& output,
                  const std::string& report) {
  AG_LET(const Digest bytes, ParseDigest(job.result().output_digest()));
  AG_TRY(IsInTwoFiles(job) ? TakeInTwoFiles(client, bytes, output)
                           : client.DownloadFile(bytes, output));
  AG_TRY(TakeCounterExamples(client, job, output));
  if (report.empty()) return OkStatus();
  AG_LET(const Digest said, ParseDigest(job.result().report_digest()));
  return client.DownloadFile(said, report);
}

std::string WrittenText(const v1::Job& job, const std::string& output) {
  return IsInTwoFiles(job) ? fmt::format("{0}, its weights in {0}.data", output) : output;
}

int RunOptimize(Context& context, const OptimizeFlags& flags) {
  StatusOr<v1::OptimizeRequest> request = MakeRequest(flags);
  Status usage = request.ok() ? CheckUsage(context, flags) : request.status();
  if (usage.ok()) usage = CheckFields(context, flags, *request);
  if (usage.ok() && !flags.detach) usage = CheckPlaces(flags);
  if (!usage.ok()) return context.FailUsage(usage);
  for (const std::string& path : {flags.output, flags.report}) {
    if (path.empty() || flags.detach) continue;
    if (const Status writable = CheckWritable(path); !writable.ok()) return context.Fail(writable);
  }
  if (const Status python = CheckPython(context, flags); !python.ok()) return context.Fail(python);
  return Optimize(context, flags, *std::move(request));
}

}  // namespace ag
