// Which weights a work item needs, and fetching those that are not here.
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

// Digests of the item's files and of all constants of its graphs that have bytes but are too large
// to be inline; sorted, each once.
// Empty for group batches (their weights are synthetic). kDataLoss: a graph does not decode.
StatusOr<std::vector<Digest>> WeightsOf(const std::string& item_bytes);

// Downloads what `cache` lacks (Blobs.Download), checking every digest; what is not needed makes
// room. `on_call` is given each call before it begins, for another thread to cancel, and null after
// its end. kDataLoss: other bytes came than the digest names. kResourceExhausted: the weights do
// not fit into the cache. The coordinator's code for what it says, kUnavailable when it went away.
Status FetchWeights(const std::vector<Digest>& digests, grpc::Channel& channel, BlobCache& cache,
                    const std::function<void(grpc::ClientContext*)>& on_call);

// True when `dir` is the coordinator's own blob folder as seen from this process: the file `proof`
// is in it.
bool IsSharedBlobDir(const std::string& dir, const std::string& proof);

}  // namespace ag
