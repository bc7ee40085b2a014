// Depthwise convolutions with channels last: a thread has a few neighbouring channels of a few
// neighbouring outputs of a row, and reads the shared part of their windows once.
#include <algorithm>

#include "device/cuda/codegen/convolution.h"

namespace ag::cuda {

std::vector<std::string> DepthwiseVariants(const Convolution& c, const Epilogue& epilogue) {
  if (!c.is_depthwise() || !c.is_last || c.windows.size() != 2) return {};
  if (c.x.strides[1] != 1 || c.w.strides[0] != 1 || c.index != "int") return {};
  int64_t vector = std::min<int64_t>(16 / SizeOf(c.x.stored), 8);
  while ((c.groups + c.padding) % vector != 0) vector /= 2;
  vector = epilogue.VectorOf(1, vector);
  const int64_t width = c.windows[1].out;
  std::vector<std::string> names;
  for (const int64_t row : {4, 2, 1, 8}) {
    if (row > 1 && row > width) continue;
    if (row * vector > 32) continue;
    names.push_back(fmt::format("depthwise/{}v{}", row, vector));
  }
  if (vector > 1) names.push_back("depthwise/2v1");
  return names;
}

Status Depthwise(GroupText* group, const Convolution& c, Epilogue* epilogue,
                 const std::string& variant) {
  constexpr int64_t kThreads = 128;
  const std::vector<int64_t> numbers = NumbersIn(variant);
  const int64_t row = numbers[0], vector = numbers[1];
  const int64_t channels = c.groups + c.padding;
  const WindowAxis &down = c.windows[0], &along = c.windows[1];
  const int64_t span = (row - 1) * along.stride + (along.kernel - 1) * along.dilation + 1;
  AG_TRY(epilogue->Bind(group, Epilogue::View::kConvolution, c.bias, c.padding));
  const Sizes sizes{c.images, down.out, CeilDiv(along.out, row), channels / vector};
  const int64_t count = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  const std::string lanes = fmt::format("for (int k = 0; k < {}; ++k)", vector);
  Text text;
  text.Line("const int at = ag_block_x() * {} + ag_thread();", kThreads);
  text.Line("if (at >= {}) return;", count);
  const std::vector<std::string> at = Coordinates(&text, sizes, "at", "a", "int");
  text.Line("const int image = {}, line = {}, begin = ({}) * {}, channel = ({}) * {};", at[0],
            at[1], at[2], row, at[3], vector);
  text.Line("const int first_0 = line * {} - {}, first_1 = begin * {} - {};", down.stride,
            down.pad_begin, along.stride, along.pad_begin);
  text.Line("{} acc[{}][{}] = {{}};", ComputedType(c.x.stored), row, vector);
  text.Line("AG_UNROLL");
  text.Open("for (int k0 = 0; k0 < {}; ++k0)", down.kernel);
  text.Line("const int p0 = first_0 + k0 * {};", down.dilation);
  text.Line("if (p0 < 0 || p0 >= {}) continue;", down.in);
  text.Line(
      "const {}* from = {} + {};", c.x.type(), c.x.name,
      Offset({"image", "channel", "p0"}, Sizes{c.x.strides[0], c.x.strides[1], c.x.strides[2]}));
  text.Line("{} x[{}][{}];", ComputedType(c.x.stored), span, vector);
  text.Line("AG_UNROLL");
  text.Open("for (int i = 0; i < {}; ++i)", span);
  text.Line("const int p1 = first_1 + i;");
  text.Line("ag_pack<{}, {}> p = {{}};", c.x.type(), vector);
  text.Line("if (p1 >= 0 && p1 < {}) p = ag_load<{}>(from + p1 * {});", along.in, vector,
            c.x.strides[3]);
  text.Line("AG_UNROLL");
  text.Line("{} x[i][k] = ag_get(p.at[k]);", lanes);
  text.Close();
  text.Line("AG_UNROLL");
  text.Open("for (int k1 = 0; k1 < {}; ++k1)", along.kernel);
  text.Line("const ag_pack<{0}, {1}> w = ag_load<{1}>({2} + {3});", c.w.type(), vector, c.w.name,
            WeightOffset(c, "channel", "0", {"k0", "k1"}));
  text.Line("AG_UNROLL");
  text.Open("for (int r = 0; r < {}; ++r)", row);
  text.Line("AG_UNROLL");
  text.Line("{} acc[r][k] += x[r * {} + k1 * {}][k] * ag_get(w.at[k]);", lanes, along.stride,
            along.dilation);
  text.Close();
  text.Close();
  text.Close();
  text.Line("AG_UNROLL");
  text.Open("for (int r = 0; r < {}; ++r)", row);
  text.Line("if (begin + r >= {}) continue;", along.out);
  text.Line("const int position = line * {} + begin + r;", along.out);
  epilogue->Apply(&text, {"image", "channel", "position"}, 1, vector, "acc[r][k]");
  text.Close();
  return group->EndKernel({.grid = {CeilDiv(count, kThreads), 1, 1}, .threads = kThreads}, text);
}

}  // namespace ag::cuda
