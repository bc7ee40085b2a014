#include "runtime/model_weights.h"

#include <cstring>
#include <functional>
#include <new>

namespace ag {
namespace {

constexpr std::align_val_t kAlignment{64};

bool IsInside(std::string_view bytes, std::string_view whole) {
  const std::less_equal<const char*> at_most;  // Of pointers into different arrays, too.
  return at_most(whole.data(), bytes.data()) &&
         at_most(bytes.data() + bytes.size(), whole.data() + whole.size());
}

// An aligned copy. Not Tensor::FromBytes: its zeros would be one more pass over all weights.
Tensor Copy(const TensorType& type, std::string_view bytes) {
  void* const memory = ::operator new(std::max<size_t>(bytes.size(), 1), kAlignment);
  std::shared_ptr<const void> owner(memory, [](void* p) { ::operator delete(p, kAlignment); });
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return Tensor::View(type, {static_cast<const char*>(memory), bytes.size()}, std::move(owner));
}

}  // namespace

StatusOr<Digest> ModelWeights::Put(std::string_view bytes) {
  const Digest digest = Sha256(bytes);
  if (IsInside(bytes, model_)) {
    inside_.emplace(digest, bytes);
  } else if (!inside_.contains(digest) && !copied_.contains(digest)) {
    copied_.emplace(digest, Copy({DType::kUInt8, {static_cast<int64_t>(bytes.size())}}, bytes));
  }
  return digest;
}

StatusOr<Tensor> ModelWeights::Get(const Digest& digest, const TensorType& type) const {
  const auto in_model = inside_.find(digest);
  const auto copy = copied_.find(digest);
  if (in_model == inside_.end() && copy == copied_.end()) {
    return Err(StatusCode::kNotFound, "constant {} is not in the model", digest.Short());
  }
  const bool inside = in_model != inside_.end();
  const std::string_view bytes = inside ? in_model->second : copy->second.bytes();
  if (static_cast<int64_t>(bytes.size()) != type.Bytes()) {
    return Err(StatusCode::kDataLoss, "constant {}: {} needs {} bytes, got {}", digest.Short(),
               type.ToString(), type.Bytes(), bytes.size());
  }
  if (!inside) return Tensor::View(type, bytes, std::make_shared<Tensor>(copy->second));
  const auto element = std::max<uintptr_t>(static_cast<uintptr_t>(SizeOf(type.dtype)), 1);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % element == 0;
  return owner_ != nullptr && aligned ? Tensor::View(type, bytes, owner_) : Copy(type, bytes);
}

}  // namespace ag
