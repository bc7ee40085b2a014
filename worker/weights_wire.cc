#include "worker/weights_wire.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/blobs.h"
#include "base/file.h"
#include "graph/codec.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// Adds the digest of a set of inputs, unless it is empty.
Status AddInputs(const std::string& hex, std::vector<Digest>* digests) {
  if (hex.empty()) return OkStatus();
  AG_LET(const Digest digest, ParseDigest(hex));
  digests->push_back(digest);
  return OkStatus();
}

Status AddWeights(const v1::Candidate& candidate, std::vector<Digest>* digests) {
  AG_LET(const Graph graph, DecodeGraph(candidate.graph()));
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kConstant || !node.constant->inline_bytes.empty()) continue;
    if (node.outputs[0].Bytes() > 0) digests->push_back(node.constant->digest);
  }
  return OkStatus();
}

// Receives one download. Makes room when the first chunk has told the size.
Status Receive(grpc::ClientReader<v1::DownloadResponse>& stream, const std::vector<Digest>& keep,
               BlobCache& cache, std::unique_ptr<BlobDir::Writer>* writer) {
  v1::DownloadResponse chunk;
  uint64_t left = 0;
  while (stream.Read(&chunk)) {
    if (*writer == nullptr) {
      const int64_t size = chunk.size_bytes();
      if (size < 0) return Err(StatusCode::kDataLoss, "a size of {} bytes", size);
      AG_TRY(cache.MakeRoom(size, keep));
      AG_LET(*writer, cache.blobs().NewWriter());
      left = static_cast<uint64_t>(size);
    }
    if (chunk.data().size() > left) {
      return Err(StatusCode::kDataLoss, "more came than the {} bytes announced",
                 (*writer)->size() + left);
    }
    left -= chunk.data().size();
    AG_TRY((*writer)->Append(chunk.data()));
  }
  return OkStatus();
}

Status FetchOne(const Digest& digest, const std::vector<Digest>& keep, v1::Blobs::Stub& stub,
                BlobCache& cache, const std::function<void(grpc::ClientContext*)>& on_call) {
  grpc::ClientContext context;
  on_call(&context);
  v1::DownloadRequest request;
  request.set_digest(digest.Hex());
  const auto stream = stub.Download(&context, request);
  std::unique_ptr<BlobDir::Writer> writer;
  const Status received = Receive(*stream, keep, cache, &writer);
  if (!received.ok()) context.TryCancel();
  const grpc::Status end = stream->Finish();
  on_call(nullptr);
  AG_TRY(received);
  if (!end.ok()) return Err(static_cast<StatusCode>(end.error_code()), "{}", end.error_message());
  if (writer == nullptr) return Err(StatusCode::kDataLoss, "no message came");
  const Status committed = writer->Commit(digest);
  // The request was right; the coordinator's bytes are wrong.
  const bool wrong = committed.code() == StatusCode::kInvalidArgument;
  return wrong ? Err(StatusCode::kDataLoss, "{}", Message(committed)) : committed;
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
  for (const v1::Check* check : {&item.check(), &item.show().check()}) {
    if (check->has_reference()) AG_TRY(AddWeights(check->reference(), &digests));
    if (check->has_candidate()) AG_TRY(AddWeights(check->candidate(), &digests));
    for (const v1::CheckInputs& inputs : check->inputs()) {
      AG_TRY(AddInputs(inputs.digest(), &digests));
    }
  }
  AG_TRY(AddInputs(item.plans().inputs(), &digests));
  AG_TRY(AddInputs(item.files().inputs(), &digests));
  for (const std::string& inputs : item.files().compare_inputs()) {
    AG_TRY(AddInputs(inputs, &digests));
  }
  for (const v1::FileToTime& file : item.files().files()) {
    AG_LET(const Digest digest, ParseDigest(file.digest()));
    digests.push_back(digest);
  }
  if (item.has_refine()) AG_TRY(AddWeights(item.refine().candidate(), &digests));
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

Status FetchWeights(const std::vector<Digest>& digests, grpc::Channel& channel, BlobCache& cache,
                    const std::function<void(grpc::ClientContext*)>& on_call) {
  // The stub needs shared ownership; this pointer does not delete the borrowed channel.
  const std::shared_ptr<grpc::Channel> borrowed(&channel, [](grpc::Channel*) {});
  const auto stub = v1::Blobs::NewStub(borrowed);
  for (const Digest& digest : digests) {
    if (cache.Use(digest)) continue;
    AG_TRY(FetchOne(digest, digests, *stub, cache, on_call), "fetch weight {}", digest.Short());
  }
  return OkStatus();
}

bool IsSharedBlobDir(const std::string& dir, const std::string& proof) {
  return !dir.empty() && !proof.empty() && proof.find('/') == std::string::npos &&
         FileExists(dir + "/" + proof);
}

}  // namespace ag
