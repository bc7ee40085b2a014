#include "graph/onnx/operators/spatial_window.h"

#include "graph/contraction.h"

namespace ag::onnx_operators {

Status CheckList(std::string_view name, const Ints& values, size_t size, int64_t low) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (values.size() != size) {
    return Err(StatusCode::kInvalidArgument, "{}: expected {} values, got {}", name, size,
               values.size());
  }
  for (const int64_t value : values) {
    if (value < low || value > kMost) {
      return Err(StatusCode::kInvalidArgument, "{}: {} is not in [{}, {}]", name, value, low,
                 kMost);
    }
  }
  return OkStatus();
}

StatusOr<SpatialWindow> ReadSteps(OperatorCall& call, Ints in, Ints kernel) {
  SpatialWindow window{.in = std::move(in), .kernel = std::move(kernel)};
  const size_t axes = window.in.size();
  window.strides = call.IntList("strides").value_or(Ints(axes, 1));
  window.dilations = call.IntList("dilations").value_or(Ints(axes, 1));
  const Ints pads = call.IntList("pads").value_or(Ints(2 * axes, 0));
  AG_TRY(CheckList("input", window.in, axes, 0));  // So no product of these overflows.
  AG_TRY(CheckList("kernel_shape", window.kernel, axes, 1));
  AG_TRY(CheckList("strides", window.strides, axes, 1));
  AG_TRY(CheckList("dilations", window.dilations, axes, 1));
  AG_TRY(CheckList("pads", pads, 2 * axes, -(int64_t{1} << 30)));
  window.begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(axes));
  window.end.assign(pads.begin() + static_cast<ptrdiff_t>(axes), pads.end());
  window.out.resize(axes);
  return window;
}

StatusOr<SpatialWindow> ReadWindow(OperatorCall& call, const Ints& kernel) {
  if (call.Rank(0) < 3) {
    return Err(StatusCode::kInvalidArgument, "expected rank 3 or more, got {}",
               call.Type(0).ToString());
  }
  const Shape& x = call.ShapeOf(0);
  const Ints stated = call.IntList("kernel_shape").value_or(kernel);
  if (!kernel.empty() && stated != kernel) {
    return Err(StatusCode::kInvalidArgument, "kernel_shape: expected {}, that of the weights",
               ShapeToString(kernel));
  }
  return ReadSteps(call, Ints(x.begin() + 2, x.end()), stated);
}

void SplitPadding(int64_t total, bool odd_at_end, int64_t* begin, int64_t* end) {
  *begin = odd_at_end ? total / 2 : total - total / 2;
  *end = total - *begin;
}

Status PlaceWindow(OperatorCall& call, SpatialWindow& window) {
  const std::string auto_pad = call.String("auto_pad", "NOTSET");
  const bool ceil = call.Int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t span = window.Span(i), stride = window.strides[i], in = window.in[i];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t places = (in + stride - 1) / stride;
      const int64_t total = std::max<int64_t>((places - 1) * stride + span - in, 0);
      SplitPadding(total, auto_pad == "SAME_UPPER", &window.begin[i], &window.end[i]);
    } else if (auto_pad == "VALID") {
      window.begin[i] = window.end[i] = 0;
    } else if (auto_pad != "NOTSET") {
      return Err(StatusCode::kInvalidArgument, "auto_pad {} is not known", Quoted(auto_pad));
    }
    const int64_t room = in + window.begin[i] + window.end[i] - span;
    if (room < (ceil ? 1 - stride : 0)) {
      return Err(StatusCode::kInvalidArgument, "a window of {} does not fit axis {} of {}", span,
                 i + 2, call.Type(0).ToString());
    }
    window.out[i] = (ceil ? room + stride - 1 : room) / stride + 1;
    // The last window must begin inside the input or its padding at the begin.
    if (ceil && (window.out[i] - 1) * stride >= in + window.begin[i]) --window.out[i];
  }
  return OkStatus();
}

namespace {

constexpr int64_t kLinksMax = int64_t{1} << 26;

}  // namespace

StatusOr<std::vector<int64_t>> LinksOf(const SpatialWindow& window, const Ints& places,
                                       const Ints& sizes) {
  const int64_t elements = NumElements(window.kernel), count = NumElements(places);
  if (elements > kLinksMax || count > kLinksMax / std::max<int64_t>(elements, 1)) {
    return Err(StatusCode::kResourceExhausted, "windows of {} elements at {} places", elements,
               count);
  }
  std::vector<int64_t> links(static_cast<size_t>(elements * count));
  ForPositions(places, [&](const Ints& place, int64_t p) {
    ForPositions(window.kernel, [&](const Ints& element, int64_t k) {
      int64_t offset = 0;
      for (size_t i = 0; i < window.axes(); ++i) {
        const int64_t at =
            place[i] * window.strides[i] - window.begin[i] + element[i] * window.dilations[i];
        if (at < 0 || at >= sizes[i]) {
          offset = -1;
          break;
        }
        offset = offset * sizes[i] + at;
      }
      links[static_cast<size_t>(p * elements + k)] = offset;
    });
  });
  return links;
}

Shape WithSpatial(int64_t batch, int64_t channels, const Ints& spatial) {
  Shape shape = {batch, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

namespace {

// The values that the places [begin, begin + columns) of a window see in some channels, as panels
// for Multiply. `links` are those of LinksOf; what lies in the padding is zero.
void PackPlaces(std::span<const int64_t> links, int64_t begin, int64_t columns, int64_t taps,
                std::span<const double> channels, int64_t plane, std::vector<double>* panels) {
  const int64_t count = static_cast<int64_t>(channels.size()) / std::max<int64_t>(plane, 1);
  for (int64_t first = 0; first < columns; first += kPanelColumns) {
    double* to = panels->data() + first * count * taps;
    const int64_t size = std::min(kPanelColumns, columns - first);
    const int64_t* const link = links.data() + (begin + first) * taps;
    for (int64_t c = 0; c < count; ++c) {
      const double* const from = channels.data() + c * plane;
      for (int64_t e = 0; e < taps; ++e, to += kPanelColumns) {
        for (int64_t j = 0; j < size; ++j) {
          const int64_t at = link[j * taps + e];
          to[j] = at < 0 ? 0 : from[at];
        }
      }
    }
  }
}

}  // namespace

StatusOr<Convolved> Convolve(OperatorCall& call, const Operand& x, const Operand& w,
                             const std::vector<double>& bias) {
  const Shape &in = x.shape, &weight = w.shape;
  const int64_t groups = call.Int("group", 1);
  const bool fits = weight.size() == in.size() && in.size() >= 3 && groups >= 1 &&
                    weight[0] % groups == 0 && weight[1] * groups == in[1] &&
                    (bias.empty() || static_cast<int64_t>(bias.size()) == weight[0]);
  if (!fits) {
    return Err(StatusCode::kInvalidArgument, "{} groups: {} does not fit {}", groups,
               ShapeToString(weight), ShapeToString(in));
  }
  AG_LET(SpatialWindow window, ReadWindow(call, Ints(weight.begin() + 2, weight.end())));
  AG_TRY(PlaceWindow(call, window));
  AG_LET(const std::vector<int64_t> links, LinksOf(window, window.out, window.in));
  const int64_t taps = NumElements(window.kernel), inside = NumElements(window.in);
  const int64_t places = NumElements(window.out), rows = weight[0] / groups;
  const int64_t depth = weight[1] * taps, blocks = (places + kBlockColumns - 1) / kBlockColumns;
  Convolved out{WithSpatial(in[0], weight[0], window.out), {}};
  AG_TRY(call.MakeBytes(0, {DType::kFloat32, out.shape}));  // Checks the size.
  out.values.resize(static_cast<size_t>(NumElements(out.shape)));
  if (out.values.empty()) return out;
  for (size_t i = 0; !bias.empty() && i < out.values.size() / static_cast<size_t>(places); ++i) {
    std::fill_n(out.values.begin() + static_cast<int64_t>(i) * places, places,
                bias[i % bias.size()]);
  }
  const auto work = [&](int64_t begin, int64_t end) {
    const int64_t most = std::min(kBlockColumns, places);
    const int64_t width = (most + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
    std::vector<double> panels(static_cast<size_t>(depth * width));
    for (int64_t i = begin; i < end; ++i) {  // A block of places in a group of channels.
      const int64_t first = i % blocks * kBlockColumns, image_group = i / blocks;
      const int64_t size = std::min(kBlockColumns, places - first);
      const double* const channels = x.values.data() + image_group * weight[1] * inside;
      PackPlaces(links, first, size, taps, {channels, static_cast<size_t>(weight[1] * inside)},
                 inside, &panels);
      ag::Multiply<double>({.a = w.values.data() + image_group % groups * rows * depth,
                            .rows = rows,
                            .depth = depth,
                            .panels = panels.data(),
                            .columns = size,
                            .out = out.values.data() + image_group * rows * places + first,
                            .out_stride = places,
                            .adds = true});
    }
  };
  const int64_t products = static_cast<int64_t>(out.values.size()) * depth;
  ParallelFor(UsefulThreads(call.threads(), products), in[0] * groups * blocks, work);
  return out;
}

}  // namespace ag::onnx_operators
