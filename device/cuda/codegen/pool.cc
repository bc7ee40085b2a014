// Pooling: a thread has one window, of several channels where these are neighbours in memory.
#include <limits>

#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/lanes.h"
#include "device/cuda/codegen/window.h"

namespace ag::cuda {
namespace {

struct PoolProblem {
  TensorArgument from, to;
  std::vector<WindowAxis> windows;
  Space space;               // Of the output, as in memory; tensors: output, input.
  std::vector<size_t> axes;  // The output's axes in this order.
  int64_t padding = 0;       // Channels of the output's padding, computed, too, and set to zero.
  bool is_max = false, includes_pads = false;
};

StatusOr<PoolProblem> PoolProblemOf(GroupText* group) {
  const Node& node = group->context().node(0);
  PoolProblem p;
  group->BeginKernel("pool");
  AG_LET(p.from, group->Source(node.inputs[0]));
  AG_LET(p.to, group->Target(0));
  p.windows = WindowAxesOf(node, p.from.shape, node.IntList("kernel_shape"));
  p.is_max = node.op == OpKind::kMaxPool;
  p.includes_pads = !p.is_max && node.Int("count_include_pad") != 0;
  p.space = {.sizes = Sizes(p.to.shape.begin(), p.to.shape.end()),
             .strides = {p.to.strides, p.from.strides}};
  if (p.from.padding == p.to.padding && p.to.padding > 0) {
    p.padding = p.to.padding;
    p.space.sizes[1] += p.padding;
    group->PaddingIsWritten();
  }
  p.axes = p.space.Sort();
  return p;
}

// Returns the channels of one thread; 1 where they are not neighbours.
int64_t WidestVector(const PoolProblem& p) {
  const bool is_along = !p.axes.empty() && p.axes.back() == 1 && p.from.strides[1] == 1;
  return is_along ? VectorOf(p.space, 16 / SizeOf(p.to.stored)) : 1;
}

StatusOr<std::vector<std::string>> PoolVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const PoolProblem p, PoolProblemOf(&group));
  const int64_t vector = WidestVector(p);
  std::vector<std::string> names{fmt::format("v{}/128", vector)};
  if (vector > 1) names.push_back("v1/128");
  if (vector > 2) names.push_back(fmt::format("v{}/64", vector / 2));
  names.push_back(fmt::format("v{}/32", vector));
  return names;
}

// Writes the loops over the window with `body` inside; `from` is the begin of the input's image.
void Loops(Text* text, const PoolProblem& p, const std::vector<std::string>& body) {
  std::string place = "from";
  for (size_t i = 0; i < p.windows.size(); ++i) {
    const WindowAxis& w = p.windows[i];
    text->Line("AG_UNROLL");
    text->Open("for (int k{0} = 0; k{0} < {1}; ++k{0})", i, w.kernel);
    text->Line("const int p{0} = s{0} + k{0} * {1};", i, w.dilation);
    if (!w.is_inside()) text->Line("if (p{0} < 0 || p{0} >= {1}) continue;", i, w.in);
    place += fmt::format(" + p{} * {}", i, p.from.strides[i + 2]);
  }
  if (body.size() > 1) text->Line("const {}* here = {};", p.from.type(), place);
  for (const std::string& line : body) text->Line("{}", line);
  for (size_t i = 0; i < p.windows.size(); ++i) text->Close();
}

// Writes the number of elements of the window that an average counts.
void Count(Text* text, const PoolProblem& p) {
  text->Line("int count = {};", p.includes_pads ? 1 : 0);
  if (!p.includes_pads) return Loops(text, p, {"++count;"});
  for (size_t i = 0; i < p.windows.size(); ++i) {
    const WindowAxis& w = p.windows[i];
    text->Line("count *= ag_min({}, ({} - s{}) / {});", w.kernel, w.in + w.pad_end + w.dilation - 1,
               i, w.dilation);
  }
}

StatusOr<GeneratedGroup> GeneratePool(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const PoolProblem p, PoolProblemOf(&group));
  const Lanes lanes = LanesOf(p.space, variant);
  Text text;
  const std::vector<std::string> at = BeginLanes(&text, lanes, "ag_block_x()");
  std::vector<std::string> place(p.to.shape.size(), "0");
  Sizes image_strides(p.axes.size(), 0);
  for (size_t i = 0; i < p.axes.size(); ++i) {
    place[p.axes[i]] = at[i];
    if (p.axes[i] < 2) image_strides[i] = lanes.space.strides[1][i];
  }
  image_strides.resize(at.size(), 0);
  text.Line("const {}* from = {};", p.from.type(), Plus(p.from.name, Offset(at, image_strides)));
  for (size_t i = 0; i < p.windows.size(); ++i) {
    const WindowAxis& w = p.windows[i];
    text.Line("const int s{} = (int)({}) * {} - {};", i, place[i + 2], w.stride, w.pad_begin);
  }
  const DType dtype = context.node(0).outputs[0].dtype;
  const std::string lowest = IsFloat(dtype)
                                 ? Literal(-std::numeric_limits<double>::infinity(), dtype)
                                 : "-9223372036854775807ll - 1";
  const std::string each = fmt::format("for (int k = 0; k < {}; ++k)", lanes.vector);
  text.Line("{} sum[{}];", ComputedType(dtype), lanes.vector);
  text.Line("AG_UNROLL");
  text.Line("{} sum[k] = {};", each, p.is_max ? lowest : "0");
  if (!p.is_max) Count(&text, p);
  Loops(
      &text, p,
      {fmt::format("const ag_pack<{0}, {1}> x = ag_load<{1}>(here);", p.from.type(), lanes.vector),
       "AG_UNROLL",
       each + (p.is_max ? " sum[k] = ag_max(sum[k], ag_get(x.at[k]));"
                        : " sum[k] += ag_get(x.at[k]);")});
  text.Line("ag_pack<{}, {}> y;", p.to.type(), lanes.vector);
  text.Line("AG_UNROLL");
  text.Line("{} ag_put(y.at[k], {});", each, p.is_max ? "sum[k]" : "sum[k] / count");
  if (p.padding > 0) {
    ZeroPadding(&text, p.to, fmt::format("({}) * {}", place[1], lanes.vector), lanes.vector, "y");
  }
  StoreLanes(&text, lanes, 0, Plus(p.to.name, Offset(at, lanes.space.strides[0])), "y");
  AG_TRY(group.EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text));
  return group.Take();
}

}  // namespace

const Family kPoolFamily = {PoolVariants, GeneratePool};

}  // namespace ag::cuda
