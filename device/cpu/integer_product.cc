// MatMulInteger, QLinearMatMul, QGemm, ConvInteger and QLinearConv on oneDNN's products of bytes.
// oneDNN multiplies the bytes as they are; zero points become sums that are known when the weights
// are packed, or one more column of the weights, all ones, which gives the sum of what it reads.
// Convolutions read a copy of the picture with the channels of a pixel together, padded with the
// zero point.
#include <algorithm>
#include <cmath>

#include "device/cpu/host.h"
#include "device/cpu/integer_loops.h"
#include "device/cpu/kept.h"
#include "device/cpu/onednn.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

using IntegerType = dnnl::memory::data_type;

// Where the operands are; -1: the operator has no such one.
struct IntegerPlaces {
  std::string_view op;
  int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
constexpr IntegerPlaces kIntegerPlaces[] = {
    {"MatMulInteger", 0, -1, 2, 1, -1, 3, -1, -1, -1},
    {"ConvInteger", 0, -1, 2, 1, -1, 3, -1, -1, -1},
    {"QLinearMatMul", 0, 1, 2, 3, 4, 5, 6, 7, -1},
    {"QLinearConv", 0, 1, 2, 3, 4, 5, 6, 7, 8},
    {"QGemm", 0, 1, 2, 3, 4, 5, 7, 8, 6},
};

// Both operators as a product of `rows` rows of A with the columns of B: rows are the pixels of a
// convolution's result, columns its channels.
struct IntegerSizes {
  int64_t groups = 1;
  int64_t columns = 1;  // Of a group.
  int64_t inner = 1;    // Terms of a sum.
  int64_t rows = 1;     // Of all images.
  int64_t images = 1;
  // Of a convolution: channels of A by group, sizes of A, of A with padding, of the result.
  bool is_convolution = false;
  int64_t channels = 1;
  Ints in, padded, out;
  KeptWindow window;
};

// One-axis windows get a first axis of size 1.
void WidenWindow(IntegerSizes& s) {
  if (s.in.size() == 2) return;
  for (Ints* list : {&s.in, &s.out, &s.window.kernel, &s.window.strides, &s.window.dilations}) {
    list->insert(list->begin(), 1);
  }
  for (Ints* list : {&s.window.begin, &s.window.end}) list->insert(list->begin(), 0);
}

// What is computed once from the weights. Columns count the extra one of each group.
struct IntegerWeights {
  std::vector<int8_t> values;  // As the primitive wants them described.
  std::vector<int32_t> sums;   // Over a column, of the values.
  std::vector<int32_t> zeros;  // What is left of the zero points, by column.
  std::vector<int32_t> bias;   // By column.
  std::vector<float> factor;   // By column; empty: the result is i32.
  int64_t extra = 0;           // 1: each group has a column of ones.
};

class IntegerProduct : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept);
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override;
  size_t scratch_bytes() const override { return scratch_bytes_; }

 private:
  Status ReadSizes(const GroupContext& context, const KeptOperator& kept);
  Status ReadMatrix(const KeptOperator& kept, const Shape& y);
  Status ReadConvolution(const KeptOperator& kept, const Shape& y);
  Status Check(const GroupContext& context) const;
  Status PackWeights();
  Status PackScales();
  Status MakeCall(bool is_check);
  int64_t Columns() const { return s_.groups * (s_.columns + w_.extra); }
  int64_t Places() const { return s_.rows / s_.images; }
  int32_t ZeroOf(Inputs inputs) const;
  void TurnPicture(const uint8_t* x, uint8_t zero, uint8_t* to) const;
  void GiveRows(const int32_t* sums, const int32_t* offset, int32_t* shifted, int64_t begin,
                int64_t end, void* y) const;
  void GiveRow(const int32_t* sums, const int32_t* offset, int32_t* shifted, void* to) const;

  const KeptOperand& operand(int place) const { return operands_[static_cast<size_t>(place)]; }
  bool Has(int place) const {
    return place >= 0 && static_cast<size_t>(place) < has_.size() && has_[place];
  }

  IntegerPlaces at_{};
  std::vector<KeptOperand> operands_;
  std::vector<bool> has_;
  IntegerSizes s_;
  IntegerWeights w_;
  DType result_ = DType::kInt32;
  float y_zero_ = 0;
  double alpha_ = 1;        // What the product is multiplied with.
  bool by_column_ = false;  // B is given as [columns, inner].
  int cores_ = 1;
  Call call_;
  size_t picture_bytes_ = 0, sums_bytes_ = 0, offset_bytes_ = 0, tile_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

Status RefuseInteger(std::string_view op, std::string_view why) {
  return Err(StatusCode::kUnimplemented, "{}: {}", op, why);
}

Status IntegerProduct::Prepare(const GroupContext& context, const KeptOperator& kept) {
  const auto* found = std::ranges::find(kIntegerPlaces, kept.node().op_type, &IntegerPlaces::op);
  at_ = *found;
  cores_ = context.cores;
  const KeptOperands operands(context, kept);
  for (size_t i = 0; i < kept.node().inputs.size(); ++i) {
    has_.push_back(operands.Has(i));
    operands_.emplace_back();
    if (!has_.back()) continue;
    AG_LET(operands_.back(), KeptOperand::Of(context, operands, i));
  }
  AG_TRY(Check(context));
  AG_TRY(ReadSizes(context, kept));
  if (context.constants == nullptr) return MakeCall(/*is_check=*/true);
  AG_TRY(PackWeights());
  AG_TRY(PackScales());
  return MakeCall(/*is_check=*/false);
}

// Refuses forms that only the reference kernel has.
Status IntegerProduct::Check(const GroupContext& context) const {
  if (!HasExactByteProducts()) {
    return RefuseInteger(at_.op, "the processor has no exact products of bytes");
  }
  for (const Port& port : context.group.inputs) {
    if (port.layout != Layout::kPlain) return RefuseInteger(at_.op, "layout");
  }
  if (!Has(at_.a) || !Has(at_.b) || !IsByte(operand(at_.a).type().dtype) ||
      !IsByte(operand(at_.b).type().dtype) || operand(at_.a).is_constant()) {
    return RefuseInteger(at_.op, "operands");
  }
  for (const int place : {at_.a_zero, at_.a_scale, at_.y_scale, at_.y_zero}) {
    if (Has(place) && operand(place).type().NumElements() != 1) {
      return RefuseInteger(at_.op, "scales or zero points by row");
    }
  }
  for (const int place :
       {at_.b, at_.b_zero, at_.a_scale, at_.b_scale, at_.y_scale, at_.y_zero, at_.bias}) {
    if (Has(place) && !operand(place).is_constant()) {
      return RefuseInteger(at_.op, "weights or scales that are no constants");
    }
  }
  if (at_.y_scale >= 0 &&
      (!Has(at_.a_scale) || !Has(at_.b_scale) || !Has(at_.y_scale) || !Has(at_.y_zero))) {
    return RefuseInteger(at_.op, "scales are missing");
  }
  return OkStatus();
}

Status IntegerProduct::ReadSizes(const GroupContext& context, const KeptOperator& kept) {
  const TensorType& y = context.node(0).outputs[0];
  result_ = y.dtype;
  const bool quantized = at_.y_scale >= 0;
  if (quantized ? !IsByte(result_) : result_ != DType::kInt32) {
    return RefuseInteger(at_.op, "the result's type");
  }
  s_.is_convolution = at_.op.find("Conv") != std::string_view::npos;
  AG_TRY(s_.is_convolution ? ReadConvolution(kept, y.shape) : ReadMatrix(kept, y.shape));
  const int64_t columns = s_.groups * s_.columns;
  for (const int place : {at_.b_zero, at_.b_scale, at_.bias}) {
    if (!Has(place)) continue;
    const int64_t count = operand(place).type().NumElements();
    const bool one = count == 1 && place != at_.bias;
    if (operand(place).type().shape.size() > 1 || (!one && count != columns)) {
      return RefuseInteger(at_.op, "scales, zero points or bias do not fit");
    }
  }
  if (Has(at_.bias) && operand(at_.bias).type().dtype != DType::kInt32) {
    return RefuseInteger(at_.op, "the bias is not i32");
  }
  return OkStatus();
}

Status IntegerProduct::ReadMatrix(const KeptOperator& kept, const Shape& y) {
  const Shape& a = operand(at_.a).type().shape;
  Shape b = operand(at_.b).type().shape;
  if (at_.op == "QGemm") {
    NodeAttributes attributes(kept.node());
    if (attributes.Int("transA", 0) != 0) return RefuseInteger(at_.op, "a turned A");
    alpha_ = attributes.Float("alpha", 1);
    by_column_ = attributes.Int("transB", 0) != 0;
    if (by_column_) std::ranges::reverse(b);
  }
  if (b.size() != 2 || a.size() < 2 || a.back() != b[0] || y.size() != a.size() ||
      y.back() != b[1] || !std::equal(a.begin(), a.end() - 1, y.begin()) || NumElements(a) == 0 ||
      NumElements(b) == 0) {
    return RefuseInteger(at_.op, "not a matrix of weights");
  }
  s_.inner = b[0];
  s_.columns = b[1];
  s_.rows = NumElements(a) / s_.inner;
  return OkStatus();
}

Status IntegerProduct::ReadConvolution(const KeptOperator& kept, const Shape& y) {
  const Shape &x = operand(at_.a).type().shape, &w = operand(at_.b).type().shape;
  s_.groups = NodeAttributes(kept.node()).Int("group", 1);
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size() || y.size() != x.size() ||
      s_.groups < 1 || w[0] % s_.groups != 0 || x[1] != w[1] * s_.groups || y[0] != x[0] ||
      y[1] != w[0] || NumElements(x) == 0 || NumElements(w) == 0 || NumElements(y) == 0) {
    return RefuseInteger(at_.op, "sizes");
  }
  AG_LET(s_.window, KeptWindowOf(kept, x, y, Ints(w.begin() + 2, w.end())));
  s_.columns = w[0] / s_.groups;
  s_.channels = w[1];
  s_.inner = NumElements(w) / w[0];
  s_.images = x[0];
  s_.in.assign(x.begin() + 2, x.end());
  s_.out.assign(y.begin() + 2, y.end());
  WidenWindow(s_);
  for (size_t i = 0; i < 2; ++i) {
    s_.padded.push_back(s_.in[i] + s_.window.begin[i] + s_.window.end[i]);
  }
  s_.rows = s_.images * s_.out[0] * s_.out[1];
  return OkStatus();
}

// Subtracts the zero points where the rest fits into a byte; else what is left of them goes with
// the extra column.
Status IntegerProduct::PackWeights() {
  const Tensor& given = operand(at_.b).held();
  const int64_t columns = s_.groups * s_.columns;
  const bool turned = !s_.is_convolution;  // B is [inner, columns], weights [columns, inner].
  const bool by_column = s_.is_convolution || by_column_;
  const auto element = [&](int64_t column, int64_t k) {
    return static_cast<int32_t>(given.At(by_column ? column * s_.inner + k : k * columns + column));
  };
  std::vector<int32_t> zeros(static_cast<size_t>(columns), 0);
  if (Has(at_.b_zero)) {
    const Tensor& zero = operand(at_.b_zero).held();
    const bool one = zero.type().NumElements() == 1;
    for (int64_t c = 0; c < columns; ++c) zeros[c] = static_cast<int32_t>(zero.At(one ? 0 : c));
  }
  // What is subtracted from each value so that all fit.
  std::vector<int32_t> shift = zeros;
  const bool is_signed = given.type().dtype == DType::kInt8;
  for (int64_t c = 0; c < columns; ++c) {
    int32_t low = 255, high = -255;
    for (int64_t k = 0; k < s_.inner; ++k) {
      low = std::min(low, element(c, k));
      high = std::max(high, element(c, k));
    }
    if (low - zeros[c] >= -128 && high - zeros[c] <= 127) continue;
    shift[c] = is_signed ? 0 : 128;
    w_.extra = 1;
  }
  const int64_t width = s_.columns + w_.extra;
  w_.values.assign(static_cast<size_t>(Columns() * s_.inner), 1);
  for (auto* list : {&w_.sums, &w_.zeros, &w_.bias}) list->assign(Columns(), 0);
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t to = c / s_.columns * width + c % s_.columns;
    for (int64_t k = 0; k < s_.inner; ++k) {
      const int32_t value = element(c, k) - shift[c];
      w_.values[turned ? k * Columns() + to : to * s_.inner + k] = static_cast<int8_t>(value);
      w_.sums[to] += value;
    }
    w_.zeros[to] = zeros[c] - shift[c];
    if (Has(at_.bias)) w_.bias[to] = operand(at_.bias).held().As<int32_t>()[c];
  }
  return OkStatus();
}

Status IntegerProduct::PackScales() {
  if (at_.y_scale < 0) return OkStatus();
  y_zero_ = static_cast<float>(operand(at_.y_zero).held().At(0));
  const double a = operand(at_.a_scale).held().At(0), y = operand(at_.y_scale).held().At(0);
  const Tensor& b = operand(at_.b_scale).held();
  const bool one = b.type().NumElements() == 1;
  const int64_t width = s_.columns + w_.extra;
  w_.factor.assign(static_cast<size_t>(Columns()), 0);
  for (int64_t c = 0; c < s_.groups * s_.columns; ++c) {
    w_.factor[c / s_.columns * width + c % s_.columns] =
        static_cast<float>(alpha_ * a * b.At(one ? 0 : c) / y);
  }
  return OkStatus();
}

// Rows of a tile of the result: so many are made before they are turned.
constexpr int64_t kTurnedRows = 64;

Status IntegerProduct::MakeCall(bool is_check) {
  const auto a_type =
      operand(at_.a).type().dtype == DType::kInt8 ? IntegerType::s8 : IntegerType::u8;
  const OmpThreads threads(cores_);
  if (!s_.is_convolution) {
    const Desc a({s_.rows, s_.inner}, a_type, dnnl::memory::format_tag::ab);
    const Dims dims{s_.inner, Columns()};
    const Desc y({s_.rows, Columns()}, IntegerType::s32, dnnl::memory::format_tag::ab);
    const dnnl::matmul::primitive_desc made(
        dnnl::matmul::desc(a, Desc(dims, IntegerType::s8, dnnl::memory::format_tag::any), y),
        UserScratchpad(), Engine());
    if (is_check) return OkStatus();
    call_.Input(DNNL_ARG_SRC, a, a, 0);
    AG_TRY(call_.Hold(DNNL_ARG_WEIGHTS, made.weights_desc(),
                      Desc(dims, IntegerType::s8, dnnl::memory::format_tag::ab), w_.values.data()));
    call_.Output(DNNL_ARG_DST, y, y, 0);
    call_.Finish(dnnl::matmul(made), made.scratchpad_desc());
  } else {
    const int64_t width = s_.columns + w_.extra;
    const Ints &kernel = s_.window.kernel, &padded = s_.padded;
    const Desc a({s_.images, s_.groups * s_.channels, padded[0], padded[1]}, a_type,
                 dnnl::memory::format_tag::nhwc);
    Dims dims{s_.groups, width, s_.channels, kernel[0], kernel[1]};
    if (s_.groups == 1) dims.erase(dims.begin());
    const Desc y({s_.images, Columns(), s_.out[0], s_.out[1]}, IntegerType::s32,
                 dnnl::memory::format_tag::nhwc);
    Dims dilations = s_.window.dilations;
    for (int64_t& dilation : dilations) --dilation;
    const dnnl::convolution_forward::primitive_desc made(
        {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, a,
         Desc(dims, IntegerType::s8, dnnl::memory::format_tag::any), y, Dims(s_.window.strides),
         dilations, Dims{0, 0}, Dims{0, 0}},
        UserScratchpad(), Engine());
    const auto plain =
        s_.groups == 1 ? dnnl::memory::format_tag::oihw : dnnl::memory::format_tag::goihw;
    if (is_check) return OkStatus();
    call_.Input(DNNL_ARG_SRC, a, a, 0);
    AG_TRY(call_.Hold(DNNL_ARG_WEIGHTS, made.weights_desc(), Desc(dims, IntegerType::s8, plain),
                      w_.values.data()));
    call_.Output(DNNL_ARG_DST, y, y, 0);
    call_.Finish(dnnl::convolution_forward(made), made.scratchpad_desc());
    picture_bytes_ = AlignUp(a.get_size());
  }
  sums_bytes_ = AlignUp(static_cast<size_t>(s_.rows * Columns()) * sizeof(int32_t));
  offset_bytes_ = AlignUp(static_cast<size_t>(Columns()) * sizeof(int32_t));
  // Of each worker: a row that is shifted, and a tile of the result.
  const size_t tile = static_cast<size_t>(kTurnedRows * Columns()) * sizeof(int32_t);
  tile_bytes_ = offset_bytes_ + AlignUp(tile);
  scratch_bytes_ = picture_bytes_ + sums_bytes_ + offset_bytes_ +
                   static_cast<size_t>(cores_) * tile_bytes_ + AlignUp(call_.scratch_bytes());
  return OkStatus();
}

int32_t IntegerProduct::ZeroOf(Inputs inputs) const {
  if (!Has(at_.a_zero)) return 0;
  const void* value = operand(at_.a_zero).At(inputs);
  if (operand(at_.a_zero).type().dtype == DType::kInt8) return *static_cast<const int8_t*>(value);
  return *static_cast<const uint8_t*>(value);
}

Status IntegerProduct::Run(const RunContext& context, Inputs inputs, Outputs outputs) {
  const int32_t zero = ZeroOf(inputs);
  std::byte* scratch = context.scratch;
  auto* picture = reinterpret_cast<uint8_t*>(scratch);
  auto* sums = reinterpret_cast<int32_t*>(scratch += picture_bytes_);
  auto* offset = reinterpret_cast<int32_t*>(scratch += sums_bytes_);
  std::byte* tiles = scratch += offset_bytes_;
  scratch += static_cast<size_t>(cores_) * tile_bytes_;
  const void* a = operand(at_.a).At(inputs);
  if (s_.is_convolution) {
    TurnPicture(static_cast<const uint8_t*>(a), static_cast<uint8_t>(zero), picture);
    a = picture;
  }
  const void* in[] = {a};
  void* out[] = {sums};
  AG_TRY(call_.Run({context.stream, scratch}, in, out));
  for (int64_t c = 0; c < Columns(); ++c) {
    // Sums wrap around, as those of the definition do.
    const auto rest = static_cast<uint32_t>(w_.zeros[c]) * static_cast<uint32_t>(s_.inner);
    offset[c] = static_cast<int32_t>(static_cast<uint32_t>(w_.bias[c]) +
                                     static_cast<uint32_t>(zero) *
                                         (rest - static_cast<uint32_t>(w_.sums[c])));
  }
  const int64_t grain = s_.is_convolution ? kTurnedRows : 1 + kLightGrain / Columns();
  for (int64_t image = 0; image < s_.images; ++image) {
    const int64_t first = image * Places();
    ParallelFor(cores_, Places(), grain, [&](int64_t begin, int64_t end, int worker) {
      auto* shifted = reinterpret_cast<int32_t*>(tiles + worker * tile_bytes_);
      GiveRows(sums, offset, shifted, first + begin, first + end, outputs[0]);
    });
  }
  return OkStatus();
}

// Copies images [C, H, W] to [H, W, C] with padding around.
void IntegerProduct::TurnPicture(const uint8_t* x, uint8_t zero, uint8_t* to) const {
  const int64_t channels = s_.groups * s_.channels, row = s_.padded[1] * channels;
  const int64_t grain = 1 + kLightGrain / row;
  ParallelFor(cores_, s_.images * s_.padded[0], grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s_.padded[0], y = i % s_.padded[0] - s_.window.begin[0];
      uint8_t* line = to + i * row;
      const bool inside = y >= 0 && y < s_.in[0];
      const int64_t left = inside ? s_.window.begin[1] : s_.padded[1];
      std::fill_n(line, left * channels, zero);
      if (!inside) continue;
      const int64_t plane = s_.in[0] * s_.in[1];
      TurnMatrix(x + image * channels * plane + y * s_.in[1], plane, channels, s_.in[1],
                 line + left * channels, channels);
      std::fill_n(line + (left + s_.in[1]) * channels, s_.window.end[1] * channels, zero);
    }
  });
}

// Writes the results of one row, without extra columns.
void IntegerProduct::GiveRow(const int32_t* sums, const int32_t* offset, int32_t* shifted,
                             void* to) const {
  // Without extra columns all groups lie beside each other.
  const int64_t groups = w_.extra > 0 ? s_.groups : 1;
  const int64_t columns = w_.extra > 0 ? s_.columns : Columns();
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t at = g * (columns + w_.extra), out = g * columns;
    const int32_t* by = w_.extra > 0 ? &w_.zeros[at] : nullptr;
    const int32_t sum = w_.extra > 0 ? sums[at + columns] : 0;
    if (result_ == DType::kInt32) {
      ShiftSums(sums + at, offset + at, by, sum, static_cast<int32_t*>(to) + out, columns);
      continue;
    }
    ShiftSums(sums + at, offset + at, by, sum, shifted, columns);
    const bool is_signed = result_ == DType::kInt8;
    const Requantize how{&w_.factor[at], y_zero_, is_signed ? -128.0F : 0.0F,
                         is_signed ? 127.0F : 255.0F};
    if (is_signed) {
      RequantizeSums(shifted, how, static_cast<int8_t*>(to) + out, columns);
    } else {
      RequantizeSums(shifted, how, static_cast<uint8_t*>(to) + out, columns);
    }
  }
}

void IntegerProduct::GiveRows(const int32_t* sums, const int32_t* offset, int32_t* shifted,
                              int64_t begin, int64_t end, void* y) const {
  const int64_t columns = s_.groups * s_.columns, bytes = SizeOf(result_);
  auto* to = static_cast<std::byte*>(y);
  if (!s_.is_convolution) {
    for (int64_t row = begin; row < end; ++row) {
      GiveRow(sums + row * Columns(), offset, shifted, to + row * columns * bytes);
    }
    return;
  }
  std::byte* tile = reinterpret_cast<std::byte*>(shifted) + offset_bytes_;
  for (int64_t row = begin; row < end; row += kTurnedRows) {
    const int64_t count = std::min(kTurnedRows, end - row);
    for (int64_t i = 0; i < count; ++i) {
      GiveRow(sums + (row + i) * Columns(), offset, shifted, tile + i * columns * bytes);
    }
    // From [pixels, channels] to [channels, pixels].
    std::byte* first = to + (row / Places() * columns * Places() + row % Places()) * bytes;
    if (bytes == 1) {
      TurnMatrix(reinterpret_cast<const uint8_t*>(tile), columns, count, columns,
                 reinterpret_cast<uint8_t*>(first), Places());
    } else {
      TurnMatrix(reinterpret_cast<const int32_t*>(tile), columns, count, columns,
                 reinterpret_cast<int32_t*>(first), Places());
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeIntegerProduct(const GroupContext& context,
                                                     const KeptOperator& kept) {
  return Prepared<IntegerProduct>(kept.node().op_type, context, kept);
}

}  // namespace ag::cpu
