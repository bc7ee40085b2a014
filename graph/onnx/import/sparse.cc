#include "graph/onnx/import/sparse.h"

#include <cstring>

namespace ag {
namespace {

std::string SparseNoun(const OnnxSparseTensor& sparse) {
  const std::string& name = sparse.values.name;
  return name.empty() ? "sparse_value" : fmt::format("sparse tensor {}", Quoted(name));
}

// Returns the type of the whole tensor.
StatusOr<TensorType> WholeType(const OnnxSparseTensor& sparse, const ImportLimits& limits) {
  AG_LET(const DType dtype, DTypeFromOnnx(sparse.values.data_type));
  TensorType type{dtype, Shape(sparse.dims.begin(), sparse.dims.end())};
  AG_TRY(CheckType(type));
  if (type.shape.empty()) {
    return Err(StatusCode::kInvalidArgument, "its sizes are missing, it needs at least one");
  }
  if (type.Bytes() > limits.tensor_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "{} has {} bytes, the limit is {} a tensor",
               type.ToString(), type.Bytes(), limits.tensor_bytes_max);
  }
  return type;
}

// Returns the indices in the whole tensor's row-major order: of the form [values] as they are, of
// the form [values, rank] from their coordinates.
StatusOr<std::vector<int64_t>> LinearIndices(const Tensor& indices, const TensorType& whole) {
  const Shape& shape = indices.type().shape;
  const bool has_coordinates = shape.size() == 2;
  const auto rank = static_cast<int64_t>(whole.shape.size());
  if (shape.empty() || shape.size() > 2 || (has_coordinates && shape[1] != rank)) {
    return Err(StatusCode::kInvalidArgument,
               "its indices are {}, expected [values] or [values, {}] for {}",
               indices.type().ToString(), rank, whole.ToString());
  }
  const std::span<const int64_t> given = indices.As<int64_t>();
  if (!has_coordinates) return std::vector<int64_t>(given.begin(), given.end());
  std::vector<int64_t> linear;
  for (int64_t i = 0; i < shape[0]; ++i) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t coordinate = given[i * rank + axis];
      if (coordinate < 0 || coordinate >= whole.shape[axis]) {
        return Err(StatusCode::kInvalidArgument,
                   "index {} of axis {} at position {} is outside of {}", coordinate, axis, i,
                   whole.ToString());
      }
      at = at * whole.shape[axis] + coordinate;
    }
    linear.push_back(at);
  }
  return linear;
}

Status CheckIndices(const std::vector<int64_t>& indices, const TensorType& whole) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= whole.NumElements()) {
      return Err(StatusCode::kInvalidArgument, "index {} at position {} is outside of {}",
                 indices[i], i, whole.ToString());
    }
    if (i == 0 || indices[i] > indices[i - 1]) continue;
    if (indices[i] == indices[i - 1]) {
      return Err(StatusCode::kInvalidArgument, "element {} is there twice, at positions {} and {}",
                 indices[i], i - 1, i);
    }
    return Err(StatusCode::kInvalidArgument,
               "its indices do not ascend: element {} at position {}, then element {}",
               indices[i - 1], i - 1, indices[i]);
  }
  return OkStatus();
}

StatusOr<std::vector<int64_t>> IndicesOf(const OnnxSparseTensor& sparse, const TensorType& whole) {
  if (!sparse.indices.has_value()) return std::vector<int64_t>();
  StatusOr<Tensor> indices = ToTensor(*sparse.indices);
  AG_TRY(indices.status(), "its indices");
  if (indices->type().dtype != DType::kInt64) {
    return Err(StatusCode::kInvalidArgument, "its indices are {}, expected i64",
               indices->type().ToString());
  }
  AG_LET(std::vector<int64_t> linear, LinearIndices(*indices, whole));
  AG_TRY(CheckIndices(linear, whole));
  return linear;
}

StatusOr<OnnxTensor> Spread(const OnnxSparseTensor& sparse, const ImportLimits& limits) {
  AG_LET(const TensorType whole, WholeType(sparse, limits));
  AG_LET(const Tensor values, ToTensor(sparse.values));
  if (values.type().shape.size() != 1) {
    return Err(StatusCode::kInvalidArgument, "its values are {}, expected one dimension",
               values.type().ToString());
  }
  AG_LET(const std::vector<int64_t> indices, IndicesOf(sparse, whole));
  if (static_cast<int64_t>(indices.size()) != values.type().NumElements()) {
    return Err(StatusCode::kInvalidArgument, "{} values have {} indices",
               values.type().NumElements(), indices.size());
  }
  std::string bytes(static_cast<size_t>(whole.Bytes()), '\0');
  const auto size = static_cast<size_t>(SizeOf(whole.dtype));
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(&bytes[static_cast<size_t>(indices[i]) * size], &values.bytes()[i * size], size);
  }
  OnnxTensor dense{.name = sparse.values.name, .data_type = sparse.values.data_type};
  dense.dims = sparse.dims;
  dense.owned = std::make_shared<const std::string>(std::move(bytes));
  dense.bytes = *dense.owned;
  return dense;
}

}  // namespace

StatusOr<OnnxTensor> Densify(const OnnxSparseTensor& sparse, const ImportLimits& limits) {
  StatusOr<OnnxTensor> dense = Spread(sparse, limits);
  AG_TRY(dense.status(), "{}", SparseNoun(sparse));
  return dense;
}

Status Densify(OnnxModel& model, const ImportLimits& limits) {
  int64_t left = limits.total_bytes_max;
  for (const OnnxSparseTensor& sparse : model.sparse_initializers) {
    AG_LET(OnnxTensor dense, Densify(sparse, limits));
    left -= static_cast<int64_t>(dense.bytes.size());
    if (left < 0) {
      return Err(StatusCode::kResourceExhausted,
                 "the sparse tensors together have more than {} bytes", limits.total_bytes_max);
    }
    model.initializers.push_back(std::move(dense));
  }
  model.sparse_initializers.clear();
  return OkStatus();
}

}  // namespace ag
