// The weights that a work item needs, and the download of those that are missing. Thread-safe, but
// one thread at a time uses a cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "worker/blob_cache.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace ag {

// Returns the digests of the item's files and sets of inputs, and of all constants of its graphs
// that have bytes but are too large to be inline; sorted, each once. Empty for group batches, whose
// weights are synthetic. kDataLoss: a graph does not decode.
StatusOr<std::vector<Digest>> WeightsOf(const std::string& item_bytes);

// Downloads the blobs that `cache` lacks (Blobs.Download), checks every digest, and removes
// unneeded blobs to make room. Calls `on_call` with each call before it begins, so that another
// thread can cancel it, and with null after its end. kDataLoss: the bytes do not match the digest.
// kResourceExhausted: the weights do not fit into the cache. Otherwise returns the coordinator's
// code, kUnavailable when it went away.
Status FetchWeights(const std::vector<Digest>& digests, grpc::Channel& channel, BlobCache& cache,
                    const std::function<void(grpc::ClientContext*)>& on_call);

// True when `dir` is the coordinator's own blob folder: the file `proof` is in it.
bool IsSharedBlobDir(const std::string& dir, const std::string& proof);

}  // namespace ag
