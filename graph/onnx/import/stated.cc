// What a model says of its values beside what is computed.
#include <set>

#include "graph/onnx/import/importer.h"
#include "graph/onnx/origin.h"

namespace ag {
namespace {

// All stated types and annotations together.
constexpr size_t kStatedBytesMax = size_t{32} << 20;
// A scale and a zero point have one element, or one for each channel.
constexpr size_t kParameterBytesMax = 256 << 10;

// Counts bytes up to a limit, and remembers the constants in it.
class Room {
 public:
  bool Has(const std::string& name) const { return names_.contains(name); }
  void Add(const std::string& name) { names_.insert(name); }
  bool Takes(size_t bytes) {
    used_ += std::min(bytes, kStatedBytesMax + 1);
    return used_ <= kStatedBytesMax;
  }
  bool IsFull() const { return used_ > kStatedBytesMax; }

 private:
  size_t used_ = 0;
  std::set<std::string> names_;
};

// Adds constant `name`, which an annotation names, to `weights`. Returns false: it is none, or it
// is too large for a parameter.
StatusOr<bool> AddParameter(const std::string& name, Importer& importer, Room& room,
                            std::vector<DynamicPart::Weight>& weights) {
  if (room.Has(name)) return true;
  const ValueId value = IsKeptName(name) ? importer.Find(name) : kNoValue;
  if (value == kNoValue || !importer.FitsGraph(value)) return false;
  const Tensor* tensor = importer.stored(value);
  const Digest* digest = importer.DigestOf(value);
  const auto bytes = static_cast<size_t>(importer.type(value).Bytes());
  if ((tensor == nullptr && digest == nullptr) || bytes > kParameterBytesMax) return false;
  if (!room.Takes(name.size() + bytes)) return false;
  DynamicPart::Weight weight{.name = name, .type = importer.type(value)};
  if (digest != nullptr) {
    weight.digest = *digest;
  } else {
    AG_LET(weight.digest, importer.sink().Put(tensor->bytes()));
  }
  weights.push_back(std::move(weight));
  room.Add(name);
  return true;
}

Status NoteAnnotation(const QuantAnnotation& annotation, Importer& importer, Room& room,
                      OnnxOrigin& origin) {
  if (!IsKeptName(annotation.tensor) || !room.Takes(annotation.tensor.size())) return OkStatus();
  for (const auto& [key, name] : annotation.parameters) {
    if (!room.Takes(key.size() + name.size())) return OkStatus();
    AG_LET(const bool is_constant, AddParameter(name, importer, room, origin.annotation_weights));
    if (!is_constant) return OkStatus();
  }
  origin.annotations.push_back(annotation);
  return OkStatus();
}

}  // namespace

Status NoteStated(const OnnxModel& model, Importer& importer, OnnxOrigin& origin) {
  Room room;
  for (const auto* infos : {&model.inputs, &model.outputs, &model.value_infos}) {
    for (const OnnxValueInfo& info : *infos) {
      if (!IsKeptName(info.name) || !room.Takes(info.name.size() + info.proto.size())) continue;
      origin.stated.emplace_back(info.name, info.proto);
    }
  }
  for (const QuantAnnotation& annotation : model.annotations) {
    AG_TRY(NoteAnnotation(annotation, importer, room, origin), "quantization annotation of {}",
           Quoted(annotation.tensor));
  }
  if (room.IsFull()) {
    importer.warnings.push_back(
        fmt::format("stated types beyond {} MiB are not kept", kStatedBytesMax >> 20));
  }
  return OkStatus();
}

}  // namespace ag
