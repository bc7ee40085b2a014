#include "graph/onnx/files/rewrite.h"

namespace ag {
namespace {

constexpr uint32_t kSparseValues = 1, kSparseIndices = 2;
constexpr size_t kLengthBytes = 5;
constexpr uint64_t kRewrittenBytesMax = (uint64_t{1} << (7 * kLengthBytes)) - 1;
constexpr int kDepthMax = 100;  // As protobuf's own limit.

// Whether a field of a TensorProto has elements, or says where they are.
bool IsData(uint32_t field) {
  return (field >= 4 && field <= 7) || (field >= kTensorRawData && field <= 11) ||
         field == kTensorExternalData || field == kTensorDataLocation;
}

// Returns the tag of a length-delimited field.
std::string TagOf(uint32_t field) {
  std::string tag;
  AppendLengthTag(field, 0, tag);
  tag.pop_back();  // The length.
  return tag;
}

}  // namespace

ModelRewriter::Kind ModelRewriter::KindOf(Kind parent, uint32_t field) {
  switch (parent) {
    case Kind::kModel:
      return field == kModelGraph      ? Kind::kGraph
             : field == kModelFunction ? Kind::kFunction
                                       : Kind::kOther;
    case Kind::kGraph:
      return field == kGraphNode                ? Kind::kNode
             : field == kGraphInitializer       ? Kind::kTensor
             : field == kGraphSparseInitializer ? Kind::kSparse
                                                : Kind::kOther;
    case Kind::kNode:
      return field == kNodeAttribute ? Kind::kAttribute : Kind::kOther;
    case Kind::kFunction:
      return field == kFunctionNode        ? Kind::kNode
             : field == kFunctionAttribute ? Kind::kAttribute
                                           : Kind::kOther;
    case Kind::kAttribute:
      if (field == kAttributeTensor || field == kAttributeTensors) return Kind::kTensor;
      if (field == kAttributeGraph || field == kAttributeGraphs) return Kind::kGraph;
      return field == kAttributeSparse || field == kAttributeSparses ? Kind::kSparse : Kind::kOther;
    case Kind::kSparse:
      return field == kSparseValues || field == kSparseIndices ? Kind::kTensor : Kind::kOther;
    default:
      return Kind::kOther;
  }
}

StatusOr<ModelPieces> ModelRewriter::Run(std::string_view model) {
  model_ = model;
  Mark(Kind::kModel, Kind::kOther, model, 0);
  AG_TRY(Write(Kind::kModel, model));
  if (out_.size <= kRewrittenBytesMax) return std::move(out_);
  return Err(StatusCode::kResourceExhausted,
             "the model has {} bytes with its weights inside, {} "
             "are the limit",
             out_.size, kRewrittenBytesMax);
}

// Notes the messages that change, and returns whether this one does.
bool ModelRewriter::Mark(Kind kind, Kind parent, std::string_view message, int depth) {
  if (kind == Kind::kOther || depth > kDepthMax) return false;
  bool found = kind == Kind::kTensor && Changes(message, parent);
  if (kind != Kind::kTensor) {
    const Status read = ForEachField(message, [&](const WireField& field) {
      if (field.is_bytes) {
        found |= Mark(KindOf(kind, field.number), kind, field.payload, depth + 1);
      }
      return OkStatus();
    });
    found = found && read.ok();
  }
  if (found) changed_.insert(message.data());
  return found;
}

Status ModelRewriter::Write(Kind kind, std::string_view message) {
  if (!changed_.contains(message.data())) {
    Keep(message);
    return OkStatus();
  }
  if (kind == Kind::kTensor) return WriteTensor(message);
  return ForEachField(message, [&](const WireField& field) -> Status {
    const Kind child = field.is_bytes ? KindOf(kind, field.number) : Kind::kOther;
    if (child == Kind::kOther || !changed_.contains(field.payload.data())) {
      Keep(field.whole);
      return OkStatus();
    }
    const Length length = Begin(field.number);
    AG_TRY(Write(child, field.payload));
    End(length);
    return OkStatus();
  });
}

void ModelRewriter::Keep(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto offset = static_cast<uint64_t>(bytes.data() - model_.data());
  ModelPiece* const last = out_.pieces.empty() ? nullptr : &out_.pieces.back();
  if (last != nullptr && last->text.empty() && last->place.file == 0 &&
      last->place.offset + last->place.size == offset) {
    last->place.size += bytes.size();
    out_.size += bytes.size();
    return;
  }
  Add({0, offset, bytes.size()});
}

Status ModelRewriter::KeepAllButData(std::string_view tensor) {
  return ForEachField(tensor, [&](const WireField& field) {
    if (!IsData(field.number)) Keep(field.whole);
    return OkStatus();
  });
}

void ModelRewriter::Text(std::string_view text) {
  if (text.empty()) return;
  if (out_.pieces.empty() || out_.pieces.back().text.empty()) out_.pieces.emplace_back();
  out_.pieces.back().text += text;
  out_.size += text.size();
}

void ModelRewriter::Add(const FilePlace& place) {
  if (place.size == 0) return;
  out_.pieces.push_back({.place = place});
  out_.size += place.size;
}

ModelRewriter::Length ModelRewriter::Begin(uint32_t field) {
  Text(TagOf(field) + std::string(kLengthBytes, '\0'));
  const size_t piece = out_.pieces.size() - 1;
  return {piece, out_.pieces[piece].text.size() - kLengthBytes, out_.size};
}

void ModelRewriter::End(const Length& length) {
  uint64_t size = out_.size - length.before;
  for (size_t i = 0; i < kLengthBytes; ++i, size >>= 7) {
    const uint64_t more = i + 1 < kLengthBytes ? 0x80 : 0;
    out_.pieces[length.piece].text[length.at + i] = static_cast<char>((size & 0x7f) | more);
  }
}

uint64_t ModelRewriter::SizeOfBegin(uint32_t field) { return TagOf(field).size() + kLengthBytes; }

}  // namespace ag
