// Convolutions and pools over any number of spatial axes, transposed convolutions, and what undoes
// pools and windows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/spatial_window.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

Status GiveDoubles(OperatorCall& call, size_t i, const Shape& shape,
                   const std::vector<double>& values) {
  AG_TRY(call.MakeBytes(i, {call.TypeOf(0), shape}));
  call.Give(i, Tensor::FromDoubles({call.TypeOf(0), shape}, values));
  return OkStatus();
}

StatusOr<std::vector<double>> BiasOf(const OperatorCall& call, int64_t channels) {
  if (!call.Has(2)) return std::vector<double>(static_cast<size_t>(channels));
  if (call.ShapeOf(2) == Shape{channels}) return call.In(2).ToDoubles();
  return Err(StatusCode::kInvalidArgument, "input 2: expected {} values, got {}", channels,
             call.Type(2).ToString());
}

Status RunConv(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  std::vector<double> bias;
  if (call.Has(2)) bias = call.In(2).ToDoubles();
  const std::vector<double> x = call.In(0).ToDoubles(), w = call.In(1).ToDoubles();
  AG_LET(const Convolved out, Convolve(call, {x, call.ShapeOf(0)}, {w, call.ShapeOf(1)}, bias));
  return GiveDoubles(call, 0, out.shape, out.values);
}

// Sets the sizes and the padding of a transposed convolution, in which each place of the input
// gives one window of the result.
Status PlaceTransposed(OperatorCall& call, SpatialWindow& window) {
  const size_t axes = window.axes();
  const std::string auto_pad = call.String("auto_pad", "NOTSET");
  const Ints more = call.IntList("output_padding").value_or(Ints(axes, 0));
  AG_TRY(CheckList("output_padding", more, axes, 0));
  std::optional<Ints> asked = call.IntList("output_shape");
  if (asked.has_value() && asked->size() == axes + 2)
    asked->erase(asked->begin(), asked->begin() + 2);
  if (asked.has_value()) AG_TRY(CheckList("output_shape", *asked, axes, 0));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < axes; ++i) {
    const int64_t whole = window.strides[i] * (window.in[i] - 1) + more[i] + window.Span(i);
    if (asked.has_value() || same) {
      window.out[i] = asked.has_value() ? (*asked)[i] : window.in[i] * window.strides[i];
      const int64_t total = std::max<int64_t>(whole - window.out[i], 0);
      SplitPadding(total, auto_pad == "SAME_UPPER", &window.begin[i], &window.end[i]);
      continue;
    }
    if (auto_pad == "VALID") window.begin[i] = window.end[i] = 0;
    window.out[i] = whole - window.begin[i] - window.end[i];
    if (window.out[i] < 0) {
      return Err(StatusCode::kInvalidArgument, "pads {} and {} leave nothing of axis {}",
                 window.begin[i], window.end[i], i + 2);
    }
  }
  return OkStatus();
}

Status RunConvTranspose(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const Shape &x = call.ShapeOf(0), &w = call.ShapeOf(1);
  const int64_t groups = call.Int("group", 1);
  if (w.size() != x.size() || x.size() < 3 || w[0] != x[1] || groups < 1 || x[1] % groups != 0) {
    return Err(StatusCode::kInvalidArgument, "{} groups: {} does not fit {}", groups,
               call.Type(1).ToString(), call.Type(0).ToString());
  }
  AG_LET(SpatialWindow window, ReadWindow(call, Ints(w.begin() + 2, w.end())));
  AG_TRY(PlaceTransposed(call, window));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.in, window.out));
  const int64_t channels = w[1] * groups, in_of_group = x[1] / groups;
  AG_LET(const std::vector<double> bias, BiasOf(call, channels));
  const std::vector<double> in = call.In(0).ToDoubles(), weight = call.In(1).ToDoubles();
  const int64_t k = NumElements(window.kernel), places = NumElements(window.in);
  const int64_t outside = NumElements(window.out);
  const Shape shape = WithSpatial(x[0], channels, window.out);
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));
  std::vector<double> out(static_cast<size_t>(NumElements(shape)));
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t o = 0; o < channels; ++o) {
      double* to = out.data() + (n * channels + o) * outside;
      std::fill_n(to, outside, bias[static_cast<size_t>(o)]);
      const int64_t group = o / w[1];
      for (int64_t c = group * in_of_group; c < (group + 1) * in_of_group; ++c) {
        const double* from = in.data() + (n * x[1] + c) * places;
        const double* by = weight.data() + (c * w[1] + o % w[1]) * k;
        for (int64_t p = 0; p < places; ++p) {
          const int64_t* link = links.data() + p * k;
          for (int64_t e = 0; e < k; ++e) {
            if (link[e] >= 0) to[link[e]] += from[p] * by[e];
          }
        }
      }
    }
  }
  return GiveDoubles(call, 0, shape, out);
}

// Calls reduce(values of the window that are inside, place, plane) for each plane of the input.
using PoolStep = std::function<double(const double* plane, const int64_t* link, int64_t place)>;
Status RunPool(OperatorCall& call, const SpatialWindow& window, const std::vector<int64_t>& links,
               const PoolStep& step) {
  const Shape& x = call.ShapeOf(0);
  const std::vector<double> in = call.In(0).ToDoubles();
  const int64_t k = NumElements(window.kernel), inside = NumElements(window.in);
  const int64_t places = NumElements(window.out), planes = x[0] * x[1];
  const Shape shape = WithSpatial(x[0], x[1], window.out);
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));
  std::vector<double> out(static_cast<size_t>(planes * places));
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t p = 0; p < places; ++p) {
      out[static_cast<size_t>(plane * places + p)] =
          step(in.data() + plane * inside, links.data() + p * k, plane * places + p);
    }
  }
  return GiveDoubles(call, 0, shape, out);
}

// Returns the offset in a plane whose axes are stored with the first one fastest.
int64_t ColumnMajor(int64_t offset, const Ints& sizes) {
  int64_t result = 0, stride = 1;
  Ints at(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; offset /= sizes[i]) at[i] = offset % sizes[i];
  for (size_t i = 0; i < sizes.size(); stride *= sizes[i++]) result += at[i] * stride;
  return result;
}

Status RunMaxPool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(SpatialWindow window, ReadWindow(call, {}));
  AG_TRY(PlaceWindow(call, window));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.out, window.in));
  const int64_t k = NumElements(window.kernel), inside = NumElements(window.in);
  const int64_t places = NumElements(window.out);
  const bool by_column = call.Int("storage_order", 0) != 0;
  std::vector<int64_t> best;
  AG_TRY(RunPool(call, window, links, [&](const double* plane, const int64_t* link, int64_t place) {
    int64_t found = -1;
    for (int64_t e = 0; e < k; ++e) {
      if (link[e] >= 0 && (found < 0 || plane[link[e]] > plane[found])) found = link[e];
    }
    if (found < 0) {
      best.push_back(0);
      return -std::numeric_limits<double>::infinity();
    }
    const int64_t offset = by_column ? ColumnMajor(found, window.in) : found;
    best.push_back(place / std::max<int64_t>(places, 1) * inside + offset);
    return plane[found];
  }));
  if (!call.Wants(1)) return OkStatus();
  const Shape& x = call.ShapeOf(0);
  AG_LET(int64_t * indices, call.Make<int64_t>(1, WithSpatial(x[0], x[1], window.out)));
  std::ranges::copy(best, indices);
  return OkStatus();
}

Status RunAveragePool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_LET(SpatialWindow window, ReadWindow(call, {}));
  AG_TRY(PlaceWindow(call, window));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.out, window.in));
  const int64_t k = NumElements(window.kernel);
  const int64_t places = NumElements(window.out);
  std::vector<int64_t> counted(static_cast<size_t>(places), 0);  // Elements that the mean is over.
  const bool with_padding = call.Int("count_include_pad", 0) != 0;
  ForPositions(window.out, [&](const Ints& place, int64_t p) {
    ForPositions(window.kernel, [&](const Ints& element, int64_t e) {
      bool counts = links[static_cast<size_t>(p * k + e)] >= 0;
      if (with_padding) {  // What ceil_mode adds beyond the padding does not count.
        counts = true;
        for (size_t i = 0; i < window.axes(); ++i) {
          const int64_t at =
              place[i] * window.strides[i] - window.begin[i] + element[i] * window.dilations[i];
          counts = counts && at < window.in[i] + window.end[i];
        }
      }
      counted[static_cast<size_t>(p)] += counts ? 1 : 0;
    });
  });
  return RunPool(call, window, links, [&](const double* plane, const int64_t* link, int64_t place) {
    double sum = 0;
    for (int64_t e = 0; e < k; ++e) sum += link[e] >= 0 ? plane[link[e]] : 0;
    return sum / static_cast<double>(counted[static_cast<size_t>(place % places)]);
  });
}

double RootOf(double sum, double p) { return std::pow(sum, 1 / p); }

Status RunLpPool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_LET(SpatialWindow window, ReadWindow(call, {}));
  AG_TRY(PlaceWindow(call, window));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.out, window.in));
  const int64_t k = NumElements(window.kernel);
  const auto p = static_cast<double>(call.Int("p", 2));
  return RunPool(call, window, links, [&](const double* plane, const int64_t* link, int64_t) {
    double sum = 0;
    for (int64_t e = 0; e < k; ++e)
      sum += link[e] >= 0 ? std::pow(std::fabs(plane[link[e]]), p) : 0;
    return RootOf(sum, p);
  });
}

enum class Whole : uint8_t { kMax, kMean, kNorm };

// Pools each plane to one element.
template <Whole kind>
Status RunGlobalPool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  if (call.Rank(0) < 2) return Err(StatusCode::kInvalidArgument, "expected rank 2 or more");
  Shape shape = call.ShapeOf(0);
  const double p = kind == Whole::kNorm ? static_cast<double>(call.Int("p", 2)) : 1;
  const int64_t planes = shape[0] * shape[1];
  const int64_t inside = NumElements(std::span(shape).subspan(2));
  std::fill(shape.begin() + 2, shape.end(), 1);
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));  // Checks the size.
  const std::vector<double> in = call.In(0).ToDoubles();
  std::vector<double> out(static_cast<size_t>(planes));
  for (int64_t plane = 0; plane < planes; ++plane) {
    const double* from = in.data() + plane * inside;
    double result = kind == Whole::kMax ? -std::numeric_limits<double>::infinity() : 0;
    for (int64_t i = 0; i < inside; ++i) {
      if (kind == Whole::kMax) result = std::max(result, from[i]);
      if (kind == Whole::kMean) result += from[i];
      if (kind == Whole::kNorm) result += std::pow(std::fabs(from[i]), p);
    }
    if (kind == Whole::kMean) result /= static_cast<double>(inside);
    if (kind == Whole::kNorm) result = RootOf(result, p);
    out[static_cast<size_t>(plane)] = result;
  }
  return GiveDoubles(call, 0, shape, out);
}

// Returns the sizes of an image that MaxUnpool fills: operand 2, else those that the window gives.
StatusOr<Shape> UnpooledShape(OperatorCall& call) {
  AG_LET(SpatialWindow window, ReadWindow(call, {}));
  const Shape& x = call.ShapeOf(0);
  if (call.Has(2)) {
    AG_LET(const Ints stated, call.IntsAt(2));
    if (stated.size() == x.size()) return Shape(stated.begin(), stated.end());
    return Err(StatusCode::kInvalidArgument, "input 2: expected {} sizes, got {}", x.size(),
               stated.size());
  }
  for (size_t i = 0; i < window.axes(); ++i) {
    window.out[i] =
        (window.in[i] - 1) * window.strides[i] + window.kernel[i] - window.begin[i] - window.end[i];
  }
  return WithSpatial(x[0], x[1], window.out);
}

// Puts each element of operand 0 where operand 1 says, counted in the result; zeros elsewhere.
Status RunMaxUnpool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  AG_TRY(call.CheckType(1, DType::kInt64));
  if (call.ShapeOf(1) != call.ShapeOf(0)) {
    return Err(StatusCode::kInvalidArgument, "indices {} do not fit {}", call.Type(1).ToString(),
               call.Type(0).ToString());
  }
  AG_LET(Shape shape, UnpooledShape(call));
  const TensorType type{call.TypeOf(0), std::move(shape)};
  AG_LET(char* to, call.MakeBytes(0, type));
  const int64_t width = SizeOf(type.dtype), count = type.NumElements();
  const char* from = call.In(0).bytes().data();
  for (int64_t i = 0; i < call.Type(0).NumElements(); ++i) {
    const int64_t at = call.Values<int64_t>(1)[i];
    if (at < 0 || at >= count) {
      return Err(StatusCode::kOutOfRange, "index {} is outside [0, {})", at, count);
    }
    std::copy_n(from + i * width, width, to + at * width);
  }
  return OkStatus();
}

// The window of Col2Im over the image; its places are the blocks.
StatusOr<SpatialWindow> BlocksOf(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  AG_TRY(call.CheckRank(0, 3));
  AG_LET(const Ints image, call.IntsAt(1));
  AG_LET(const Ints block, call.IntsAt(2));
  if (image.empty()) return Err(StatusCode::kInvalidArgument, "input 1: expected sizes, got none");
  AG_LET(SpatialWindow window, ReadSteps(call, image, block));
  AG_TRY(PlaceWindow(call, window));
  const Shape& x = call.ShapeOf(0);
  const int64_t elements = NumElements(block), places = NumElements(window.out);
  if (x[1] % elements == 0 && x[2] == places) return window;
  return Err(StatusCode::kInvalidArgument, "{} blocks of {} elements do not fit {}", places,
             elements, call.Type(0).ToString());
}

// Adds up the blocks where they overlap.
Status RunCol2Im(OperatorCall& call) {
  AG_LET(const SpatialWindow window, BlocksOf(call));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.out, window.in));
  const Shape& x = call.ShapeOf(0);
  const int64_t k = NumElements(window.kernel), places = x[2], planes = x[0] * (x[1] / k);
  const int64_t inside = NumElements(window.in);
  const TensorType type{call.TypeOf(0), WithSpatial(x[0], x[1] / k, window.in)};
  AG_TRY(call.MakeBytes(0, type));
  return ForWide(type.dtype, [&]<class W>() -> Status {
    const std::vector<W> in = Widened<W>(call.In(0));
    std::vector<W> out(static_cast<size_t>(type.NumElements()));
    for (int64_t plane = 0; plane < planes && places > 0; ++plane) {
      for (int64_t i = 0; i < k * places; ++i) {  // Element i / places of block i % places.
        const int64_t link = links[static_cast<size_t>(i % places * k + i / places)];
        if (link < 0) continue;
        W& to = out[static_cast<size_t>(plane * inside + link)];
        to = Plus(to, in[static_cast<size_t>(plane * k * places + i)]);
      }
    }
    return GiveNarrowed(call, 0, type, out);
  });
}

}  // namespace

std::span<const OperatorRow> WindowOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Conv", RunConv},
      {"ConvTranspose", RunConvTranspose},
      {"MaxPool", RunMaxPool},
      {"AveragePool", RunAveragePool},
      {"LpPool", RunLpPool},
      {"GlobalMaxPool", RunGlobalPool<Whole::kMax>},
      {"GlobalAveragePool", RunGlobalPool<Whole::kMean>},
      {"GlobalLpPool", RunGlobalPool<Whole::kNorm>},
      {"MaxUnpool", RunMaxUnpool, FromOperands({2})},
      {"Col2Im", RunCol2Im, FromOperands({1, 2})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
