#include "worker/weights_wire.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/file.h"
#include "graph/codec.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

Status AddWeights(const v1::Candidate& candidate, std::vector<Digest>* digests) {
  AG_LET(const Graph graph, DecodeGraph(candidate.graph()));
  for (const Node& node : graph.nodes()) {
    if (node.op == OpKind::kConstant && node.constant->inline_bytes.empty()) {
      digests->push_back(node.constant->digest);
    }
  }
  return OkStatus();
}

Status FetchOne(const Digest& digest, v1::Blobs::Stub& stub, BlobDir& blobs) {
  AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs.NewWriter());
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_digest(digest.Hex());
  const auto stream = stub.Download(&context, request);
  v1::DownloadResponse chunk;
  while (stream->Read(&chunk)) AG_TRY(writer->Append(chunk.data()));
  const grpc::Status end = stream->Finish();
  if (!end.ok()) {
    return Err(static_cast<StatusCode>(end.error_code()), "fetch weight {}: {}", digest.Short(),
               end.error_message());
  }
  return writer->Commit(digest);
}

}  // namespace

StatusOr<std::vector<Digest>> WeightsOf(const std::string& item_bytes) {
  v1::WorkItem item;
  if (!item.ParseFromString(item_bytes)) {
    return Err(StatusCode::kDataLoss, "work item: not a WorkItem message");
  }
  std::vector<Digest> digests;
  for (const v1::Candidate& candidate : item.plans().candidates()) {
    AG_TRY(AddWeights(candidate, &digests));
  }
  if (item.has_check()) {
    AG_TRY(AddWeights(item.check().reference(), &digests));
    AG_TRY(AddWeights(item.check().candidate(), &digests));
  }
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

Status FetchWeights(const std::vector<Digest>& digests, grpc::Channel& channel, BlobDir& blobs) {
  // The channel is borrowed for the call; the stub wants shared ownership.
  const std::shared_ptr<grpc::Channel> borrowed(&channel, [](grpc::Channel*) {});
  const auto stub = v1::Blobs::NewStub(borrowed);
  for (const Digest& digest : digests) {
    if (!blobs.Has(digest)) AG_TRY(FetchOne(digest, *stub, blobs));
  }
  return OkStatus();
}

bool IsSharedBlobDir(const std::string& dir, const std::string& proof) {
  return !dir.empty() && !proof.empty() && proof.find('/') == std::string::npos &&
         FileExists(dir + "/" + proof);
}

}  // namespace ag
