// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear between f32 and bytes.
#include <algorithm>

#include "device/cpu/integer_loops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

bool IsByteOrInt(DType dtype, bool with_i32) {
  return dtype == DType::kUInt8 || dtype == DType::kInt8 || (with_i32 && dtype == DType::kInt32);
}

double ZeroOf(const KeptOperand& zero, const void* values, int64_t i) {
  if (values == nullptr) return 0;
  switch (zero.type().dtype) {
    case DType::kUInt8:
      return static_cast<const uint8_t*>(values)[i];
    case DType::kInt8:
      return static_cast<const int8_t*>(values)[i];
    default:
      return static_cast<const int32_t*>(values)[i];
  }
}

// Between f32 and bytes, with scales and zero points for all elements or along an axis.
class KeptQuantize : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    to_bytes_ = kept.node().op_type == "QuantizeLinear";
    cores_ = context.cores;
    if (!operands.Has(0) || !operands.Has(1) || attributes.Int("block_size", 0) != 0) {
      return RefuseForm(kept);
    }
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(scale_, KeptOperand::Of(context, operands, 1));
    has_zero_ = operands.Has(2);
    if (has_zero_) {
      AG_LET(zero_, KeptOperand::Of(context, operands, 2));
    }
    y_ = context.node(0).outputs[0];
    const DType bytes = to_bytes_ ? y_.dtype : x_.type().dtype;
    const DType floats = to_bytes_ ? x_.type().dtype : y_.dtype;
    const bool types_fit = IsByteOrInt(bytes, !to_bytes_) && floats == DType::kFloat32 &&
                           scale_.type().dtype == DType::kFloat32 &&
                           (!has_zero_ || zero_.type().dtype == bytes);
    if (!types_fit || x_.type().shape != y_.shape) return RefuseForm(kept);
    for (const Port& port : context.group.inputs) {
      if (port.layout != Layout::kPlain) return RefuseForm(kept);
    }
    row_ = std::max<int64_t>(y_.NumElements(), 1);
    const int64_t count = scale_.type().NumElements();
    if (has_zero_ && zero_.type().NumElements() != count) return RefuseForm(kept);
    if (count == 1) return OkStatus();
    const auto axis = ResolveAxis(attributes.Int("axis", 1), static_cast<int64_t>(y_.shape.size()));
    if (!axis.ok() || scale_.type().shape != Shape{y_.shape[static_cast<size_t>(*axis)]}) {
      return RefuseForm(kept);
    }
    scales_ = count;
    row_ = NumElements(std::span(y_.shape).subspan(static_cast<size_t>(*axis) + 1));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const void* zeros = has_zero_ ? zero_.At(inputs) : nullptr;
    const auto* scales = static_cast<const float*>(scale_.At(inputs));
    const auto* from = static_cast<const std::byte*>(x_.At(inputs));
    auto* to = static_cast<std::byte*>(outputs[0]);
    const int64_t from_bytes = SizeOf(x_.type().dtype), to_bytes = SizeOf(y_.dtype);
    ParallelFor(cores_, y_.NumElements(), kLightGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin, n = 0; i < end; i += n) {
        const int64_t row = i / row_;
        n = std::min((row + 1) * row_, end) - i;
        const int64_t at = row % scales_;
        RunRow(from + i * from_bytes, scales[at], ZeroOf(zero_, zeros, at), to + i * to_bytes, n);
      }
    });
    return OkStatus();
  }

 private:
  void RunRow(const void* from, float scale, double zero, void* to, int64_t n) const {
    const auto shift = static_cast<float>(zero);
    if (to_bytes_ && y_.dtype == DType::kInt8) {
      QuantizeFloats(static_cast<const float*>(from), scale, {nullptr, shift, -128, 127},
                     static_cast<int8_t*>(to), n);
    } else if (to_bytes_) {
      QuantizeFloats(static_cast<const float*>(from), scale, {nullptr, shift, 0, 255},
                     static_cast<uint8_t*>(to), n);
    } else if (x_.type().dtype == DType::kInt8) {
      DequantizeBytes(static_cast<const int8_t*>(from), shift, scale, static_cast<float*>(to), n);
    } else if (x_.type().dtype == DType::kUInt8) {
      DequantizeBytes(static_cast<const uint8_t*>(from), shift, scale, static_cast<float*>(to), n);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const double value = static_cast<const int32_t*>(from)[i] - zero;
        static_cast<float*>(to)[i] = static_cast<float>(value * double{scale});
      }
    }
  }

  bool to_bytes_ = true, has_zero_ = false;
  int cores_ = 1;
  KeptOperand x_, scale_, zero_;
  TensorType y_;
  int64_t scales_ = 1, row_ = 1;  // Elements that follow each other with one scale.
};

// To u8, with a scale and a zero point that the values decide.
class KeptDynamicQuantize : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    if (!operands.Has(0)) return RefuseForm(kept);
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    cores_ = context.cores;
    for (size_t i = 0; i < 3; ++i) ports_[i] = operands.OutputPort(i);
    bool plain = x_.type().dtype == DType::kFloat32;
    for (const Port& port : context.group.inputs) plain = plain && port.layout == Layout::kPlain;
    return plain ? OkStatus() : RefuseForm(kept);
  }

  size_t scratch_bytes() const override { return AlignUp(sizeof(FloatRange) * cores_); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(x_.At(inputs));
    const int64_t n = x_.type().NumElements();
    auto* ranges = reinterpret_cast<FloatRange*>(context.scratch);
    std::fill_n(ranges, cores_, FloatRange());
    ParallelFor(cores_, n, kLightGrain, [&](int64_t begin, int64_t end, int worker) {
      ranges[worker] = RangeOfFloats(x + begin, end - begin);
    });
    FloatRange all;
    for (int i = 0; i < cores_; ++i) {
      all.low = std::min(all.low, ranges[i].low);
      all.high = std::max(all.high, ranges[i].high);
    }
    const DynamicBytes how = DynamicBytesOf(all);
    if (ports_[0] >= 0) {
      auto* y = static_cast<uint8_t*>(outputs[ports_[0]]);
      ParallelFor(cores_, n, kLightGrain, [&](int64_t begin, int64_t end, int) {
        QuantizeFloats(x + begin, how.scale, {nullptr, how.zero, 0, 255}, y + begin, end - begin);
      });
    }
    if (ports_[1] >= 0) *static_cast<float*>(outputs[ports_[1]]) = how.scale;
    if (ports_[2] >= 0) *static_cast<uint8_t*>(outputs[ports_[2]]) = static_cast<uint8_t>(how.zero);
    return OkStatus();
  }

 private:
  KeptOperand x_;
  int cores_ = 1;
  int ports_[3] = {-1, -1, -1};
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeQuantize(const GroupContext& context,
                                               const KeptOperator& kept) {
  return PreparedKept<KeptQuantize>(context, kept);
}

StatusOr<std::unique_ptr<Kernel>> MakeDynamicQuantize(const GroupContext& context,
                                                      const KeptOperator& kept) {
  return PreparedKept<KeptDynamicQuantize>(context, kept);
}

}  // namespace ag::cpu
