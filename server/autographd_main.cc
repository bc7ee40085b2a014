// autographd: the coordinator as a program.
#include <malloc.h>

#include <cstdio>
#include <cstring>

#include "base/build_facts.h"
#include "base/command_line.h"
#include "base/log.h"
#include "base/measuring_lock_flag.h"
#include "base/no_memory.h"
#include "base/process.h"
#include "base/signals.h"
#include "graph/onnx/imported_model.h"
#include "net/address.h"
#include "server/server.h"
#include "wire/library_log.h"

namespace ag {
namespace {

struct Flags {
  ServerOptions server;
  std::string log_level = "info", log_format = "text";
  double worker_expiry = 30, reconnect = 5, no_worker = 900, other_environment = 10, settle = 10,
         tick = 10;
  double import_time = 120, export_time = 600, failure_expiry = 86400, grace = 10;
  double hang_time = 60, transfer_idle = 60;
  int64_t job_memory_mib = 4096, connections_memory_mib = 1024;
  double host_fault = 86400, keep_jobs = 30, store_gib = 100, retention = 600, keep_blobs = 3600;
  double job_overrun = 120, cancel_time = 0.5, keep_time = 30;
  double sentinel_pause = 600, sentinel_idle = 60;
};

constexpr double kCallsShare = 0.8;  // Of the grace; the rest is for what follows the calls.

Nanos Seconds(double seconds) { return Nanos(static_cast<int64_t>(seconds * 1e9)); }

std::string DefaultDataDir() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/share/autograph";
}

void AddPlaces(CLI::App& app, Flags& flags) {
  app.add_option("--data", flags.server.data_dir,
                 "Folder of jobs, cache and blobs; one process at a time")
      ->envname("AUTOGRAPH_DATA");
  app.add_option("--cache-namespace", flags.server.cache_namespace,
                 "Part of every key of the cache; another one disowns all that is remembered")
      ->default_str("none");
  app.add_option("--listen", flags.server.listen,
                 "HOST:PORT or unix:PATH; beyond this machine only with TLS or --insecure")
      ->check(WrongListenAddress);
  app.add_option("--metrics", flags.server.metrics, "HOST:PORT for Prometheus, in plain text")
      ->check(WrongListenAddress)
      ->default_str("none");
  app.add_option_function<std::string>(
         "--measuring-lock", NameMeasuringLock,
         "File that keeps measurements on this host apart; containers share one")
      ->envname("AUTOGRAPH_MEASURING_LOCK")
      ->check(WrongMeasuringLock)
      ->default_str(MeasuringLockPath());
  app.add_option("--log-level", flags.log_level, "info, warn, error or off")
      ->check(OneOf({"info", "warn", "error", "off"}));
  app.add_option("--log-format", flags.log_format, "text, or json with job, attempt and trace_id")
      ->check(OneOf({"text", "json"}));
  app.set_version_flag("--version", BuildFacts("autographd"));
}

void AddSecurity(CLI::App& app, Flags& flags) {
  TlsFiles& tls = flags.server.tls;
  const auto add = [&app](const char* flag, auto& value, const char* variable, const char* help) {
    return app.add_option(flag, value, help)->envname(variable)->group("Security");
  };
  add("--tls-cert", tls.cert, "AUTOGRAPH_TLS_CERT", "PEM file with the certificate and its chain")
      ->default_str("none");
  add("--tls-key", tls.key, "AUTOGRAPH_TLS_KEY", "PEM file with its private key")
      ->default_str("none");
  add("--tls-client-ca", tls.ca, "AUTOGRAPH_TLS_CLIENT_CA",
      "PEM file with what signed the certificates that clients and workers must have")
      ->default_str("none");
  add("--tls-reload", tls.reload_seconds, "AUTOGRAPH_TLS_RELOAD",
      "Seconds between two looks at these files")
      ->check(CLI::Range(1, 86'400));
  add("--tokens", flags.server.tokens, "AUTOGRAPH_TOKENS",
      "File of tokens and their roles (autograph token); none: everybody may do everything")
      ->default_str("none");
  add("--quota", flags.server.quota_seconds, "AUTOGRAPH_QUOTA",
      "Device seconds that each tenant may use in 24 hours; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--insecure", flags.server.insecure,
               "Let other machines reach what is in plain text")
      ->group("Security");
}

void AddLimits(CLI::App& app, Flags& flags) {
  ImportLimits& limits = flags.server.limits;
  const auto add = [&app](const char* flag, auto& value, const char* help) {
    app.add_option(flag, value, help)->check(WrongAmount)->group("Limits of models");
  };
  add("--model-bytes-max", limits.model_bytes_max, "Bytes of one model file");
  add("--nodes-max", limits.nodes_max, "Nodes of one model");
  add("--tensor-bytes-max", limits.tensor_bytes_max, "Bytes of one tensor");
  add("--total-bytes-max", limits.total_bytes_max, "Bytes of all tensors of a model");
  add("--job-memory", flags.job_memory_mib,
      "MiB of memory of a job's process, without mapped files");
  add("--import-time", flags.import_time, "Seconds that reading a model may take");
  add("--export-time", flags.export_time, "Seconds that writing a model may take");
}

void AddTimes(CLI::App& app, Flags& flags) {
  const auto add = [&app](const char* flag, auto& value, const char* help) {
    app.add_option(flag, value, help)->check(WrongNumber)->group("Workers and jobs");
  };
  add("--tick", flags.tick, "Seconds between messages when nothing changes");
  add("--worker-expiry", flags.worker_expiry, "Seconds of silence after which a worker is gone");
  add("--reconnect", flags.reconnect, "Seconds that a cut stream has to come back");
  add("--no-worker", flags.no_worker, "Seconds that work waits for a worker of its device");
  add("--keep-jobs", flags.keep_jobs,
      "Days that a job is kept after its end, with its result; 0: for ever");
  add("--store-gib", flags.store_gib,
      "GiB of models and results; the oldest jobs go beyond it; 0: no limit");
  add("--keep-blobs", flags.keep_blobs,
      "Seconds that bytes stay which nothing names, such as an upload");
  add("--retention", flags.retention, "Seconds between two looks at what can go");
  add("--host-fault", flags.host_fault,
      "Seconds that a job waits for a full disk, or for threads, of this host");
  add("--other-environment", flags.other_environment,
      "The same while workers have the device in another environment; then the job is planned "
      "anew");
  add("--settle", flags.settle,
      "Seconds that a worker must stay before jobs are planned for its environment, while workers "
      "that have stayed serve the device in another");
  add("--search-threads", flags.server.search_threads,
      "Threads of a job that score graphs; 0: one per core, at most 8");
  add("--hang-time", flags.hang_time,
      "Seconds without progress after which the measurement of a group is given up, and work that "
      "sends no result goes to another worker");
  add("--attempts", flags.server.pool.attempts_max, "Executors that one candidate may crash");
  add("--losses", flags.server.pool.losses_max, "Workers that one work item may lose");
  add("--failure-expiry", flags.failure_expiry,
      "Seconds after which a failed measurement is tried again");
  add("--sentinel-pause", flags.sentinel_pause,
      "Seconds between two samples of the cache that are measured again while no job runs; 0: "
      "none");
  add("--sentinel-idle", flags.sentinel_idle, "Seconds without a job before a sample");
  add("--runners", flags.server.runners, "Jobs that run at once, over all devices");
  add("--per-device", flags.server.per_device, "Jobs that run at once on one device");
  add("--job-overrun", flags.job_overrun,
      "Seconds that a job's process may compute beyond the job's budget");
  add("--cancel-time", flags.cancel_time,
      "Seconds that a job's process may compute after a cancellation");
  add("--keep-time", flags.keep_time,
      "Those seconds when it has found a faster plan, which is then confirmed");
  add("--resumes", flags.server.crashes_max,
      "Crashes of the coordinator that one job may run through");
  add("--watchers", flags.server.watchers_max, "Open WatchJob streams");
  add("--workers", flags.server.workers_max, "Workers that are connected at once");
  add("--connections", flags.server.connections.in_all,
      "Open connections; 0: what the limit of descriptors (ulimit -n) leaves");
  add("--connections-per-host", flags.server.connections.per_host,
      "Of them, from one address; 0: half");
  add("--connections-memory", flags.connections_memory_mib,
      "MiB of the coordinator's own memory above which it accepts no connection and ends those "
      "that "
      "send much");
  add("--transfers", flags.server.transfers.in_all, "Open uploads, downloads, exports and imports");
  add("--transfers-per-peer", flags.server.transfers.per_peer, "Of them, on one connection");
  add("--transfer-idle", flags.transfer_idle, "Seconds without a message that end one");
  add("--grace", flags.grace, "Seconds from SIGTERM to the end, whatever runs");
}

// glibc keeps what was freed in an arena for each of some threads: after bursts of calls 235 of 248
// MB were free memory of 16 arenas.
void KeepFreeMemorySmall() {
  constexpr int kArenas = 4, kMappedBytesMin = 64 << 10;
  ::mallopt(M_ARENA_MAX, kArenas);
  ::mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
}

int Main(int argc, char** argv) {
  CLI::App app("The AutoGraph coordinator: takes models, searches faster forms, remembers.",
               "autographd");
  ShowDefaults(app);
  Flags flags;
  flags.server.data_dir = DefaultDataDir();
  flags.server.listen = fmt::format("127.0.0.1:{}", kDefaultPort);
  AddPlaces(app, flags);
  AddSecurity(app, flags);
  AddLimits(app, flags);
  AddTimes(app, flags);
  NameVariables(app);
  if (const int code = ParseCommandLine(app, argc, argv); code >= 0) return code;
  EndWithoutMemoryAs("autographd", 1);
  KeepFreeMemorySmall();
  InitLog("autographd", LogOptions{.level = flags.log_level, .json = flags.log_format == "json"});
  ServerOptions& options = flags.server;
  options.tick_max = Seconds(flags.tick);
  options.pool.worker_expiry = Seconds(flags.worker_expiry);
  options.pool.quiet_max = Seconds(flags.hang_time);
  options.pool.reconnect_max = Seconds(flags.reconnect);
  options.pool.no_worker_max = options.offer_wait_max = Seconds(flags.no_worker);
  options.host_fault_max = Seconds(flags.host_fault);
  options.retention = {Seconds(flags.keep_jobs * 86400),
                       static_cast<int64_t>(flags.store_gib * (int64_t{1} << 30)),
                       Seconds(flags.keep_blobs)};
  options.retention_pause = Seconds(flags.retention);
  options.pool.other_environment_max = Seconds(flags.other_environment);
  options.pool.settle = Seconds(flags.settle);
  options.import_time_max = Seconds(flags.import_time);
  options.export_time_max = Seconds(flags.export_time);
  options.failure_expiry = Seconds(flags.failure_expiry);
  options.hang_time_max = Seconds(flags.hang_time);
  options.processes.memory_bytes_max = static_cast<uint64_t>(flags.job_memory_mib) << 20;
  options.connections.memory_max = flags.connections_memory_mib << 20;
  options.processes.overrun_max = Seconds(flags.job_overrun);
  options.processes.cancel_max = Seconds(flags.cancel_time);
  options.processes.keep_max = Seconds(flags.keep_time);
  options.transfers.idle_max = Seconds(flags.transfer_idle);
  options.sentinel.pause = Seconds(flags.sentinel_pause);
  options.sentinel.idle = Seconds(flags.sentinel_idle);

  CatchStopSignals();
  auto server = Server::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "autographd: %s\n", Message(server.status()).c_str());
    return 1;
  }
  std::printf("autographd listens on %s (epoch %llu, data in %s)\n", (*server)->address().c_str(),
              static_cast<unsigned long long>((*server)->epoch()), options.data_dir.c_str());
  std::fflush(stdout);
  LogInfo("{}: shutting down; once more to leave at once", strsignal(WaitForStopSignal()));
  EndAfter(Seconds(flags.grace));
  (*server)->Shutdown(Seconds(kCallsShare * flags.grace));
  return 0;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::RouteLibraryLogs();
  ag::RegisterServerRoles();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  return ag::Main(argc, argv);
}
