#include "base/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <atomic>

#include "base/digest_count.h"
#include "base/handle.h"
#include "base/no_memory.h"

namespace ag {
namespace {

struct DigestContextTraits {
  using Raw = EVP_MD_CTX*;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw context) { EVP_MD_CTX_free(context); }
};
using DigestContext = UniqueHandle<DigestContextTraits>;

// Returns SHA-256's algorithm, fetched once: EVP_sha256() looks it up on every initialization,
// which costs more than hashing a stored key. OpenSSL uses the CPU's SHA instructions by itself,
// and always has SHA-256: it lacks memory where it gives none.
const EVP_MD* Algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (kAlgorithm == nullptr) EndWithoutMemory();
  return kAlgorithm;
}

void Start(EVP_MD_CTX* context) {
  const bool has_begun =
      context != nullptr && EVP_DigestInit_ex2(context, Algorithm(), nullptr) == 1;
  if (!has_begun) EndWithoutMemory();
}

void Add(EVP_MD_CTX* context, std::string_view bytes) {
  AG_CHECK(EVP_DigestUpdate(context, bytes.data(), bytes.size()) == 1);
}

std::atomic<uint64_t> digests_computed{0};

Digest End(EVP_MD_CTX* context) {
  digests_computed.fetch_add(1, std::memory_order_relaxed);
  Digest digest;
  AG_CHECK(EVP_DigestFinal_ex(context, digest.bytes.data(), nullptr) == 1);
  return digest;
}

// Returns the value of a hexadecimal digit, or -1.
int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

uint64_t DigestsComputed() { return digests_computed.load(std::memory_order_relaxed); }

bool Digest::IsZero() const {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

std::string Digest::Hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(2 * bytes.size(), '0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    hex[2 * i] = kDigits[bytes[i] >> 4];
    hex[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return hex;
}

std::string Digest::Short() const { return Hex().substr(0, 12); }

StatusOr<Digest> ParseDigest(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) {
    return Err(StatusCode::kInvalidArgument, "digest: expected 64 hexadecimal digits, got {}",
               hex.size());
  }
  for (size_t i = 0; i < hex.size(); ++i) {
    const int value = HexValue(hex[i]);
    if (value < 0) {
      return Err(StatusCode::kInvalidArgument,
                 "digest: expected 64 hexadecimal digits, got {:?} at position {}", hex[i], i);
    }
    digest.bytes[i / 2] = static_cast<uint8_t>(digest.bytes[i / 2] << 4 | value);
  }
  return digest;
}

Digest Sha256(std::string_view bytes) {
  thread_local const DigestContext context(EVP_MD_CTX_new());
  Start(context.get());
  Add(context.get(), bytes);
  return End(context.get());
}

struct Hasher::State {
  DigestContext context{EVP_MD_CTX_new()};
};

Hasher::Hasher() : state_(std::make_unique<State>()) { Start(state_->context.get()); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::Update(std::string_view bytes) {
  AG_CHECK(state_ != nullptr);
  Add(state_->context.get(), bytes);
}

Digest Hasher::Finish() {
  AG_CHECK(state_ != nullptr);
  const Digest digest = End(state_->context.get());
  state_.reset();
  return digest;
}

}  // namespace ag
