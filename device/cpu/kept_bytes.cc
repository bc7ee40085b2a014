// Operators of com.microsoft on quantized tensors of bytes: QLinearAdd and QLinearMul through
// floats in blocks that stay in the nearest cache; QLinearSigmoid, QLinearLeakyRelu and
// QLinearConcat by a table of all 256 bytes; QLinearGlobalAveragePool by sums of integers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "device/cpu/block_ops.h"
#include "device/cpu/integer_loops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

// How numbers become bytes of a type: one constant scale and one constant zero point.
struct ByteScale {
  DType dtype = DType::kUInt8;
  float scale = 1, zero = 0;

  float low() const { return dtype == DType::kInt8 ? -128.0F : 0.0F; }
  float high() const { return dtype == DType::kInt8 ? 127.0F : 255.0F; }
  // The number of a byte, as f32 holds it.
  float NumberOf(uint8_t byte) const {
    const float value = dtype == DType::kInt8 ? static_cast<int8_t>(byte) : byte;
    return (value - zero) * scale;
  }
  uint8_t ByteOf(double number) const {
    const float steps = std::nearbyint(static_cast<float>(number) / scale);
    const float value = std::clamp(steps + zero, low(), high());
    return static_cast<uint8_t>(static_cast<int>(std::isnan(value) ? zero : value));
  }
  void Read(const uint8_t* from, float* to, int64_t n) const {
    if (dtype == DType::kInt8) {
      DequantizeBytes(reinterpret_cast<const int8_t*>(from), zero, scale, to, n);
    } else {
      DequantizeBytes(from, zero, scale, to, n);
    }
  }
  void Write(const float* from, uint8_t* to, int64_t n) const {
    if (dtype == DType::kInt8) {
      QuantizeFloats(from, scale, {nullptr, zero, low(), high()}, reinterpret_cast<int8_t*>(to), n);
    } else {
      QuantizeFloats(from, scale, {nullptr, zero, low(), high()}, to, n);
    }
  }
};

// Reads the scale in operand `scale` and the zero point behind it, of numbers of `dtype`.
// kUnimplemented: they are no constants, or more than one. Without constants it checks only.
StatusOr<ByteScale> ByteScaleOf(const GroupContext& context, const KeptOperator& kept,
                                const KeptOperands& operands, size_t scale, DType dtype) {
  ByteScale made{.dtype = dtype};
  const bool has_zero = operands.Has(scale + 1);
  const bool fits =
      IsByte(dtype) && operands.Has(scale) && operands.IsConstant(scale) &&
      operands.Type(scale).NumElements() == 1 && operands.Type(scale).dtype == DType::kFloat32 &&
      (!has_zero || (operands.IsConstant(scale + 1) && operands.Type(scale + 1).dtype == dtype &&
                     operands.Type(scale + 1).NumElements() == 1));
  if (!fits) return RefuseForm(kept);
  if (context.constants == nullptr) return made;
  AG_LET(const Tensor value, context.constants->Get(operands.At(scale)));
  made.scale = value.As<float>()[0];
  if (has_zero) {
    AG_LET(const Tensor zero, context.constants->Get(operands.At(scale + 1)));
    made.zero = static_cast<float>(zero.At(0));
  }
  return made;
}

AG_CLONES void AddFloats(const float* by, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] += by[i];
}
AG_CLONES void MultiplyFloats(const float* by, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] *= by[i];
}

// QLinearAdd and QLinearMul. Operands: a, its scale and zero point, b with its, those of the
// result.
class KeptByteSum : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    if (!operands.Has(0) || !operands.Has(3) || !ArePlain(context.group)) return RefuseForm(kept);
    multiplies_ = kept.node().op_type == "QLinearMul";
    cores_ = context.cores;
    const TensorType& y = context.node(0).outputs[0];
    for (size_t i = 0; i < 2; ++i) {
      AG_LET(in_[i], KeptOperand::Of(context, operands, 3 * i));
      AG_LET(scales_[i],
             ByteScaleOf(context, kept, operands, 3 * i + 1, operands.Type(3 * i).dtype));
    }
    AG_LET(out_, ByteScaleOf(context, kept, operands, 6, y.dtype));
    return ReadRows(kept, y.shape);
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const uint8_t* const in[] = {static_cast<const uint8_t*>(in_[0].At(inputs)),
                                 static_cast<const uint8_t*>(in_[1].At(inputs))};
    auto* out = static_cast<uint8_t*>(outputs[0]);
    const int64_t grain = 1 + kLightGrain / run_;
    if (rows_ == 1) {
      ParallelFor(cores_, run_, kLightGrain, [&](int64_t begin, int64_t end, int) {
        RunPart({in[0] + (moves_[0] ? begin : 0), in[1] + (moves_[1] ? begin : 0)}, out + begin,
                end - begin);
      });
      return OkStatus();
    }
    ParallelFor(cores_, rows_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        RunPart({in[0] + RowAt(row, 0), in[1] + RowAt(row, 1)}, out + row * run_, run_);
      }
    });
    return OkStatus();
  }

 private:
  static constexpr int64_t kBlock = 1024;

  // Cuts the result into rows along which each operand moves on, or stays where it is.
  Status ReadRows(const KeptOperator& kept, const Shape& y) {
    outer_ = y;
    for (size_t i = 0; i < 2; ++i) {
      const Shape& shape = in_[i].type().shape;
      if (shape.size() > y.size()) return RefuseForm(kept);
      strides_[i].assign(y.size(), 0);
      int64_t stride = 1;
      for (size_t axis = shape.size(); axis-- > 0;) {
        const size_t at = axis + y.size() - shape.size();
        strides_[i][at] = shape[axis] == 1 ? 0 : stride;
        stride *= shape[axis];
      }
    }
    if (NumElements(y) == 0) return RefuseForm(kept);
    const auto moves = [&](size_t i, size_t axis) { return strides_[i][axis] != 0; };
    while (!outer_.empty()) {
      const size_t axis = outer_.size() - 1;
      const int64_t size = outer_[axis];
      if (size > 1 && run_ > 1 && (moves(0, axis) != moves_[0] || moves(1, axis) != moves_[1])) {
        break;
      }
      if (size > 1) {
        for (size_t i = 0; i < 2; ++i) moves_[i] = moves(i, axis);
      }
      run_ *= size;
      outer_.pop_back();
    }
    rows_ = NumElements(outer_);
    return OkStatus();
  }

  int64_t RowAt(int64_t row, size_t i) const {
    int64_t offset = 0;
    for (size_t axis = outer_.size(); axis-- > 0; row /= outer_[axis]) {
      offset += row % outer_[axis] * strides_[i][axis];
    }
    return offset;
  }

  void RunPart(std::array<const uint8_t*, 2> in, uint8_t* out, int64_t n) const {
    float a[kBlock], b[kBlock];
    const float fixed = scales_[0].NumberOf(*in[0]);
    if (!moves_[1]) std::fill_n(b, std::min(n, kBlock), scales_[1].NumberOf(*in[1]));
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(n - at, kBlock);
      if (moves_[0]) {
        scales_[0].Read(in[0] + at, a, count);
      } else {
        std::fill_n(a, count, fixed);  // The block before has written over it.
      }
      if (moves_[1]) scales_[1].Read(in[1] + at, b, count);
      multiplies_ ? MultiplyFloats(b, a, count) : AddFloats(b, a, count);
      out_.Write(a, out + at, count);
    }
  }

  bool multiplies_ = false;
  int cores_ = 1;
  KeptOperand in_[2];
  ByteScale scales_[2], out_;
  Shape outer_;         // Of the rows.
  Ints strides_[2];     // Of the operands along the result's axes; 0 where they are repeated.
  bool moves_[2] = {};  // Along a row.
  int64_t rows_ = 1, run_ = 1;
};

using ByteTable = std::array<uint8_t, 256>;

template <class F>
ByteTable TableOf(const ByteScale& from, const ByteScale& to, F&& function) {
  ByteTable table;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = to.ByteOf(function(double{from.NumberOf(static_cast<uint8_t>(byte))}));
  }
  return table;
}

void MapBytes(const ByteTable& table, const uint8_t* from, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = table[from[i]];
}

// QLinearSigmoid and QLinearLeakyRelu. Operands: x, its scale and zero point, those of the result.
class KeptByteFunction : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    const TensorType& y = context.node(0).outputs[0];
    if (!operands.Has(0) || !ArePlain(context.group)) return RefuseForm(kept);
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(const ByteScale from, ByteScaleOf(context, kept, operands, 1, x_.type().dtype));
    AG_LET(const ByteScale to, ByteScaleOf(context, kept, operands, 3, y.dtype));
    cores_ = context.cores;
    const double alpha = NodeAttributes(kept.node()).Float("alpha", 0.01F);
    const auto leaky = [alpha](double v) { return v < 0 ? alpha * v : v; };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    table_ = kept.node().op_type == "QLinearSigmoid" ? TableOf(from, to, sigmoid)
                                                     : TableOf(from, to, leaky);
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* from = static_cast<const uint8_t*>(x_.At(inputs));
    auto* to = static_cast<uint8_t*>(outputs[0]);
    ParallelFor(cores_, x_.type().NumElements(), kLightGrain, [&](int64_t begin, int64_t end, int) {
      MapBytes(table_, from + begin, to + begin, end - begin);
    });
    return OkStatus();
  }

 private:
  KeptOperand x_;
  ByteTable table_{};
  int cores_ = 1;
};

// Operands: scale and zero point of the result, then each tensor with its own.
class KeptByteConcat : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    const size_t count = kept.node().inputs.size();
    const TensorType& y = context.node(0).outputs[0];
    if (count < 5 || count % 3 != 2 || !ArePlain(context.group)) return RefuseForm(kept);
    AG_LET(const ByteScale to, ByteScaleOf(context, kept, operands, 0, y.dtype));
    AG_LET(const int64_t axis, ResolveAxis(NodeAttributes(kept.node()).Int("axis", 0),
                                           static_cast<int64_t>(y.shape.size())));
    outer_ = NumElements(std::span(y.shape).first(static_cast<size_t>(axis)));
    for (size_t i = 2; i < count; i += 3) {
      if (!operands.Has(i) || operands.Type(i).NumElements() == 0) return RefuseForm(kept);
      Part part;
      AG_LET(part.x, KeptOperand::Of(context, operands, i));
      AG_LET(const ByteScale from,
             ByteScaleOf(context, kept, operands, i + 1, part.x.type().dtype));
      part.table = TableOf(from, to, [](double v) { return v; });
      part.row = part.x.type().NumElements() / outer_;
      row_ += part.row;
      parts_.push_back(std::move(part));
    }
    cores_ = context.cores;
    return row_ * outer_ == y.NumElements() ? OkStatus() : RefuseForm(kept);
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    int64_t at = 0;
    for (const Part& part : parts_) {
      const auto* from = static_cast<const uint8_t*>(part.x.At(inputs));
      auto* to = static_cast<uint8_t*>(outputs[0]) + at;
      ParallelFor(cores_, outer_ * part.row, kLightGrain, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin, n = 0; i < end; i += n) {
          n = std::min((i / part.row + 1) * part.row, end) - i;
          MapBytes(part.table, from + i, to + i / part.row * row_ + i % part.row, n);
        }
      });
      at += part.row;
    }
    return OkStatus();
  }

 private:
  struct Part {
    KeptOperand x;
    ByteTable table{};
    int64_t row = 1;
  };
  std::vector<Part> parts_;
  int64_t outer_ = 1, row_ = 0;
  int cores_ = 1;
};

// Operands: x, its scale and zero point, those of the result.
class KeptBytePool : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    const TensorType& y = context.node(0).outputs[0];
    if (!operands.Has(0) || !ArePlain(context.group)) return RefuseForm(kept);
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    const Shape& shape = x_.type().shape;
    AG_LET(from_, ByteScaleOf(context, kept, operands, 1, x_.type().dtype));
    AG_LET(to_, ByteScaleOf(context, kept, operands, 3, y.dtype));
    last_ = NodeAttributes(kept.node()).Int("channels_last", 0) != 0;
    cores_ = context.cores;
    if (shape.size() < 3 || x_.type().NumElements() == 0) return RefuseForm(kept);
    images_ = shape[0];
    channels_ = last_ ? shape.back() : shape[1];
    inside_ = x_.type().NumElements() / (images_ * channels_);
    return y.NumElements() == images_ * channels_ ? OkStatus() : RefuseForm(kept);
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const uint8_t*>(x_.At(inputs));
    auto* to = static_cast<uint8_t*>(outputs[0]);
    const int64_t grain = 1 + kLightGrain / inside_;
    ParallelFor(cores_, images_ * channels_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first =
            last_ ? i / channels_ * channels_ * inside_ + i % channels_ : i * inside_;
        const int64_t sum = SumOf(x + first, last_ ? channels_ : 1);
        const double whole = static_cast<double>(sum) - double{from_.zero} * inside_;
        to[i] = to_.ByteOf(whole * double{from_.scale} / static_cast<double>(inside_));
      }
    });
    return OkStatus();
  }

 private:
  int64_t SumOf(const uint8_t* x, int64_t step) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < inside_; ++i) sum += x[i * step];
    if (from_.dtype == DType::kUInt8) return sum;
    for (int64_t i = 0; i < inside_; ++i) sum -= x[i * step] >= 128 ? 256 : 0;
    return sum;
  }

  KeptOperand x_;
  ByteScale from_, to_;
  bool last_ = false;
  int cores_ = 1;
  int64_t images_ = 1, channels_ = 1, inside_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeByteSum(const GroupContext& context,
                                              const KeptOperator& kept) {
  return PreparedKept<KeptByteSum>(context, kept);
}

StatusOr<std::unique_ptr<Kernel>> MakeByteFunction(const GroupContext& context,
                                                   const KeptOperator& kept) {
  return PreparedKept<KeptByteFunction>(context, kept);
}

StatusOr<std::unique_ptr<Kernel>> MakeByteConcat(const GroupContext& context,
                                                 const KeptOperator& kept) {
  return PreparedKept<KeptByteConcat>(context, kept);
}

StatusOr<std::unique_ptr<Kernel>> MakeBytePool(const GroupContext& context,
                                               const KeptOperator& kept) {
  return PreparedKept<KeptBytePool>(context, kept);
}

}  // namespace ag::cpu
