// Convolution groups as cuDNN's operation graphs.
#include "device/cuda/cudnn_maker.h"
#include "plan/spec/node_layouts.h"

namespace ag::cuda {
namespace {

using Raw = cudnnBackendDescriptor_t;
using Kind = CudnnBinding::Kind;

// Returns the tensor's place. Padded channels count as channels. An activation of rank 3 becomes an
// image of one row. Where both layouts have the same bytes the tensor counts as channels last.
StatusOr<CudnnPlace> PlaceOf(const Shape& shape, Layout layout) {
  if (BlockOf(layout) != 1 || shape.size() < 3 || shape.size() > 5) {
    return Err(StatusCode::kUnimplemented, "Conv: {} in layout {}", ShapeToString(shape),
               LayoutName(layout));
  }
  CudnnPlace place;
  place.dims.assign(shape.begin(), shape.end());
  place.dims[1] = ChannelsInMemory(shape, layout);
  if (shape.size() == 3) place.dims.insert(place.dims.begin() + 2, 1);
  int64_t pixels = 1;
  for (size_t i = 2; i < place.dims.size(); ++i) pixels *= place.dims[i];
  place.channels_last = IsChannelsLast(layout) || pixels == 1 || place.dims[1] == 1;
  place.strides = CudnnStrides(place.dims, place.channels_last);
  return place;
}

// Returns the axes of a tensor of `rank`, channels last.
std::vector<int> LastOrder(size_t rank) {
  std::vector<int> order{0};
  for (size_t i = 2; i < rank; ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  return order;
}

StatusOr<Raw> ConvolutionOf(const Node& node, CudnnMaker* maker) {
  const Ints& pads = node.IntList("pads");
  const size_t axes = pads.size() / 2;
  CudnnNumbers before(pads.begin(), pads.begin() + axes), after(pads.begin() + axes, pads.end());
  CudnnNumbers strides(node.IntList("strides").begin(), node.IntList("strides").end());
  CudnnNumbers dilations(node.IntList("dilations").begin(), node.IntList("dilations").end());
  if (axes == 1) {  // One row of pixels.
    before.insert(before.begin(), 0);
    after.insert(after.begin(), 0);
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
  }
  maker->Sign(fmt::format("conv [{}] [{}] [{}] [{}];", fmt::join(before, ","),
                          fmt::join(after, ","), fmt::join(strides, ","),
                          fmt::join(dilations, ",")));
  DescriptorBuilder builder(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  builder.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(before.size()))
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .SetAll(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before)
      .SetAll(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after)
      .SetAll(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .SetAll(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  return maker->Keep(builder);
}

Status CheckConvolution(const GroupContext& context) {
  const Node& node = context.node(0);
  if (node.outputs[0].NumElements() == 0) {
    return Err(StatusCode::kUnimplemented, "Conv: empty result {}", node.outputs[0].ToString());
  }
  for (const size_t operand : {1, 2}) {
    if (context.InputOf(node.inputs[operand]) >= 0) {
      return Err(StatusCode::kUnimplemented, "Conv: {} {} no constant",
                 operand == 1 ? "weights" : "bias", operand == 1 ? "are" : "is");
    }
  }
  if (context.InputOf(node.inputs[0]) < 0) {
    return Err(StatusCode::kUnimplemented, "Conv: the image is a constant");
  }
  return OkStatus();
}

// Returns the length of the weights' axes in memory: as many channels as x and y have there.
// kUnimplemented: padding is between the channels of groups.
StatusOr<CudnnNumbers> PaddedWeights(const Node& node, const Shape& w, const CudnnPlace& x,
                                     const CudnnPlace& y) {
  const int64_t groups = node.Int("group");
  CudnnNumbers padded(w.begin(), w.end());
  const bool is_padded = x.dims[1] != w[1] * groups || y.dims[1] != w[0];
  if (!is_padded) return padded;
  const bool is_depthwise = groups == w[0] && w[1] == 1 && x.dims[1] == y.dims[1];
  if (groups != 1 && !is_depthwise) {
    return Err(StatusCode::kUnimplemented, "Conv: {} groups of padded channels, {} to {}", groups,
               x.dims[1], y.dims[1]);
  }
  padded[0] = y.dims[1];
  if (groups == 1) padded[1] = x.dims[1];
  return padded;
}

// Fails unless padding stays zero after the activation.
Status CheckActivation(const GroupTail& tail, const Shape& shape, const CudnnPlace& y) {
  const bool stays = tail.activation == nullptr || GivesZeroForZero(*tail.activation);
  if (stays || y.dims[1] == shape[1]) return OkStatus();
  return Err(StatusCode::kUnimplemented, "Conv: {} makes no zeros of padding",
             Info(tail.activation->op).name);
}

// The tensors of a convolution.
struct ConvolutionTensors {
  CudnnPlace x, w, y;
  Raw x_tensor = nullptr, w_tensor = nullptr, y_tensor = nullptr;
};

StatusOr<ConvolutionTensors> MakeTensors(const GroupContext& context, CudnnMaker* maker,
                                         DType stored) {
  const Node& node = context.node(0);
  const int port = context.InputOf(node.inputs[0]);
  ConvolutionTensors t;
  const Shape& w = context.graph.type(node.inputs[1]).shape;
  AG_LET(t.x, PlaceOf(context.graph.type(node.inputs[0]).shape, context.group.inputs[port].layout));
  AG_LET(t.y, PlaceOf(node.outputs[0].shape, context.group.outputs[0].layout));
  ConstantRecipe weights{.sum = {node.inputs[1]}, .shape = w, .stored = stored};
  AG_LET(weights.padded, PaddedWeights(node, w, t.x, t.y));
  AG_LET(t.w, PlaceOf(Shape(weights.padded.begin(), weights.padded.end()), Layout::kPlain));
  t.w.strides = CudnnStrides(t.w.dims, t.x.channels_last);
  AG_LET(t.x_tensor, maker->Bound(t.x, {.kind = Kind::kInput, .index = port}, 1));
  if (t.x.channels_last) weights.order = LastOrder(w.size());
  AG_LET(t.w_tensor, maker->Constant(t.w, std::move(weights), 1));
  AG_LET(t.y_tensor, maker->Bound(t.y, {.kind = Kind::kOutput}, 1));
  return t;
}

// Makes addend and bias of a convolution; the bias is the sum of all added vectors.
Status MakeAddends(const GroupContext& context, const GroupTail& tail, const CudnnPlace& y,
                   DType stored, CudnnMaker* maker, CudnnMaker::Addends* addends) {
  const Node& node = context.node(0);
  if (tail.addend) {
    const int port = context.InputOf(*tail.addend);
    const Shape& shape = node.outputs[0].shape;
    const Layout layout =
        port < 0 ? context.group.outputs[0].layout : context.group.inputs[port].layout;
    AG_LET(const CudnnPlace place, PlaceOf(shape, layout));
    if (place.dims != y.dims) {
      return Err(StatusCode::kUnimplemented, "Conv: an addend in layout {}, the result in {}",
                 LayoutName(layout), LayoutName(context.group.outputs[0].layout));
    }
    ConstantRecipe recipe{.sum = {*tail.addend}, .shape = shape, .stored = stored};
    if (IsChannelsLast(layout)) {
      recipe.order = LastOrder(shape.size());
      recipe.padded = place.dims;
    }
    AG_LET(addends->addend, maker->Operand(context, *tail.addend, place, std::move(recipe), 1));
  }
  const int64_t channels = y.dims[1];
  CudnnPlace place{CudnnNumbers(y.dims.size(), 1), CudnnNumbers(y.dims.size(), channels)};
  place.dims[1] = channels;
  place.strides[1] = 1;
  ConstantRecipe bias{.sum = {node.inputs[2]},
                      .shape = {node.outputs[0].shape[1]},
                      .stored = stored,
                      .padded = {channels}};
  bias.sum.insert(bias.sum.end(), tail.vectors.begin(), tail.vectors.end());
  AG_LET(addends->bias, maker->Constant(place, std::move(bias), 1));
  return OkStatus();
}

ProductShape ProductOf(const Node& node, const ConvolutionTensors& t) {
  int64_t pixels = t.y.dims[0], kernel = t.w.dims[1];
  for (size_t i = 2; i < t.y.dims.size(); ++i) {
    pixels *= t.y.dims[i];
    kernel *= t.w.dims[i];
  }
  const int64_t groups = node.Int("group");
  return {.batch = groups, .m = pixels, .n = t.y.dims[1] / groups, .k = kernel};
}

}  // namespace

StatusOr<CudnnGraph> BuildCudnnConvolution(const GroupContext& context) {
  AG_TRY(CheckConvolution(context));
  AG_LET(const GroupTail tail, ReadTail(context));
  const Node& node = context.node(0);
  const DType stored = StoredDType(node.outputs[0].dtype, context.precision);
  AG_LET(CudnnMaker maker, CudnnMaker::For(stored));
  AG_LET(const ConvolutionTensors t, MakeTensors(context, &maker, stored));
  AG_TRY(CheckActivation(tail, node.outputs[0].shape, t.y));
  CudnnMaker::Addends addends;
  AG_TRY(MakeAddends(context, tail, t.y, stored, &maker, &addends));
  AG_LET(const Raw convolution, ConvolutionOf(node, &maker));
  AG_LET(const Raw product, maker.Inner(t.y));  // A bias always follows.
  DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            "convolution operation");
  builder.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, t.x_tensor)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, t.w_tensor)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, product)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f);
  AG_LET(const Raw operation, maker.Keep(builder));
  AG_LET(CudnnGraph graph,
         std::move(maker).Finish(operation, product, t.y_tensor, t.y, tail, addends));
  graph.product = ProductOf(node, t);
  if (t.x.channels_last) graph.pixel_bytes = t.x.dims[1] * SizeOf(stored);
  return graph;
}

}  // namespace ag::cuda
