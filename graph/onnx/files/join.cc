#include "graph/onnx/files/join.h"

namespace ag {
namespace {

constexpr uint32_t kPadding = 1000;    // A field that no reader knows.
constexpr char kExternalLocation = 1;  // Of TensorProto.DataLocation.

class Joiner : public ModelRewriter {
 public:
  Joiner(DataFiles& files, const JoinOptions& options) : files_(files), options_(options) {}

 private:
  bool Changes(std::string_view tensor, Kind) const override {
    bool is_external = false;
    const Status read = ForEachField(tensor, [&](const WireField& field) {
      is_external |= field.number == kTensorDataLocation && !field.is_bytes &&
                     field.whole.back() == kExternalLocation;
      return OkStatus();
    });
    return read.ok() && is_external;
  }

  Status WriteTensor(std::string_view message) override {
    AG_LET(const OnnxTensor tensor, ParseTensor(message));
    AG_LET(const FilePlace place, files_.Find(tensor));
    AG_TRY(KeepAllButData(message));
    if (options_.page_bytes > 0 && place.size >= options_.aligned_bytes_min) Align(place.offset);
    const Length length = Begin(kTensorRawData);
    Add(place);
    End(length);
    return OkStatus();
  }

  // Fills up so that the tensor's bytes begin at the same place in a page as `offset`.
  void Align(uint64_t offset) {
    const Length length = Begin(kPadding);
    const uint64_t page = options_.page_bytes;
    const uint64_t next = size() + SizeOfBegin(kTensorRawData);
    Text(std::string((offset % page + page - next % page) % page, '\0'));
    End(length);
  }

  DataFiles& files_;
  const JoinOptions& options_;
};

}  // namespace

StatusOr<ModelPieces> JoinModel(std::string_view model, DataFiles& files,
                                const JoinOptions& options) {
  return Joiner(files, options).Run(model);
}

}  // namespace ag
