// autographd as an object: stores, worker pool, jobs and the gRPC services around them. The program
// and the command line's embedded mode differ only in `listen`. Thread-safe after Start.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/digest.h"
#include "base/status.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "net/tls.h"
#include "server/jobs/retention.h"
#include "server/pipeline/job_process.h"
#include "server/pipeline/sentinel.h"
#include "server/rpc/listener.h"
#include "server/rpc/places.h"
#include "server/store/cache_store.h"
#include "server/workers/worker_pool.h"

namespace grpc {
class Channel;
}

namespace ag {

inline constexpr int kDefaultPort = 7450;

struct ServerOptions {
  std::string data_dir;  // Created when missing; one process at a time.
  // Another process's data folder: this server also reads its blobs and the measurements of its
  // last snapshot, and never writes there. "": none.
  std::string base_dir;
  std::string cache_namespace;  // As in StoreOptions.
  std::string listen;           // "127.0.0.1:7450"; "": only the in-process channel.
  std::string metrics;          // "127.0.0.1:9464" for Prometheus, always plain; "": none.
  TlsFiles tls;                 // Empty: `listen` is plain.
  std::string tokens;           // File of net/tokens.h; "": everybody may do everything.
  bool insecure = false;        // What is plain may be reached from other machines.
  std::string program;  // The binary with the roles of RegisterServerRoles; "": this program.
  ImportLimits limits;
  Nanos import_time_max{std::chrono::minutes(2)};
  Nanos export_time_max{std::chrono::minutes(10)};
  PoolOptions pool;                          // Worker expiry, attempts, ...
  Nanos tick_max{std::chrono::seconds(10)};  // The longest time between two messages of a stream.
  Nanos failure_expiry{std::chrono::hours(24)};
  Nanos hang_time_max{std::chrono::minutes(1)};    // As in PipelineOptions.
  Nanos offer_wait_max{std::chrono::minutes(15)};  // How long a resumed job waits for its device.
  int search_threads = 0;                          // As in PipelineOptions.
  int runners = 4;
  int per_device = 1;
  int crashes_max = 5;  // As in JobsOptions, like the next.
  Nanos host_fault_max{std::chrono::hours(24)};
  // Device seconds that a tenant may use in a day, unless the tokens file says else; 0: no limit.
  double quota_seconds = 0;
  RetentionOptions retention;
  Nanos retention_pause{std::chrono::minutes(10)};  // Between two looks at it.
  int watchers_max = 256;
  int workers_max = 128;        // Open streams of workers.
  JobProcessOptions processes;  // Its limits; the rest is filled in from here.
  PlaceLimits transfers;
  ConnectionLimits connections;
  Nanos connection_idle{std::chrono::minutes(10)};  // A connection without a call is closed.
  SentinelOptions sentinel;                         // Off unless it has a pause.
  Clock* clock = nullptr;                           // Null: RealClock().
  std::string more_rules;  // Besides the built-in ones, in the language of docs/rules.md.
};

class Server {
 public:
  // Opens the stores, resumes unfinished jobs and listens. kUnavailable: another process holds
  // data_dir (the message names it), or the address is in use. kDataLoss: the jobs file is corrupt.
  // kInvalidArgument: it would be reached from other machines in plain text; errors of the TLS
  // files (TlsServerCredentials) and of the tokens (ReadTokens).
  static StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  ~Server();  // Shuts down without grace.

  std::shared_ptr<grpc::Channel> InProcessChannel();
  int port() const;             // 0 in embedded mode.
  std::string address() const;  // Where it listens, with the port that was bound; "": nowhere.
  uint64_t epoch() const;
  const CacheBase& cache_base() const;  // Of ServerOptions::base_dir.
  bool OffersDevice() const;  // True when the last report of some worker says that it serves.

  // Makes the file `path` a second name of a large blob (BlobDir::Share), for a caller on this
  // host. kUnimplemented: copy it; a small one always is.
  Status ShareBlob(const Digest& digest, const std::string& path);

  // At once: health is NOT_SERVING, no connection or call is taken any more, streams end, and jobs
  // that run are stored as queued. Then waits at most `grace` for other calls, and without a bound
  // for what the jobs do now: a program that may not wait ends itself (EndAfter).
  void Shutdown(Nanos grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Registers the roles that a program must offer to host a Server. Call it at the top of main,
// before RunChildRole.
void RegisterServerRoles();

}  // namespace ag
