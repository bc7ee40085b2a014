// Fast hashing inside one search: the same on every machine, but not for stored keys. Pure
// functions.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ag {

// Returns SplitMix64's finalizer of `v`: a bijection; each input bit changes half of the output
// bits.
inline uint64_t Mix(uint64_t v) {
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
  return v ^ (v >> 31);
}

inline uint64_t MixIn(uint64_t hash, uint64_t v) { return Mix(hash ^ Mix(v)); }

inline uint64_t MixBytes(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;  // FNV-1a.
  return MixIn(hash, bytes.size());
}

// A 128-bit hash of structure (graph/structure_hash.h).
struct StructureHash {
  uint64_t a = 0;
  uint64_t b = 0;
  auto operator<=>(const StructureHash&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const StructureHash& hash) {
    return H::combine(std::move(h), hash.a);
  }
};

// Mixes `v` into `hash`; both halves mix the same values from different starts.
inline StructureHash MixIn(StructureHash hash, StructureHash v) {
  return {MixIn(hash.a, v.a), MixIn(hash.b, v.b)};
}

}  // namespace ag
