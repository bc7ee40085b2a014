#include "server/pipeline/export_child.h"

#include "base/blobs.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/frames.h"
#include "base/process.h"
#include "graph/codec.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"

namespace ag {
namespace {

constexpr uint32_t kRequestFrame = 1;
constexpr uint32_t kReplyFrame = 2;

std::string Encode(const ExportRequest& request) {
  ByteWriter writer;
  writer.String(EncodeGraph(request.graph));
  writer.String(EncodeOrigin(request.origin));
  writer.String(request.blob_root);
  return writer.Take();
}

StatusOr<ExportRequest> Decode(std::string_view bytes) {
  ByteReader reader(bytes);
  ExportRequest request;
  AG_LET(const std::string graph, reader.String());
  AG_LET(request.graph, DecodeGraph(graph));
  AG_LET(const std::string origin, reader.String());
  AG_LET(request.origin, DecodeOrigin(origin));
  AG_LET(request.blob_root, reader.String());
  AG_TRY(reader.End());
  return request;
}

Status Export(std::string_view bytes, int fd) {
  AG_LET(const ExportRequest request, Decode(bytes));
  AG_LET(const std::shared_ptr<BlobDir> blobs, BlobDir::Open(request.blob_root));
  return ExportOnnx(request.graph, request.origin, BlobWeights(blobs), {},
                    [fd](std::string_view piece) {
                      const int error = file_ops::WriteAll(fd, piece);
                      return error == 0 ? OkStatus() : FromErrno(error, "write");
                    });
}

int ExportMain(int socket) {
  const auto frame = ReceiveFrame(socket);
  if (!frame.ok() || frame->type != kRequestFrame || frame->fds.size() != 1) return 2;
  const Status status = Export(frame->payload, frame->fds[0].get());
  ByteWriter reply;
  reply.I64(static_cast<int64_t>(status.code()));
  reply.String(Message(status));
  return SendFrame(socket, kReplyFrame, reply.bytes()).ok() ? 0 : 2;
}

}  // namespace

Status ExportInChild(const ExportRequest& request, const ExportChildOptions& options) {
  AG_LET(ChildProcess child, SpawnRole("export", {}, options.program));
  AG_TRY(SendFrame(child.socket(), kRequestFrame, Encode(request), {request.fd}), "export");
  const auto frame = ReceiveFrame(child.socket(), {.timeout = options.time_max});
  if (frame.status().code() == StatusCode::kUnavailable) {
    return Err(StatusCode::kInternal, "export crashed: {}", Message(child.Wait()));
  }
  AG_TRY(frame.status(), "export");
  ByteReader reader(frame->payload);
  AG_LET(const int64_t code, reader.I64());
  AG_LET(const std::string message, reader.String());
  return code == 0 ? OkStatus() : Status(static_cast<StatusCode>(code), "export: " + message);
}

void RegisterExportRole() { RegisterChildRole("export", &ExportMain); }

}  // namespace ag
