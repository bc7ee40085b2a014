// Operators that make a tensor of a rule: by shape, by position or by index.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/index_rows.h"
#include "graph/onnx/operators/layout.h"

namespace ag::onnx_operators {
namespace {

Status RunConstantOfShape(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(const Ints sizes, call.IntsAt(0));
  Tensor element = Tensor::Zeros({DType::kFloat32, {}});
  if (const OnnxAttribute* value = call.Find("value"); value != nullptr && value->tensor) {
    AG_LET(element, ToTensor(*value->tensor));
    if (element.type().NumElements() != 1) {
      return Err(StatusCode::kInvalidArgument, "value: expected one element, got {}",
                 element.type().ToString());
    }
  }
  const TensorType type{element.type().dtype, Shape(sizes.begin(), sizes.end())};
  AG_LET(char* to, call.MakeBytes(0, type));
  FillWith(element.bytes().data(), SizeOf(type.dtype), type.NumElements(), to);
  return OkStatus();
}

// Keeps the elements on one side of a diagonal of each matrix.
Status RunTrilu(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 2));
  const bool upper = call.Int("upper", 1) != 0;
  int64_t diagonal = 0;
  if (call.Has(1)) {
    AG_LET(diagonal, call.IntAt(1));
  }
  const TensorType& type = call.Type(0);
  if (type.shape.size() < 2) {
    return Err(StatusCode::kInvalidArgument, "expected matrices, got {}", type.ToString());
  }
  AG_LET(char* to, call.MakeBytes(0, type));
  const int64_t rows = type.shape[type.shape.size() - 2], columns = type.shape.back();
  const int64_t width = SizeOf(type.dtype), count = type.NumElements();
  const char* from = call.In(0).bytes().data();
  // Beyond the matrix every diagonal is the same.
  diagonal = std::clamp(diagonal, -rows - 1, columns + 1);
  for (int64_t row = 0; count > 0 && row < count / columns; ++row) {
    // The kept columns of the row.
    const int64_t at = std::clamp<int64_t>(row % rows + diagonal + (upper ? 0 : 1), 0, columns);
    const int64_t first = row * columns + (upper ? at : 0);
    const int64_t kept = upper ? columns - at : at;
    if (kept == 0) continue;
    std::memcpy(to + first * width, from + first * width, static_cast<size_t>(kept * width));
  }
  return OkStatus();
}

Status RunEyeLike(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(call.CheckRank(0, 2));
  TensorType type = call.Type(0);
  AG_LET(type.dtype, call.ResultType(type.dtype));
  const int64_t rows = type.shape[0], columns = type.shape[1];
  const int64_t diagonal = std::clamp(call.Int("k", 0), -rows - 1, columns + 1);
  return ForAny(type.dtype, [&]<class T>() -> Status {
    AG_LET(T * to, call.Make<T>(0, type.shape));
    for (int64_t row = 0; row < rows && columns > 0; ++row) {
      const int64_t column = row + diagonal;
      if (column >= 0 && column < columns) to[row * columns + column] = static_cast<T>(1);
    }
    return OkStatus();
  });
}

// Returns the number of elements of a range. Integers count without rounding.
template <class W>
StatusOr<int64_t> CountOf(W start, W limit, W delta) {
  if (delta == 0) return Err(StatusCode::kInvalidArgument, "a range by 0 has no end");
  if constexpr (std::is_same_v<W, double>) {
    const double count = std::max(std::ceil((limit - start) / delta), 0.0);
    if (!(count <= static_cast<double>(kElementsMax))) {
      return Err(StatusCode::kInvalidArgument, "a range of {} to {} by {} has no end", start, limit,
                 delta);
    }
    return static_cast<int64_t>(count);
  } else {
    const auto way = static_cast<__int128>(limit) - start, step = static_cast<__int128>(delta);
    if ((way > 0) != (step > 0) || way == 0) return 0;
    const __int128 count = (way + step - (step > 0 ? 1 : -1)) / step;
    if (count > kElementsMax) {
      return Err(StatusCode::kResourceExhausted, "a range of {} to {} by {} is too long", start,
                 limit, delta);
    }
    return static_cast<int64_t>(count);
  }
}

Status RunRange(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  for (size_t i = 0; i < 3; ++i) {
    AG_TRY(call.CheckType(i, call.TypeOf(0)));
    if (call.Type(i).NumElements() == 1) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
               call.Type(i).ToString());
  }
  return ForNumbers(call.TypeOf(0), [&]<class T>() -> Status {
    const Wide<T> start = *call.Values<T>(0), delta = *call.Values<T>(2);
    AG_LET(const int64_t count, CountOf<Wide<T>>(start, *call.Values<T>(1), delta));
    AG_LET(T * to, call.Make<T>(0, {count}));
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<T>(Plus<Wide<T>>(start, Times<Wide<T>>(static_cast<Wide<T>>(i), delta)));
    }
    return OkStatus();
  });
}

// Returns the only element of an operand as an integer; a number with a fraction is cut.
StatusOr<int64_t> IntegerOf(const OperatorCall& call, size_t i, int64_t at) {
  const double value = call.NumberAt(i, at);
  if (value > -0x1p62 && value < 0x1p62) return static_cast<int64_t>(value);
  return Err(StatusCode::kOutOfRange, "input {}: {} is no index", i, value);
}

// A negative index counts from the end. Before opset 11 ONNX had it outside; ONNX Runtime did not.
Status RunOneHot(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  const int64_t rank = call.Rank(0);
  AG_LET(const int64_t axis, ResolveAxis(call.Int("axis", -1), rank + 1));
  if (call.Type(1).NumElements() != 1 || call.ShapeOf(2) != Shape{2}) {
    return Err(StatusCode::kInvalidArgument, "depth is {}, values are {}", call.Type(1).ToString(),
               call.Type(2).ToString());
  }
  AG_LET(const int64_t depth, IntegerOf(call, 1, 0));
  Shape shape = call.ShapeOf(0);
  shape.insert(shape.begin() + axis, depth);
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(2), shape}));
  const int64_t width = SizeOf(call.TypeOf(2)), count = call.Type(0).NumElements();
  const char* values = call.In(2).bytes().data();
  FillWith(values, width, NumElements(shape), to);
  const int64_t inner = ElementsOf(shape, axis + 1, rank + 1);
  for (int64_t i = 0; i < count; ++i) {
    const double given = std::trunc(call.NumberAt(0, i));
    const double index = given < 0 ? given + depth : given;
    if (!(index >= 0 && index < static_cast<double>(depth))) continue;
    const int64_t at = (i / inner * depth + static_cast<int64_t>(index)) * inner + i % inner;
    std::memcpy(to + at * width, values + width, static_cast<size_t>(width));
  }
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> FillOperators() {
  static constexpr OperatorRow kRows[] = {
      {"ConstantOfShape", RunConstantOfShape, FromOperands({0})},
      {"Trilu", RunTrilu},
      {"EyeLike", RunEyeLike},
      {"Range", RunRange, ResultSizes::kFromValues},
      {"OneHot", RunOneHot, FromOperands({1})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
