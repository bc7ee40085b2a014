#include "graph/onnx/sandbox/sandbox.h"

#include <algorithm>
#include <set>

#include "base/blobs.h"
#include "base/file_reader.h"
#include "base/frames.h"
#include "base/process.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/sandbox/sandbox_child.h"
#include "graph/onnx/sandbox/sandbox_frames.h"

namespace ag {
namespace {

constexpr uint64_t kResultBytesMax = uint64_t{512} << 20;
constexpr size_t kDigestBytes = sizeof(Digest::bytes);
constexpr uint64_t kComparedBytes = 256 << 10;  // Fits into the core's own cache.

Digest DigestOf(std::string_view bytes) {
  Digest digest;
  std::copy_n(bytes.begin(), kDigestBytes, digest.bytes.begin());
  return digest;
}

// Receives the child's frames and checks all of them.
class Receiver {
 public:
  Receiver(BlobDir& blobs, FileReader& model)
      : blobs_(blobs),
        model_(model),
        // A list in the model may have one byte per number and need eight bytes per number here.
        weight_bytes_max_(8 * model.size() + (int64_t{64} << 20)) {}

  // Returns true when the child is done.
  StatusOr<bool> Take(const Frame& frame) {
    switch (frame.type) {
      case kSandboxWeight:
        AG_TRY(TakeWeight(frame.payload));
        return false;
      case kSandboxWeightPart:
        AG_TRY(TakePart(frame.payload));
        return false;
      case kSandboxWeightEnd:
        AG_TRY(TakeEnd(frame.payload));
        return false;
      case kSandboxWeightPlace:
        AG_TRY(TakePlace(frame.payload));
        return false;
      case kSandboxResultPart:
        if (result_.size() + frame.payload.size() > kResultBytesMax) return Broken("its size");
        result_ += frame.payload;
        return false;
      case kSandboxDone:
        return true;
      case kSandboxError: {
        const Status error = DecodeStatus(frame.payload);
        return error.ok() ? Broken("an error without one") : error;
      }
      default:
        return Broken("its frames");
    }
  }

  StatusOr<ImportedModel> Result() const {
    StatusOr<ImportedModel> model = DecodeFields<ImportedModel>(result_);
    if (!model.ok()) return Broken(Message(model.status()));
    for (const Node& node : model->graph.nodes()) {
      if (node.op == OpKind::kConstant && !weights_.contains(node.constant->digest)) {
        return Broken("a weight that never came");
      }
    }
    for (const auto* list : {&model->origin.dynamic.weights, &model->origin.annotation_weights}) {
      for (const DynamicPart::Weight& weight : *list) {
        if (!weights_.contains(weight.digest)) return Broken("a weight that never came");
      }
    }
    return model;
  }

 private:
  static Status Broken(std::string_view what) {
    return Err(StatusCode::kInvalidArgument, "model import gave a broken answer: {}", what);
  }
  Status Count(size_t bytes) {
    weight_bytes_ += static_cast<int64_t>(bytes);
    if (weight_bytes_ <= weight_bytes_max_) return OkStatus();
    return Err(StatusCode::kResourceExhausted, "model import gave more than {} bytes of weights",
               weight_bytes_max_);
  }
  Status TakeWeight(std::string_view payload) {
    if (payload.size() < kDigestBytes || writer_ != nullptr) return Broken("a weight");
    AG_TRY(Count(payload.size() - kDigestBytes));
    AG_LET(const Digest digest,
           blobs_.Put(payload.substr(kDigestBytes), BlobDir::Durable::kAfterSync));
    if (digest != DigestOf(payload)) return Broken("the digest of a weight");
    weights_.insert(digest);
    return OkStatus();
  }
  Status TakePart(std::string_view payload) {
    AG_TRY(Count(payload.size()));
    if (writer_ == nullptr) {
      AG_LET(writer_, blobs_.NewWriter());
    }
    return writer_->Append(payload);
  }
  Status TakeEnd(std::string_view payload) {
    if (payload.size() != kDigestBytes || writer_ == nullptr) return Broken("the end of a weight");
    AG_TRY(writer_->Commit(DigestOf(payload), BlobDir::Durable::kAfterSync));
    writer_.reset();
    weights_.insert(DigestOf(payload));
    return OkStatus();
  }

  // Reads piece by piece, without a mapping: a file that is cut short must not kill this process.
  Status TakePlace(std::string_view payload) {
    AG_LET(const WeightPlace place, DecodeFields<WeightPlace>(payload));
    const auto model_bytes = static_cast<uint64_t>(model_.size());
    if (place.offset > model_bytes || place.size > model_bytes - place.offset) {
      return Broken("a weight outside of the model");
    }
    AG_TRY(Count(place.size));
    AG_LET(const bool is_stored, IsStored(place));
    Digest digest = place.digest;
    if (is_stored) {  // As when an export is read back: nothing is hashed and written again.
    } else if (place.size <= kSandboxPieceBytes) {
      AG_LET(const std::string_view bytes, model_.Read(place.offset, place.size));
      AG_LET(digest, blobs_.Put(bytes, BlobDir::Durable::kAfterSync));
    } else {
      AG_LET(const std::unique_ptr<BlobDir::Writer> writer, blobs_.NewWriter());
      for (uint64_t at = 0; at < place.size; at += kSandboxPieceBytes) {
        const uint64_t size = std::min<uint64_t>(place.size - at, kSandboxPieceBytes);
        AG_LET(const std::string_view bytes, model_.Read(place.offset + at, size));
        AG_TRY(writer->Append(bytes));
      }
      AG_LET(digest, writer->Commit(BlobDir::Durable::kAfterSync));
    }
    if (digest != place.digest) return Broken("the digest of a weight");
    weights_.insert(digest);
    return OkStatus();
  }

  // True when the bytes of the place are those of a blob.
  StatusOr<bool> IsStored(const WeightPlace& place) {
    StatusOr<FileReader> blob = FileReader::Open(blobs_.PathOf(place.digest));
    if (!blob.ok() || static_cast<uint64_t>(blob->size()) != place.size) return false;
    for (uint64_t at = 0; at < place.size; at += kComparedBytes) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(place.size - at, kComparedBytes));
      AG_LET(const std::string_view stored, blob->Read(at, size));
      AG_LET(const std::string_view bytes, model_.Read(place.offset + at, size));
      if (stored != bytes) return false;
    }
    return true;
  }

  BlobDir& blobs_;
  FileReader& model_;
  const int64_t weight_bytes_max_;
  int64_t weight_bytes_ = 0;
  std::unique_ptr<BlobDir::Writer> writer_;
  std::set<Digest> weights_;
  std::string result_;
};

Status Late(const SandboxOptions& sandbox) {
  return Err(StatusCode::kDeadlineExceeded, "model import took more than {} s",
             std::chrono::duration<double>(sandbox.time_max).count());
}

// Returns the parent's error after the child has ended or has not answered.
Status Ended(Status status, ChildProcess& child, const SandboxOptions& sandbox) {
  if (status.code() == StatusCode::kDeadlineExceeded) return Late(sandbox);
  if (status.code() != StatusCode::kUnavailable) return status;
  const Status how = child.WaitFor(std::chrono::seconds(5));
  const std::string message = Message(how);
  return Err(StatusCode::kInvalidArgument, "model import crashed: {}",
             how.ok() ? "it gave no answer" : message.substr(message.find(": ") + 2));
}

}  // namespace

StatusOr<ImportedModel> ImportInSandbox(const std::string& path, const ImportOptions& options,
                                        BlobDir& blobs, const SandboxOptions& sandbox) {
  AG_LET(FileReader model, FileReader::Open(path));
  const double bytes = static_cast<double>(model.size()) * sandbox.memory_factor;
  const SandboxRequest request{
      .options = options,
      .memory_bytes = sandbox.memory_base_bytes + static_cast<int64_t>(bytes),
      .cpu_seconds = sandbox.time_max / std::chrono::seconds(1) + 1};
  Clock& clock = RealClock();
  const Nanos end = clock.Now() + sandbox.time_max;
  AG_LET(ChildProcess child, SpawnRole("sandbox", {}, sandbox.program));
  const Status sent =
      SendFrame(child.socket(), kSandboxRequest, EncodeFields(request), {model.fd()});
  if (!sent.ok()) return Ended(sent, child, sandbox);
  Receiver receiver(blobs, model);
  while (true) {
    const Nanos left = end - clock.Now();
    if (left <= Nanos{0}) return Late(sandbox);
    StatusOr<Frame> frame = ReceiveFrame(
        child.socket(), {.timeout = left, .payload_bytes_max = kSandboxPieceBytes + kDigestBytes});
    if (!frame.ok()) return Ended(frame.status(), child, sandbox);
    AG_LET(const bool done, receiver.Take(*frame));
    if (done) return receiver.Result();
  }
}

void RegisterSandboxRole() { RegisterChildRole("sandbox", RunSandbox); }

}  // namespace ag
