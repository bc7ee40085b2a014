// An operator new that counts its calls, for tests that some code does not allocate. Included by at
// most one file of a program. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ag {
inline std::atomic<int64_t> allocations{0};  // Calls of operator new so far, in all threads.
}  // namespace ag

// Not inlined: otherwise GCC sees malloc and free, but not that both operators are replaced
// together.
__attribute__((noinline)) void* operator new(size_t bytes) {
  ++ag::allocations;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  std::abort();
}
__attribute__((noinline)) void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes);
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }
