// The four gRPC services: they convert a call, hand it to the core, and convert the answer. Each
// service converts the errors of its own calls. The services are thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/blobs.h"
#include "graph/onnx/imported_model.h"
#include "net/error_details.h"
#include "proto/decode_bounds.h"
#include "server/jobs/jobs.h"
#include "server/rpc/access.h"
#include "server/rpc/places.h"
#include "server/store/cache_store.h"
#include "server/workers/dispatcher.h"

namespace grpc {
class Service;
}

namespace ag {

inline constexpr size_t kChunkBytes = size_t{1} << 20;  // Of an upload, at most.
// Of a download. A client that does not read makes the coordinator hold three of them.
inline constexpr int64_t kSentChunkBytes = int64_t{256} << 10;
// What a client or a worker sends in one message; also what it takes by gRPC's own default.
inline constexpr int kReceiveBytesMax = 4 << 20;
// Plan sets of big graphs travel to a worker in one message.
inline constexpr int kSendBytesMax = 256 << 20;
// A page of a list ends at this size: a default client takes 4 MiB.
inline constexpr size_t kPageBytesMax = size_t{3} << 20;

inline constexpr int kPageDefault = 50;  // Rows of a list.
inline constexpr int kPageMax = 1000;

// The parts that the services share; outlives them.
struct RpcCore {
  Access* access = nullptr;
  Jobs* jobs = nullptr;
  Dispatcher* dispatcher = nullptr;
  CacheStore* cache = nullptr;
  BlobDir* blobs = nullptr;
  Clock* clock = nullptr;
  ImportLimits limits;
  std::string rules_digest;
  std::string data_dir;
  std::string shared_blob_dir;
  std::string shared_blob_proof;
  Nanos tick_max{std::chrono::seconds(10)};
  Places* transfers = nullptr;
  Places* watches = nullptr;
  Places* workers = nullptr;
  std::atomic<bool> stopping{false};  // Once true, streams end.
  // Whole answers that were given and are not yet counted in the cache.
  std::atomic<int64_t> answers_given{0};
};

std::unique_ptr<grpc::Service> MakeOptimizerService(RpcCore& core);
std::unique_ptr<grpc::Service> MakeBlobsService(RpcCore& core);
std::unique_ptr<grpc::Service> MakeCacheService(RpcCore& core);
std::unique_ptr<grpc::Service> MakeWorkersService(RpcCore& core);
std::unique_ptr<grpc::Service> MakeStoreService(RpcCore& core);

Status DecodeError();  // That of TakeDecodeError, as our own.

// Reads the next message of a stream. False: the client sends no more. kInvalidArgument: what came
// does not decode.
template <class Reader, class Message>
StatusOr<bool> ReadNext(Reader& reader, Message* message) {
  (void)TakeDecodeError();
  if (reader.Read(message)) return true;
  AG_TRY(DecodeError());
  return false;
}

// The rows of a list that a request asks for: at most `rows_max`, older than row `before` (0: the
// newest). kInvalidArgument: a size or a token that no list gives.
struct Page {
  int rows_max = kPageDefault;
  int64_t before = 0;
};
StatusOr<Page> PageOf(int size, const std::string& token);

}  // namespace ag
