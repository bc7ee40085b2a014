// The C++ client: the service's calls and the loops that every caller needs (upload missing files,
// watch a job to its end and re-attach, download and check the digest). Messages are those of
// proto/autograph/v1. Thread-safe.
//
// Every Status has the server's code, message, reason and pause (base/reason.h). A server that
// cannot be reached gives kUnavailable "no server at HOST:PORT: is autographd running?", with TLS
// also what went wrong.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "autograph/v1/cache.pb.h"
#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/status.h"
#include "net/channel.h"

namespace grpc {
class Channel;
}

namespace ag {

class Client {
 public:
  // Returns a client of `address`, HOST:PORT or unix:PATH. Does not connect yet. Errors as
  // MakeChannel.
  static StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                   const ChannelOptions& options);
  // Uses the in-process channel of an embedded server. `share` (may be null) makes a file a second
  // name of a blob, without a copy; after an error DownloadFile copies.
  using ShareBlob = std::function<Status(const Digest& digest, const std::string& path)>;
  explicit Client(std::shared_ptr<grpc::Channel> channel, ShareBlob share = nullptr);
  ~Client();

  // Sends the file unless the server has it; returns its digest. `on_progress` gets the bytes sent
  // and the bytes in total.
  using ByteProgress = std::function<void(int64_t done, int64_t total)>;
  StatusOr<Digest> UploadFile(const std::string& path, const ByteProgress& on_progress = nullptr);
  // The same for `size_bytes` bytes that `read` gives in order and in pieces of any size, the same
  // at every call. `noun` begins errors of sending. Returns also the errors of `read`.
  using TakePiece = std::function<Status(std::string_view piece)>;
  using ReadPieces = std::function<Status(const TakePiece& take)>;
  StatusOr<Digest> Upload(const std::string& noun, int64_t size_bytes, const ReadPieces& read,
                          const ByteProgress& on_progress = nullptr);

  StatusOr<autograph::v1::Job> Optimize(const autograph::v1::OptimizeRequest& request);
  // Follows the job to a terminal state and returns it; attaches again when the stream breaks.
  // Calls `on_change` for each state; when it returns false, stops watching with kCancelled, and
  // the job goes on. kUnavailable: options.attempts_max attempts in a row have seen nothing.
  struct WatchOptions {
    int attempts_max = 20;
    Nanos pause{500'000'000};  // Pause before each attempt but the first.
  };
  StatusOr<autograph::v1::Job> Watch(
      const std::string& name, const std::function<bool(const autograph::v1::Job&)>& on_change);
  StatusOr<autograph::v1::Job> Watch(
      const std::string& name, const std::function<bool(const autograph::v1::Job&)>& on_change,
      const WatchOptions& options);
  StatusOr<autograph::v1::Job> GetJob(const std::string& name);
  StatusOr<autograph::v1::Job> CancelJob(const autograph::v1::CancelJobRequest& request);
  // Asks for the best so far, and waits until it has come (Job.best_version) or the job has ended.
  // Errors as Watch's.
  StatusOr<autograph::v1::Job> PublishBest(
      const std::string& name, const std::function<bool(const autograph::v1::Job&)>& on_change);
  StatusOr<autograph::v1::ListJobsResponse> ListJobs(const autograph::v1::ListJobsRequest& request);
  StatusOr<autograph::v1::DeleteModelResponse> DeleteModel(const Digest& model);
  StatusOr<autograph::v1::Capabilities> GetCapabilities();

  // Starts to hash the file `path` in the background. A later DownloadFile of the same bytes to
  // `path` then leaves the file as it is. Only the last such path counts.
  void LookAhead(const std::string& path);

  // Checks the blob's digest and writes it to `path` atomically. On the server's host, copies it
  // from the shared blob folder when the server names one. From an embedded server, shares it.
  Status DownloadFile(const Digest& digest, const std::string& path);
  StatusOr<std::string> DownloadBytes(const Digest& digest, int64_t bytes_max = int64_t{64} << 20);

  StatusOr<autograph::v1::CacheStats> GetCacheStats();
  StatusOr<autograph::v1::ListMeasurementsResponse> ListMeasurements(
      const autograph::v1::ListMeasurementsRequest& request);
  StatusOr<autograph::v1::ListGraphsResponse> ListGraphs(
      const autograph::v1::ListGraphsRequest& request);
  StatusOr<autograph::v1::ListRegionsResponse> ListRegions(
      const autograph::v1::ListRegionsRequest& request);
  Status ExportCache(const std::string& environment,
                     const std::function<Status(const autograph::v1::CacheRecord&)>& on_record);
  StatusOr<autograph::v1::ForgetCacheResponse> ForgetCache(
      const autograph::v1::ForgetCacheRequest& request);
  StatusOr<autograph::v1::ImportCacheResponse> ImportCache(
      const std::function<bool(autograph::v1::CacheRecord*)>& next_record);
  StatusOr<autograph::v1::ListWorkersResponse> ListWorkers();
  Status AdmitWorker(const std::string& worker_id);

  // Makes `folder` a copy of the server's store (server/jobs/backup.h); made again, it takes only
  // blobs that it lacks. A blob that the server has removed meanwhile is left out. After an error
  // the databases are those of the last copy.
  struct BackupFacts {
    int64_t blobs = 0;    // Of the server,
    int64_t fetched = 0;  // and those that were not there.
    int64_t bytes = 0;    // That came, with the databases.
  };
  StatusOr<BackupFacts> Backup(const std::string& folder);
  // Returns whether the server says of itself that it serves: "live", "ready" or "workers"
  // (docs/protocol.md). kNotFound: it does not know the name. Needs no token.
  StatusOr<bool> Serves(const std::string& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ag
