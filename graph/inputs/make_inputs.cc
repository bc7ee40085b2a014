#include "graph/inputs/make_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "graph/weights.h"

namespace ag {
namespace {

constexpr uint64_t kSeedStride = 1'000'003;  // Separates the data of different inputs.
constexpr double kConstant = 0.5, kLarge = 100, kTiny = 1e-5;
constexpr double kLargeHalf = 10, kTinyHalf = 1e-3;  // Of f16, which has 6.1e-5 to 65504.
constexpr int kShortPart = 4;

constexpr std::array<std::string_view, kInputKinds> kNames = {
    "usual", "full", "short", "zeros", "constant", "negative", "large", "tiny"};

bool IsOfFloats(const InputSpec& spec) {
  return IsFloat(spec.type.dtype) && spec.role != InputRole::kMask &&
         spec.role != InputRole::kPadding;
}

// The bounds cut to what the type holds.
int64_t HighOf(const InputSpec& spec) {
  switch (spec.type.dtype) {
    case DType::kInt8:
      return std::min<int64_t>(spec.high, 127);
    case DType::kUInt8:
      return std::min<int64_t>(spec.high, 255);
    case DType::kInt16:
      return std::min<int64_t>(spec.high, 32767);
    default:
      return spec.high;
  }
}

// Makes one input's data.
class Maker {
 public:
  Maker(const InputSpec& spec, InputKind kind, uint64_t seed)
      : spec_(spec), kind_(kind), seed_(seed), random_(seed) {}

  Tensor Make() {
    switch (spec_.role) {
      case InputRole::kStrings:
        return RandomTensor(spec_.type, seed_);
      case InputRole::kMask:
      case InputRole::kPadding:
        return Mask();
      case InputRole::kPositions:
        return ByColumn(
            [&](int64_t column) { return std::min(spec_.low + column, HighOf(spec_)); });
      case InputRole::kTokenTypes:
        return TokenTypes();
      case InputRole::kLengths:
        return Each([&] { return static_cast<double>(Length(HighOf(spec_))); });
      case InputRole::kFlags:
        return Flags();
      case InputRole::kIntegers:
      case InputRole::kTokens:
        return Integers();
      case InputRole::kNumbers:
      case InputRole::kPicture:
      case InputRole::kSound:
        break;
    }
    return Floats();
  }

 private:
  Tensor Each(auto draw) const {
    std::vector<double> values(static_cast<size_t>(spec_.type.NumElements()));
    for (double& value : values) value = static_cast<double>(draw());
    return Tensor::FromDoubles(spec_.type, values);
  }

  int64_t Columns() const { return spec_.type.shape.empty() ? 1 : spec_.type.shape.back(); }

  Tensor ByColumn(auto value_of) const {
    int64_t i = 0;
    return Each([&] { return value_of(i++ % Columns()); });
  }

  // Returns a length from 1 to `longest`.
  int64_t Length(int64_t longest) {
    longest = std::max<int64_t>(longest, 1);
    if (kind_ == InputKind::kUsual) return random_.Between(longest / 2 + longest % 2, longest);
    if (kind_ == InputKind::kShort) {
      return random_.Between(1, std::max<int64_t>(longest / kShortPart, 1));
    }
    return longest;
  }

  Tensor Mask() {
    const int64_t columns = Columns();
    const bool is_padding = spec_.role == InputRole::kPadding;
    int64_t i = 0, ones = 0;
    return Each([&] {
      const int64_t column = i++ % columns;
      if (column == 0) ones = Length(std::min(columns, spec_.ones_max));
      return (column < ones) != is_padding ? 1 : 0;
    });
  }

  // The first text, then the second one.
  Tensor TokenTypes() {
    const int64_t columns = Columns();
    const int64_t second = std::min<int64_t>(spec_.low + 1, HighOf(spec_));
    int64_t i = 0, first = 0;
    return Each([&] {
      const int64_t column = i++ % columns;
      if (column == 0) first = kind_ == InputKind::kZeros ? columns : Length(columns);
      if (kind_ == InputKind::kConstant) return second;
      return column < first ? spec_.low : second;
    });
  }

  Tensor Flags() {
    if (kind_ == InputKind::kZeros) return Tensor::Zeros(spec_.type);
    if (kind_ == InputKind::kConstant) return Each([] { return 1; });
    return RandomTensor(spec_.type, seed_);
  }

  Tensor Integers() {
    const int64_t high = HighOf(spec_);
    if (kind_ == InputKind::kZeros) {
      return Each([&] { return std::clamp<int64_t>(0, spec_.low, high); });
    }
    if (kind_ == InputKind::kConstant) return Each([&] { return high; });
    return Each([&] { return random_.Between(spec_.low, high); });
  }

  Tensor Floats() {
    const bool is_half = spec_.type.dtype == DType::kFloat16;
    const auto normal = [&](double factor) {
      return Each([&] { return factor * random_.Normal(); });
    };
    switch (kind_) {
      case InputKind::kFull:
        if (spec_.role == InputRole::kPicture) return Each([&] { return random_.Unit(); });
        break;
      case InputKind::kZeros:
        return Tensor::Zeros(spec_.type);
      case InputKind::kConstant:
        return Each([] { return kConstant; });
      case InputKind::kNegative:
        return Each([&] { return -std::abs(random_.Normal()); });
      case InputKind::kLarge:
        return normal(is_half ? kLargeHalf : kLarge);
      case InputKind::kTiny:
        return normal(is_half ? kTinyHalf : kTiny);
      default:
        break;
    }
    return RandomTensor(spec_.type, seed_);
  }

  const InputSpec& spec_;
  const InputKind kind_;
  const uint64_t seed_;
  Random random_;
};

}  // namespace

std::string_view InputKindName(InputKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<InputKind> ParseInputKind(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<InputKind>(found - kNames.begin());
}

bool IsEdgeKind(InputKind kind) { return kind >= InputKind::kZeros; }

std::vector<InputKind> KindsFor(const std::vector<InputSpec>& inputs) {
  std::vector<InputKind> kinds = {InputKind::kUsual, InputKind::kFull, InputKind::kShort};
  const auto has = [&](auto predicate) { return std::ranges::any_of(inputs, predicate); };
  const bool has_floats = has(IsOfFloats);
  const bool has_choice = has([](const InputSpec& spec) {
    return spec.role == InputRole::kTokens || spec.role == InputRole::kIntegers ||
           spec.role == InputRole::kFlags;
  });
  if (has_floats || has_choice) {
    kinds.insert(kinds.end(), {InputKind::kZeros, InputKind::kConstant});
  }
  if (has_floats) {
    kinds.insert(kinds.end(), {InputKind::kNegative, InputKind::kLarge, InputKind::kTiny});
  }
  return kinds;
}

std::vector<Tensor> MakeInputs(const std::vector<InputSpec>& inputs, InputKind kind,
                               uint64_t seed) {
  std::vector<Tensor> tensors;
  for (const InputSpec& spec : inputs) {
    tensors.push_back(Maker(spec, kind, seed * kSeedStride + tensors.size()).Make());
  }
  return tensors;
}

std::vector<Tensor> UsualInputs(const Graph& graph, uint64_t seed) {
  return MakeInputs(DescribeInputs(graph), InputKind::kUsual, seed);
}

std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed) {
  std::vector<Tensor> nudged;
  Random random(seed);
  for (const Tensor& tensor : inputs) {
    if (!IsFloat(tensor.type().dtype)) {
      nudged.push_back(tensor);
      continue;
    }
    const DType dtype = tensor.type().dtype;
    const double step = dtype == DType::kBFloat16  ? 0x1p-7
                        : dtype == DType::kFloat16 ? 0x1p-10
                                                   : 0x1p-22;
    std::vector<double> values = tensor.ToDoubles();
    for (double& value : values) {
      const double by = random.Below(2) == 0 ? step : -step;
      value = value == 0 ? by : value * (1 + by);
    }
    nudged.push_back(Tensor::FromDoubles(tensor.type(), values));
  }
  return nudged;
}

}  // namespace ag
