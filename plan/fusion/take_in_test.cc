#include "plan/fusion/take_in.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/plan.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

DeviceSpec ViewsSpec() {
  StatusOr<DeviceSpec> spec = ParseDeviceSpec(
      "name views\ndtypes f32,bool,i64\ncores 1\nflops_per_second 1e9\nbytes_per_second 1e9\n"
      "launch_ns 1000\nalignment_bytes 64\npattern dense = MatMul [Add] layouts plain\n"
      "pattern rotary = Concat< Mul& Add& layouts plain\n"
      "pattern attention = MatMul< [Add|Sub|Mul|Div|Where&]+ Softmax MatMul&< [Transpose&] "
      "layouts plain\npattern chain = {elementwise}+ layouts plain\n"
      "pattern softmax = Softmax layouts plain\npattern move = {movement} layouts plain\n");
  AG_CHECK(spec.ok());
  return *std::move(spec);
}

// Returns the groups but the views.
std::string GroupsButViews(const std::string& text, const GroupingOptions& options = {}) {
  const Graph graph = GraphOf(text);
  const DeviceSpec spec = ViewsSpec();
  RooflineTimes times(spec);
  const auto groups = FormGroups(graph, spec, {}, times, options);
  if (!groups.ok()) return ToString(groups.status());
  std::vector<std::string> kept;
  for (const std::string& group : Summary(graph, *groups)) {
    if (!group.starts_with(kViewPattern)) kept.push_back(group);
  }
  return Join(kept, "; ");
}

const std::string kScoresText = "p = softmax(matmul(q, k)) axis=3\n";
const std::string kBackText = "output transpose(matmul(p, v)) perm=[0,2,1,3]\n";

TEST(TakeIn, TakesSlicesOfAJoinedProduct) {
  const std::string head = "input x f32[1,6,48]\n";
  EXPECT_EQ(GroupsButViews(head +
                           "a, b, c = split(x) axis=2 sizes=[16,16,16]\n"
                           "q = transpose(reshape(a) shape=[1,6,2,8]) perm=[0,2,1,3]\n"
                           "k = transpose(reshape(b) shape=[1,6,2,8]) perm=[0,2,3,1]\n"
                           "v = transpose(reshape(c) shape=[1,6,2,8]) perm=[0,2,1,3]\n" +
                           kScoresText + kBackText),
            "attention Split+Reshape+Transpose+Reshape+Transpose+MatMul+Softmax+Reshape+Transpose+"
            "MatMul+Transpose");
  const std::string gathers =
      "i = const i64[] {0}\nj = const i64[] {1}\nl = const i64[] {-1}\n"
      "h = transpose(reshape(x) shape=[1,6,3,2,8]) perm=[2,0,3,1,4]\n"
      "q = gather(h, i) axis=0\nk = transpose(gather(h, j) axis=0) perm=[0,1,3,2]\n"
      "v = gather(h, l) axis=0\n";
  EXPECT_EQ(GroupsButViews(head + gathers + kScoresText + kBackText),
            "attention Transpose+Gather+Gather+Transpose+MatMul+Softmax+Gather+MatMul+Transpose");
  // What others read stays outside, with all in front of it.
  EXPECT_EQ(GroupsButViews(head + gathers + kScoresText + "output v\n" + kBackText),
            "move Transpose; move Gather; "
            "attention Gather+Gather+Transpose+MatMul+Softmax+MatMul+Transpose");
  EXPECT_EQ(GroupsButViews(head + gathers + kScoresText + kBackText, {.grouped = false}),
            "move Transpose; move Gather; move Gather; move Transpose; dense MatMul; "
            "softmax Softmax; move Gather; dense MatMul; move Transpose");
}

TEST(TakeIn, TakesHeadsThatSeveralShareAndScales) {
  const std::string head =
      "input q f32[1,6,5,8]\ninput y f32[1,2,5,8]\ninput z f32[1,2,5,8]\n"
      "e = expand(reshape(y) shape=[1,2,1,5,8]) shape=[1,2,3,5,8]\n"
      "f = expand(reshape(z) shape=[1,2,1,5,8]) shape=[1,2,3,5,8]\n"
      "k = transpose(reshape(e) shape=[1,6,5,8]) perm=[0,1,3,2]\n"
      "v = reshape(f) shape=[1,6,5,8]\n";
  // The views in front stay outside.
  EXPECT_EQ(GroupsButViews(head + kScoresText + kBackText),
            "attention Expand+Reshape+Transpose+MatMul+Softmax+Expand+Reshape+MatMul+Transpose");
  const std::string scaled =
      "c = const f32[] {0.5}\ninput w f32[1,6,5,8]\ninput k f32[1,6,8,5]\n"
      "input v f32[1,6,5,8]\nq = slice(mul(w, c)) axes=[1] starts=[0] ends=[6] steps=[1]\n";
  EXPECT_EQ(GroupsButViews(scaled + kScoresText + kBackText),
            "attention Mul+Slice+MatMul+Softmax+MatMul+Transpose");
  const std::string two =
      "c = const f32[8] {1,2,3,4,5,6,7,8}\ninput w f32[1,6,5,8]\ninput k f32[1,6,8,5]\n"
      "input v f32[1,6,5,8]\nq = mul(w, c)\n";
  EXPECT_EQ(GroupsButViews(two + kScoresText + kBackText),
            "chain Mul; attention MatMul+Softmax+MatMul+Transpose");
}

TEST(TakeIn, LeavesWhatDoesNotLieByStrides) {
  // The heads of a reshaped transpose have tokens that are not one stride apart.
  EXPECT_EQ(GroupsButViews("input q f32[1,2,6,8]\ninput x f32[1,3,2,2,8]\ninput v f32[1,2,6,8]\n"
                           "t = transpose(x) perm=[0,2,3,1,4]\n"
                           "k = transpose(reshape(t) shape=[1,2,6,8]) perm=[0,1,3,2]\n" +
                           kScoresText + kBackText),
            "move Transpose; attention Transpose+MatMul+Softmax+MatMul+Transpose");
  EXPECT_EQ(GroupsButViews("input q f32[1,2,6,8]\ninput x f32[1,2,9,8]\ninput v f32[1,2,6,8]\n"
                           "i = const i64[6] {0,2,4,6,8,7}\n"
                           "k = transpose(gather(x, i) axis=2) perm=[0,1,3,2]\n" +
                           kScoresText + kBackText),
            "move Gather; attention Transpose+MatMul+Softmax+MatMul+Transpose");
}

TEST(TakeIn, TakesRotaryEmbeddings) {
  const std::string head =
      "input x f32[1,6,2,8]\nc = const f32[1,1,6,8] seed 1\ns = const f32[1,1,6,8] seed 2\n"
      "t = transpose(x) perm=[0,2,1,3]\n";
  const std::string halves =
      "a = slice(t) axes=[3] starts=[0] ends=[4] steps=[1]\n"
      "b = slice(t) axes=[3] starts=[4] ends=[8] steps=[1]\n";
  EXPECT_EQ(
      GroupsButViews(head + halves + "output add(mul(t, c), mul(concat(neg(b), a) axis=3, s))\n"),
      "rotary Transpose+Mul+Slice+Neg+Slice+Concat+Mul+Add");
  EXPECT_EQ(GroupsButViews(head + halves +
                           "output add(mul(concat(neg(b), a) axis=3, s), mul(c, t))\noutput b\n"),
            "move Transpose; move Slice; rotary Neg+Slice+Concat+Mul+Mul+Add");
  // Neighbours in the place of halves have gaps between them.
  const std::string neighbours =
      "a = slice(t) axes=[3] starts=[0] ends=[8] steps=[2]\n"
      "b = slice(t) axes=[3] starts=[1] ends=[8] steps=[2]\n";
  EXPECT_EQ(GroupsButViews(head + neighbours +
                           "output add(mul(t, c), mul(concat(neg(b), a) axis=3, s))\n")
                .find("rotary Transpose"),
            std::string::npos);
}

TEST(TakeIn, TakesMasks) {
  const std::string head =
      "input q f32[1,2,6,8]\ninput k f32[1,2,8,6]\ninput v f32[1,2,6,8]\n"
      "n = const f32[] {-inf}\ns = matmul(q, k)\n";
  const std::string mask = "m = const bool[1,1,6,6] seed 1\n";
  EXPECT_EQ(GroupsButViews(head + mask + "p = softmax(where(m, s, n)) axis=3\n" + kBackText),
            "attention MatMul+Where+Softmax+MatMul+Transpose");
  EXPECT_EQ(GroupsButViews(head + mask + "p = softmax(where(m, n, s)) axis=3\n" + kBackText),
            "attention MatMul+Where+Softmax+MatMul+Transpose");
  EXPECT_EQ(GroupsButViews(head +
                           "input m bool[1,1,1,6]\ninput b f32[6]\n"
                           "p = softmax(where(m, sub(s, b), n)) axis=3\n" +
                           kBackText),
            "attention MatMul+Sub+Where+Softmax+MatMul+Transpose");
  // Scores on the right of a difference, and replaced by other scores.
  EXPECT_EQ(GroupsButViews(head + "input b f32[6]\np = softmax(sub(b, s)) axis=3\n" + kBackText)
                .find("attention"),
            std::string::npos);
  EXPECT_EQ(GroupsButViews(head + mask +
                           "input b f32[1,2,6,6]\np = softmax(where(m, s, b)) axis=3\n" + kBackText)
                .find("attention"),
            std::string::npos);
}

}  // namespace
}  // namespace ag
