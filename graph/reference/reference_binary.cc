// Reference kernels of element-wise operators with two or three operands, numpy broadcast.
#include <array>

#include "graph/reference/reference.h"

namespace ag::internal {
namespace {

// The last axes of a broadcast, along which each operand either advances by one or stays.
struct Row {
  size_t length = 1;
  size_t x = 0, y = 0;  // 1: the operand advances.
};

// Removes these axes from the end of `shape` and of both strides.
Row TakeRow(Shape* shape, std::array<Shape, 2>* strides) {
  Row row;
  while (!shape->empty()) {
    const int64_t size = shape->back(), x = (*strides)[0].back(), y = (*strides)[1].back();
    const auto length = static_cast<int64_t>(row.length);
    if (row.length == 1) {
      row.x = x == 1 ? 1 : 0;
      row.y = y == 1 ? 1 : 0;
    }
    const bool fits =
        x == static_cast<int64_t>(row.x) * length && y == static_cast<int64_t>(row.y) * length;
    if (size != 1 && !fits) break;
    row.length *= static_cast<size_t>(size);
    shape->pop_back();
    (*strides)[0].pop_back();
    (*strides)[1].pop_back();
  }
  return row;
}

template <class T, class F>
StatusOr<Arrays<T>> Zip(const KernelCall<T>& call, F f) {
  const Array<T>&a = call.in(0), &b = call.in(1);
  Array<T> out(call.out_type().shape);
  const size_t count = out.values.size();
  if (a.shape == b.shape) {
    for (size_t i = 0; i < count; ++i) out.values[i] = f(a.values[i], b.values[i]);
    return One(std::move(out));
  }
  Shape outer = out.shape;
  std::array<Shape, 2> strides = {BroadcastStrides(a.shape, out.shape),
                                  BroadcastStrides(b.shape, out.shape)};
  const Row row = TakeRow(&outer, &strides);
  Walker<2> walker(std::move(outer), std::move(strides));
  for (size_t i = 0; i < count; i += row.length, walker.Next()) {
    const T* x = &a.values[static_cast<size_t>(walker.offset(0))];
    const T* y = &b.values[static_cast<size_t>(walker.offset(1))];
    for (size_t k = 0; k < row.length; ++k) out.values[i + k] = f(x[k * row.x], y[k * row.y]);
  }
  return One(std::move(out));
}

// As Zip, with poison for poisoned operands.
template <class T, class F>
StatusOr<Arrays<T>> ZipSound(const KernelCall<T>& call, F f) {
  using S = Scalar<T>;
  return Zip<T>(call, [&](T a, T b) { return S::Poisoned(a) ? a : S::Poisoned(b) ? b : f(a, b); });
}

// Returns b when `take_b`, else a; NaN and poison of either one win.
template <class T>
T Select(T a, T b, bool take_b) {
  if (!(a == a)) return a;
  if (!(b == b)) return b;
  return take_b ? b : a;
}

}  // namespace

#define MATH(Name, word)
#define UNARY(...)
#define UNARY1(...)
#define UNARY2(...)
#define FUNCTION(Name, parameters, arguments, ...)           \
  template <class T>                                         \
  StatusOr<Arrays<T>> Ref##Name(const KernelCall<T>& call) { \
    return ZipSound<T>(call, [](T x, T y) {                  \
      if constexpr (requires { T(__VA_ARGS__); }) {          \
        return T(__VA_ARGS__);                               \
      } else {                                               \
        return Scalar<T>::Opaque(OpKind::k##Name, x, {y});   \
      }                                                      \
    });                                                      \
  }                                                          \
  AG_KERNEL(Ref##Name);
#include "graph/functions.def"

template <class T>
StatusOr<Arrays<T>> RefDiv(const KernelCall<T>& call) {
  if (IsInteger(call.out_type().dtype)) {
    return Zip<T>(call, [](T a, T b) { return Scalar<T>::Truncate(a / b); });
  }
  return Zip<T>(call, [](T a, T b) { return a / b; });
}

template <class T>
StatusOr<Arrays<T>> RefPow(const KernelCall<T>& call) {
  using S = Scalar<T>;
  if (IsInteger(call.out_type().dtype)) {
    return Zip<T>(call, [](T a, T b) { return S::Truncate(S::Pow(a, b)); });
  }
  return Zip<T>(call, [](T a, T b) { return S::Pow(a, b); });
}

template <class T>
StatusOr<Arrays<T>> RefMin(const KernelCall<T>& call) {
  return Zip<T>(call, [](T a, T b) { return Select(a, b, Scalar<T>::Less(b, a)); });
}

template <class T>
StatusOr<Arrays<T>> RefMax(const KernelCall<T>& call) {
  return Zip<T>(call, [](T a, T b) { return Select(a, b, Scalar<T>::Less(a, b)); });
}

template <class T>
StatusOr<Arrays<T>> RefMod(const KernelCall<T>& call) {
  using S = Scalar<T>;
  if (call.node.Int("fmod") != 0) {
    return Zip<T>(call, [](T a, T b) { return S::Remainder(a, b); });
  }
  return Zip<T>(call, [](T a, T b) { return S::Modulo(a, b); });
}

template <class T>
StatusOr<Arrays<T>> RefGreater(const KernelCall<T>& call) {
  return ZipSound<T>(call, [](T a, T b) { return T(Scalar<T>::Less(b, a) ? 1 : 0); });
}

template <class T>
StatusOr<Arrays<T>> RefLess(const KernelCall<T>& call) {
  return ZipSound<T>(call, [](T a, T b) { return T(Scalar<T>::Less(a, b) ? 1 : 0); });
}

template <class T>
StatusOr<Arrays<T>> RefWhere(const KernelCall<T>& call) {
  const Array<T>&condition = call.in(0), &a = call.in(1), &b = call.in(2);
  Array<T> out(call.out_type().shape);
  Walker<3> walker(out.shape,
                   {BroadcastStrides(condition.shape, out.shape),
                    BroadcastStrides(a.shape, out.shape), BroadcastStrides(b.shape, out.shape)});
  for (T& value : out.values) {
    const T chosen = condition.values[static_cast<size_t>(walker.offset(0))];
    if (Scalar<T>::Poisoned(chosen)) {
      value = chosen;
    } else if (chosen == T{}) {
      value = b.values[static_cast<size_t>(walker.offset(2))];
    } else {
      value = a.values[static_cast<size_t>(walker.offset(1))];
    }
    walker.Next();
  }
  return One(std::move(out));
}

AG_KERNEL(RefDiv);
AG_KERNEL(RefPow);
AG_KERNEL(RefMin);
AG_KERNEL(RefMax);
AG_KERNEL(RefMod);
AG_KERNEL(RefGreater);
AG_KERNEL(RefLess);
AG_KERNEL(RefWhere);
AG_WHOLE_KERNEL(RefAdd);
AG_WHOLE_KERNEL(RefSub);
AG_WHOLE_KERNEL(RefMul);
AG_WHOLE_KERNEL(RefEqual);
AG_WHOLE_KERNEL(RefDiv);
AG_WHOLE_KERNEL(RefMod);
AG_WHOLE_KERNEL(RefMin);
AG_WHOLE_KERNEL(RefMax);
AG_WHOLE_KERNEL(RefGreater);
AG_WHOLE_KERNEL(RefLess);
AG_WHOLE_KERNEL(RefWhere);

}  // namespace ag::internal
