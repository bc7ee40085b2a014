#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "autograph/v1/blobs.grpc.pb.h"
#include "base/blobs.h"
#include "base/file_reader.h"
#include "base/reason.h"
#include "server/rpc/rpc.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

class BlobsService final : public v1::Blobs::Service {
 public:
  explicit BlobsService(RpcCore& core) : core_(core) {}

  grpc::Status FindMissing(grpc::ServerContext* context, const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kFindMissing);
    if (!caller.ok()) return ToGrpc(caller.status());
    if (request->digests_size() > kDigestsMax) {
      return ToGrpc(Err(StatusCode::kInvalidArgument, "digests: {}, at most {}",
                        request->digests_size(), kDigestsMax));
    }
    for (const std::string& hex : request->digests()) {
      const auto digest = ParseDigest(hex);
      if (!digest.ok()) return ToGrpc(digest.status());
      // One that another tenant has sent is missing for this one.
      const auto may_see = core_.jobs->MaySee(caller->tenant, *digest);
      if (!may_see.ok()) return ToGrpc(may_see.status());
      if (!*may_see || !core_.blobs->Has(*digest)) response->add_missing(hex);
      core_.blobs->Touch(*digest);  // It is about to be asked for.
    }
    return grpc::Status::OK;
  }

  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kUpload);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.transfers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    return ToGrpc(Receive(caller->tenant, **place, *reader, response));
  }

  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    const auto caller = core_.access->Admit(*context, Rpc::kDownload);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.transfers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    return ToGrpc(Send(caller->tenant, **place, *request, *writer));
  }

 private:
  static constexpr int kDigestsMax = 10'000;

  Status Receive(const Tenant& tenant, Places::Place& place,
                 grpc::ServerReader<v1::UploadRequest>& reader, v1::UploadResponse* response) {
    v1::UploadRequest chunk;
    AG_LET(const bool has_begun, ReadNext(reader, &chunk));
    if (!has_begun) return Err(StatusCode::kInvalidArgument, "upload: no message came");
    auto digest = ParseDigest(chunk.digest());
    AG_TRY(digest.status(), "upload: digest");
    const int64_t size = chunk.size_bytes();
    if (size < 0) return Err(StatusCode::kInvalidArgument, "upload: size_bytes {}", size);
    if (size > core_.limits.model_bytes_max) {
      return Because(Reason::kTooLarge,
                     Err(StatusCode::kResourceExhausted, "upload: {} bytes, the limit is {}", size,
                         core_.limits.model_bytes_max));
    }
    AG_LET(const std::unique_ptr<BlobDir::Writer> writer, core_.blobs->NewWriter());
    // A message that is too long looks like a half-close, so only `last` tells that nothing is
    // missing.
    while (true) {
      AG_TRY(TakeChunk(chunk, size, *writer));
      place.Moved();
      if (chunk.last()) break;
      AG_LET(const bool goes_on, ReadNext(reader, &chunk));
      if (!goes_on) {
        return Because(Reason::kUploadIncomplete,
                       Err(StatusCode::kInvalidArgument, "upload: cut after {} of {} bytes",
                           writer->size(), size));
      }
    }
    if (static_cast<int64_t>(writer->size()) != size) {
      return Err(StatusCode::kInvalidArgument, "upload: {} bytes came, {} were announced",
                 writer->size(), size);
    }
    AG_TRY(writer->Commit(*digest), "upload");
    AG_TRY(core_.jobs->OwnBlob(tenant, *digest), "upload");
    response->set_digest(digest->Hex());
    response->set_size_bytes(size);
    return OkStatus();
  }

  static Status TakeChunk(const v1::UploadRequest& chunk, int64_t size, BlobDir::Writer& writer) {
    const int64_t end = static_cast<int64_t>(writer.size());
    if (chunk.data().size() > kChunkBytes) {
      return Err(StatusCode::kInvalidArgument, "upload: a chunk of {} bytes, the limit is {}",
                 chunk.data().size(), kChunkBytes);
    }
    if (chunk.offset() != end) {
      return Err(StatusCode::kInvalidArgument, "upload: a chunk at {}, expected at {}",
                 chunk.offset(), end);
    }
    if (end + static_cast<int64_t>(chunk.data().size()) > size) {
      return Err(StatusCode::kInvalidArgument, "upload: more than the {} bytes announced", size);
    }
    return writer.Append(chunk.data());
  }

  Status Send(const Tenant& tenant, Places::Place& place, const v1::DownloadRequest& request,
              grpc::ServerWriter<v1::DownloadResponse>& writer) {
    AG_LET(const Digest digest, ParseDigest(request.digest()));
    AG_LET(const bool may_see, core_.jobs->MaySee(tenant, digest));
    const Status found = core_.blobs->Get(digest).status();
    if (!may_see || found.code() == StatusCode::kNotFound) {
      return Because(Reason::kBlobMissing, Err(StatusCode::kNotFound, "no blob {}", digest.Hex()));
    }
    AG_TRY(found);
    AG_LET(FileReader file, FileReader::Open(core_.blobs->PathOf(digest)));
    if (request.offset() < 0 || request.offset() > file.size()) {
      return Err(StatusCode::kInvalidArgument, "download: offset {} of a blob of {} bytes",
                 request.offset(), file.size());
    }
    int64_t begin = request.offset();
    do {
      const int64_t size = std::min(kSentChunkBytes, file.size() - begin);
      v1::DownloadResponse chunk;
      if (begin == request.offset()) chunk.set_size_bytes(file.size());
      AG_LET(const std::string_view piece, file.Read(begin, size));
      chunk.set_data(std::string(piece));
      begin += size;
      if (!writer.Write(chunk)) return Err(StatusCode::kCancelled, "the client left");
      place.Moved();
    } while (begin < file.size());
    return OkStatus();
  }

  RpcCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBlobsService(RpcCore& core) {
  return std::make_unique<BlobsService>(core);
}

}  // namespace ag
