#include "device/cuda/launch/kernel_sources.h"

namespace ag::cuda {

StatusOr<std::vector<std::string>> KernelSources::Kernels(const GroupContext& context) {
  std::vector<std::string> kernels;
  std::string missing;
  for (const auto& source : sources_) {
    StatusOr<std::vector<std::string>> own = source->Kernels(context);
    if (own.ok()) {
      kernels.insert(kernels.end(), own->begin(), own->end());
    } else if (own.status().code() == StatusCode::kUnimplemented) {
      missing += fmt::format("; {}: {}", source->name(), Message(own.status()));
    } else {
      return Within(own.status(), source->name());
    }
  }
  if (kernels.empty()) {
    return Err(StatusCode::kUnimplemented, "no kernel for a group '{}'{}", context.group.pattern,
               missing);
  }
  return kernels;
}

StatusOr<std::unique_ptr<GroupKernel>> KernelSources::Make(const GroupContext& context,
                                                           const std::string& kernel,
                                                           Constants& constants,
                                                           WeightMemory& memory) {
  std::string name = kernel;
  if (name.empty()) {
    AG_LET(const std::vector<std::string> kernels, Kernels(context));
    name = kernels[0];
  }
  const std::string_view word = std::string_view(name).substr(0, name.find(':'));
  for (const auto& source : sources_) {
    if (source->name() == word) return source->Make(context, name, constants, memory);
  }
  return Err(StatusCode::kInvalidArgument, "kernel '{}': no source is called '{}'", name, word);
}

}  // namespace ag::cuda
