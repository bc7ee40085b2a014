#include "graph/reference/reference.h"

#include "graph/tensor.h"

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

Kernel<Whole> WholeKernelOf(OpKind op) {
  switch (op) {
#define WHOLE(name)     \
  case OpKind::k##name: \
    return &internal::Ref##name<Whole>
    WHOLE(Relu);
    WHOLE(Neg);
    WHOLE(Abs);
    WHOLE(Sign);
    WHOLE(Not);
    WHOLE(Clip);
    WHOLE(Cast);
    WHOLE(Add);
    WHOLE(Sub);
    WHOLE(Mul);
    WHOLE(Div);
    WHOLE(Pow);
    WHOLE(Mod);
    WHOLE(Min);
    WHOLE(Max);
    WHOLE(Equal);
    WHOLE(Greater);
    WHOLE(Less);
    WHOLE(Where);
    WHOLE(MatMul);
    WHOLE(ReduceSum);
    WHOLE(ReduceMean);
    WHOLE(ReduceMax);
    WHOLE(Concat);
    WHOLE(Split);
    WHOLE(Slice);
    WHOLE(Transpose);
    WHOLE(Reshape);
    WHOLE(Expand);
    WHOLE(Pad);
    WHOLE(Gather);
#undef WHOLE
    default:
      return nullptr;
  }
}

Whole internal::NearestWhole(DType dtype, double number) {
  if (dtype == DType::kUInt64) {
    return Whole(Tensor::FromDoubles({dtype, {}}, {&number, 1}).As<uint64_t>()[0]);
  }
  RoundTo(dtype, {&number, 1});
  return Whole(Tensor::FromDoubles({DType::kInt64, {}}, {&number, 1}).As<int64_t>()[0]);
}

template Kernel<double> KernelOf(OpKind op);
template Kernel<Rational> KernelOf(OpKind op);
template Kernel<Residue> KernelOf(OpKind op);

}  // namespace ag
