#include "client/cli/embedded.h"

#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/signals.h"
#include "server/server.h"
#include "worker/agent.h"
#include "worker/executor_role.h"

namespace ag {
namespace {

constexpr Nanos kServeMax{60'000'000'000};
constexpr Nanos kPoll{5'000'000};
constexpr Nanos kGrace{2'000'000'000};

std::string OverlayNote(const CacheBase& base) {
  if (base.status.ok()) {
    return fmt::format(
        "; this run reads the {} measurements of its last snapshot, and what it adds goes to a "
        "temporary store and is lost",
        base.measurements);
  }
  return fmt::format("; nothing of it can be read ({}): this run uses an empty temporary store",
                     Message(base.status));
}

}  // namespace

struct EmbeddedService::Parts {
  std::optional<TempDir> temporary;  // The store when another process holds the usual one.
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Agent> agent;
  std::string note;

  Status StartServer(const std::string& data_dir);
  Status StartAgent(const std::string& device);
};

Status EmbeddedService::Parts::StartServer(const std::string& data_dir) {
  ServerOptions options;
  options.data_dir = data_dir;
  StatusOr<std::unique_ptr<Server>> started = Server::Start(options);
  if (started.status().code() == StatusCode::kUnavailable) {
    AG_LET(temporary, TempDir::Make("autograph-store"));
    note = Message(started.status());
    options.data_dir = temporary->path();
    options.base_dir = data_dir;
    started = Server::Start(options);
  }
  AG_LET(server, std::move(started));
  if (temporary.has_value()) note += OverlayNote(server->cache_base());
  channel = server->InProcessChannel();
  return OkStatus();
}

Status EmbeddedService::Parts::StartAgent(const std::string& device) {
  AgentOptions options;
  options.device = device;
  options.in_process = true;
  // The agent sees the embedded server's folder unless it is removed meanwhile. Nobody, not even
  // root, can make this folder below a file, so the agent has no cache.
  options.blob_cache_dir = "/dev/null/blobs";
  agent = std::make_unique<Agent>(channel, options, RealClock());
  for (Nanos waited{0}; waited < kServeMax; waited += kPoll) {
    const Status health = agent->health();
    if (health.ok() && server->OffersDevice()) return OkStatus();  // The server knows it, too.
    const bool is_starting = health.code() == StatusCode::kFailedPrecondition;
    if (!health.ok() && !is_starting) return health;
    if (StopSignal() != 0) return Err(StatusCode::kCancelled, "interrupted");
    RealClock().SleepFor(kPoll);
  }
  return Err(StatusCode::kUnavailable, "device {} did not come up in time", device);
}

EmbeddedService::EmbeddedService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

EmbeddedService::~EmbeddedService() {
  parts_->agent.reset();
  parts_->server->Shutdown(kGrace);
}

StatusOr<std::unique_ptr<EmbeddedService>> EmbeddedService::Start(const std::string& data_dir,
                                                                  const std::string& device) {
  auto parts = std::make_unique<Parts>();
  AG_TRY(parts->StartServer(data_dir));
  if (!device.empty()) AG_TRY(parts->StartAgent(device));
  return std::unique_ptr<EmbeddedService>(new EmbeddedService(std::move(parts)));
}

std::shared_ptr<grpc::Channel> EmbeddedService::channel() const { return parts_->channel; }
const std::string& EmbeddedService::note() const { return parts_->note; }

Status EmbeddedService::ShareBlob(const Digest& digest, const std::string& path) {
  return parts_->server->ShareBlob(digest, path);
}

void RegisterEmbeddedRoles() {
  RegisterServerRoles();
  RegisterExecutorRole();
}

}  // namespace ag
