#include "device/cpu/chain_pass.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "device/cpu/half_loops.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

// An element of bf16 in memory.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  template <class T>
  explicit BFloat16(T value) {
    const auto number = static_cast<float>(value);
    StoreAsBf16(&number, &bits, 1);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
};

// Calls f with a null pointer of the C++ type of `dtype`.
template <class F>
void WithType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(static_cast<float*>(nullptr));
    case DType::kFloat64:
      return f(static_cast<double*>(nullptr));
    case DType::kInt64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::kInt32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::kInt16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::kInt8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::kUInt8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::kBool:
      return f(static_cast<bool*>(nullptr));
    case DType::kUInt16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::kUInt32:
      return f(static_cast<uint32_t*>(nullptr));
    case DType::kUInt64:
      return f(static_cast<uint64_t*>(nullptr));
    case DType::kBFloat16:
      return f(static_cast<BFloat16*>(nullptr));
    case DType::kFloat16:
    case DType::kString:
    case DType::kFloat8E4M3:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2Fnuz:
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4:
      AG_CHECK(false);
  }
}

template <class Src, class T>
void CopyRun(const Src* src, int64_t stride, T* dst, int64_t n) {
  if (stride == 0) {
    std::fill_n(dst, n, static_cast<T>(*src));
  } else if (stride == 1) {
    if constexpr (std::is_same_v<Src, BFloat16> && std::is_same_v<T, float>) {
      return WidenHalf(DType::kBFloat16, &src->bits, dst, n);
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<T>(src[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<T>(src[i * stride]);
  }
}

// Reads elements [start, start + n) of the space through the input's strides.
template <class Src, class T>
void Walk(const Space& space, const PassInput& input, const Src* src, int64_t start, int64_t n,
          T* dst) {
  std::array<int64_t, kSpaceRankMax> at;
  const int rank = static_cast<int>(space.dims.size());
  int64_t rest = start;
  for (int d = rank; d-- > 0;) {
    at[d] = rest % space.dims[d];
    rest /= space.dims[d];
    src += at[d] * input.strides[d];
  }
  const int inner = rank - 1;
  while (n > 0) {
    const int64_t run = std::min(n, space.dims[inner] - at[inner]);
    CopyRun(src, input.strides[inner], dst, run);
    dst += run;
    n -= run;
    at[inner] += run;
    src += run * input.strides[inner];
    for (int d = inner; d > 0 && at[d] == space.dims[d]; --d) {
      src += input.strides[d - 1] - at[d] * input.strides[d];
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// Returns the offset, in an input that repeats, of element number `start` of the space. Sets `left`
// to the number of elements until the next run begins (short runs) or the same run repeats (long
// runs).
int64_t RepeatAt(const Space& space, const PassInput& input, int64_t start, int64_t* left) {
  const PassInput::Repeat& r = input.repeat;
  const int64_t phase = start % r.period;
  *left = r.period >= kLongPeriod ? r.period - phase : r.span - start % r.span;
  int64_t at = phase, rest = start / r.span;
  for (size_t d = r.outer; d-- > 0 && rest > 0;) {
    at += rest % space.dims[d] * input.strides[d];
    rest /= space.dims[d];
  }
  return at;
}

// Fills dst with the run of `period` elements at src, from its element `phase` on.
template <class T>
void FillRepeated(const T* src, int64_t period, int64_t phase, T* dst) {
  for (int64_t i = 0; i < period; ++i) {
    dst[i] = src[phase];
    phase = phase + 1 == period ? 0 : phase + 1;
  }
  for (int64_t made = period; made < kBlock; made *= 2) {
    std::memcpy(dst + made, dst, std::min(made, kBlock - made) * sizeof(T));
  }
}

// What registers of T hold of elements of type E: an int64_t in the place of a double for integers.
using Integer = int64_t __attribute__((may_alias));
template <class T, class E>
constexpr bool kHoldsInteger =
    std::is_same_v<T, double>&& std::is_integral_v<E> && !std::is_same_v<E, bool>;

template <class T>
void Load(const Space& space, const PassInput& input, const void* data, int64_t start, int64_t n,
          T* dst) {
  WithType(input.dtype, [&](auto* type) {
    auto* const src = static_cast<decltype(type)>(const_cast<void*>(data));
    if constexpr (kHoldsInteger<T, std::remove_pointer_t<decltype(type)>>) {
      Walk(space, input, src, start, n, reinterpret_cast<Integer*>(dst));
    } else {
      Walk(space, input, src, start, n, dst);
    }
  });
}

template <class T>
void Store(DType dtype, const T* src, void* data, int64_t start, int64_t n) {
  WithType(dtype, [&](auto* type) {
    using Dst = std::remove_pointer_t<decltype(type)>;
    Dst* dst = static_cast<Dst*>(data) + start;
    if constexpr (std::is_same_v<Dst, BFloat16> && std::is_same_v<T, float>) {
      return StoreAsBf16(src, &dst->bits, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<Dst, bool>) {
        dst[i] = src[i] != 0;
      } else if constexpr (kHoldsInteger<T, Dst>) {
        dst[i] = static_cast<Dst>(reinterpret_cast<const Integer*>(src)[i]);
      } else {
        dst[i] = static_cast<Dst>(src[i]);
      }
    }
  });
}

// Zeroes the padding lanes among elements [begin, end) of a blocked output. REQUIRES: both are
// multiples of `lanes`.
template <class T>
void ClearPadding(const Space& s, T* data, int64_t begin, int64_t end) {
  for (int64_t image = begin / s.image; image * s.image < end; ++image) {
    const int64_t last = (image + 1) * s.image;
    const int64_t from = std::max(begin, last - s.plane);
    for (int64_t i = from; i < std::min(end, last); i += s.lanes) {
      std::fill(data + i + s.lanes_used, data + i + s.lanes, T(0));
    }
  }
}

// One worker's part of a pass.
template <class T>
class Worker {
 public:
  Worker(const Pass<T>& pass, T* registers, T** pointers, Inputs inputs, Outputs outputs)
      : pass_(pass),
        at_(pointers),
        repeated_(pointers + pass.register_of.size()),
        inputs_(inputs),
        outputs_(outputs) {
    for (size_t v = 0; v < pass.register_of.size(); ++v) {
      at_[v] = pass.register_of[v] < 0 ? nullptr : registers + pass.register_of[v] * kBlock;
      repeated_[v] = nullptr;
    }
  }

  void Run(int64_t begin, int64_t end) {
    for (const PassInput& input : pass_.inputs) {
      if (input.form != PassInput::Form::kScalar) continue;
      Load(pass_.space, input, DataOf(input), 0, 1, at_[input.value]);
      std::fill_n(at_[input.value], kBlock, at_[input.value][0]);
    }
    for (int64_t start = begin; start < end;) {
      int64_t n = std::min(pass_.block, end - start);
      for (const PassInput& input : pass_.inputs) {
        if (input.form == PassInput::Form::kRepeat) n = Repeat(input, start, n);
      }
      RunBlock(start, n);
      start += n;
    }
    if (pass_.space.lanes_used == pass_.space.lanes) return;
    for (const PassOutput& output : pass_.outputs) {
      WithType(output.dtype, [&](auto* type) {
        ClearPadding(pass_.space, static_cast<decltype(type)>(outputs_[output.slot]), begin, end);
      });
    }
  }

 private:
  const void* DataOf(const PassInput& input) const {
    return input.constant != nullptr ? input.constant : inputs_[input.slot];
  }

  // Makes the input's elements from `start` on readable and returns how many of `n` are.
  int64_t Repeat(const PassInput& input, int64_t start, int64_t n) {
    int64_t left = 0;
    const int64_t offset = RepeatAt(pass_.space, input, start, &left);
    T* const from = static_cast<T*>(const_cast<void*>(DataOf(input))) + offset;
    if (pass_.register_of[input.value] < 0) {
      at_[input.value] = from;
    } else if (repeated_[input.value] != from) {
      const int64_t phase = start % input.repeat.period;
      FillRepeated(from - phase, input.repeat.period, phase, at_[input.value]);
      repeated_[input.value] = from;
    }
    return std::min(n, left);
  }

  void RunBlock(int64_t start, int64_t n) {
    for (const PassInput& input : pass_.inputs) {
      using Form = PassInput::Form;
      if (input.form == Form::kScalar || input.form == Form::kRepeat) continue;
      const void* data = DataOf(input);
      if (input.form == PassInput::Form::kDense && LiesAsHeld<T>(input.dtype)) {
        at_[input.value] = static_cast<T*>(const_cast<void*>(data)) + start;
      } else {
        Load(pass_.space, input, data, start, n, at_[input.value]);
      }
    }
    for (const PassOutput& output : pass_.outputs) {
      if (pass_.register_of[output.value] >= 0) continue;
      at_[output.value] = static_cast<T*>(outputs_[output.slot]) + start;
    }
    for (const Instruction<T>& i : pass_.code) {
      const T* const a = at_[i.read[0]];
      const T* const b = i.reads > 1 ? at_[i.read[1]] : a;
      const T* const c = i.reads > 2 ? at_[i.read[2]] : a;
      i.op.run(a, b, c, at_[i.out], n, i.op.p, i.op.q);
    }
    for (const PassOutput& output : pass_.outputs) {
      if (pass_.register_of[output.value] < 0) continue;
      Store(output.dtype, at_[output.value], outputs_[output.slot], start, n);
    }
  }

  const Pass<T>& pass_;
  T** at_;
  T** repeated_;  // The runs that the registers of short runs were filled from.
  Inputs inputs_;
  Outputs outputs_;
};

}  // namespace

template <class T>
void RunPart(const Pass<T>& pass, int64_t begin, int64_t end, int worker, T* registers,
             T** pointers, Inputs inputs, Outputs outputs) {
  Worker<T>(pass, registers + int64_t{worker} * pass.registers * kBlock,
            pointers + 2 * worker * pass.register_of.size(), inputs, outputs)
      .Run(begin, end);
}
template void RunPart<float>(const Pass<float>&, int64_t, int64_t, int, float*, float**, Inputs,
                             Outputs);

template <class T>
void RunPass(const Pass<T>& pass, int cores, T* registers, T** pointers, Inputs inputs,
             Outputs outputs) {
  ParallelFor(cores, pass.space.elements, kLightGrain, [&](int64_t begin, int64_t end, int worker) {
    RunPart(pass, begin, end, worker, registers, pointers, inputs, outputs);
  });
}
template void RunPass<float>(const Pass<float>&, int, float*, float**, Inputs, Outputs);
template void RunPass<double>(const Pass<double>&, int, double*, double**, Inputs, Outputs);

}  // namespace ag::cpu
