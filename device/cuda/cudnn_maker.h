// The maker of one operation graph's descriptors: tensors, then the product, then the steps after
// it. One thread at a time.
#pragma once

#include "device/cuda/cudnn_graph.h"
#include "device/cuda/cudnn_pointwise.h"
#include "device/cuda/group_tail.h"

namespace ag::cuda {

using CudnnNumbers = std::vector<int64_t>;

// A tensor in cuDNN's terms.
struct CudnnPlace {
  CudnnNumbers dims, strides;
  bool channels_last = false;
};

// Returns the strides of a dense tensor, in elements.
CudnnNumbers CudnnStrides(const CudnnNumbers& dims, bool channels_last);

class CudnnMaker {
 public:
  // Returns a maker. kUnimplemented: `stored` is none of f32, f16, bf16.
  static StatusOr<CudnnMaker> For(DType stored);

  // Make a tensor in memory: at a port, at a constant, or at either (Operand). `channel_axis` is
  // the axis that cuDNN would pad. Pointers stay valid as long as the graph.
  StatusOr<cudnnBackendDescriptor_t> Bound(const CudnnPlace& place, CudnnBinding binding,
                                           int64_t channel_axis);
  StatusOr<cudnnBackendDescriptor_t> Constant(const CudnnPlace& place, ConstantRecipe recipe,
                                              int64_t channel_axis);
  StatusOr<cudnnBackendDescriptor_t> Operand(const GroupContext& context, Edge edge,
                                             const CudnnPlace& place, ConstantRecipe recipe,
                                             int64_t channel_axis);
  // Makes a tensor inside the graph, in f32.
  StatusOr<cudnnBackendDescriptor_t> Inner(const CudnnPlace& place);
  // Adds to the graph's signature, which already contains tensors and the steps after the product.
  void Sign(std::string_view text) { graph_.signature += text; }
  // Finishes a descriptor and keeps it.
  StatusOr<cudnnBackendDescriptor_t> Keep(DescriptorBuilder& builder);

  // The operands that are added to the product; null: none.
  struct Addends {
    cudnnBackendDescriptor_t addend = nullptr;
    cudnnBackendDescriptor_t bias = nullptr;
  };
  // Returns true when anything follows the product, so that the product is an inner tensor.
  static bool HasTail(const GroupTail& tail, const Addends& addends) {
    return addends.addend != nullptr || addends.bias != nullptr || tail.activation != nullptr;
  }
  // Appends the steps after `operation`, which writes `product`; the last step writes `y`. Both
  // have the form `place`. REQUIRES: product == y exactly when nothing follows.
  StatusOr<CudnnGraph> Finish(cudnnBackendDescriptor_t operation, cudnnBackendDescriptor_t product,
                              cudnnBackendDescriptor_t y, const CudnnPlace& place,
                              const GroupTail& tail, const Addends& addends) &&;

 private:
  explicit CudnnMaker(cudnnDataType_t type) : type_(type) {}
  struct TensorForm {
    bool is_virtual = false;
    bool is_by_value = false;
  };
  StatusOr<cudnnBackendDescriptor_t> Tensor(const CudnnPlace& place, cudnnDataType_t type,
                                            int64_t uid, const TensorForm& form);
  StatusOr<cudnnBackendDescriptor_t> Scalar(float value, size_t rank);
  StatusOr<cudnnBackendDescriptor_t> Pointwise(const PointwiseStep& step);
  Status Emit(const std::vector<PointwiseStep>& steps, const CudnnPlace& place,
              cudnnBackendDescriptor_t product, cudnnBackendDescriptor_t y, const Addends& addends,
              std::vector<cudnnBackendDescriptor_t>* operations);

  CudnnGraph graph_;
  cudnnDataType_t type_;
  int64_t inner_ = 0;
};

// Return the graph of each kind of product (BuildCudnnGraph chooses).
StatusOr<CudnnGraph> BuildCudnnConvolution(const GroupContext& context);
StatusOr<CudnnGraph> BuildCudnnDense(const GroupContext& context);

}  // namespace ag::cuda
