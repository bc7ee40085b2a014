#include "server/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/blobs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/measuring_lock.h"
#include "base/private_dir.h"
#include "net/address.h"
#include "net/loopback.h"
#include "rules/language/rule_set.h"
#include "rules/sets/built_in_rules.h"
#include "server/pipeline/export_child.h"
#include "server/pipeline/job_child.h"
#include "server/pipeline/job_process.h"
#include "server/pipeline/pipeline.h"
#include "server/rpc/access.h"
#include "server/rpc/call_places.h"
#include "server/rpc/decode_errors.h"
#include "server/rpc/listen_error.h"
#include "server/rpc/listener.h"
#include "server/rpc/metrics.h"
#include "server/rpc/rpc.h"
#include "server/store/open_store.h"
#include "server/store/reboot_check.h"

namespace ag {
namespace {

// What grpc.health.v1 knows: the process as a whole, its services, and whether a worker serves.
constexpr const char* kHealthNames[] = {
    "", "live", "ready", "autograph.v1.Optimizer", "autograph.v1.Blobs", "autograph.v1.Cache"};
constexpr Nanos kFirstRetention = std::chrono::seconds(30);
constexpr Nanos kCountPause = std::chrono::seconds(10);  // Between two writes of answers' counts.
constexpr const char* kWorkersHealthNames[] = {"workers", "autograph.v1.Workers"};
constexpr int kCallsMax = 128;           // Short ones, at once.
constexpr int kThreadsToSpare = 128;     // Of calls that are being refused or ended.
constexpr int kHandshakeMaxMs = 10'000;  // From the connection to its first settings.
// A smaller blob is copied: its copy costs less than the syncs of a link.
constexpr uintmax_t kSharedBytesMin = uintmax_t{1} << 20;

// Writes a file into the blob folder under a fresh name. A process that finds it sees this very
// folder (docs/protocol.md).
StatusOr<std::string> WriteProof(const std::string& blob_root, uint64_t epoch, Clock& clock) {
  AG_LET(const std::vector<std::string> names, ListDir(blob_root));
  for (const std::string& name : names) {
    std::error_code ignored;  // An old proof that stays names this folder as well.
    if (name.starts_with("proof-")) {
      std::filesystem::remove(fmt::format("{}/{}", blob_root, name), ignored);
    }
  }
  const std::string seed =
      fmt::format("{} {} {} {}", epoch, clock.UnixSeconds(), clock.Now().count(), ::getpid());
  const std::string proof = "proof-" + Sha256(seed).Short();
  AG_TRY(WriteFileAtomically(blob_root + "/" + proof, ""));
  return proof;
}

int MillisOf(Nanos duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

Status CheckIsPrivate(const std::string& what, const std::string& address,
                      const std::string& remedy) {
  if (address.empty() || IsLoopback(address)) return OkStatus();
  return Err(StatusCode::kInvalidArgument,
             "{} at {} would be open to other machines in plain text: {}, or allow it with "
             "--insecure",
             what, address, remedy);
}

// Nothing leaves this machine in plain text unless it is told to.
Status CheckExposure(const ServerOptions& options) {
  if (!options.insecure) {
    if (options.tls.IsEmpty()) {
      AG_TRY(CheckIsPrivate("the service", options.listen, "give --tls-cert and --tls-key"));
    }
    AG_TRY(CheckIsPrivate("metrics", options.metrics, "listen on 127.0.0.1"));
  }
  const bool is_open = !options.listen.empty() && !IsLoopback(options.listen) &&
                       options.tokens.empty() && options.tls.ca.empty();
  if (is_open) {
    LogWarn(
        "whoever reaches {} may do everything: --tokens or --tls-client-ca say who may "
        "(docs/security.md)",
        options.listen);
  }
  return OkStatus();
}

// gRPC is begun here and never ended: its end waits for threads of its own, for ever where memory
// was wanting for them.
void KeepGrpc() { [[maybe_unused]] static const bool is_kept = (grpc_init(), true); }

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(options), clock_(options.clock != nullptr ? *options.clock : RealClock()) {}
  ~Impl() { Shutdown(Nanos{0}); }

  Status Start();
  std::shared_ptr<grpc::Channel> InProcessChannel() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kSendBytesMax);
    return grpc_->InProcessChannel(arguments);
  }
  int port() const { return listener_ == nullptr ? 0 : listener_->port(); }
  std::string address() const {
    return options_.listen.empty() ? "" : BoundAddress(options_.listen, port());
  }
  uint64_t epoch() const { return epoch_; }
  const CacheBase& cache_base() const { return store_.cache->base(); }
  bool OffersDevice() const { return !dispatcher_->Offers().empty(); }
  Status ShareBlob(const Digest& digest, const std::string& path);
  void Shutdown(Nanos grace);

 private:
  Status OpenStores();
  Status StartJobs();
  void OpenPlaces();
  Status StartGrpc(const std::shared_ptr<grpc::ServerCredentials>& credentials);
  void TickerMain();
  void SetHealth();
  void KeepSnapshot();
  void KeepStoreSmall();
  void CountAnswers();

  const ServerOptions options_;
  Clock& clock_;
  std::optional<FileLock> lock_;
  Records records_;  // Outlives the store and the jobs.
  Store store_;
  std::shared_ptr<BlobDir> blobs_;
  uint64_t epoch_ = 0;
  RuleSet rules_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<JobProcesses> processes_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Sentinel> sentinel_;  // Ends before the jobs and the workers that it uses.
  std::unique_ptr<Access> access_;
  // Of the calls that hold a thread; they outlive gRPC's server.
  std::optional<Places> transfers_, watches_, workers_, calls_;
  FloodGuard floods_{clock_, kReceiveBytesMax};
  std::unique_ptr<Listener> listener_;
  FailureGuard failures_{clock_, [this](const std::string& peer) {
                           if (listener_ != nullptr) listener_->EndConnection(peer);
                         }};
  RpcCore core_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread ticker_;
  Nanos next_retention_{0};
  Nanos next_count_{0};
  bool shut_down_ = false;
};

Status Server::Impl::OpenStores() {
  const std::string& dir = options_.data_dir;
  if (dir.empty()) return Err(StatusCode::kInvalidArgument, "data_dir is empty");
  AG_TRY(MakePrivateDir(dir), "data folder {} (another one: --data)", dir);
  const std::string who = fmt::format("autographd, process {}, listening on {}", ::getpid(),
                                      options_.listen.empty() ? "nothing" : options_.listen);
  auto lock = FileLock::TryExclusive(dir + "/lock", who);
  AG_TRY(lock.status(), "data folder {} (another one: --data)", dir);
  lock_.emplace(*std::move(lock));
  AG_LET(const std::vector<std::string> names, ListDir(dir));
  for (const std::string& name : names) {  // Of a backup that a crash interrupted.
    std::error_code ignored;
    if (name.starts_with("backup-")) std::filesystem::remove_all(dir + "/" + name, ignored);
  }
  AG_LET(store_, OpenStore({.folder = dir,
                            .below = options_.base_dir,
                            .cache_namespace = options_.cache_namespace,
                            .failure_expiry = options_.failure_expiry,
                            .on_write = [this](std::string_view store,
                                               Nanos took) { records_.Wrote(store, took); }},
                           clock_));
  AG_LET(blobs_, BlobDir::Open(dir + "/blobs",
                               options_.base_dir.empty() ? "" : options_.base_dir + "/blobs"));
  AG_LET(const RebootCheck check, CheckAfterReboot(dir, *blobs_));
  if (check.removed > 0) {
    LogWarn("{} of {} blobs did not survive the machine's restart and were removed", check.removed,
            check.checked);
  }
  AG_LET(epoch_, store_.jobs->OpenEpoch());
  return OkStatus();
}

Status Server::Impl::StartJobs() {
  AG_LET(rules_, BuiltInRulesAnd(options_.more_rules));
  dispatcher_ = std::make_unique<Dispatcher>(epoch_, options_.pool, clock_);
  PipelineOptions pipeline;
  pipeline.limits = options_.limits;
  pipeline.sandbox.program = options_.program;
  pipeline.sandbox.time_max = options_.import_time_max;
  pipeline.child.program = options_.program;
  pipeline.child.time_max = options_.export_time_max;
  pipeline.blob_root = options_.data_dir + "/blobs";
  pipeline.hang_time_max = options_.hang_time_max;
  pipeline.more_rules = options_.more_rules;
  pipeline.search_threads = options_.search_threads;
  JobProcessOptions processes = options_.processes;
  processes.pipeline = pipeline;
  processes.program = options_.program;
  if (!options_.base_dir.empty()) processes.blobs_below = options_.base_dir + "/blobs";
  processes.offer_wait_max = options_.offer_wait_max;
  processes_ =
      std::make_unique<JobProcesses>(*dispatcher_, *store_.cache, clock_, std::move(processes));
  JobsOptions jobs;
  jobs.runners = options_.runners;
  jobs.per_device = options_.per_device;
  jobs.host_fault_max = options_.host_fault_max;
  jobs.on_end = [this](const Job& job) { records_.Ended(job); };
  jobs.quota_of = [this](const std::string& tenant) {
    return access_->QuotaOf(tenant).value_or(options_.quota_seconds);
  };
  jobs.crashes_max = options_.crashes_max;
  jobs.rules_digest = rules_.digest().Hex();
  jobs.find_offers = [this](const std::string& device) { return dispatcher_->FindOffers(device); };
  jobs.validate = [this](const v1::OptimizeRequest& request) -> Status {
    const auto& disabled = request.disabled_rules();
    AG_TRY(rules_.CheckNames({disabled.begin(), disabled.end()}), "disabled_rules");
    return OkStatus();
  };
  AG_LET(jobs_, Jobs::Start({store_.jobs.get(), store_.cache.get(), blobs_.get()}, *processes_,
                            clock_, jobs));
  sentinel_ = std::make_unique<Sentinel>(
      Sentinel::Parts{*dispatcher_, *store_.cache, clock_, [this] { return dispatcher_->Offers(); },
                      [this] { return !jobs_->counts().empty(); }},
      options_.sentinel);
  sentinel_->Start();
  core_.jobs = jobs_.get();
  core_.dispatcher = dispatcher_.get();
  core_.cache = store_.cache.get();
  core_.data_dir = options_.data_dir;
  core_.blobs = blobs_.get();
  core_.clock = &clock_;
  core_.limits = options_.limits;
  core_.rules_digest = jobs.rules_digest;
  std::error_code error;
  core_.shared_blob_dir = std::filesystem::absolute(pipeline.blob_root, error).string();
  if (error) return Err(StatusCode::kFailedPrecondition, "working folder: {}", error.message());
  AG_LET(core_.shared_blob_proof, WriteProof(pipeline.blob_root, epoch_, clock_));
  core_.tick_max = options_.tick_max;
  OpenPlaces();
  return OkStatus();
}

void Server::Impl::OpenPlaces() {
  const Nanos idle = options_.transfers.idle_max;
  transfers_.emplace("transfers", Reason::kTooManyTransfers, options_.transfers, clock_);
  const int watches = options_.watchers_max;
  watches_.emplace("watches", Reason::kTooManyWatches,
                   PlaceLimits{.in_all = watches, .per_peer = 0, .idle_max = idle}, clock_);
  // A worker that has nothing to say is silent for a tick.
  const int workers = options_.workers_max;
  workers_.emplace("workers", Reason::kTooManyCalls,
                   PlaceLimits{.in_all = workers,
                               .per_peer = 0,
                               .idle_max = options_.pool.worker_expiry,
                               .makes_room = options_.tick_max + std::chrono::seconds(5)},
                   clock_);
  // The oldest call makes room at once: it is the one that nobody waits for.
  calls_.emplace(
      "calls", Reason::kTooManyCalls,
      PlaceLimits{.in_all = kCallsMax, .per_peer = 0, .idle_max = idle, .makes_room = Nanos{0}},
      clock_);
  core_.transfers = &*transfers_;
  core_.watches = &*watches_;
  core_.workers = &*workers_;
}

Status Server::Impl::StartGrpc(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  static const bool reflection = [] {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)reflection;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMaxMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, MillisOf(options_.connection_idle));
  // Any number of pings: above a number of them gRPC makes a long text of an error for each, which
  // takes it seconds, and floods are ended by themselves.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  grpc::ResourceQuota quota("autographd");
  quota.SetMaxThreads(options_.transfers.in_all + options_.watchers_max + options_.workers_max +
                      kCallsMax + kThreadsToSpare);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kReceiveBytesMax);
  builder.SetMaxSendMessageSize(kSendBytesMax);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeDecodeErrorTexts());
  interceptors.push_back(MakeCallPlaces(*calls_, failures_, floods_));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  if (!options_.listen.empty()) {
    using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    AG_LET(listener_, Listener::Bind(options_.listen, options_.connections, floods_));
    acceptor_ =
        builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, credentials);
  }
  services_.push_back(MakeOptimizerService(core_));
  services_.push_back(MakeBlobsService(core_));
  services_.push_back(MakeCacheService(core_));
  services_.push_back(MakeWorkersService(core_));
  services_.push_back(MakeStoreService(core_));
  for (const auto& service : services_) builder.RegisterService(service.get());
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return Err(StatusCode::kInternal, "gRPC does not start");
  for (const char* name : kHealthNames) {
    grpc_->GetHealthCheckService()->SetServingStatus(name, true);
  }
  SetHealth();
  if (listener_ != nullptr) listener_->Start(*acceptor_);
  return OkStatus();
}

Status Server::Impl::Start() {
  KeepGrpc();
  if (!options_.listen.empty()) AG_TRY(CheckListenAddress(options_.listen), "listen");
  AG_TRY(CheckExposure(options_));
  AG_LET(access_, Access::Open(options_.tokens));
  core_.access = access_.get();
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!options_.tls.IsEmpty()) {
    AG_LET(credentials, TlsServerCredentials(options_.tls));
  }
  AG_TRY(OpenStores());
  AG_TRY(StartJobs());
  AG_TRY(StartGrpc(credentials));
  if (!options_.metrics.empty()) {
    AG_LET(metrics_,
           MetricsEndpoint::Start(
               options_.metrics,
               {&records_, jobs_.get(), store_.jobs.get(), store_.cache.get(), dispatcher_.get(),
                &core_.answers_given, &sentinel_->counts().held, &sentinel_->counts().drifted}));
  }
  next_retention_ = clock_.Now() + std::min(kFirstRetention, options_.retention_pause);
  ticker_ = std::thread([this] { TickerMain(); });
  return OkStatus();
}

// Lets time pass in the worker pool when no call waits there, and updates the workers' health.
void Server::Impl::TickerMain() {
  while (!core_.stopping) {
    dispatcher_->Tick();
    SetHealth();
    for (auto* places : {&transfers_, &watches_, &workers_, &calls_}) (*places)->EndIdle();
    access_->Reload();
    KeepSnapshot();
    KeepStoreSmall();
    const bool is_full = listener_ != nullptr && listener_->memory_is_full();
    if (is_full || clock_.Now() >= next_count_) ::malloc_trim(0);  // What bursts of calls took.
    if (clock_.Now() >= next_count_) CountAnswers();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// Skips the snapshot while something is measured, since it would disturb it; the next tick comes
// soon.
void Server::Impl::KeepSnapshot() {
  if (!store_.cache->SnapshotIsDue()) return;
  SearchTurn turn;
  const StatusOr<bool> entered = turn.TryEnter();
  if (!entered.ok() || !*entered) return;
  if (const Status written = store_.cache->WriteSnapshot(); !written.ok()) {
    LogWarn("{}", Message(written));
  }
}

void Server::Impl::KeepStoreSmall() {
  if (clock_.Now() < next_retention_) return;
  next_retention_ = clock_.Now() + options_.retention_pause;
  const auto removed = jobs_->RemoveOld(options_.retention);
  if (!removed.ok()) {
    LogWarn("what the store need not keep is not removed: {}", Message(removed.status()));
  } else if (removed->jobs > 0 || removed->blobs > 0) {
    LogInfo("removed {} old jobs, {} answers and {} blobs of {} bytes", removed->jobs,
            removed->answers, removed->blobs, removed->bytes);
  }
}

// One write for all answers of a while, and none where there are none.
void Server::Impl::CountAnswers() {
  next_count_ = clock_.Now() + kCountPause;
  const int64_t given = core_.answers_given;
  if (given == 0) return;
  const Status counted = store_.cache->CountAnswers(given);
  if (!counted.ok()) return LogWarn("answers are not counted: {}", Message(counted));
  core_.answers_given -= given;
}

void Server::Impl::SetHealth() {
  const bool serves = !dispatcher_->Offers().empty();
  for (const char* name : kWorkersHealthNames) {
    grpc_->GetHealthCheckService()->SetServingStatus(name, serves);
  }
}

Status Server::Impl::ShareBlob(const Digest& digest, const std::string& path) {
  std::error_code error;
  if (std::filesystem::file_size(blobs_->PathOf(digest), error) < kSharedBytesMin || error) {
    return Err(StatusCode::kUnimplemented, "blob {} is copied", digest.Short());
  }
  return blobs_->Share(digest, path);
}

void Server::Impl::Shutdown(Nanos grace) {
  if (shut_down_) return;
  shut_down_ = true;
  const auto end = std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::microseconds>(grace);
  core_.stopping = true;
  std::thread calls;
  if (grpc_ != nullptr) {
    grpc_->GetHealthCheckService()->Shutdown();
    if (listener_ != nullptr) listener_->Stop();
    calls = std::thread([this, end] { grpc_->Shutdown(end); });
  }
  if (dispatcher_ != nullptr) dispatcher_->WakeAll();
  if (sentinel_ != nullptr) sentinel_->Stop();
  if (jobs_ != nullptr) jobs_->Shutdown();
  if (calls.joinable()) calls.join();
  metrics_.reset();
  if (ticker_.joinable()) ticker_.join();
  if (store_.cache != nullptr) CountAnswers();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  AG_TRY(impl->Start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() { return impl_->InProcessChannel(); }
int Server::port() const { return impl_->port(); }
std::string Server::address() const { return impl_->address(); }
uint64_t Server::epoch() const { return impl_->epoch(); }
const CacheBase& Server::cache_base() const { return impl_->cache_base(); }
bool Server::OffersDevice() const { return impl_->OffersDevice(); }
Status Server::ShareBlob(const Digest& digest, const std::string& path) {
  return impl_->ShareBlob(digest, path);
}
void Server::Shutdown(Nanos grace) { impl_->Shutdown(grace); }

void RegisterServerRoles() {
  RegisterSandboxRole();
  RegisterExportRole();
  RegisterJobRole();
}

}  // namespace ag
