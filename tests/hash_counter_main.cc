// A module for LD_PRELOAD that counts the bytes that all processes of a command hash, for
// tests/e2e_bytes_test.cc: the counters lie in the file that AUTOGRAPH_HASHED_BYTES names, one for
// the sessions that are timed and one for all other processes. Thread-safe.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr size_t kBytes = 4096;

// Returns the counter of this process, or null. Called when the module is loaded, before the
// sandbox forbids to open files.
std::atomic<int64_t>* OpenCounter() {
  const char* path = std::getenv("AUTOGRAPH_HASHED_BYTES");
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  std::ifstream file("/proc/self/cmdline");
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  const bool is_session = words.find("time-file") != std::string::npos;
  return static_cast<std::atomic<int64_t>*>(memory) + (is_session ? 1 : 0);
}

using Update = int (*)(void* context, const void* bytes, size_t size);

std::atomic<int64_t>* const kCounter = OpenCounter();
const auto kUpdate = reinterpret_cast<Update>(::dlsym(RTLD_NEXT, "EVP_DigestUpdate"));

}  // namespace

// Takes the place of OpenSSL's function.
extern "C" int EVP_DigestUpdate(void* context, const void* bytes, size_t size) {
  if (kCounter != nullptr) *kCounter += static_cast<int64_t>(size);
  return kUpdate(context, bytes, size);
}
