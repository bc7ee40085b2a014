#include "device/cuda/codegen/prelude.h"

#include <string_view>

#include "base/status.h"
#include "embedded/cuda_prelude.h"

namespace ag::cuda {
namespace {

std::string_view TextOf(std::string_view name) {
  for (const EmbeddedFile& file : CudaPrelude()) {
    if (file.name == name) return file.text;
  }
  AG_CHECK(false && "the prelude is embedded");
  return {};
}

std::string Joined(std::string_view machine) {
  return std::string(TextOf(machine)) + "\n" + std::string(TextOf("words.inc")) + "\n";
}

}  // namespace

const std::string& GpuPrelude() {
  static const std::string text = Joined("gpu.inc");
  return text;
}

const std::string& HostPrelude() {
  static const std::string text = Joined("host.inc");
  return text;
}

}  // namespace ag::cuda
