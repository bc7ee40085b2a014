#include "graph/reference/reference.h"

namespace ag {

template <class T>
Kernel<T> KernelOf(OpKind op) {
  static constexpr Kernel<T> kKernels[] = {
#define OP(name, onnx_name, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  &internal::kernel<T>,
#include "graph/ops.def"
#undef OP
  };
  return kKernels[static_cast<size_t>(op)];
}

template Kernel<double> KernelOf(OpKind op);
template Kernel<Rational> KernelOf(OpKind op);
template Kernel<Residue> KernelOf(OpKind op);

}  // namespace ag
