#include "graph/passes/clean_up.h"

#include <gtest/gtest.h>

#include "graph/passes/cut_opaque.h"
#include "graph/reference/evaluate.h"
#include "graph/testing/random_graph.h"
#include "graph/text_form.h"

namespace ag {
namespace {

struct Case {
  std::string name;
  std::string before;
  std::string after;
};

std::string Text(const StatusOr<Graph>& graph) {
  return graph.ok() ? FormatGraph(*graph) : ToString(graph.status());
}

std::string Canonical(const std::string& text) { return Text(ParseGraph(text)); }

constexpr std::string_view kInputs = "input x f32[2,3,4]\ninput y f32[2,3,4]\n";

using Pass = StatusOr<Graph> (*)(const Graph&, std::vector<NodeId>* place);

void ExpectCases(std::span<const Case> cases, Pass pass) {
  for (const Case& c : cases) {
    const std::string inputs(kInputs);
    const Graph before = ParseGraph(inputs + c.before).value();
    EXPECT_EQ(Text(pass(before, nullptr)), Canonical(inputs + c.after)) << c.name;
  }
}

TEST(DedupeTest, Cases) {
  const Case cases[] = {
      {"equal nodes", "a = relu(x)\nb = relu(x)\noutput \"z\" = sub(a, b)",
       "a = relu(x)\noutput \"z\" = sub(a, a)"},
      {"other operand", "output \"z\" = sub(relu(x), relu(y))",
       "output \"z\" = sub(relu(x), relu(y))"},
      {"other attribute", "output \"z\" = sub(leaky_relu(x) alpha=0.5, leaky_relu(x) alpha=0.25)",
       "output \"z\" = sub(leaky_relu(x) alpha=0.5, leaky_relu(x) alpha=0.25)"},
      {"equal constants", "output \"z\" = sub(mul(x, const f32 {2}), mul(y, const f32 {2}))",
       "c = const f32 {2}\noutput \"z\" = sub(mul(x, c), mul(y, c))"},
      {"constants stand last", "output \"z\" = mul(const f32 {2}, x)",
       "output \"z\" = mul(x, const f32 {2})"},
      {"all outputs of a split",
       "a, b = split(x) axis=1 sizes=[1,2]\nc, d = split(x) axis=1 sizes=[1,2]\n"
       "output \"z\" = concat(a, d) axis=1",
       "a, b = split(x) axis=1 sizes=[1,2]\noutput \"z\" = concat(a, b) axis=1"},
      {"opaque nodes stay apart", "output \"z\" = sub(opaque(x) -> f32, opaque(x) -> f32)",
       "output \"z\" = sub(opaque(x) -> f32, opaque(x) -> f32)"},
  };
  ExpectCases(cases, Dedupe);
}

TEST(DedupeTest, CommutedOperandsBecomeEqual) {
  const std::string inputs(kInputs);
  const Graph g = ParseGraph(inputs + "output \"z\" = sub(add(x, y), add(y, x))").value();
  EXPECT_EQ(Dedupe(g).value().size(), 4);
  const Graph xy = ParseGraph(inputs + "output \"z\" = add(x, exp(y))").value();
  const Graph yx = ParseGraph(inputs + "output \"z\" = add(exp(y), x)").value();
  EXPECT_NE(xy.digest(), yx.digest());
  EXPECT_EQ(Dedupe(xy).value().digest(), Dedupe(yx).value().digest());
}

TEST(RemoveNoOpsTest, Cases) {
  const Case cases[] = {
      {"identity transpose", "output \"z\" = relu(transpose(x) perm=[0,1,2])",
       "output \"z\" = relu(x)"},
      {"transposes that undo each other",
       "output \"z\" = relu(transpose(transpose(x) perm=[2,0,1]) perm=[1,2,0])",
       "output \"z\" = relu(x)"},
      {"transposes merge", "output \"z\" = transpose(transpose(x) perm=[2,0,1]) perm=[2,0,1]",
       "output \"z\" = transpose(x) perm=[1,2,0]"},
      {"same reshape", "output \"z\" = relu(reshape(x) shape=[2,3,4])", "output \"z\" = relu(x)"},
      {"reshapes merge", "output \"z\" = reshape(reshape(x) shape=[6,4]) shape=[24]",
       "output \"z\" = reshape(x) shape=[24]"},
      {"reshapes back", "output \"z\" = relu(reshape(reshape(x) shape=[6,4]) shape=[2,3,4])",
       "output \"z\" = relu(x)"},
      {"same expand", "output \"z\" = relu(expand(x) shape=[2,3,4])", "output \"z\" = relu(x)"},
      {"whole slice", "output \"z\" = relu(slice(x) axes=[1] starts=[-3] ends=[99] steps=[1])",
       "output \"z\" = relu(x)"},
      {"slice backwards stays",
       "output \"z\" = slice(x) axes=[1] starts=[-1] ends=[-99] steps=[-1]",
       "output \"z\" = slice(x) axes=[1] starts=[-1] ends=[-99] steps=[-1]"},
      {"empty pad", "output \"z\" = relu(pad(x) pads=[0,0,0,0,0,0])", "output \"z\" = relu(x)"},
      {"pad that shifts stays", "output \"z\" = pad(x) pads=[1,0,0,-1,0,0]",
       "output \"z\" = pad(x) pads=[1,0,0,-1,0,0]"},
      {"same cast", "output \"z\" = relu(cast(x) to=f32)", "output \"z\" = relu(x)"},
      {"concat of one", "output \"z\" = relu(concat(x) axis=1)", "output \"z\" = relu(x)"},
      {"split into one", "output \"z\" = relu(split(x) axis=1 sizes=[3])",
       "output \"z\" = relu(x)"},
      {"no-op at an output", "output \"z\" = cast(x) to=f32", "output \"z\" = x"},
  };
  ExpectCases(cases, RemoveNoOps);
}

// Every edge replaced by every edge of its type, flattened and reshaped back behind an operator or
// none.
TEST(RemoveNoOpsTest, InAPatchIsAsInTheWholeGraph) {
  int removed = 0, cycles = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = RemoveNoOps(RandomGraph(seed, nullptr, {.nodes = 20})).value();
    GraphPatch patch(graph);
    for (NodeId from = 0; from < graph.size(); ++from) {
      for (NodeId of = 0; of < 2 * graph.size(); ++of) {
        const Edge source{of / 2, 0};
        const TensorType& type = graph.type({from, 0});
        if (graph.type(source) != type) continue;
        SCOPED_TRACE(fmt::format("{}: {} by {}", seed, from, of));
        patch.Clear();
        Edge to = source;
        if (of % 2 == 1) to.node = patch.Add(OpKind::kRelu, {&source, 1}).value_or(source.node);
        const Ints shape(type.shape.begin(), type.shape.end());
        for (const Ints& next : {Ints{-1}, shape}) {
          to = {patch.Add(OpKind::kReshape, {&to, 1}, {{"shape", next}}).value(), 0};
        }
        ASSERT_TRUE(patch.Replace({from, 0}, to).ok());
        const StatusOr<Graph> raw = patch.Build();
        ASSERT_TRUE(RemoveNoOps(&patch).ok());
        const StatusOr<Graph> found = patch.Build();
        ASSERT_EQ(found.ok(), raw.ok());
        ASSERT_EQ(patch.Hash().ok(), raw.ok());
        cycles += !raw.ok();
        if (!raw.ok()) continue;
        const Graph wanted = RemoveNoOps(*raw).value();
        ASSERT_EQ(FormatGraph(*found), FormatGraph(wanted));
        EXPECT_EQ(*patch.Hash(), HashOfStructure(wanted));
        removed += wanted.size() < raw->size();
      }
    }
  }
  EXPECT_GT(removed, 1000);
  EXPECT_GT(cycles, 100);
}

std::vector<Tensor> RandomInputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.node(id).outputs[0], static_cast<uint64_t>(id) + 1));
  }
  return inputs;
}

TEST(CleanUpTest, PassesKeepTheMeaning) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    MemoryWeights weights;
    const Graph g = RandomGraph(seed, &weights, {.nodes = 20});
    const Graph clean = RemoveNoOps(Dedupe(g).value()).value();
    const Graph merged = Dedupe(g).value();
    EXPECT_TRUE(Dedupe(merged).value().SharesAll(merged));  // Nothing is left to merge.
    EXPECT_EQ(RemoveNoOps(clean).value().digest(), clean.digest());
    const std::vector<Tensor> inputs = RandomInputs(g);
    const auto expected = Evaluate(g, inputs, weights).value();
    const auto got = Evaluate(clean, inputs, weights).value();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].type(), expected[i].type());
      const std::vector<double> a = expected[i].ToDoubles(), b = got[i].ToDoubles();
      for (size_t k = 0; k < a.size(); ++k) {
        EXPECT_NEAR(a[k], b[k], 1e-5 * (1 + std::abs(a[k])));
      }
    }
  }
}

bool CutAll(const Node&) { return true; }

// The order of operands once followed the order of opaque nodes, and that the order of operands.
TEST(DedupeTest, OpaqueNodesInOperandsSettle) {
  for (const char* a : {"x", "y", "relu(x)", "exp(y)", "opaque(x) -> f32[2,3,4]"}) {
    for (const char* b : {"x", "y", "relu(x)", "exp(y)", "opaque(y) -> f32[2,3,4]"}) {
      const Graph graph = ParseGraph(fmt::format("{}p = opaque({}) -> f32[2,3,4]\n"
                                                 "q = opaque({}) -> f32[2,3,4]\n"
                                                 "output \"z\" = add(p, q)\n"
                                                 "output \"w\" = mul(q, exp(p))",
                                                 kInputs, a, b))
                              .value();
      const Graph once = Dedupe(graph).value();
      EXPECT_EQ(FormatGraph(Dedupe(once).value()), FormatGraph(once)) << a << " and " << b;
    }
  }
}

TEST(CutOpaqueTest, CutsAndStitches) {
  const Graph g = ParseGraph(
                      "input x f32[2]\n"
                      "a = relu(x)\nb = opaque(a, const f32[1] {3}) -> f32[2]\n"
                      "output \"y\" = add(exp(b), a)")
                      .value();
  const OpaqueCut cut = CutOpaque(g, CutAll).value();
  EXPECT_EQ(cut.nodes.size(), 1u);
  EXPECT_EQ(FormatGraph(cut.graph),
            "input x f32[2]\ninput opaque.gives.0 f32[2]\nv2 = exp(opaque.gives.0)\nv3 = relu(x)\n"
            "v4 = add(v2, v3)\noutput \"y\" = v4\noutput \"opaque.reads.0\" = v3\n");
  EXPECT_EQ(FormatGraph(Stitch(g, cut.graph, CutAll).value()), FormatGraph(g));
}

TEST(CutOpaqueTest, LeavesWhatTheDeviceRuns) {
  const Graph g = ParseGraph(
                      "input x f32[2]\n"
                      "a = opaque(x) domain=\"runs\" -> f32[2]\nb = opaque(a) -> f32[2]\n"
                      "output \"y\" = exp(b)")
                      .value();
  const IsCut is_cut = [](const Node& node) { return node.attributes->String("domain").empty(); };
  const OpaqueCut cut = CutOpaque(g, is_cut).value();
  EXPECT_EQ(cut.nodes.size(), 1u);
  EXPECT_EQ(FormatGraph(cut.graph),
            "input x f32[2]\ninput opaque.gives.0 f32[2]\nv2 = exp(opaque.gives.0)\n"
            "v3 = opaque(x) domain=runs -> f32[2]\noutput \"y\" = v2\n"
            "output \"opaque.reads.0\" = v3\n");
  EXPECT_EQ(FormatGraph(Stitch(g, cut.graph, is_cut).value()), FormatGraph(g));
}

TEST(CutOpaqueTest, RandomGraphsComeBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Graph g = RandomGraph(seed, nullptr, {.nodes = 25, .opaque = true});
    const OpaqueCut cut = CutOpaque(g, CutAll).value();
    for (const Node& node : cut.graph.nodes()) EXPECT_NE(node.op, OpKind::kOpaque);
    // Constants that both sides read occur twice until they are merged.
    const Graph stitched = Dedupe(Stitch(g, cut.graph, CutAll).value()).value();
    EXPECT_EQ(FormatGraph(stitched), FormatGraph(Dedupe(g).value())) << "seed " << seed;
  }
}

TEST(CutOpaqueTest, RefusesWhatClosesACycle) {
  const Graph g = ParseGraph(
                      "input x f32[2]\na = relu(x)\nb = opaque(a) -> f32[2]\n"
                      "output \"y\" = exp(b)")
                      .value();
  // One split gives both outputs: the opaque node would read a result that depends on it.
  const Graph joined = ParseGraph(
                           "input x f32[2]\ninput b f32[2]\n"
                           "p, q = split(concat(exp(b), relu(x)) axis=0) axis=0 sizes=[2,2]\n"
                           "output \"y\" = p\noutput \"a\" = q")
                           .value();
  EXPECT_EQ(Stitch(g, joined, CutAll).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ToString(Stitch(g, g, CutAll).status()),
            "INVALID_ARGUMENT: stitch: expected 2 inputs and 2 outputs, got 1 and 1");
}

}  // namespace
}  // namespace ag
