// SHA-256 names for bytes. Every blob, graph and stored key is named by a Digest. A Digest is plain
// data; ParseDigest and Sha256 are thread-safe; a Hasher belongs to one thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;
  bool IsZero() const;        // The zero digest means "none".
  std::string Hex() const;    // 64 lower-case digits.
  std::string Short() const;  // The first 12 digits, for people.

  template <class H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine_contiguous(std::move(h), d.bytes.data(), d.bytes.size());
  }
};

// Returns the digest of 64 hexadecimal digits; kInvalidArgument for any other text.
StatusOr<Digest> ParseDigest(std::string_view hex);

// Returns the SHA-256 of `bytes`.
Digest Sha256(std::string_view bytes);

// Computes the SHA-256 of bytes that come in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  void Update(std::string_view bytes);
  Digest Finish();  // REQUIRES: called once.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ag
