// MatMulInteger and QLinearMatMul of two activations, matrix by matrix of a batch, on oneDNN's
// products of bytes. Zero points become sums over the rows of A and the columns of B; unsigned
// bytes of B are read 128 lower, as their zero point then is.
#include <algorithm>

#include "device/cpu/block_ops.h"
#include "device/cpu/host.h"
#include "device/cpu/integer_loops.h"
#include "device/cpu/kept.h"
#include "device/cpu/onednn.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

AG_CLONES void LowerBy128(const uint8_t* from, uint8_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] ^ 0x80;
}
AG_CLONES void AddBytes(const int8_t* from, int32_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}
AG_CLONES int32_t SumOfUnsigned(const uint8_t* from, int64_t n) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += from[i];
  return sum;
}
AG_CLONES int32_t SumOfSigned(const int8_t* from, int64_t n) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += from[i];
  return sum;
}

class ByteProduct : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    const bool quantized = kept.node().op_type == "QLinearMatMul";
    const size_t b = quantized ? 3 : 1, a_zero = 2, b_zero = quantized ? 5 : 3;
    if (!HasExactByteProducts() || !operands.Has(0) || !operands.Has(b) || operands.IsConstant(b) ||
        !ArePlain(context.group)) {
      return RefuseForm(kept);
    }
    AG_LET(a_, KeptOperand::Of(context, operands, 0));
    AG_LET(b_, KeptOperand::Of(context, operands, b));
    for (const auto& [place, zero] : {std::pair(a_zero, &a_zero_), std::pair(b_zero, &b_zero_)}) {
      if (!operands.Has(place)) continue;
      AG_LET(*zero, KeptOperand::Of(context, operands, place));
      if (zero->type().NumElements() != 1) return RefuseForm(kept);
    }
    has_zero_[0] = operands.Has(a_zero);
    has_zero_[1] = operands.Has(b_zero);
    y_ = context.node(0).outputs[0];
    cores_ = context.cores;
    AG_TRY(ReadSizes(kept));
    if (quantized) AG_TRY(ReadScales(context, kept, operands));
    if (!quantized && y_.dtype != DType::kInt32) return RefuseForm(kept);
    return Guarded(kept.node().op_type, [&] { return MakeCall(kept); });
  }

  size_t scratch_bytes() const override {
    return bytes_ + sums_ + static_cast<size_t>(cores_) * 4 * row_ + AlignUp(call_.scratch_bytes());
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const void* a = a_.At(inputs);
    const auto* b = static_cast<const uint8_t*>(b_.At(inputs));
    std::byte* scratch = context.scratch;
    if (b_.type().dtype == DType::kUInt8) {
      auto* lowered = reinterpret_cast<uint8_t*>(scratch);
      ParallelFor(cores_, batch_ * inner_ * columns_, kLightGrain,
                  [&](int64_t begin, int64_t end, int) {
                    LowerBy128(b + begin, lowered + begin, end - begin);
                  });
      b = lowered;
    }
    auto* sums = reinterpret_cast<int32_t*>(scratch += bytes_);
    std::byte* rows = scratch += sums_;
    scratch += static_cast<size_t>(cores_) * 4 * row_;
    const void* in[] = {a, b};
    void* out[] = {sums};
    AG_TRY(call_.Run({context.stream, scratch}, in, out));
    const int32_t a_zero = ZeroOf(0, inputs), b_zero = ZeroOf(1, inputs);
    ParallelFor(cores_, batch_, 1, [&](int64_t begin, int64_t end, int worker) {
      std::byte* own = rows + static_cast<size_t>(worker) * 4 * row_;
      for (int64_t i = begin; i < end; ++i) {
        GiveMatrix(i, static_cast<const uint8_t*>(a), reinterpret_cast<const int8_t*>(b), sums,
                   a_zero, b_zero, own, static_cast<std::byte*>(outputs[0]));
      }
    });
    return OkStatus();
  }

 private:
  Status ReadSizes(const KeptOperator& kept) {
    const Shape &a = a_.type().shape, &b = b_.type().shape, &y = y_.shape;
    const size_t rank = a.size();
    if (rank < 2 || b.size() != rank || y.size() != rank || y_.NumElements() == 0 ||
        a_.type().NumElements() == 0 || !IsByte(a_.type().dtype) || !IsByte(b_.type().dtype) ||
        a[rank - 1] != b[rank - 2] || !std::equal(a.begin(), a.end() - 2, b.begin())) {
      return RefuseForm(kept);
    }
    inner_ = a[rank - 1];
    columns_ = b[rank - 1];
    lines_ = a[rank - 2];
    batch_ = a_.type().NumElements() / (lines_ * inner_);
    return OkStatus();
  }

  // The scales of a, b and the result, and its zero point, are constants.
  Status ReadScales(const GroupContext& context, const KeptOperator& kept,
                    const KeptOperands& operands) {
    double values[8] = {};
    for (const size_t i : {1, 4, 6, 7}) {
      if (!operands.Has(i) || !operands.IsConstant(i) || operands.Type(i).NumElements() != 1) {
        return RefuseForm(kept);
      }
      if (context.constants == nullptr) continue;
      AG_LET(const Tensor value, context.constants->Get(operands.At(i)));
      values[i] = value.At(0);
    }
    if (!IsByte(y_.dtype)) return RefuseForm(kept);
    factor_.assign(static_cast<size_t>(columns_),
                   static_cast<float>(values[1] * values[4] / values[6]));
    y_zero_ = static_cast<float>(values[7]);
    return OkStatus();
  }

  Status MakeCall(const KeptOperator& kept) {
    using Type = dnnl::memory::data_type;
    const auto plain = dnnl::memory::format_tag::abc;
    const OmpThreads threads(cores_);
    const Desc a({batch_, lines_, inner_}, a_.type().dtype == DType::kInt8 ? Type::s8 : Type::u8,
                 plain);
    const Desc b({batch_, inner_, columns_}, Type::s8, plain);
    const Desc y({batch_, lines_, columns_}, Type::s32, plain);
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, y), UserScratchpad(), Engine(),
                                            /*allow_empty=*/true);
    if (!made || std::string_view(made.impl_info_str()).starts_with("ref")) {
      return RefuseForm(kept);
    }
    call_.Input(DNNL_ARG_SRC, a, a, 0);
    call_.Input(DNNL_ARG_WEIGHTS, b, b, 1);
    call_.Output(DNNL_ARG_DST, y, y, 0);
    call_.Finish(dnnl::matmul(made), made.scratchpad_desc());
    bytes_ = AlignUp(static_cast<size_t>(batch_ * inner_ * columns_));
    sums_ = AlignUp(static_cast<size_t>(batch_ * lines_ * columns_) * sizeof(int32_t));
    row_ = AlignUp(static_cast<size_t>(columns_) * sizeof(int32_t));
    return OkStatus();
  }

  // The zero point of operand 0 or 1, of the bytes that are multiplied.
  int32_t ZeroOf(size_t i, Inputs inputs) const {
    const DType dtype = i == 0 ? a_.type().dtype : b_.type().dtype;
    const int32_t lower = i == 1 && dtype == DType::kUInt8 ? 128 : 0;
    if (!has_zero_[i]) return -lower;
    const void* value = (i == 0 ? a_zero_ : b_zero_).At(inputs);
    const int32_t zero = dtype == DType::kInt8 ? *static_cast<const int8_t*>(value)
                                               : *static_cast<const uint8_t*>(value);
    return zero - lower;
  }

  // Writes matrix `i` of the result. `own` holds four rows of integers.
  void GiveMatrix(int64_t i, const uint8_t* a, const int8_t* b, const int32_t* sums, int32_t a_zero,
                  int32_t b_zero, std::byte* own, std::byte* y) const {
    auto* of_columns = reinterpret_cast<int32_t*>(own);
    auto* offset = reinterpret_cast<int32_t*>(own + row_);
    auto* by = reinterpret_cast<int32_t*>(own + 2 * row_);
    auto* shifted = reinterpret_cast<int32_t*>(own + 3 * row_);
    std::fill_n(of_columns, columns_, 0);
    for (int64_t k = 0; a_zero != 0 && k < inner_; ++k) {
      AddBytes(b + (i * inner_ + k) * columns_, of_columns, columns_);
    }
    const int64_t both = inner_ * a_zero * b_zero;
    for (int64_t n = 0; n < columns_; ++n) {
      offset[n] = static_cast<int32_t>(both - int64_t{a_zero} * of_columns[n]);
      by[n] = b_zero;
    }
    const bool is_signed = a_.type().dtype == DType::kInt8;
    for (int64_t line = i * lines_; line < (i + 1) * lines_; ++line) {
      const uint8_t* row = a + line * inner_;
      const int32_t sum = b_zero == 0 ? 0
                          : is_signed ? SumOfSigned(reinterpret_cast<const int8_t*>(row), inner_)
                                      : SumOfUnsigned(row, inner_);
      GiveLine(sums + line * columns_, offset, b_zero == 0 ? nullptr : by, sum, shifted,
               y + line * columns_ * SizeOf(y_.dtype));
    }
  }

  void GiveLine(const int32_t* sums, const int32_t* offset, const int32_t* by, int32_t sum,
                int32_t* shifted, void* to) const {
    const bool whole = factor_.empty();
    ShiftSums(sums, offset, by, sum, whole ? static_cast<int32_t*>(to) : shifted, columns_);
    if (whole) return;
    if (y_.dtype == DType::kInt8) {
      RequantizeSums(shifted, {factor_.data(), y_zero_, -128, 127}, static_cast<int8_t*>(to),
                     columns_);
    } else {
      RequantizeSums(shifted, {factor_.data(), y_zero_, 0, 255}, static_cast<uint8_t*>(to),
                     columns_);
    }
  }

  KeptOperand a_, b_, a_zero_, b_zero_;
  bool has_zero_[2] = {};
  TensorType y_;
  int cores_ = 1;
  int64_t batch_ = 1, lines_ = 1, inner_ = 1, columns_ = 1;
  std::vector<float> factor_;  // By column; empty: the result is i32.
  float y_zero_ = 0;
  Call call_;
  size_t bytes_ = 0, sums_ = 0, row_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeByteProduct(const GroupContext& context,
                                                  const KeptOperator& kept) {
  return PreparedKept<ByteProduct>(context, kept);
}

}  // namespace ag::cpu
