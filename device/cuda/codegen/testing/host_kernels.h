// Generated kernels on the host: the same text, the host's compiler, and threads that are fibers.
// For tests, and for stub drivers. Slow, and strict about barriers: a thread
// that misses one which others reach is an error, and so is an access that is not aligned to its
// size. CompileForHost is thread-safe; a HostModule is used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace ag::cuda {

// Compiles the text of one or several groups (GeneratedGroup::source, without the prelude) to the
// bytes of a shared object. kUnimplemented: no C++ compiler is on PATH (c++, g++, clang++), or the
// host's processor has no fibers. kInternal: the compiler's log, cut.
StatusOr<std::string> CompileForHost(const std::string& source);

// A loaded shared object.
class HostModule {
 public:
  static StatusOr<HostModule> Load(const std::string& bytes);
  HostModule(HostModule&&) noexcept;
  HostModule& operator=(HostModule&&) noexcept;
  ~HostModule();

  bool Has(const std::string& function) const;

  // Runs every thread of every block. kNotFound: no such function. kInternal: threads wait for
  // others that have ended, or an access is not aligned.
  Status Run(const std::string& function, std::array<uint32_t, 3> grid,
             std::array<uint32_t, 3> block, uint32_t shared_bytes,
             std::span<const void* const> arguments);

 private:
  struct State;
  explicit HostModule(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ag::cuda
