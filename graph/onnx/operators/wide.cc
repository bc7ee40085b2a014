#include "graph/onnx/operators/wide.h"

#include <cmath>
#include <limits>
#include <utility>

namespace ag::onnx_operators {

template <class W>
W Truncated(double value) {
  if constexpr (std::is_same_v<W, double>) {
    return value;
  } else {
    // Rounds up for 64 bits, to the first number that does not fit.
    constexpr auto kTop = static_cast<double>(std::numeric_limits<W>::max());
    if (std::isnan(value)) return 0;
    if (value >= kTop) return std::numeric_limits<W>::max();
    if (value <= static_cast<double>(std::numeric_limits<W>::min())) {
      return std::numeric_limits<W>::min();
    }
    return static_cast<W>(value);
  }
}

template <class W>
std::vector<W> Widened(const Tensor& tensor) {
  std::vector<W> values(static_cast<size_t>(tensor.type().NumElements()));
  const Status status = ForAny(tensor.type().dtype, [&]<class T>() -> Status {
    const T* from = tensor.As<T>().data();
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (kIsFloating<T>) {
        values[i] = Truncated<W>(from[i]);
      } else {
        values[i] = static_cast<W>(from[i]);
      }
    }
    return OkStatus();
  });
  AG_CHECK(status.ok());
  return values;
}

template <class W>
Status GiveNarrowed(OperatorCall& call, size_t i, const TensorType& type,
                    const std::vector<W>& values) {
  return ForAny(type.dtype, [&]<class T>() -> Status {
    AG_LET(T * to, call.Make<T>(i, type.shape));
    for (size_t at = 0; at < values.size(); ++at) {
      if constexpr (std::is_same_v<T, bool>) {
        to[at] = values[at] != 0;
      } else if constexpr (std::is_integral_v<T> && std::is_same_v<W, double>) {
        to[at] = Truncated<T>(values[at]);
      } else {
        to[at] = static_cast<T>(values[at]);
      }
    }
    return OkStatus();
  });
}

template <class W>
std::pair<W, W> LimitsOf(DType dtype) {
  std::pair<W, W> limits;
  const Status status = ForAny(dtype, [&]<class T>() -> Status {
    using L = std::numeric_limits<std::conditional_t<kIsFloating<T>, double, T>>;
    if constexpr (kIsFloating<T> && !std::is_same_v<W, double>) {
      return RefuseType(dtype);
    } else if constexpr (kIsFloating<T>) {
      limits = {static_cast<W>(-L::infinity()), static_cast<W>(L::infinity())};
    } else {
      limits = {static_cast<W>(L::min()), static_cast<W>(L::max())};
    }
    return OkStatus();
  });
  AG_CHECK(status.ok());
  return limits;
}

template std::vector<double> Widened(const Tensor&);
template std::vector<int64_t> Widened(const Tensor&);
template std::vector<uint64_t> Widened(const Tensor&);
template Status GiveNarrowed(OperatorCall&, size_t, const TensorType&, const std::vector<double>&);
template Status GiveNarrowed(OperatorCall&, size_t, const TensorType&, const std::vector<int64_t>&);
template Status GiveNarrowed(OperatorCall&, size_t, const TensorType&,
                             const std::vector<uint64_t>&);
template double Truncated(double);
template int64_t Truncated(double);
template uint64_t Truncated(double);
template std::pair<double, double> LimitsOf(DType);
template std::pair<int64_t, int64_t> LimitsOf(DType);
template std::pair<uint64_t, uint64_t> LimitsOf(DType);

}  // namespace ag::onnx_operators
