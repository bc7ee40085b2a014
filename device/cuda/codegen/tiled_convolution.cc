// Convolutions as matrix products of tiles: one operand is the weights, the other is the input seen
// through its windows, found element by element while a tile is filled. With channels last the
// result's rows are positions and its columns channels, else the other way round, so that
// neighbouring columns are neighbours in memory.
#include <algorithm>

#include "device/cuda/codegen/convolution.h"

namespace ag::cuda {
namespace {

int64_t WidestDivisor(std::span<const int64_t> counts, DType stored) {
  int64_t vector = std::min<int64_t>(16 / SizeOf(stored), 8);
  const auto divides = [&](int64_t count) { return count % vector == 0; };
  while (!std::ranges::all_of(counts, divides)) vector /= 2;
  return vector;
}

// Writes the parts of depth k, "tap" and "c"; with channels last c changes faster.
void SplitDepth(const Convolution& c, Text* text) {
  if (c.is_last) {
    text->Line("const int tap = k / {0}, c = k % {0};", c.channels_summed);
  } else {
    text->Line("const int tap = k % {0}, c = k / {0};", c.taps);
  }
}

// Returns the input's address of depth k of the window at position `line`.
std::string InputAddress(const Convolution& c, Text* text, std::string* valid) {
  SplitDepth(c, text);
  DeclareWindow(c, "line", text);
  Sizes kernel;
  for (const WindowAxis& w : c.windows) kernel.push_back(w.kernel);
  const std::vector<std::string> taps = Coordinates(text, kernel, "tap", "t", "int");
  std::string place = "x";
  std::vector<std::string> conditions;
  for (size_t i = 0; i < c.windows.size(); ++i) {
    const WindowAxis& w = c.windows[i];
    text->Line("const int p{0} = first_{0} + {1} * {2};", i, taps[i], w.dilation);
    if (!w.is_inside()) {
      conditions.push_back(fmt::format("p{0} >= 0 && p{0} < {1}", i, w.in));
    }
    place += fmt::format(" + ({})p{} * {}", c.index, i, c.x.strides[i + 2]);
  }
  *valid = Join(conditions, " && ");
  return fmt::format("{} + ({})c * {}", place, c.index, c.x.strides[1]);
}

// Returns the weights' address of depth k of output channel `line` of the group.
std::string WeightAddress(const Convolution& c, Text* text) {
  SplitDepth(c, text);
  Sizes kernel;
  for (const WindowAxis& w : c.windows) kernel.push_back(w.kernel);
  const std::vector<std::string> taps = Coordinates(text, kernel, "tap", "t", "int");
  return "w + " + WeightOffset(c, "line", "c", taps);
}

ProductOperand InputOperand(const Convolution& c) {
  ProductOperand operand{.type = c.x.type(), .along_depth = c.is_last};
  if (c.is_last && c.x.strides[1] == 1) {
    const int64_t channels = c.channels_summed * c.groups;
    operand.vector = WidestDivisor(Sizes{c.channels_summed, channels}, c.x.stored);
  }
  if (c.channels_summed > c.channels_in) {
    operand.is_zero = fmt::format("c + v >= {}", c.channels_in);
  }
  operand.address = [&c](Text* text, std::string* valid) { return InputAddress(c, text, valid); };
  return operand;
}

ProductOperand WeightOperand(const Convolution& c) {
  // Neighbouring depths are neighbours in memory: channels with channels last, else everything.
  const bool by_depth = !c.is_last || (c.w.strides[1] == 1 && c.w.strides[0] != 1);
  ProductOperand operand{.type = c.w.type(), .along_depth = by_depth};
  if (!c.is_last) {
    operand.vector = WidestDivisor(Sizes{c.channels_in * c.taps}, c.w.stored);
  } else if (by_depth) {
    operand.vector = WidestDivisor(Sizes{c.channels_summed}, c.w.stored);
  } else if (c.w.strides[0] == 1) {
    operand.vector = WidestDivisor(Sizes{c.channels_out}, c.w.stored);
  }
  operand.address = [&c](Text* text, std::string*) { return WeightAddress(c, text); };
  return operand;
}

// REQUIRES: `c` outlives the product.
Product ProductOf(const Convolution& c) {
  Product p{
      .batches = c.images * c.groups, .depth = c.channels_summed * c.taps, .dtype = c.x.stored};
  p.rows = c.is_last ? c.positions : c.channels_out;
  p.columns = c.is_last ? c.channels_out : c.positions;
  p.left = c.is_last ? InputOperand(c) : WeightOperand(c);
  p.right = c.is_last ? WeightOperand(c) : InputOperand(c);
  p.column_axis = c.is_last ? 1 : 2;
  p.allows_tf32 = c.allows_tf32;
  p.split_batch = [&c](Text* text) {
    text->Line("const int image = {}, group = {};", Quotient("batch", c.groups),
               Remainder("batch", c.groups));
  };
  p.begin_reading = [&c](Text* text) {
    text->Line("const {}* x = {} + ({})image * {} + group * {};", c.x.type(), c.x.name, c.index,
               c.x.strides[0], c.channels_in * c.x.strides[1]);
    text->Line("const {}* w = {} + group * {};", c.w.type(), c.w.name,
               c.channels_out * c.w.strides[0]);
  };
  p.at = [&c](const std::string& row, const std::string& column) {
    const std::string& line = c.is_last ? column : row;
    const std::string channel =
        c.groups == 1 ? line : fmt::format("group * {} + {}", c.channels_out, line);
    return std::vector<std::string>{"image", channel, c.is_last ? row : column};
  };
  return p;
}

}  // namespace

std::vector<std::string> ConvolutionTiles(const Convolution& c, const Chip& chip) {
  return TileVariants(ProductOf(c), chip);
}

Status TiledConvolution(GroupText* group, const Convolution& c, Epilogue* epilogue,
                        const std::string& variant) {
  const Product product = ProductOf(c);
  const TileCut cut = TileCutOf(variant);
  return EndProduct(group, product, cut.parts, c.End(epilogue),
                    [&](const TensorArgument* partial, Text* text) {
                      return TileKernel(product, cut, *epilogue, partial, text);
                    });
}

}  // namespace ag::cuda
