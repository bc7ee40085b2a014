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

// The functions of the operator table, by the operators' names.
constexpr std::string_view kFunctions =
    "\nAG_MATH(log1p)\ntemplate <class T>\nAG_DEVICE T Log1p(T x) { return ag_log1p(x); }\n"
#define MATH(Name, word)                                                                  \
  "AG_MATH(" #word ")\ntemplate <class T>\nAG_DEVICE T " #Name "(T x) { return ag_" #word \
  "(x); "                                                                                 \
  "}\n"
#define FUNCTION(Name, parameters, arguments, ...) \
  "template <class T>\nAG_DEVICE T " #Name #parameters " { return " #__VA_ARGS__ "; }\n"
#include "graph/functions.def"
    ;

std::string Joined(std::string_view machine) {
  return fmt::format("{}{}\n{}\n", TextOf(machine), kFunctions, TextOf("words.inc"));
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
