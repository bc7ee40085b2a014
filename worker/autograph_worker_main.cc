// The program autograph-worker, which offers one device to a coordinator.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstring>

#include "base/build_facts.h"
#include "base/command_line.h"
#include "base/log.h"
#include "base/measuring_lock_flag.h"
#include "base/no_memory.h"
#include "base/process.h"
#include "base/signals.h"
#include "device/api/device_name.h"
#include "net/address.h"
#include "net/channel_flags.h"
#include "runtime/timing/time_files.h"
#include "wire/library_log.h"
#include "worker/agent.h"
#include "worker/executor_process.h"
#include "worker/executor_role.h"

namespace ag {
namespace {

struct Flags {
  std::string server = "127.0.0.1:7450";
  std::string log_level = "info", log_format = "text";
  double tick_seconds = 10;
  double blob_cache_gib = 32;
  AgentOptions agent;
  ChannelOptions channel;
};

std::string DefaultCacheDir() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.cache/autograph/worker-blobs";
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--server", flags.server, "Coordinator, HOST:PORT or unix:PATH")
      ->check(WrongServerAddress)
      ->envname("AUTOGRAPH_SERVER");
  app.add_option("--device", flags.agent.device, "cpu, cpu:CORES, sim:NAME, sim:FILE.spec, cuda:N")
      ->check([](const std::string& text) { return Message(ParseDeviceName(text).status()); });
  app.add_option("--id", flags.agent.worker_id, "Name of this worker")->default_str("HOST/DEVICE");
  app.add_option("--blob-cache", flags.agent.blob_cache_dir,
                 "Folder for weights of a coordinator on another host");
  app.add_option("--blob-cache-gib", flags.blob_cache_gib, "Largest size of that folder")
      ->check(WrongAmount);
  app.add_option("--tick", flags.tick_seconds, "Seconds between states when nothing changes")
      ->check(WrongAmount);
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
  AddChannelFlags(app, flags.channel);
  app.add_option("--tls-reload", flags.channel.tls.reload_seconds,
                 "Seconds between two looks at the TLS files")
      ->check(CLI::Range(1, 86'400))
      ->group("Connection");
  app.set_version_flag("--version", BuildFacts("autograph-worker"));
}

// Returns a channel whose reconnect pauses stay short; gRPC's own grow to two minutes.
StatusOr<std::shared_ptr<grpc::Channel>> Connect(const Flags& flags) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      -1);  // A plan set carries whole graphs; the coordinator limits it.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A ping finds a host that vanished without closing. Older servers accept one each 20 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  return MakeChannel(flags.server, flags.channel, arguments);
}

// Opens the device in a process that ends again. Returns why this machine has no such device; OK:
// it has one, or what is in the way may pass.
Status CheckDevice(const AgentOptions& agent) {
  const Status opened =
      ExecutorProcess::Start({.open = {agent.device, agent.blob_cache_dir}}, RealClock()).status();
  const bool is_lasting = opened.code() == StatusCode::kInvalidArgument ||
                          opened.code() == StatusCode::kNotFound ||
                          opened.code() == StatusCode::kUnimplemented;
  return is_lasting ? Within(opened, "--device " + agent.device) : OkStatus();
}

int Fail(const Status& status) {
  std::fprintf(stderr, "autograph-worker: %s\n", Message(status).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Offers one device to an AutoGraph coordinator and measures what it is sent.",
               "autograph-worker");
  ShowDefaults(app);
  Flags flags;
  flags.agent.blob_cache_dir = DefaultCacheDir();
  AddFlags(app, flags);
  NameVariables(app);
  if (const int code = ParseCommandLine(app, argc, argv); code >= 0) return code;
  EndWithoutMemoryAs("autograph-worker", 1);
  InitLog("autograph-worker",
          LogOptions{.level = flags.log_level, .json = flags.log_format == "json"});
  flags.agent.blob_cache_bytes_max = static_cast<int64_t>(flags.blob_cache_gib * (1 << 30));
  flags.agent.tick = Nanos(static_cast<int64_t>(flags.tick_seconds * 1e9));

  CatchStopSignals();  // Before gRPC starts threads.
  TakeTokenOfEnvironment(flags.channel);
  auto channel = Connect(flags);
  if (!channel.ok()) return Fail(channel.status());
  if (const Status device = CheckDevice(flags.agent); !device.ok()) return Fail(device);
  if (flags.agent.device.starts_with("cpu")) {
    const Status python = CheckChosenPython();
    if (!python.ok()) LogWarn("{}: it is left out", Message(python));
  }
  LogInfo("offering {} to {}", flags.agent.device, flags.server);
  Agent agent(*std::move(channel), flags.agent, RealClock());
  const int signal = WaitForStopSignal();
  LogInfo("{}: finishing what is in hand; once more to leave at once", strsignal(signal));
  agent.Stop(/*drain=*/true);
  return 0;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::RouteLibraryLogs();
  ag::RegisterExecutorRole();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  return ag::Main(argc, argv);
}
