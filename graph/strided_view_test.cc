#include "graph/strided_view.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

// Each axis as "size:stride" of its parts, "1" for one place, then the offset.
std::string Text(const std::optional<StridedView>& view) {
  if (!view) return "none";
  std::string text;
  for (const StridedAxis& axis : view->axes) {
    if (!text.empty()) text += ", ";
    if (axis.empty()) text += "1";
    for (const StridedPart& part : axis) {
      text += fmt::format("{}{}:{}", &part == axis.data() ? "" : " ", part.size, part.stride);
    }
  }
  return text + fmt::format("; {}", view->offset);
}

// Follows the first operands of the graph's output to its input.
std::string ViewText(const std::string& text) {
  MemoryWeights weights;
  const StatusOr<Graph> graph = ParseGraph(text, &weights);
  if (!graph.ok()) return ToString(graph.status());
  std::vector<Edge> path;
  for (Edge edge = graph->outputs()[0].edge; graph->node(edge.node).op != OpKind::kInput;
       edge = graph->node(edge.node).inputs[0]) {
    path.push_back(edge);
  }
  std::optional<StridedView> view = DenseView(graph->type({graph->inputs()[0], 0}).shape);
  for (auto edge = path.rbegin(); view && edge != path.rend(); ++edge) {
    view = ViewOfResult(*graph, *edge, *view);
    EXPECT_TRUE(!view || view->shape() == graph->type(*edge).shape) << text;
  }
  return Text(view);
}

TEST(StridedView, FollowsMovements) {
  const std::pair<const char*, const char*> cases[] = {
      {"input x f32[2,3,4]\noutput x\n", "2:12, 3:4, 4:1; 0"},
      {"input x f32[2,3,4]\noutput transpose(x) perm=[2,0,1]\n", "4:1, 2:12, 3:4; 0"},
      {"input x f32[6,4]\noutput reshape(x) shape=[2,3,4]\n", "2:12, 3:4, 4:1; 0"},
      {"input x f32[1,6,4]\noutput reshape(x) shape=[24,1]\n", "24:1, 1; 0"},
      {"input x f32[2,3]\noutput reshape(transpose(x) perm=[1,0]) shape=[6]\n", "3:1 2:3; 0"},
      {"input x f32[4,3]\noutput reshape(transpose(x) perm=[1,0]) shape=[6,2]\n",
       "3:1 2:6, 2:3; 0"},
      {"input x f32[2,3]\noutput reshape(transpose(x) perm=[1,0]) shape=[2,3]\n", "none"},
      {"input x f32[5,6]\noutput slice(x) axes=[1] starts=[-2] ends=[100] steps=[1]\n",
       "5:6, 2:1; 4"},
      {"input x f32[5,6]\noutput slice(x) axes=[0,1] starts=[4,1] ends=[-100,6] steps=[-2,2]\n",
       "3:-12, 3:2; 25"},
      {"input x f32[5,6]\na, b, c = split(x) axis=1 sizes=[1,2,3]\noutput c\n", "5:6, 3:1; 3"},
      {"input x f32[3,5]\ni = const i64[] {-1}\noutput gather(x, i) axis=0\n", "5:1; 10"},
      {"input x f32[3,5]\ni = const i32[1,1] {2}\noutput gather(x, i) axis=1\n", "3:5, 1, 1; 2"},
      {"input x f32[3,5]\ni = const i64[2] {0,1}\noutput gather(x, i) axis=1\n", "none"},
      {"input x f32[3,5]\ninput i i64[]\noutput gather(x, i) axis=1\n", "none"},
      {"input x f32[3,1]\noutput expand(x) shape=[2,3,4]\n", "2:0, 3:1, 4:0; 0"},
      {"input x f32[3]\noutput neg(x)\n", "none"},
      {"input x f32[0,3]\noutput reshape(x) shape=[3,0]\n", "none"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(ViewText(text), expected) << text;
}

// The forms that decoders have: heads of a joined product, heads that several others share.
TEST(StridedView, FollowsHeads) {
  EXPECT_EQ(ViewText("input x f32[1,7,24]\nq, k, v = split(x) axis=2 sizes=[8,8,8]\n"
                     "output transpose(reshape(k) shape=[1,7,2,4]) perm=[0,2,3,1]\n"),
            "1, 2:4, 4:1, 7:24; 8");
  EXPECT_EQ(ViewText("input x f32[1,7,24]\ni = const i64[] {2}\n"
                     "h = transpose(reshape(x) shape=[1,7,3,2,4]) perm=[2,0,3,1,4]\n"
                     "output gather(h, i) axis=0\n"),
            "1, 2:4, 7:24, 4:1; 16");
  EXPECT_EQ(ViewText("input x f32[1,2,7,4]\n"
                     "e = expand(reshape(x) shape=[1,2,1,7,4]) shape=[1,2,3,7,4]\n"
                     "output reshape(e) shape=[1,6,7,4]\n"),
            "1, 2:28 3:0, 7:4, 4:1; 0");
  EXPECT_EQ(ViewText("input x f32[1,2,7,4]\ni = const i64[] {4}\n"
                     "e = expand(reshape(x) shape=[1,2,1,7,4]) shape=[1,2,3,7,4]\n"
                     "output gather(reshape(e) shape=[1,6,7,4], i) axis=1\n"),
            "1, 7:4, 4:1; 28");
  EXPECT_EQ(ViewText("input x f32[1,2,7,4]\n"
                     "e = expand(reshape(x) shape=[1,2,1,7,4]) shape=[1,2,3,7,4]\n"
                     "output slice(reshape(e) shape=[1,6,7,4]) axes=[1] starts=[1] ends=[3] "
                     "steps=[1]\n"),
            "none");
}

TEST(StridedView, FollowsAPathFromTheReaderBack) {
  const Graph graph = *ParseGraph(
      "input x f32[2,6]\na, b = split(x) axis=1 sizes=[2,4]\nr = reshape(b) shape=[2,2,2]\n"
      "output y = transpose(r) perm=[2,0,1]\n");
  const Edge y = graph.outputs()[0].edge, r = graph.node(y.node).inputs[0],
             b = graph.node(r.node).inputs[0], x{graph.inputs()[0], 0};
  const std::vector<Edge> path = {y, r, b};
  EXPECT_EQ(Text(ViewBehind(graph, x, path, {2, 2, 2})), "2:1, 2:6, 2:2; 2");
  EXPECT_EQ(Text(ViewBehind(graph, x, path, {3, 2, 2, 2})), "3:0, 2:1, 2:6, 2:2; 2");
  EXPECT_EQ(Text(ViewBehind(graph, x, path, {2, 2})), "none");
  EXPECT_EQ(Text(ViewBehind(graph, x, {}, {2, 6})), "2:6, 6:1; 0");
}

TEST(StridedView, Broadcasts) {
  const StridedView view = DenseView({3, 1});
  EXPECT_EQ(Text(BroadcastView(view, {2, 3, 4})), "2:0, 3:1, 4:0; 0");
  EXPECT_EQ(Text(BroadcastView(view, {4, 3, 1})), "4:0, 3:1, 1; 0");
  EXPECT_EQ(Text(BroadcastView(view, {2, 4})), "none");
  EXPECT_EQ(Text(BroadcastView(view, {3})), "none");
}

}  // namespace
}  // namespace ag
