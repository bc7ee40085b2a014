// `autograph bench MODEL --clients N`: several sessions at once, each in its own thread, compared
// with one session that has the device alone.
#include <algorithm>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/bench.h"
#include "client/cli/load.h"
#include "client/cli/local_model.h"
#include "device/api/device_name.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRowSecondsDefault = 3;  // For each of the two rows.
constexpr int kClientsMax = 1024;
constexpr int kWarmRuns = 3;
constexpr size_t kRunsMax = 1'000'000;  // Of one client: 8 MB of times.

// One session with its own device, because a device serves one thread.
struct LoadClient {
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs, outputs;
  std::vector<double> run_ns;
  Nanos end{0};
  Status status;
};

StatusOr<LoadClient> OpenClient(const ModelFlags& flags) {
  LoadClient client;
  AG_LET(client.device, OpenLocalDevice(flags.device));
  AG_LET(client.session, LoadSession(flags, PlanChoice::kCarried, *client.device));
  AG_LET(client.inputs, InputsToTime(*client.session, flags));
  client.outputs = client.session->NewOutputs();
  return client;
}

Status RunOnce(LoadClient& client, double* sum_ns) {
  Executable& executable = client.session->executable();
  double ns = 0;
  if (client.device->simulated()) {  // Run would compute.
    AG_LET(ns, executable.Time({client.inputs, client.outputs}));
  } else {
    AG_LET(const Nanos took, executable.Run(client.inputs, client.outputs));
    ns = static_cast<double>(took.count());
  }
  *sum_ns += ns;
  client.run_ns.push_back(ns);
  return OkStatus();
}

// Runs one client until the count or the time is reached. A simulated device has its own clock: its
// time is the sum of its runs' times.
void Serve(LoadClient& client, const LoadLimits& limits, std::latch& ready) {
  double sum_ns = 0;
  for (int i = 0; i < kWarmRuns && client.status.ok(); ++i)
    client.status = RunOnce(client, &sum_ns);
  client.run_ns.clear();
  sum_ns = 0;
  ready.arrive_and_wait();
  const Nanos begin = RealClock().Now();
  const bool simulated = client.device->simulated();
  const double ns_max = limits.seconds * 1e9;
  while (client.status.ok() && client.run_ns.size() < kRunsMax) {
    const double spent_ns =
        simulated ? sum_ns : static_cast<double>((RealClock().Now() - begin).count());
    const bool enough = limits.runs > 0 ? std::ssize(client.run_ns) >= limits.runs
                                        : spent_ns >= ns_max && !client.run_ns.empty();
    if (enough) break;
    client.status = RunOnce(client, &sum_ns);
  }
  client.end = simulated ? Nanos(static_cast<int64_t>(sum_ns)) : RealClock().Now() - begin;
}

StatusOr<LoadFigures> RunLoad(const ModelFlags& flags, int count, const LoadLimits& limits,
                              std::vector<std::string>* warnings) {
  std::vector<LoadClient> clients;
  for (int i = 0; i < count; ++i) {
    AG_LET(LoadClient client, OpenClient(flags));
    clients.push_back(std::move(client));
  }
  *warnings = clients.front().session->warnings();
  AG_LET(const auto alone, MeasureAlone(*clients.front().device));
  std::latch ready(count);
  std::vector<std::thread> threads;
  for (LoadClient& client : clients) {
    threads.emplace_back([&client, &limits, &ready] { Serve(client, limits, ready); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::vector<double>> run_ns;
  Nanos end{0};
  for (LoadClient& client : clients) {
    AG_TRY(client.status);
    run_ns.push_back(std::move(client.run_ns));
    end = std::max(end, client.end);
  }
  return SumUp(std::move(run_ns), static_cast<double>(end.count()) / 1e9);
}

struct Row {
  int clients = 1;
  int cores_each = 0;  // 0: not a device with cores to divide.
  ModelFlags model;
};

// Returns two rows: the whole device for one client, and the device divided among the clients.
StatusOr<std::vector<Row>> PlanRows(const BenchFlags& flags) {
  if (flags.clients > kClientsMax) {
    return Err(StatusCode::kInvalidArgument, "--clients {}: at most {}", flags.clients,
               kClientsMax);
  }
  AG_LET(DeviceName name, ParseDeviceName(flags.model.device));
  Row single{.model = flags.model}, load{.clients = flags.clients, .model = flags.model};
  if (name.kind != DeviceName::Kind::kCpu) {
    if (flags.cores_each == 0) return std::vector<Row>{single, load};
    return Err(StatusCode::kInvalidArgument, "--cores-each goes with cpu devices, not with {}",
               flags.model.device);
  }
  AG_LET(const auto device, OpenLocalDevice(flags.model.device));
  single.cores_each = device->spec().cores;
  load.cores_each =
      flags.cores_each > 0 ? flags.cores_each : std::max(1, single.cores_each / flags.clients);
  name.cores = load.cores_each;
  // When each client has all cores, the device keeps its name, so the plan's environment still
  // fits.
  if (load.cores_each != single.cores_each) load.model.device = name.Text();
  return std::vector<Row>{single, load};
}

Json RowJson(const Row& row, const LoadFigures& figures) {
  Json json = LoadJson(figures);
  json["clients"] = row.clients;
  if (row.cores_each > 0) json["cores_each"] = row.cores_each;
  return json;
}

std::string RowName(const Row& row) {
  const bool one = row.clients == 1;
  std::string name = fmt::format("{} client{}", row.clients, one ? "" : "s");
  if (row.cores_each == 0) return name;
  return name + fmt::format(", {} core{}{}", row.cores_each, row.cores_each == 1 ? "" : "s",
                            one ? "" : " each");
}

void PrintRow(Context& context, const Row& row, const LoadFigures& figures) {
  context.Print(fmt::format("{:<28} {}", RowName(row), LoadText(figures)));
  if (row.clients == 1) return;
  for (size_t i = 0; i < figures.each.size(); ++i) {
    context.Print(fmt::format("{:<28} {}", fmt::format("  client {}", i + 1),
                              PercentilesText(figures.each[i])));
  }
}

}  // namespace

StatusOr<int> BenchClients(Context& context, const BenchFlags& flags) {
  AG_LET(const auto rows, PlanRows(flags));
  AG_LET(const auto device, OpenLocalDevice(flags.model.device));
  const LoadLimits limits{.runs = flags.runs,
                          .seconds = flags.seconds > 0 ? flags.seconds : kRowSecondsDefault};
  Json json = BenchJson(flags, *device);
  json["rows"] = Json::array();
  for (const Row& row : rows) {
    std::vector<std::string> warnings;
    AG_LET(const auto figures, RunLoad(row.model, row.clients, limits, &warnings));
    for (const std::string& warning : warnings) context.Note("warning: " + warning);
    json["rows"].push_back(RowJson(row, figures));
    if (!context.flags().json) PrintRow(context, row, figures);
  }
  const double gain = json["rows"][1]["runs_per_second"].get<double>() /
                      json["rows"][0]["runs_per_second"].get<double>();
  json["throughput_gain"] = gain;
  if (!context.flags().json) {
    context.Print(fmt::format("{:<28} {:>9.3f}x of one client's", "throughput", gain));
  }
  AG_LET(const std::vector<NamedSet> own, OwnInputs(flags.model));
  const InputSet inputs = own.empty() ? InputSet() : own[0].inputs;
  AG_TRY(AddOrtTimes(context, flags, {flags.model.model}, inputs, &json));
  FinishBench(context, *device, json);
  return kExitOk;
}

}  // namespace ag
