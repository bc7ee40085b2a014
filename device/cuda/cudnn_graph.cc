#include "device/cuda/cudnn_graph.h"

#include <algorithm>

#include "device/cuda/cudnn_pointwise.h"
#include "device/cuda/dense_problem.h"

namespace ag::cuda {
namespace {

using Numbers = std::vector<int64_t>;
using Kind = CudnnBinding::Kind;

// What cuDNN may assume of every pointer; DeviceSpec::alignment_bytes promises it.
constexpr int64_t kAlignment = 16;

// A tensor as cuDNN wants it said.
struct Place {
  Numbers dims, strides;
  bool channels_last = false;
};

StatusOr<cudnnDataType_t> DataTypeOf(DType stored) {
  if (stored == DType::kFloat32) return CUDNN_DATA_FLOAT;
  if (stored == DType::kFloat16) return CUDNN_DATA_HALF;
  if (stored == DType::kBFloat16) return CUDNN_DATA_BFLOAT16;
  return Err(StatusCode::kUnimplemented, "cuDNN: type {}", DTypeName(stored));
}

Numbers Dense(const Numbers& dims, bool channels_last) {
  Numbers strides(dims.size(), 1);
  if (channels_last) {
    strides[1] = 1;
    int64_t stride = dims[1];
    for (size_t i = dims.size(); i-- > 2;) {
      strides[i] = stride;
      stride *= dims[i];
    }
    strides[0] = stride;
  } else {
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

// An activation of rank 3 becomes an image of one row. Where both layouts are the same bytes the
// tensor counts as channels last.
StatusOr<Place> PlaceOf(const Shape& shape, Layout layout) {
  if (BlockOf(layout) != 1 || shape.size() < 3 || shape.size() > 5) {
    return Err(StatusCode::kUnimplemented, "Conv: {} in layout {}", ShapeToString(shape),
               LayoutName(layout));
  }
  Place place;
  place.dims.assign(shape.begin(), shape.end());
  if (shape.size() == 3) place.dims.insert(place.dims.begin() + 2, 1);
  int64_t pixels = 1;
  for (size_t i = 2; i < place.dims.size(); ++i) pixels *= place.dims[i];
  place.channels_last = layout == Layout::kChannelsLast || pixels == 1 || place.dims[1] == 1;
  place.strides = Dense(place.dims, place.channels_last);
  return place;
}

// Makes the descriptors of one graph.
class Maker {
 public:
  Maker(CudnnGraph* graph, cudnnDataType_t type) : graph_(*graph), type_(type) {}

  // A tensor in memory, 0 bytes known of its size when it is by value.
  StatusOr<cudnnBackendDescriptor_t> Bound(const Place& place, CudnnBinding binding,
                                           int64_t channel_axis) {
    binding.uid = static_cast<int64_t>(graph_.bindings.size()) + 1;
    int64_t elements = 1, padded = 1;
    const int64_t block = type_ == CUDNN_DATA_FLOAT ? 4 : 8;
    for (size_t i = 0; i < place.dims.size(); ++i) {
      elements *= place.dims[i];
      const bool pads = static_cast<int64_t>(i) == channel_axis;
      padded *= pads ? (place.dims[i] + block - 1) / block * block : place.dims[i];
    }
    const int64_t size = SizeOf(graph_.stored);
    graph_.tensor_bytes.push_back({elements * size, padded * size});
    graph_.bindings.push_back(binding);
    return Tensor(place, type_, binding.uid, {});
  }
  StatusOr<cudnnBackendDescriptor_t> Constant(const Place& place, ConstantRecipe recipe,
                                              int64_t channel_axis) {
    graph_.constants.push_back(std::move(recipe));
    const int index = static_cast<int>(graph_.constants.size()) - 1;
    return Bound(place, {.kind = Kind::kConstant, .index = index}, channel_axis);
  }
  // An operand that is a port or a constant.
  StatusOr<cudnnBackendDescriptor_t> Operand(const GroupContext& context, Edge edge,
                                             const Place& place, ConstantRecipe recipe,
                                             int64_t channel_axis) {
    const int port = context.InputOf(edge);
    if (port >= 0) return Bound(place, {.kind = Kind::kInput, .index = port}, channel_axis);
    return Constant(place, std::move(recipe), channel_axis);
  }
  StatusOr<cudnnBackendDescriptor_t> Scalar(float value, size_t rank) {
    const Place one{Numbers(rank, 1), Numbers(rank, 1)};
    const int64_t uid = static_cast<int64_t>(graph_.bindings.size()) + 1;
    graph_.bindings.push_back({.uid = uid, .kind = Kind::kScalar, .scalar = value});
    return Tensor(one, CUDNN_DATA_FLOAT, uid, {.is_by_value = true});
  }
  StatusOr<cudnnBackendDescriptor_t> Inner(const Place& place) {
    return Tensor(place, CUDNN_DATA_FLOAT, kInnerUid + inner_++, {.is_virtual = true});
  }

  // Keeps what a builder made and returns it.
  StatusOr<cudnnBackendDescriptor_t> Keep(DescriptorBuilder& builder) {
    AG_LET(Descriptor made, builder.Finish());
    graph_.parts.push_back(std::move(made));
    return graph_.parts.back().get();
  }

 private:
  static constexpr int64_t kInnerUid = 1000;
  struct TensorForm {
    bool is_virtual = false;
    bool is_by_value = false;
  };
  StatusOr<cudnnBackendDescriptor_t> Tensor(const Place& place, cudnnDataType_t type, int64_t uid,
                                            const TensorForm& form) {
    DescriptorBuilder builder(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    builder.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .SetAll(CUDNN_ATTR_TENSOR_DIMENSIONS, place.dims)
        .SetAll(CUDNN_ATTR_TENSOR_STRIDES, place.strides)
        .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
        .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
             form.is_by_value ? SizeOf(DType::kFloat32) : kAlignment)
        .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, form.is_virtual)
        .Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, form.is_by_value);
    return Keep(builder);
  }

  CudnnGraph& graph_;
  cudnnDataType_t type_;
  int64_t inner_ = 0;
};

// What stands behind the product.
struct Chain {
  std::vector<PointwiseStep> steps;
  cudnnBackendDescriptor_t addend = nullptr;
  cudnnBackendDescriptor_t bias = nullptr;
};

Status AppendTail(const GroupTail& tail, Chain* chain) {
  using Operand = PointwiseStep::Operand;
  const auto add = [&](Operand operand) {
    chain->steps.push_back({.mode = CUDNN_POINTWISE_ADD,
                            .x = static_cast<ChainValue>(chain->steps.size()),
                            .operand = operand});
  };
  if (chain->addend != nullptr) add(Operand::kAddend);
  if (chain->bias != nullptr) add(Operand::kBias);
  if (tail.activation != nullptr) AG_TRY(AppendActivation(*tail.activation, &chain->steps));
  return OkStatus();
}

StatusOr<cudnnBackendDescriptor_t> PointwiseOf(const PointwiseStep& step, Maker* maker) {
  DescriptorBuilder builder(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  builder.Set(CUDNN_ATTR_POINTWISE_MODE, step.mode)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (step.mode == CUDNN_POINTWISE_RELU_FWD) {
    constexpr double kMax = std::numeric_limits<float>::max();
    if (step.upper < kMax) builder.Set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, step.upper);
    if (step.slope != 0) builder.Set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, step.slope);
  }
  return maker->Keep(builder);
}

// Emits the steps; the last one writes `y`. `values[0]` is the product.
Status EmitSteps(const Chain& chain, const Place& place, cudnnBackendDescriptor_t product,
                 cudnnBackendDescriptor_t y, Maker* maker,
                 std::vector<cudnnBackendDescriptor_t>* operations) {
  using Operand = PointwiseStep::Operand;
  std::vector<cudnnBackendDescriptor_t> values{product};
  for (size_t i = 0; i < chain.steps.size(); ++i) {
    const PointwiseStep& step = chain.steps[i];
    AG_LET(const cudnnBackendDescriptor_t pointwise, PointwiseOf(step, maker));
    cudnnBackendDescriptor_t out = y;
    if (i + 1 < chain.steps.size()) {
      AG_LET(out, maker->Inner(place));
    }
    DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    builder.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values[step.x])
        .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    cudnnBackendDescriptor_t second = nullptr;
    if (step.operand == Operand::kValue) second = values[step.b];
    if (step.operand == Operand::kAddend) second = chain.addend;
    if (step.operand == Operand::kBias) second = chain.bias;
    if (step.operand == Operand::kScalar) {
      AG_LET(second, maker->Scalar(step.scalar, place.dims.size()));
    }
    if (second != nullptr) builder.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
    AG_LET(const cudnnBackendDescriptor_t operation, maker->Keep(builder));
    operations->push_back(operation);
    values.push_back(out);
  }
  return OkStatus();
}

Status FinishGraph(const std::vector<cudnnBackendDescriptor_t>& operations, CudnnGraph* graph) {
  AG_LET(graph->graph, DescriptorBuilder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph")
                           .SetAll(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
                           .Finish());
  return OkStatus();
}

// Axes of a tensor of `rank`, channels last.
std::vector<int> LastOrder(size_t rank) {
  std::vector<int> order{0};
  for (size_t i = 2; i < rank; ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  return order;
}

StatusOr<cudnnBackendDescriptor_t> ConvolutionOf(const Node& node, Maker* maker) {
  const Ints& pads = node.IntList("pads");
  const size_t axes = pads.size() / 2;
  Numbers before(pads.begin(), pads.begin() + axes), after(pads.begin() + axes, pads.end());
  Numbers strides(node.IntList("strides").begin(), node.IntList("strides").end());
  Numbers dilations(node.IntList("dilations").begin(), node.IntList("dilations").end());
  if (axes == 1) {  // One row of pixels.
    before.insert(before.begin(), 0);
    after.insert(after.begin(), 0);
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
  }
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

// The tensors of a convolution.
struct ConvolutionTensors {
  Place x, w, y;
  cudnnBackendDescriptor_t x_tensor = nullptr, w_tensor = nullptr, y_tensor = nullptr;
};

StatusOr<ConvolutionTensors> MakeTensors(const GroupContext& context, Maker* maker, DType stored) {
  const Node& node = context.node(0);
  const int port = context.InputOf(node.inputs[0]);
  ConvolutionTensors t;
  const Shape& w = context.graph.type(node.inputs[1]).shape;
  AG_LET(t.x, PlaceOf(context.graph.type(node.inputs[0]).shape, context.group.inputs[port].layout));
  AG_LET(t.y, PlaceOf(node.outputs[0].shape, context.group.outputs[0].layout));
  AG_LET(t.w, PlaceOf(w, Layout::kPlain));
  t.w.strides = Dense(t.w.dims, t.x.channels_last);
  AG_LET(t.x_tensor, maker->Bound(t.x, {.kind = Kind::kInput, .index = port}, 1));
  ConstantRecipe weights{.sum = {node.inputs[1]}, .shape = w, .stored = stored};
  if (t.x.channels_last) weights.order = LastOrder(w.size());
  AG_LET(t.w_tensor, maker->Constant(t.w, std::move(weights), 1));
  AG_LET(t.y_tensor, maker->Bound(t.y, {.kind = Kind::kOutput}, 1));
  return t;
}

// Addend and bias of a convolution; the bias takes up all vectors that are added.
Status MakeAddends(const GroupContext& context, const GroupTail& tail, const Place& y, DType stored,
                   Maker* maker, Chain* chain) {
  const Node& node = context.node(0);
  if (tail.addend) {
    const int port = context.InputOf(*tail.addend);
    const Layout layout =
        port < 0 ? (y.channels_last && node.outputs[0].shape.size() == 4 ? Layout::kChannelsLast
                                                                         : Layout::kPlain)
                 : context.group.inputs[port].layout;
    AG_LET(const Place place, PlaceOf(node.outputs[0].shape, layout));
    ConstantRecipe recipe{.sum = {*tail.addend}, .shape = node.outputs[0].shape, .stored = stored};
    if (layout == Layout::kChannelsLast) recipe.order = LastOrder(recipe.shape.size());
    AG_LET(chain->addend, maker->Operand(context, *tail.addend, place, std::move(recipe), 1));
  }
  const int64_t channels = y.dims[1];
  Place place{Numbers(y.dims.size(), 1), Numbers(y.dims.size(), channels)};
  place.dims[1] = channels;
  place.strides[1] = 1;
  ConstantRecipe bias{.sum = {node.inputs[2]}, .shape = {channels}, .stored = stored};
  bias.sum.insert(bias.sum.end(), tail.vectors.begin(), tail.vectors.end());
  AG_LET(chain->bias, maker->Constant(place, std::move(bias), 1));
  return OkStatus();
}

StatusOr<CudnnGraph> BuildConvolution(const GroupContext& context) {
  AG_TRY(CheckConvolution(context));
  AG_LET(const GroupTail tail, ReadTail(context));
  const Node& node = context.node(0);
  CudnnGraph graph;
  graph.stored = StoredDType(node.outputs[0].dtype, context.precision);
  AG_LET(const cudnnDataType_t type, DataTypeOf(graph.stored));
  Maker maker(&graph, type);
  AG_LET(const ConvolutionTensors t, MakeTensors(context, &maker, graph.stored));
  Chain chain;
  AG_TRY(MakeAddends(context, tail, t.y, graph.stored, &maker, &chain));
  AG_TRY(AppendTail(tail, &chain));
  AG_LET(const cudnnBackendDescriptor_t convolution, ConvolutionOf(node, &maker));
  AG_LET(const cudnnBackendDescriptor_t product, maker.Inner(t.y));
  DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            "convolution operation");
  builder.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, t.x_tensor)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, t.w_tensor)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, product)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f);
  std::vector<cudnnBackendDescriptor_t> operations(1);
  AG_LET(operations[0], maker.Keep(builder));
  AG_TRY(EmitSteps(chain, t.y, product, t.y_tensor, &maker, &operations));
  AG_TRY(FinishGraph(operations, &graph));
  int64_t pixels = t.y.dims[0], kernel = t.w.dims[1];
  for (size_t i = 2; i < t.y.dims.size(); ++i) {
    pixels *= t.y.dims[i];
    kernel *= t.w.dims[i];
  }
  const int64_t groups = node.Int("group");
  graph.product = {.batch = groups, .m = pixels, .n = t.y.dims[1] / groups, .k = kernel};
  return graph;
}

// A row-major matrix per product of the batch; one that is shared has a batch of 1.
Place MatrixPlace(int64_t batch, int64_t stride, int64_t rows, int64_t columns) {
  const int64_t count = stride == 0 ? 1 : batch;
  return {{count, rows, columns}, {stride == 0 ? rows * columns : stride, columns, 1}};
}

// The tensors of a matmul, addend and bias included.
struct DenseTensors {
  Place d;
  cudnnBackendDescriptor_t a_tensor = nullptr, b_tensor = nullptr, d_tensor = nullptr;
};

StatusOr<DenseTensors> MakeTensors(const GroupContext& context, const DenseProblem& p, Maker* maker,
                                   Chain* chain) {
  DenseTensors t;
  const auto recipe = [&](Edge edge) {
    return ConstantRecipe{
        .sum = {edge}, .shape = context.graph.type(edge).shape, .stored = p.stored};
  };
  t.d = MatrixPlace(p.batch, p.d_stride, p.m, p.n);
  const Place a = MatrixPlace(p.batch, p.a_stride, p.m, p.k);
  const Place b = MatrixPlace(p.batch, p.b_stride, p.k, p.n);
  AG_LET(t.a_tensor, maker->Operand(context, p.a, a, recipe(p.a), 2));
  AG_LET(t.b_tensor, maker->Operand(context, p.b, b, recipe(p.b), 2));
  AG_LET(t.d_tensor, maker->Bound(t.d, {.kind = Kind::kOutput}, 2));
  if (p.tail.addend) {
    AG_LET(chain->addend, maker->Operand(context, *p.tail.addend, t.d, recipe(*p.tail.addend), 2));
  }
  if (!p.tail.vectors.empty()) {
    const Place place{{1, 1, p.n}, {p.n, p.n, 1}};
    AG_LET(chain->bias,
           maker->Constant(place, {.sum = p.tail.vectors, .shape = {p.n}, .stored = p.stored}, 2));
  }
  return t;
}

StatusOr<CudnnGraph> BuildDense(const GroupContext& context) {
  AG_LET(const DenseProblem p, DenseProblemOf(context));
  CudnnGraph graph;
  graph.stored = p.stored;
  AG_LET(const cudnnDataType_t type, DataTypeOf(p.stored));
  Maker maker(&graph, type);
  Chain chain;
  AG_LET(const DenseTensors t, MakeTensors(context, p, &maker, &chain));
  AG_TRY(AppendTail(p.tail, &chain));
  DescriptorBuilder form(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
  form.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  AG_LET(const cudnnBackendDescriptor_t matmul, maker.Keep(form));
  cudnnBackendDescriptor_t product = t.d_tensor;
  if (!chain.steps.empty()) {
    AG_LET(product, maker.Inner(t.d));
  }
  DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul operation");
  builder.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, t.a_tensor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, t.b_tensor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, product)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul);
  std::vector<cudnnBackendDescriptor_t> operations(1);
  AG_LET(operations[0], maker.Keep(builder));
  AG_TRY(EmitSteps(chain, t.d, product, t.d_tensor, &maker, &operations));
  AG_TRY(FinishGraph(operations, &graph));
  graph.product = {.batch = p.batch, .m = p.m, .n = p.n, .k = p.k};
  return graph;
}

}  // namespace

StatusOr<CudnnGraph> BuildCudnnGraph(const GroupContext& context) {
  if (context.group.nodes.empty()) {
    return Err(StatusCode::kUnimplemented, "cuDNN: no kernel for {}", context.group.pattern);
  }
  const OpKind op = context.node(0).op;
  if (op == OpKind::kConv) return BuildConvolution(context);
  if (op == OpKind::kMatMul) return BuildDense(context);
  return Err(StatusCode::kUnimplemented, "cuDNN: no kernel for {}", Info(op).name);
}

}  // namespace ag::cuda
