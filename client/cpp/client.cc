#include "client/cpp/client.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/cache.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/store.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/blobs.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/file_reader.h"
#include "base/mutex.h"
#include "base/partial_files.h"
#include "base/private_dir.h"
#include "base/trace.h"
#include "base/write_pieces.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "net/error_details.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr int64_t kFileBytesMax = int64_t{64} << 30;
constexpr int64_t kReadBytes = 256 << 10;  // Fits into the core's own cache.

bool IsTerminal(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

// A file as it was when its hashing began.
struct Look {
  std::string path;
  struct stat info {};
  std::future<StatusOr<Digest>> digest;
};

bool Before(const struct timespec& a, const struct timespec& b) {
  return std::pair(a.tv_sec, a.tv_nsec) < std::pair(b.tv_sec, b.tv_nsec);
}

}  // namespace

struct Client::State {
  std::string address;  // Empty: in process, where the connection cannot fail.
  const std::string trace = TraceOfEnvironment().ToString();  // Of each call; "": none.
  bool is_tls = false;
  std::shared_ptr<grpc::Channel> channel;
  ShareBlob share;  // May be null.
  std::unique_ptr<v1::Optimizer::Stub> optimizer;
  std::unique_ptr<v1::Blobs::Stub> blobs;
  std::unique_ptr<v1::Cache::Stub> cache;
  std::unique_ptr<v1::Workers::Stub> workers;

  Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return OkStatus();
    // gRPC's message for a failed connection names sockets, not servers.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !address.empty() &&
        channel->GetState(false) != GRPC_CHANNEL_READY) {
      if (is_tls) {
        return Err(StatusCode::kUnavailable, "no TLS connection to {}: {}", address,
                   status.error_message());
      }
      // A server with TLS closes the connection of a client without.
      const bool is_closed = status.error_message().find("Socket closed") != std::string::npos ||
                             status.error_message().find("onnection reset") != std::string::npos;
      return Err(StatusCode::kUnavailable, "no server at {}: is autographd running?{}", address,
                 is_closed ? " (one with TLS needs --tls-ca)" : "");
    }
    return ag::FromGrpc(status);
  }

  // Makes one unary call.
  template <class Stub, class Request, class Response>
  StatusOr<Response> Call(Stub& stub,
                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                          const Request& request) const {
    grpc::ClientContext context;
    if (!trace.empty()) context.AddMetadata("traceparent", trace);
    Response response;
    AG_TRY(FromGrpc((stub.*method)(&context, request, &response)));
    return response;
  }

  StatusOr<v1::Job> WatchOnce(const std::string& job,
                              const std::function<bool(const v1::Job&)>& on_change);
  StatusOr<bool> CopyShared(const Digest& digest, const std::string& path);
  Status Download(const Digest& digest, int64_t bytes_max, const TakePiece& take);
  bool HoldsAlready(const std::string& path, const Digest& digest);

  Mutex mutex;
  Look look AG_GUARDED_BY(mutex);  // The last LookAhead.
};

StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                  const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  // Finds a dead server, and a restarted one, within a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A ping finds a host that vanished without closing. Older servers accept one each 20 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  AG_LET(std::shared_ptr<grpc::Channel> channel, MakeChannel(address, options, arguments));
  auto client = std::make_unique<Client>(std::move(channel));
  client->state_->address = address;
  client->state_->is_tls = !options.tls.IsEmpty();
  return client;
}

Client::Client(std::shared_ptr<grpc::Channel> channel, ShareBlob share)
    : state_(std::make_unique<State>()) {
  state_->share = std::move(share);
  state_->optimizer = v1::Optimizer::NewStub(channel);
  state_->blobs = v1::Blobs::NewStub(channel);
  state_->cache = v1::Cache::NewStub(channel);
  state_->workers = v1::Workers::NewStub(channel);
  state_->channel = std::move(channel);
}

Client::~Client() = default;

StatusOr<Digest> Client::UploadFile(const std::string& path, const ByteProgress& on_progress) {
  AG_LET(FileReader file, FileReader::Open(path));
  const auto read = [&](const TakePiece& take) -> Status {
    for (int64_t at = 0; at < file.size(); at += kReadBytes) {
      const auto size = static_cast<size_t>(std::min(kReadBytes, file.size() - at));
      AG_LET(const std::string_view piece, file.Read(static_cast<uint64_t>(at), size));
      AG_TRY(take(piece));
    }
    return OkStatus();
  };
  return Upload(path, file.size(), read, on_progress);
}

StatusOr<Digest> Client::Upload(const std::string& noun, int64_t size_bytes, const ReadPieces& read,
                                const ByteProgress& on_progress) {
  Hasher hasher;
  AG_TRY(read([&](std::string_view piece) {
    hasher.Update(piece);
    return OkStatus();
  }));
  const Digest digest = hasher.Finish();
  v1::FindMissingRequest find;
  find.add_digests(digest.Hex());
  AG_LET(const v1::FindMissingResponse missing,
         state_->Call(*state_->blobs, &v1::Blobs::Stub::FindMissing, find));
  if (missing.missing().empty()) return digest;

  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto stream = state_->blobs->Upload(&context, &response);
  v1::UploadRequest chunk;
  chunk.set_digest(digest.Hex());
  chunk.set_size_bytes(size_bytes);
  int64_t sent = 0;
  bool is_wanted = true;  // Else the final status says why.
  const auto send = [&] {
    const auto size = static_cast<int64_t>(chunk.data().size());
    chunk.set_offset(sent);
    chunk.set_last(sent + size == size_bytes);
    is_wanted = is_wanted && stream->Write(chunk);
    sent += size;
    if (is_wanted && on_progress) on_progress(sent, size_bytes);
    chunk.Clear();
  };
  const Status given = read([&](std::string_view piece) -> Status {
    while (!piece.empty() && is_wanted) {
      const std::string_view part = piece.substr(0, kChunkBytes - chunk.data().size());
      chunk.mutable_data()->append(part);
      piece.remove_prefix(part.size());
      if (chunk.data().size() == kChunkBytes) send();
    }
    return is_wanted ? OkStatus() : Err(StatusCode::kCancelled, "nobody takes it");
  });
  if (is_wanted && given.ok() && (sent < size_bytes || size_bytes == 0)) send();
  if (is_wanted && !given.ok()) context.TryCancel();
  stream->WritesDone();
  const Status taken = state_->FromGrpc(stream->Finish());
  if (is_wanted) AG_TRY(given);
  AG_TRY(taken, "upload {}", noun);
  return digest;
}

StatusOr<v1::Job> Client::Optimize(const v1::OptimizeRequest& request) {
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::Optimize, request);
}

StatusOr<v1::Job> Client::State::WatchOnce(const std::string& job,
                                           const std::function<bool(const v1::Job&)>& on_change) {
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_name(job);
  const auto stream = optimizer->WatchJob(&context, request);
  v1::Job seen;
  while (stream->Read(&seen)) {
    if (on_change && !on_change(seen)) {
      context.TryCancel();
      while (stream->Read(&seen)) {
      }
      (void)stream->Finish();
      return Err(StatusCode::kCancelled, "stopped watching {}", job);
    }
    if (IsTerminal(seen.state())) {
      context.TryCancel();
      (void)stream->Finish();
      return seen;
    }
  }
  AG_TRY(FromGrpc(stream->Finish()));
  return Err(StatusCode::kUnavailable, "the stream of {} ended early", job);
}

StatusOr<v1::Job> Client::Watch(const std::string& name,
                                const std::function<bool(const v1::Job&)>& on_change) {
  return Watch(name, on_change, WatchOptions());
}

StatusOr<v1::Job> Client::Watch(const std::string& name,
                                const std::function<bool(const v1::Job&)>& on_change,
                                const WatchOptions& options) {
  for (int attempt = 1;; ++attempt) {
    bool seen = false;
    StatusOr<v1::Job> job = state_->WatchOnce(name, [&](const v1::Job& state) {
      seen = true;
      return !on_change || on_change(state);
    });
    if (job.ok() || job.status().code() != StatusCode::kUnavailable) return job;
    if (seen) attempt = 0;
    if (attempt >= options.attempts_max) return job;
    RealClock().SleepFor(options.pause);
  }
}

StatusOr<v1::Job> Client::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::GetJob, request);
}

StatusOr<v1::Job> Client::CancelJob(const v1::CancelJobRequest& request) {
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::CancelJob, request);
}

StatusOr<v1::Job> Client::PublishBest(const std::string& name,
                                      const std::function<bool(const v1::Job&)>& on_change) {
  v1::PublishBestRequest request;
  request.set_name(name);
  AG_LET(const v1::Job asked,
         state_->Call(*state_->optimizer, &v1::Optimizer::Stub::PublishBest, request));
  std::optional<v1::Job> come;
  const auto ended = Watch(name, [&](const v1::Job& job) {
    if (job.best_version() > asked.best_version()) {
      come = job;
      return false;
    }
    return !on_change || on_change(job);
  });
  return come.has_value() ? *come : ended;
}

StatusOr<v1::ListJobsResponse> Client::ListJobs(const v1::ListJobsRequest& request) {
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::ListJobs, request);
}

StatusOr<v1::DeleteModelResponse> Client::DeleteModel(const Digest& model) {
  v1::DeleteModelRequest request;
  request.set_model_digest(model.Hex());
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::DeleteModel, request);
}

StatusOr<v1::Capabilities> Client::GetCapabilities() {
  return state_->Call(*state_->optimizer, &v1::Optimizer::Stub::GetCapabilities,
                      v1::GetCapabilitiesRequest());
}

// Copies the blob from the server's own folder. Returns false when this process does not see the
// folder or the blob's bytes are wrong. Checks the digest while the kernel copies.
StatusOr<bool> Client::State::CopyShared(const Digest& digest, const std::string& path) {
  AG_LET(const v1::Capabilities capabilities,
         Call(*optimizer, &v1::Optimizer::Stub::GetCapabilities, v1::GetCapabilitiesRequest()));
  const std::string& dir = capabilities.shared_blob_dir();
  const std::string& proof = capabilities.shared_blob_proof();
  if (dir.empty() || proof.empty() || proof.find('/') != std::string::npos) return false;
  if (!FileExists(dir + "/" + proof)) return false;
  const std::string hex = digest.Hex();
  const std::string blob = fmt::format("{}/{}/{}", dir, hex.substr(0, 2), hex);
  if (!FileExists(blob)) return false;
  if (HoldsAlready(path, digest)) return true;
  std::future<StatusOr<Digest>> hashed =
      std::async(std::launch::async, [&] { return Sha256OfFile(blob); });
  const std::string partial = fmt::format("{}.partial-{}", path, getpid());
  const PartialFile unfinished(partial);
  std::error_code error;
  std::filesystem::copy_file(blob, partial, std::filesystem::copy_options::overwrite_existing,
                             error);
  const StatusOr<Digest> found = hashed.get();
  if (!found.ok() || *found != digest || error) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    if (error) return FromErrno(error.value(), "write " + path);
    return false;
  }
  std::filesystem::permissions(partial, std::filesystem::perms(0644), error);
  std::filesystem::rename(partial, path, error);
  if (error) return FromErrno(error.value(), "write " + path);
  return true;
}

void Client::LookAhead(const std::string& path) {
  Look look{.path = path};
  struct timespec tick {};  // The time stamp of a change at this moment.
  ::clock_gettime(CLOCK_REALTIME_COARSE, &tick);
  if (::lstat(path.c_str(), &look.info) != 0 || !S_ISREG(look.info.st_mode)) return;
  // A file that changed within this tick may change again and keep its time stamp.
  if (!Before(look.info.st_mtim, tick)) return;
  look.digest = std::async(std::launch::async, [path] { return Sha256OfFile(path); });
  MutexLock lock(state_->mutex);
  state_->look = std::move(look);
}

// True when `path`, which LookAhead hashed, holds the blob already, as after a repeated request:
// leaving it is much faster than copying it. Sets its time of change to now.
bool Client::State::HoldsAlready(const std::string& path, const Digest& digest) {
  Look before;
  {
    MutexLock lock(mutex);
    before = std::exchange(look, {});
  }
  struct stat now {};
  if (before.path != path || ::lstat(path.c_str(), &now) != 0) return false;
  const StatusOr<Digest> found = before.digest.get();
  const bool same = now.st_ino == before.info.st_ino && now.st_size == before.info.st_size &&
                    !Before(before.info.st_mtim, now.st_mtim) &&
                    !Before(now.st_mtim, before.info.st_mtim);
  return same && found.ok() && *found == digest &&
         ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

Status Client::DownloadFile(const Digest& digest, const std::string& path) {
  if (state_->share && state_->share(digest, path).ok()) return OkStatus();
  const StatusOr<bool> copied = state_->CopyShared(digest, path);
  if (copied.ok() && *copied) return OkStatus();
  if (!copied.ok() && copied.status().code() != StatusCode::kUnavailable) return copied.status();
  return WriteFileInPieces(path, [&](const WritePiece& write) {
    return state_->Download(digest, kFileBytesMax, write);
  });
}

StatusOr<std::string> Client::DownloadBytes(const Digest& digest, int64_t bytes_max) {
  std::string bytes;
  AG_TRY(state_->Download(digest, bytes_max, [&](std::string_view piece) {
    bytes += piece;
    return OkStatus();
  }));
  return bytes;
}

// Gives the blob's bytes in pieces, and an error at their end when they have another digest.
Status Client::State::Download(const Digest& digest, int64_t bytes_max, const TakePiece& take) {
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_digest(digest.Hex());
  const auto stream = blobs->Download(&context, request);
  Hasher hasher;
  v1::DownloadResponse chunk;
  int64_t received = 0;
  while (stream->Read(&chunk)) {
    hasher.Update(chunk.data());
    received += static_cast<int64_t>(chunk.data().size());
    Status taken = std::max(received, chunk.size_bytes()) <= bytes_max
                       ? take(chunk.data())
                       : Err(StatusCode::kResourceExhausted, "blob {} is larger than {} bytes",
                             digest.Short(), bytes_max);
    if (!taken.ok()) {
      context.TryCancel();
      (void)stream->Finish();
      return taken;
    }
  }
  AG_TRY(FromGrpc(stream->Finish()), "download {}", digest.Short());
  if (hasher.Finish() == digest) return OkStatus();
  return Err(StatusCode::kDataLoss, "download {}: the bytes have another digest", digest.Short());
}

StatusOr<v1::CacheStats> Client::GetCacheStats() {
  return state_->Call(*state_->cache, &v1::Cache::Stub::GetStats, v1::GetCacheStatsRequest());
}

StatusOr<v1::ListMeasurementsResponse> Client::ListMeasurements(
    const v1::ListMeasurementsRequest& request) {
  return state_->Call(*state_->cache, &v1::Cache::Stub::ListMeasurements, request);
}

StatusOr<v1::ListGraphsResponse> Client::ListGraphs(const v1::ListGraphsRequest& request) {
  return state_->Call(*state_->cache, &v1::Cache::Stub::ListGraphs, request);
}

StatusOr<v1::ListRegionsResponse> Client::ListRegions(const v1::ListRegionsRequest& request) {
  return state_->Call(*state_->cache, &v1::Cache::Stub::ListRegions, request);
}

Status Client::ExportCache(const std::string& environment,
                           const std::function<Status(const v1::CacheRecord&)>& on_record) {
  grpc::ClientContext context;
  v1::ExportCacheRequest request;
  request.set_environment(environment);
  const auto stream = state_->cache->Export(&context, request);
  v1::CacheRecord record;
  while (stream->Read(&record)) {
    if (const Status status = on_record(record); !status.ok()) {
      context.TryCancel();
      (void)stream->Finish();
      return status;
    }
  }
  return state_->FromGrpc(stream->Finish());
}

StatusOr<v1::ForgetCacheResponse> Client::ForgetCache(const v1::ForgetCacheRequest& request) {
  return state_->Call(*state_->cache, &v1::Cache::Stub::Forget, request);
}

StatusOr<v1::ImportCacheResponse> Client::ImportCache(
    const std::function<bool(v1::CacheRecord*)>& next_record) {
  grpc::ClientContext context;
  v1::ImportCacheResponse response;
  const auto stream = state_->cache->Import(&context, &response);
  v1::CacheRecord record;
  while (next_record(&record) && stream->Write(record)) record.Clear();
  stream->WritesDone();
  AG_TRY(state_->FromGrpc(stream->Finish()));
  return response;
}

StatusOr<bool> Client::Serves(const std::string& name) {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(name);
  const auto stub = grpc::health::v1::Health::NewStub(state_->channel);
  AG_LET(const HealthCheckResponse response,
         state_->Call(*stub, &grpc::health::v1::Health::Stub::Check, request));
  return response.status() == HealthCheckResponse::SERVING;
}

Status Client::AdmitWorker(const std::string& worker_id) {
  v1::AdmitWorkerRequest request;
  request.set_worker_id(worker_id);
  return state_->Call(*state_->workers, &v1::Workers::Stub::AdmitWorker, request).status();
}

StatusOr<v1::ListWorkersResponse> Client::ListWorkers() {
  return state_->Call(*state_->workers, &v1::Workers::Stub::ListWorkers, v1::ListWorkersRequest());
}

namespace {

// The files of a backup that come, beside the ones that they will replace.
class NewFiles {
 public:
  explicit NewFiles(std::string folder) : folder_(std::move(folder)) {}
  ~NewFiles() {
    for (const std::string& name : names_) file_ops::Remove(Unfinished(name));
  }

  Status Take(const v1::BackupResponse& part) {
    if (!part.file().empty()) AG_TRY(Begin(part.file()));
    if (part.data().empty()) return OkStatus();
    if (!fd_) return Err(StatusCode::kDataLoss, "backup: bytes of no file");
    const int error = file_ops::WriteAll(fd_.get(), part.data());
    return error == 0 ? OkStatus() : FromErrno(error, Unfinished(names_.back()));
  }

  // Gives the files their names, the last that came first: jobs.db, which makes the folder a
  // backup, comes first and counts last.
  Status Publish() {
    AG_TRY(Sync());
    while (!names_.empty()) {
      const std::string& name = names_.back();
      const int error = file_ops::Rename(Unfinished(name), folder_ + "/" + name);
      if (error != 0) return FromErrno(error, folder_ + "/" + name);
      names_.pop_back();
    }
    const int error = file_ops::SyncDir(folder_);
    return error == 0 ? OkStatus() : FromErrno(error, folder_);
  }

 private:
  std::string Unfinished(const std::string& name) const { return folder_ + "/" + name + ".new"; }

  Status Begin(const std::string& name) {
    if (name.find('/') != std::string::npos || name.starts_with(".")) {
      return Err(StatusCode::kDataLoss, "backup: a file is called {}", name);
    }
    AG_TRY(Sync());
    file_ops::Remove(Unfinished(name));  // Of a copy that was interrupted.
    const int error = file_ops::CreateNew(Unfinished(name), 0600, fd_);
    if (error != 0) return FromErrno(error, Unfinished(name));
    names_.push_back(name);
    return OkStatus();
  }
  Status Sync() {
    if (!fd_) return OkStatus();
    const int error = file_ops::Sync(fd_.get());
    fd_ = Fd();
    return error == 0 ? OkStatus() : FromErrno(error, Unfinished(names_.back()));
  }

  const std::string folder_;
  std::vector<std::string> names_;
  Fd fd_;
};

}  // namespace

StatusOr<Client::BackupFacts> Client::Backup(const std::string& folder) {
  AG_TRY(MakePrivateDir(folder), "backup");
  AG_LET(const auto blobs, BlobDir::Open(folder + "/blobs"));
  BackupFacts facts;
  NewFiles files(folder);
  std::vector<Digest> wanted;
  {
    grpc::ClientContext context;
    const auto store = v1::Store::NewStub(state_->channel);
    const auto stream = store->Backup(&context, v1::BackupRequest());
    v1::BackupResponse part;
    while (stream->Read(&part)) {
      facts.bytes += static_cast<int64_t>(part.data().size());
      Status taken = files.Take(part);
      for (const std::string& hex : part.blobs()) {
        const auto digest = ParseDigest(hex);
        if (taken.ok() && !digest.ok()) taken = digest.status();
        if (!digest.ok()) continue;
        ++facts.blobs;
        if (!blobs->Has(*digest)) wanted.push_back(*digest);
      }
      if (taken.ok()) continue;
      context.TryCancel();
      (void)stream->Finish();
      return taken;
    }
    AG_TRY(state_->FromGrpc(stream->Finish()), "backup");
  }
  for (const Digest& digest : wanted) {
    AG_LET(const auto writer, blobs->NewWriter());
    const Status came = state_->Download(
        digest, kFileBytesMax, [&](std::string_view piece) { return writer->Append(piece); });
    if (came.code() == StatusCode::kNotFound) continue;
    AG_TRY(came);
    AG_TRY(writer->Commit(digest, BlobDir::Durable::kAfterSync));
    ++facts.fetched;
    facts.bytes += static_cast<int64_t>(writer->size());
  }
  AG_TRY(blobs->Sync());
  AG_TRY(files.Publish());
  return facts;
}

}  // namespace ag
