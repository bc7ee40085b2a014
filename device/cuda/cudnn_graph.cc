#include "device/cuda/cudnn_graph.h"

#include "device/cuda/cudnn_maker.h"

namespace ag::cuda {

StatusOr<CudnnGraph> BuildCudnnGraph(const GroupContext& context) {
  const Group& group = context.group;
  const OpKind op = group.nodes.empty() ? OpKind::kInput : context.node(0).op;
  if (op == OpKind::kConv) return BuildCudnnConvolution(context);
  if (op == OpKind::kMatMul) return BuildCudnnDense(context);
  return Err(StatusCode::kUnimplemented, "cuDNN: no kernel for a {} group", group.pattern);
}

}  // namespace ag::cuda
