#include "server/pipeline/export_child.h"

#include "base/blobs.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/frames.h"
#include "base/process.h"
#include "graph/codec.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"

namespace ag {

namespace {

std::string EncodeGraphs(const std::vector<Graph>& graphs) {
  ByteWriter out;
  out.U64(graphs.size());
  for (const Graph& graph : graphs) out.String(EncodeGraph(graph));
  return out.Take();
}

StatusOr<std::vector<Graph>> DecodeGraphs(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint64_t count, in.U64());
  std::vector<Graph> graphs;
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(const auto encoded, in.String());
    AG_LET(Graph graph, DecodeGraph(encoded));
    graphs.push_back(std::move(graph));
  }
  AG_TRY(in.End());
  return graphs;
}

}  // namespace

void Fields(auto& io, Is<ExportRequest> auto& request) {
  io.Nested(request.graph, EncodeGraph, DecodeGraph);
  io.Nested(request.imported, EncodeGraph, DecodeGraph);
  io.Nested(request.origin, EncodeOrigin, DecodeOrigin);
  io(request.blob_root);
  io.Nested(request.at_other_sizes, EncodeGraphs, DecodeGraphs);
  io(request.rules);
}

namespace {

constexpr uint32_t kRequestFrame = 1;
constexpr uint32_t kReplyFrame = 2;

Status Export(std::string_view bytes, int fd) {
  AG_LET(const ExportRequest request, DecodeFields<ExportRequest>(bytes));
  AG_LET(const std::shared_ptr<BlobDir> blobs, BlobDir::Open(request.blob_root));
  ExportOptions options{.imported = &request.imported, .rules = request.rules};
  options.at_other_sizes = request.at_other_sizes;
  return ExportOnnx(request.graph, request.origin, BlobWeights(blobs), options,
                    [fd](std::string_view piece) {
                      const int error = file_ops::AppendAll(fd, piece);
                      return error == 0 ? OkStatus() : FromErrno(error, "write");
                    });
}

int ExportMain(int socket) {
  const auto frame = ReceiveFrame(socket);
  if (!frame.ok() || frame->type != kRequestFrame || frame->fds.size() != 1) return 2;
  const Status status = Export(frame->payload, frame->fds[0].get());
  return SendFrame(socket, kReplyFrame, EncodeStatus(status)).ok() ? 0 : 2;
}

}  // namespace

Status ExportInChild(const ExportRequest& request, const ExportChildOptions& options) {
  AG_LET(ChildProcess child, SpawnRole("export", {}, options.program));
  AG_TRY(SendFrame(child.socket(), kRequestFrame, EncodeFields(request), {request.fd}), "export");
  const auto frame = ReceiveFrame(child.socket(), {.timeout = options.time_max});
  if (frame.status().code() == StatusCode::kUnavailable) {
    return Err(StatusCode::kInternal, "export crashed: {}", Message(child.Wait()));
  }
  AG_TRY(frame.status(), "export");
  return Within(DecodeStatus(frame->payload), "export");
}

void RegisterExportRole() { RegisterChildRole("export", &ExportMain); }

}  // namespace ag
