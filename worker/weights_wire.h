// Which weights a work item needs, and fetching those that are not here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "base/digest.h"
#include "base/status.h"

namespace grpc {
class Channel;
}

namespace ag {

// Digests of all constants of the item's graphs that are too large to be inline; sorted, each once.
// Empty for group batches (their weights are synthetic). kDataLoss: a graph does not decode.
StatusOr<std::vector<Digest>> WeightsOf(const std::string& item_bytes);

// Downloads what `blobs` lacks (Blobs.Download), checking every digest.
Status FetchWeights(const std::vector<Digest>& digests, grpc::Channel& channel, BlobDir& blobs);

// True when `dir` is the coordinator's own blob folder as seen from this process: the file `proof`
// is in it.
bool IsSharedBlobDir(const std::string& dir, const std::string& proof);

}  // namespace ag
