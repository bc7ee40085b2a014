#include "device/cuda/launch/compiler.h"

#include "device/cuda/codegen/host_kernels.h"

namespace ag::cuda {

StatusOr<std::string> Compiler::Compile(const std::string& source, int compute_capability) {
  return std::move(CompileAll(std::span(&source, 1), compute_capability)[0]);
}

std::vector<StatusOr<std::string>> HostCompiler::CompileAll(std::span<const std::string> sources,
                                                            int) {
  std::vector<StatusOr<std::string>> images;
  for (const std::string& source : sources) images.push_back(CompileForHost(source));
  return images;
}

}  // namespace ag::cuda
