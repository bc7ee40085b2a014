// From generated text to code that a driver loads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace ag::cuda {

class Compiler {
 public:
  virtual ~Compiler() = default;

  // What Driver::LoadModule takes, of texts as GeneratedGroup::source (no prelude), in their order;
  // several at once may be compiled side by side. Each has its own result: one that cannot be
  // compiled, or brings its compiler down, says nothing of the others.
  virtual std::vector<StatusOr<std::string>> CompileAll(std::span<const std::string> sources,
                                                        int compute_capability) = 0;

  // The same for one: a cubin, or what else the compiler makes.
  StatusOr<std::string> Compile(const std::string& source, int compute_capability);
};

// Shared objects for HostModule (codegen/host_kernels.h), whatever the compute capability.
class HostCompiler : public Compiler {
 public:
  std::vector<StatusOr<std::string>> CompileAll(std::span<const std::string> sources,
                                                int compute_capability) override;
};

}  // namespace ag::cuda
