// An owner of one C handle: move-only, frees it once, never throws. One thread at a time. Traits
// give the raw type, the value that means "none" and the function that frees:
//   struct FdTraits { using Raw = int; static constexpr Raw kNone = -1; static void Free(Raw); };
#pragma once

#include <utility>

namespace ag {

template <class Traits>
class UniqueHandle {
 public:
  using Raw = typename Traits::Raw;

  UniqueHandle() = default;
  explicit UniqueHandle(Raw raw) : raw_(raw) {}
  UniqueHandle(UniqueHandle&& other) noexcept : raw_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Raw get() const { return raw_; }
  Raw* out() {
    reset();
    return &raw_;
  }  // For C calls that fill in a handle.
  explicit operator bool() const { return raw_ != Traits::kNone; }
  Raw release() { return std::exchange(raw_, Traits::kNone); }
  void reset(Raw raw = Traits::kNone) {
    if (raw_ != Traits::kNone) Traits::Free(raw_);
    raw_ = raw;
  }

 private:
  Raw raw_ = Traits::kNone;
};

struct FdTraits {
  using Raw = int;
  static constexpr Raw kNone = -1;
  static void Free(Raw fd);  // close(2).
};
using Fd = UniqueHandle<FdTraits>;

}  // namespace ag
