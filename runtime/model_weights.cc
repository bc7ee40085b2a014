#include "runtime/model_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

#include "base/thread.h"
#include "base/thread_pool.h"

namespace ag {
namespace {

constexpr std::align_val_t kAlignment{64};

bool IsInside(std::string_view bytes, std::string_view whole) {
  const std::less_equal<const char*> at_most;  // Also orders pointers into different arrays.
  return at_most(whole.data(), bytes.data()) &&
         at_most(bytes.data() + bytes.size(), whole.data() + whole.size());
}

std::pair<const char*, size_t> KeyOf(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

// Returns an aligned copy. Tensor::FromBytes would first write zeros, one more pass over all
// weights.
Tensor Copy(const TensorType& type, std::string_view bytes) {
  void* const memory = ::operator new(std::max<size_t>(bytes.size(), 1), kAlignment);
  std::shared_ptr<const void> owner(memory, [](void* p) { ::operator delete(p, kAlignment); });
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return Tensor::View(type, {static_cast<const char*>(memory), bytes.size()}, std::move(owner));
}

}  // namespace

void ModelWeights::Expect(std::string_view bytes) {
  constexpr size_t kWorthAThreadBytes = 256 << 10;  // About 150 us of hashing.
  if (bytes.size() < kWorthAThreadBytes || hashed_.contains(KeyOf(bytes))) return;
  expected_.push_back(bytes);
}

ModelWeights::Hashes ModelWeights::HashesIn(std::string_view copy) const {
  Hashes moved;
  for (const auto& [place, digest] : hashed_) {
    const auto& [begin, size] = place;
    if (!IsInside({begin, size}, model_)) continue;
    moved.emplace(std::pair{copy.data() + (begin - model_.data()), size}, digest);
  }
  return moved;
}

Digest ModelWeights::DigestOf(std::string_view bytes) {
  if (!expected_.empty()) {
    // The largest first, so that no thread gets a large one at the end.
    std::sort(expected_.begin(), expected_.end(),
              [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
    std::vector<Digest> digests(expected_.size());
    constexpr int kThreadsMax = 8;  // Beyond this, memory bandwidth is the limit.
    const int count = static_cast<int>(expected_.size());
    ThreadPool(std::min({count, kThreadsMax, UsableCores()})).Each(count, [&](int i, int) {
      digests[i] = Sha256(expected_[i]);
    });
    for (size_t i = 0; i < expected_.size(); ++i) {
      hashed_.emplace(KeyOf(expected_[i]), digests[i]);
    }
    expected_.clear();
  }
  // Bytes inside the model do not change, so an address and a size name them.
  if (!IsInside(bytes, model_)) return Sha256(bytes);
  const auto found = hashed_.find(KeyOf(bytes));
  if (found != hashed_.end()) return found->second;
  return hashed_[KeyOf(bytes)] = Sha256(bytes);
}

StatusOr<Digest> ModelWeights::Put(std::string_view bytes) {
  const Digest digest = DigestOf(bytes);
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
  if (!BytesFit(type, bytes)) {
    return Err(StatusCode::kDataLoss, "constant {}: {} needs {} bytes, got {}", digest.Short(),
               type.ToString(), type.Bytes(), bytes.size());
  }
  if (!inside) return copy->second.Retyped(type);
  const auto element = std::max<uintptr_t>(static_cast<uintptr_t>(SizeOf(type.dtype)), 1);
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % element == 0;
  return owner_ != nullptr && aligned ? Tensor::View(type, bytes, owner_) : Copy(type, bytes);
}

}  // namespace ag
