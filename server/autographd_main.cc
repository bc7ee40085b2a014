// autographd: the coordinator as a program.
#include <cstdio>
#include <cstring>

#include "base/build_facts.h"
#include "base/command_line.h"
#include "base/log.h"
#include "base/process.h"
#include "base/signals.h"
#include "graph/onnx/imported_model.h"
#include "server/server.h"

namespace ag {
namespace {

struct Flags {
  ServerOptions server;
  std::string log_level = "info";
  double worker_expiry = 30, reconnect = 5, no_worker = 900, tick = 10;
  double import_time = 120, export_time = 600, failure_expiry = 86400, grace = 10;
  double hang_time = 60;
};

Nanos Seconds(double seconds) { return Nanos(static_cast<int64_t>(seconds * 1e9)); }

std::string DefaultDataDir() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/share/autograph";
}

void AddPlaces(CLI::App& app, Flags& flags) {
  app.add_option("--data", flags.server.data_dir,
                 "Folder of jobs, cache and blobs; one process at a time")
      ->envname("AUTOGRAPH_DATA")
      ->capture_default_str();
  app.add_option("--listen", flags.server.listen, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--metrics", flags.server.metrics, "HOST:PORT for Prometheus")
      ->default_str("none");
  app.add_option("--log-level", flags.log_level, "info, warn, error or off")
      ->check(OneOf({"info", "warn", "error", "off"}))
      ->capture_default_str();
  app.set_version_flag("--version", BuildFacts("autographd"));
}

void AddLimits(CLI::App& app, Flags& flags) {
  ImportLimits& limits = flags.server.limits;
  const std::string group = "Limits of models";
  app.add_option("--model-bytes-max", limits.model_bytes_max, "Bytes of one model file")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
  app.add_option("--nodes-max", limits.nodes_max, "Nodes of one model")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
  app.add_option("--tensor-bytes-max", limits.tensor_bytes_max, "Bytes of one tensor")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
  app.add_option("--total-bytes-max", limits.total_bytes_max, "Bytes of all tensors of a model")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
  app.add_option("--import-time", flags.import_time, "Seconds that reading a model may take")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
  app.add_option("--export-time", flags.export_time, "Seconds that writing a model may take")
      ->check(WrongAmount)
      ->group(group)
      ->capture_default_str();
}

void AddTimes(CLI::App& app, Flags& flags) {
  const std::string group = "Workers and jobs";
  app.add_option("--tick", flags.tick, "Seconds between messages when nothing changes")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--worker-expiry", flags.worker_expiry,
                 "Seconds of silence after which a worker is gone")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--reconnect", flags.reconnect, "Seconds that a cut stream has to come back")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--no-worker", flags.no_worker,
                 "Seconds that work waits for a worker of its device")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--hang-time", flags.hang_time,
                 "Seconds without progress after which the measurement of a group is given up")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--attempts", flags.server.pool.attempts_max,
                 "Executors that one candidate may crash")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--losses", flags.server.pool.losses_max, "Workers that one work item may lose")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--failure-expiry", flags.failure_expiry,
                 "Seconds after which a failed measurement is tried again")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--runners", flags.server.runners, "Jobs that run at once, over all devices")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--per-device", flags.server.per_device, "Jobs that run at once on one device")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--resumes", flags.server.resumes_max, "Restarts that one job may live through")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--watchers", flags.server.watchers_max, "Open WatchJob streams")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
  app.add_option("--grace", flags.grace, "Seconds that open calls have at shutdown")
      ->check(WrongTime)
      ->group(group)
      ->capture_default_str();
}

int Main(int argc, char** argv) {
  CLI::App app("The AutoGraph coordinator: takes models, searches faster forms, remembers.",
               "autographd");
  app.formatter(std::make_shared<HelpFormatter>());
  Flags flags;
  flags.server.data_dir = DefaultDataDir();
  flags.server.listen = fmt::format("127.0.0.1:{}", kDefaultPort);
  AddPlaces(app, flags);
  AddLimits(app, flags);
  AddTimes(app, flags);
  if (const int code = ParseCommandLine(app, argc, argv); code >= 0) return code;
  InitLog("autographd", flags.log_level);
  ServerOptions& options = flags.server;
  options.tick_max = Seconds(flags.tick);
  options.pool.worker_expiry = Seconds(flags.worker_expiry);
  options.pool.reconnect_max = Seconds(flags.reconnect);
  options.pool.no_worker_max = options.offer_wait_max = Seconds(flags.no_worker);
  options.import_time_max = Seconds(flags.import_time);
  options.export_time_max = Seconds(flags.export_time);
  options.failure_expiry = Seconds(flags.failure_expiry);
  options.hang_time_max = Seconds(flags.hang_time);

  CatchStopSignals();
  auto server = Server::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "autographd: %s\n", Message(server.status()).c_str());
    return 1;
  }
  std::printf("autographd listens on %s (epoch %llu, data in %s)\n", options.listen.c_str(),
              static_cast<unsigned long long>((*server)->epoch()), options.data_dir.c_str());
  std::fflush(stdout);
  LogInfo("{}: shutting down; once more to leave at once", strsignal(WaitForStopSignal()));
  (*server)->Shutdown(Seconds(flags.grace));
  return 0;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::RegisterServerRoles();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  return ag::Main(argc, argv);
}
