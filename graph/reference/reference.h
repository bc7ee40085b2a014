// The reference kernels: the definition of every operator in plain code, as templates over the
// scalar (graph/reference/scalar.h). graph/ops.def names the kernel of each operator. The files
// reference_*.cc define them in families and instantiate them for double, Rational and Residue.
// Pure functions; no result depends on KernelCall::threads.
//
// In double, integer types keep their meaning: division truncates toward zero, results are whole
// numbers, exact up to 2^53. Kernels that compute integers from integers exist for Whole as well.
#pragma once

#include <span>
#include <vector>

#include "graph/array.h"
#include "graph/graph.h"
#include "graph/reference/scalar.h"

namespace ag {

template <class T>
using Arrays = std::vector<Array<T>>;

template <class T>
struct KernelCall {
  const Node& node;                          // Attributes and output types.
  std::span<const TensorType* const> types;  // The operands' types.
  std::span<const Array<T>* const> inputs;
  int threads = 1;

  const Array<T>& in(size_t i) const { return *inputs[i]; }
  const TensorType& out_type(size_t i = 0) const { return node.outputs[i]; }
};

template <class T>
using Kernel = StatusOr<Arrays<T>> (*)(const KernelCall<T>&);

// Returns the operator's kernel. REQUIRES: it has one; leaves and opaque nodes have none.
template <class T>
Kernel<T> KernelOf(OpKind op);

// Returns the operator's kernel for integers of any type, or null where it has none.
Kernel<Whole> WholeKernelOf(OpKind op);

namespace internal {  // The kernels, with the names of graph/ops.def.
#define OP(name, onnx, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  template <class T>                                                                 \
  StatusOr<Arrays<T>> kernel(const KernelCall<T>& call);
#include "graph/ops.def"
#undef OP

// Returns one result in the form that kernels return.
template <class T>
Arrays<T> One(Array<T> array) {
  Arrays<T> arrays;
  arrays.push_back(std::move(array));
  return arrays;
}

// Returns the value that is nearest to the number, of those that the integer type has.
Whole NearestWhole(DType dtype, double number);

// Returns an attribute's number as a value of a node's type.
template <class T>
T Held(DType dtype, double number) {
  if constexpr (std::is_same_v<T, Whole>) {
    return NearestWhole(dtype, number);
  } else {
    return Scalar<T>::Of(number);
  }
}

}  // namespace internal
}  // namespace ag

// Instantiates one kernel for every scalar.
#define AG_KERNEL(name)                                                            \
  template StatusOr<Arrays<double>> name<double>(const KernelCall<double>&);       \
  template StatusOr<Arrays<Rational>> name<Rational>(const KernelCall<Rational>&); \
  template StatusOr<Arrays<Residue>> name<Residue>(const KernelCall<Residue>&)

// Instantiates a kernel for integers of any type.
#define AG_WHOLE_KERNEL(name) template StatusOr<Arrays<Whole>> name<Whole>(const KernelCall<Whole>&)
