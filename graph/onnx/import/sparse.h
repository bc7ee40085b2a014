// Sparse tensors of a model. The IR has dense ones only. Pure functions.
#pragma once

#include "graph/onnx/imported_model.h"
#include "graph/onnx/wire.h"

namespace ag {

// Returns the whole tensor, zeros included, under the name of the values. kInvalidArgument, with
// the name and the position: an index outside, out of order or there twice; shapes that do not fit.
// kResourceExhausted: the whole tensor has more bytes than the limit.
StatusOr<OnnxTensor> Densify(const OnnxSparseTensor& sparse, const ImportLimits& limits);

// Replaces the sparse initializers of a model or subgraph by whole ones. kResourceExhausted: they
// have more bytes together than the limit.
Status Densify(OnnxModel& model, const ImportLimits& limits);

}  // namespace ag
