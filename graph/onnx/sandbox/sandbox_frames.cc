#include "graph/onnx/sandbox/sandbox_frames.h"

#include <algorithm>

#include "base/bytes.h"
#include "graph/codec.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"

namespace ag {
namespace {

StatusOr<int> ReadInt(ByteReader& reader) {
  AG_LET(const uint32_t value, reader.U32());
  if (value > (uint32_t{1} << 30))
    return Err(StatusCode::kDataLoss, "limit {} is too large", value);
  return static_cast<int>(value);
}

}  // namespace

std::string EncodePlace(const WeightPlace& place) {
  ByteWriter writer;
  writer.U64(place.offset);
  writer.U64(place.size);
  const auto* digest = reinterpret_cast<const char*>(place.digest.bytes.data());
  return std::string(digest, place.digest.bytes.size()) + writer.Take();
}

StatusOr<WeightPlace> DecodePlace(std::string_view bytes) {
  WeightPlace place;
  const size_t digest_bytes = std::min(bytes.size(), place.digest.bytes.size());
  std::copy_n(bytes.begin(), digest_bytes, place.digest.bytes.begin());
  ByteReader reader(bytes.substr(digest_bytes));
  AG_LET(place.offset, reader.U64());
  AG_LET(place.size, reader.U64());
  AG_TRY(reader.End());
  return place;
}

std::string EncodeRequest(const SandboxRequest& request) {
  ByteWriter writer;
  writer.I64(request.memory_bytes);
  writer.I64(request.cpu_seconds);
  const ImportLimits& limits = request.options.limits;
  writer.I64(limits.model_bytes_max);
  writer.I64(limits.nodes_max);
  writer.I64(limits.tensor_bytes_max);
  writer.I64(limits.total_bytes_max);
  writer.U32(static_cast<uint32_t>(limits.rank_max));
  writer.U32(static_cast<uint32_t>(limits.subgraph_depth_max));
  writer.U64(request.options.shapes.size());
  for (const auto& [name, shape] : request.options.shapes) {
    writer.String(name);
    writer.Ints(shape);
  }
  return writer.Take();
}

StatusOr<SandboxRequest> DecodeRequest(std::string_view bytes) {
  ByteReader reader(bytes);
  SandboxRequest request;
  ImportLimits& limits = request.options.limits;
  AG_LET(request.memory_bytes, reader.I64());
  AG_LET(request.cpu_seconds, reader.I64());
  AG_LET(limits.model_bytes_max, reader.I64());
  AG_LET(limits.nodes_max, reader.I64());
  AG_LET(limits.tensor_bytes_max, reader.I64());
  AG_LET(limits.total_bytes_max, reader.I64());
  AG_LET(limits.rank_max, ReadInt(reader));
  AG_LET(limits.subgraph_depth_max, ReadInt(reader));
  AG_LET(const uint64_t count, reader.Count(16));
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(std::string name, reader.String());
    AG_LET(const std::vector<int64_t> shape, reader.Ints());
    request.options.shapes[std::move(name)] = Shape(shape.begin(), shape.end());
  }
  AG_TRY(reader.End());
  return request;
}

std::string EncodeImported(const ImportedModel& model) {
  ByteWriter writer;
  writer.String(EncodeGraph(model.graph));
  writer.String(EncodeOrigin(model.origin));
  writer.I64(model.weight_bytes);
  writer.U64(model.warnings.size());
  for (const std::string& warning : model.warnings) writer.String(warning);
  writer.U64(model.plans.size());
  for (const auto& [key, plan] : model.plans) {
    writer.String(key);
    writer.String(plan);
  }
  return writer.Take();
}

StatusOr<ImportedModel> DecodeImported(std::string_view bytes) {
  ByteReader reader(bytes);
  ImportedModel model;
  AG_LET(const std::string graph, reader.String());
  AG_LET(model.graph, DecodeGraph(graph));
  AG_LET(const std::string origin, reader.String());
  AG_LET(model.origin, DecodeOrigin(origin));
  AG_LET(model.weight_bytes, reader.I64());
  AG_LET(const uint64_t warnings, reader.Count(8));
  for (uint64_t i = 0; i < warnings; ++i) {
    AG_LET(std::string warning, reader.String());
    model.warnings.push_back(std::move(warning));
  }
  AG_LET(const uint64_t plans, reader.Count(16));
  for (uint64_t i = 0; i < plans; ++i) {
    AG_LET(std::string key, reader.String());
    AG_LET(std::string plan, reader.String());
    model.plans.emplace_back(std::move(key), std::move(plan));
  }
  AG_TRY(reader.End());
  return model;
}

std::string EncodeError(const Status& status) {
  ByteWriter writer;
  writer.U32(static_cast<uint32_t>(status.code()));
  writer.String(Message(status));
  return writer.Take();
}

Status DecodeError(std::string_view bytes) {
  ByteReader reader(bytes);
  AG_LET(const uint32_t code, reader.U32());
  AG_LET(const std::string message, reader.String());
  AG_TRY(reader.End());
  if (code == 0 || code > static_cast<uint32_t>(StatusCode::kUnauthenticated)) {
    return Err(StatusCode::kDataLoss, "no error has code {}", code);
  }
  return Status(static_cast<StatusCode>(code), message);
}

}  // namespace ag
