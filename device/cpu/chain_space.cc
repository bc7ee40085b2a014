#include "device/cpu/chain_space.h"

#include <optional>

namespace ag::cpu {

Space SpaceOf(const TensorType& type, Layout layout) {
  Space space;
  const int64_t block = BlockOf(layout);
  if (layout == Layout::kChannelsLast) {
    const Shape& s = type.shape;
    space.dims = {s[0], s[2], s[3], s[1]};
  } else if (block == 1) {
    space.dims.assign(type.shape.begin(), type.shape.end());
  } else {
    const Shape& s = type.shape;
    space.dims = {s[0], (s[1] + block - 1) / block, s[2], s[3], block};
    space.lanes = block;
    space.lanes_used = s[1] % block == 0 ? block : s[1] % block;
    space.plane = s[2] * s[3] * block;
    space.image = space.dims[1] * space.plane;
  }
  if (space.dims.empty()) space.dims = {1};
  space.elements = NumElements(space.dims);
  return space;
}

std::vector<int64_t> PlainStrides(const Shape& shape, size_t rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[rank - shape.size() + i] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
  return strides;
}

StatusOr<std::vector<int64_t>> ChannelsLastStrides(const Shape& shape, Layout layout) {
  if (BlockOf(layout) != 1) {
    return Err(StatusCode::kUnimplemented, "chain: {} operand of a channels_last result",
               LayoutName(layout));
  }
  Shape s(4 - shape.size(), 1);
  s.insert(s.end(), shape.begin(), shape.end());
  std::vector<int64_t> strides = DenseStrides(s, layout);
  for (size_t d = 0; d < 4; ++d) {
    if (s[d] == 1) strides[d] = 0;
  }
  return std::vector<int64_t>{strides[0], strides[2], strides[3], strides[1]};
}

StatusOr<std::vector<int64_t>> BlockedStrides(const Shape& shape, Layout layout, int64_t block) {
  Shape s(4 - shape.size(), 1);
  s.insert(s.end(), shape.begin(), shape.end());
  const bool blocked = BlockOf(layout) == block;
  const bool fits = blocked || (BlockOf(layout) == 1 && (s[1] % block == 0 || s[1] == 1));
  if (!fits) {
    return Err(StatusCode::kUnimplemented,
               "chain: operand {} is {} where the result has blocks of {}", ShapeToString(shape),
               LayoutName(layout), block);
  }
  const int64_t pixel = blocked ? block : 1;  // From one pixel to the next.
  const int64_t w = pixel, h = w * s[3], plane = h * s[2];
  const int64_t channel = blocked ? 1 : plane;
  const int64_t channels = blocked ? (s[1] + block - 1) / block : s[1];
  const int64_t n = plane * channels;
  const auto unless_one = [](int64_t size, int64_t stride) { return size == 1 ? 0 : stride; };
  return std::vector<int64_t>{unless_one(s[0], n),
                              unless_one(s[1], blocked ? plane : plane * block),
                              unless_one(s[2], h), unless_one(s[3], w), unless_one(s[1], channel)};
}

void Collapse(Space* space, std::vector<PassInput>* inputs) {
  const std::vector<int64_t> dims = space->dims;
  std::vector<int64_t> kept;
  std::vector<std::vector<int64_t>> strides(inputs->size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool joins = !kept.empty();
    for (size_t i = 0; i < inputs->size() && joins; ++i) {
      joins = strides[i].back() == (*inputs)[i].strides[d] * dims[d];
    }
    if (joins) {
      kept.back() *= dims[d];
    } else {
      kept.push_back(dims[d]);
    }
    for (size_t i = 0; i < inputs->size(); ++i) {
      if (joins) strides[i].pop_back();
      strides[i].push_back((*inputs)[i].strides[d]);
    }
  }
  if (kept.empty()) {
    kept = {1};
    for (auto& s : strides) s = {0};
  }
  space->dims = kept;
  for (size_t i = 0; i < inputs->size(); ++i) (*inputs)[i].strides = strides[i];
}

namespace {

// Setting up a shorter repetition costs more than walking.
constexpr int64_t kSpanMin = 256;

// Returns the innermost run that repeats; nothing when none does, or too seldom.
std::optional<PassInput::Repeat> RepeatOf(const Space& space, const PassInput& input) {
  PassInput::Repeat repeat{.outer = space.dims.size()};
  const auto stride = [&] { return input.strides[repeat.outer - 1]; };
  if (stride() == 1) repeat.period = space.dims[--repeat.outer];
  repeat.span = repeat.period;
  while (repeat.outer > 0 && stride() == 0) repeat.span *= space.dims[--repeat.outer];
  const bool often = repeat.span > repeat.period && repeat.span >= kSpanMin;
  return often ? std::optional(repeat) : std::nullopt;
}

}  // namespace

void SetForm(const Space& space, bool lies_so, PassInput* input) {
  using Form = PassInput::Form;
  int64_t stride = 1;
  bool dense = true, scalar = true;
  for (size_t d = space.dims.size(); d-- > 0;) {
    scalar &= input->strides[d] == 0;
    dense &= input->strides[d] == stride || space.dims[d] == 1;
    stride *= space.dims[d];
  }
  const std::optional<PassInput::Repeat> repeat = RepeatOf(space, *input);
  input->form = scalar              ? Form::kScalar
                : dense             ? Form::kDense
                : repeat && lies_so ? Form::kRepeat
                                    : Form::kWalk;
  if (repeat) input->repeat = *repeat;
}

Tensor PaddedConstant(const Tensor& value, const Shape& shape, int64_t block) {
  Shape s(4 - shape.size(), 1);
  s.insert(s.end(), shape.begin(), shape.end());
  const int64_t blocks = (s[1] + block - 1) / block, plane = s[2] * s[3];
  Tensor padded = Tensor::Zeros({value.type().dtype, {s[0], blocks, s[2], s[3], block}});
  int64_t from = 0;
  for (int64_t n = 0; n < s[0]; ++n) {
    for (int64_t c = 0; c < s[1]; ++c) {
      for (int64_t p = 0; p < plane; ++p) {
        const int64_t to = ((n * blocks + c / block) * plane + p) * block + c % block;
        padded.Put(to, value.At(from++));
      }
    }
  }
  return padded;
}

}  // namespace ag::cpu
