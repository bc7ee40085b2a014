#include "graph/onnx/origin.h"
#include "base/bytes.h"

namespace ag {
namespace {

constexpr uint32_t kOriginVersion = 1;
using Pairs = std::vector<std::pair<std::string, std::string>>;

void WritePairs(const Pairs& pairs, ByteWriter& writer) {
  writer.U64(pairs.size());
  for (const auto& [first, second] : pairs) {
    writer.String(first);
    writer.String(second);
  }
}

StatusOr<Pairs> ReadPairs(ByteReader& reader) {
  AG_LET(const uint64_t count, reader.Count(16));
  Pairs pairs;
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(std::string first, reader.String());
    AG_LET(std::string second, reader.String());
    pairs.emplace_back(std::move(first), std::move(second));
  }
  return pairs;
}

}  // namespace

std::string EncodeOrigin(const OnnxOrigin& origin) {
  ByteWriter writer;
  writer.U32(kOriginVersion);
  writer.I64(origin.ir_version);
  writer.U64(origin.opsets.size());
  for (const auto& [domain, version] : origin.opsets) {
    writer.String(domain);
    writer.I64(version);
  }
  for (const std::string* text : {&origin.producer_name, &origin.producer_version, &origin.domain,
                                  &origin.doc_string, &origin.graph_name}) {
    writer.String(*text);
  }
  writer.I64(origin.model_version);
  WritePairs(origin.metadata, writer);
  WritePairs(origin.dim_names, writer);
  return writer.Take();
}

StatusOr<OnnxOrigin> DecodeOrigin(std::string_view bytes) {
  ByteReader reader(bytes);
  OnnxOrigin origin;
  AG_LET(const uint32_t version, reader.U32());
  if (version != kOriginVersion) {
    return Err(StatusCode::kDataLoss, "origin: expected version {}, got {}", kOriginVersion,
               version);
  }
  AG_LET(origin.ir_version, reader.I64());
  AG_LET(const uint64_t opsets, reader.Count(16));
  for (uint64_t i = 0; i < opsets; ++i) {
    AG_LET(std::string domain, reader.String());
    AG_LET(const int64_t opset, reader.I64());
    origin.opsets.emplace_back(std::move(domain), opset);
  }
  for (std::string* text : {&origin.producer_name, &origin.producer_version, &origin.domain,
                            &origin.doc_string, &origin.graph_name}) {
    AG_LET(*text, reader.String());
  }
  AG_LET(origin.model_version, reader.I64());
  AG_LET(origin.metadata, ReadPairs(reader));
  AG_LET(origin.dim_names, ReadPairs(reader));
  AG_TRY(reader.End());
  return origin;
}

}  // namespace ag
