// Fast 64-bit hashing inside one search: the same on every machine, but not for stored keys. Pure
// functions.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace ag
