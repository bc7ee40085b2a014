#include "device/cuda/codegen/families.h"
namespace ag::cuda {
namespace {
StatusOr<std::vector<std::string>> V(const GroupContext&) {
  return Err(StatusCode::kUnimplemented, "later");
}
StatusOr<GeneratedGroup> G(const GroupContext&, const std::string&) {
  return Err(StatusCode::kUnimplemented, "later");
}
}  // namespace
#define L(x) const Family x = {V, G};
L(kCopyFamily)
L(kTransposeFamily)

L(kConvolutionFamily)
}  // namespace ag::cuda
