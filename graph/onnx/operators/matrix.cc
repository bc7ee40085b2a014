#include "graph/onnx/operators/matrix.h"

#include <algorithm>
#include <numeric>

#include "graph/onnx/operators/layout.h"
#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

// Adds the product of [m,k] and [k,n] to [m,n].
void AddMatrixProduct(const double* a, const double* b, int64_t m, int64_t k, int64_t n,
                      double* out) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t c = 0; c < k; ++c) {
      const double by = a[i * k + c];
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += by * b[c * n + j];
    }
  }
}

}  // namespace

StatusOr<Matrix> MultiplyMatrices(OperatorCall& call, DType dtype, const Matrix& a,
                                  const Matrix& b) {
  Shape a_shape = a.shape, b_shape = b.shape;
  const bool row = a_shape.size() == 1, column = b_shape.size() == 1;
  if (row) a_shape.insert(a_shape.begin(), 1);
  if (column) b_shape.push_back(1);
  if (a_shape.size() < 2 || b_shape.size() < 2 || a_shape.back() != b_shape[b_shape.size() - 2]) {
    return Err(StatusCode::kInvalidArgument, "{} and {} do not multiply", ShapeToString(a.shape),
               ShapeToString(b.shape));
  }
  const int64_t m = a_shape[a_shape.size() - 2], k = a_shape.back(), n = b_shape.back();
  a_shape.resize(a_shape.size() - 2);
  b_shape.resize(b_shape.size() - 2);
  AG_LET(const Shape batches, BroadcastShapes(a_shape, b_shape));
  Matrix product{batches, {}};
  if (!row) product.shape.push_back(m);
  if (!column) product.shape.push_back(n);
  AG_TRY(call.MakeBytes(0, {dtype, product.shape}));  // Checks the size.
  product.values.resize(static_cast<size_t>(NumElements(product.shape)));
  if (product.values.empty()) return product;
  double* out = product.values.data();
  Walk<2>(batches, {BroadcastStrides(a_shape, batches), BroadcastStrides(b_shape, batches)},
          [&](const std::array<int64_t, 2>& at) {
            AddMatrixProduct(a.values.data() + at[0] * m * k, b.values.data() + at[1] * k * n, m, k,
                             n, out);
            out += m * n;
          });
  return product;
}

Matrix Permuted(const Matrix& matrix, const Ints& perm) {
  const Ints strides = StridesOf(matrix.shape);
  Matrix result;
  Ints steps;
  for (const int64_t axis : perm) {
    result.shape.push_back(matrix.shape[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  result.values.reserve(matrix.values.size());
  Walk<1>(result.shape, {steps}, [&](const std::array<int64_t, 1>& at) {
    result.values.push_back(matrix.values[static_cast<size_t>(at[0])]);
  });
  return result;
}

Matrix ChannelsFirst(const Matrix& matrix) {
  Ints perm(matrix.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return Permuted(matrix, perm);
}

Matrix ChannelsLast(const Matrix& matrix) {
  Ints perm(matrix.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return Permuted(matrix, perm);
}

}  // namespace ag::onnx_operators
