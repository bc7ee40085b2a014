#include "plan/plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "graph/operators_of.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_format.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/segmenting.h"
#include "plan/segments.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Two branches on two streams. Groups: 0 exp, 1 relu, 2 neg, 3 add.
struct TwoBranches {
  TwoBranches()
      : graph(GraphOf("input x f32[64]\na = exp(x)\noutput \"y\" = add(relu(a), neg(a))\n")) {
    RooflineTimes times(SmallSpec());
    const auto groups = *FormGroups(graph, SmallSpec(), {}, times, {.grouped = false});
    plan = *CompletePlan(
        graph, groups,
        GreedyStreams(MakeScheduleProblem(graph, groups, {100, 50, 80, 10}, SmallSpec(), {}, 2)),
        SmallSpec(), {});
  }
  Graph graph;
  Plan plan;
};

// A plan of four samples that runs one by one.
struct OneByOne {
  OneByOne() : graph(GraphOf("input x f32[4,8]\noutput y = relu(softmax(x) axis=1)\n")) {
    const Graph part = GraphOf("input x f32[1,8]\noutput y = relu(softmax(x) axis=1)\n");
    RooflineTimes times(SmallSpec());
    plan = InstancesOf(*MakePlan(part, SmallSpec(), {}, times, {}, 1), graph, 4);
  }
  Graph graph;
  Plan plan;
};

TEST(PlanOfInstances, IsOfOnePart) {
  const OneByOne made;
  EXPECT_EQ(ToString(ValidatePlan(made.graph, made.plan, SmallSpec())), "OK");
  EXPECT_EQ(SizesOf(made.plan).arena_bytes, 32);  // One row.
  const std::string text = FormatPlan(made.graph, made.plan);
  EXPECT_NE(text.find("\ninstances 4: each on an equal part of the batch\n"), text.npos) << text;
  Plan whole = made.plan;
  whole.segments[0].instances = 1;
  EXPECT_NE(ToString(ValidatePlan(made.graph, whole, SmallSpec())), "OK");
  whole.segments[0].instances = 3;
  EXPECT_EQ(Message(ValidatePlan(made.graph, whole, SmallSpec())),
            "plan: 3 instances: batch 4: not a multiple of 3");
  whole.segments[0].instances = 0;
  EXPECT_EQ(Message(ValidatePlan(made.graph, whole, SmallSpec())),
            "plan: 0 instances: expected at least 1");
  const Graph mixed = GraphOf("input x f32[4,8]\noutput y = relu(softmax(x) axis=0)\n");
  whole = InstancesOf(made.plan.segments[0].plan, mixed, 4);
  EXPECT_EQ(Message(ValidatePlan(mixed, whole, SmallSpec())),
            "plan: 4 instances: softmax (node 1) -> f32[4,8]: mixes the samples of the batch");
}

// Eight samples: two at a time through two convolutions, then all through the rest, which also
// reads the first convolution. The segments pass two tensors, one of them past the second segment.
struct ThreeSegments {
  ThreeSegments()
      : graph(GraphOf(
            "input x f32[8,16,4,4]\nw = const f32[16,16,3,3] seed 1\nv = const f32[16] seed 2\n"
            "a = conv(x, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n"
            "b = conv(a, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n"
            "output y = add(softmax(b) axis=1, a)\n")) {
    const std::vector<NodeId> nodes = OperatorsOf(graph);
    RooflineTimes times(SmallSpec());
    const auto make = [&](const Graph& piece, int32_t) {
      return MakePlan(piece, SmallSpec(), {}, times, {.layout = Layout::kBlocked16}, 1);
    };
    auto made = MakeSegmentsPlan(
        graph, SmallSpec(),
        {{{nodes[0]}, 4, {}}, {{nodes[1]}, 2, {}}, {{nodes[2], nodes[3]}, 1, {}}}, make);
    AG_CHECK(made.ok());
    plan = *std::move(made);
  }
  Graph graph;
  Plan plan;
};

TEST(PlanOfSegments, IsOfPiecesOnParts) {
  const ThreeSegments made;
  EXPECT_EQ(ToString(ValidatePlan(made.graph, made.plan, SmallSpec())), "OK");
  const std::vector<GraphPiece> pieces = *PiecesOf(made.graph, made.plan);
  ASSERT_EQ(pieces.size(), 3U);
  const std::vector<NodeId> nodes = OperatorsOf(made.graph);
  EXPECT_EQ(pieces[0].graph.type({pieces[0].graph.inputs()[0], 0}).shape, (Shape{2, 16, 4, 4}));
  EXPECT_EQ(pieces[1].graph.type({pieces[1].graph.inputs()[0], 0}).shape, (Shape{4, 16, 4, 4}));
  EXPECT_EQ(pieces[2].inputs, (std::vector<Edge>{{nodes[0], 0}, {nodes[1], 0}}));
  const std::vector<Between> between = TensorsBetween(made.graph, pieces);
  ASSERT_EQ(between.size(), 2U);
  EXPECT_EQ(between[0].edge, (Edge{nodes[0], 0}));
  EXPECT_EQ(between[0].last_reader, 2U);
  EXPECT_EQ(between[1].writer, 1U);
  const std::string text = FormatPlan(made.graph, made.plan);
  EXPECT_NE(text.find(": 3 segments\nsegment 0: nodes "), text.npos) << text;
  EXPECT_NE(text.find(", instances 4, "), text.npos) << text;
}

TEST(PlanOfSegments, NamesWhatDoesNotFit) {
  const ThreeSegments made;
  const NodeId first = OperatorsOf(made.graph)[0];
  const struct {
    std::function<void(Plan*)> spoil;
    std::string message;
  } cases[] = {
      {[](Plan* p) { p->segments[1].instances = 3; },
       "plan: segment 0: 4 instances are no multiple of the next one's 3"},
      {[](Plan* p) { p->segments.pop_back(); }, "plan: node *: in no segment"},
      {[](Plan* p) { p->segments[0].nodes.clear(); }, "plan: segment 0: no nodes"},
      {[&](Plan* p) { p->segments[1].nodes.insert(p->segments[1].nodes.begin(), first); },
       "plan: node *: in segments 0 and 1"},
      {[](Plan* p) { p->segments[0].nodes[0] = 0; },
       "plan: segment 0: node 0 is no operator that runs"},
      {[](Plan* p) { std::swap(p->segments[0].nodes, p->segments[1].nodes); },
       "plan: segment 0: reads node *"},
      {[](Plan* p) { p->groups.emplace_back(); }, "plan: groups beside segments"},
      {[](Plan* p) { p->segments[2].plan.policy.cold_cache = true; }, "plan: segment 2: policy *"},
      {[](Plan* p) { p->segments[1].plan.graph = Digest(); },
       "segment 1: plan: made for graph 000000000000, got *"},
      {[](Plan* p) { p->segments[1].plan.segments.resize(1); }, "plan: segment 1: has segments"},
  };
  for (const auto& c : cases) {
    Plan plan = made.plan;
    c.spoil(&plan);
    const std::string message = Message(ValidatePlan(made.graph, plan, SmallSpec()));
    const std::string wanted = c.message.substr(0, c.message.find('*'));
    EXPECT_EQ(message.substr(0, wanted.size()), wanted);
  }
}

TEST(PlanOfSegments, IsVersionTwo) {
  for (const Plan& plan : {OneByOne().plan, ThreeSegments().plan}) {
    std::string bytes = EncodePlan(plan);
    EXPECT_EQ(bytes[4], 2);
    const auto back = DecodePlan(bytes);
    ASSERT_EQ(ToString(back.status()), "OK");
    EXPECT_EQ(back->segments.size(), plan.segments.size());
    EXPECT_EQ(EncodePlan(*back), bytes);
    EXPECT_EQ(EncodePlan(plan.segments[0].plan)[4], 1);
    bytes[4] = 4;
    EXPECT_EQ(Message(DecodePlan(bytes).status()), "plan: expected version 1 to 3, got 4");
  }
}

// Two convolutions, each on half of SmallSpec's cores.
Plan TwoBeside(const Graph& graph) {
  RooflineTimes times(SmallSpec());
  const GroupingOptions grouping{.cores = CoresBeside(SmallSpec(), 2)};
  const auto make = [&](const Graph& piece, int32_t) {
    return MakePlan(piece, SmallSpec(), {}, times, grouping, 1);
  };
  const std::vector<NodeId> nodes = OperatorsOf(graph);
  auto made =
      MakeSegmentsPlan(graph, SmallSpec(), {{{nodes[0]}, 4, {}}, {{nodes[1]}, 2, {}}}, make);
  AG_CHECK(made.ok());
  made->beside = 2;
  return *std::move(made);
}

TEST(PlanOfSegments, RunsBesideEachOtherAreVersionThree) {
  const Graph graph = GraphOf(
      "input x f32[8,16,4,4]\nw = const f32[16,16,3,3] seed 1\nv = const f32[16] seed 2\n"
      "a = conv(x, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n"
      "output y = conv(a, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n");
  const Plan plan = TwoBeside(graph);
  EXPECT_EQ(ToString(ValidatePlan(graph, plan, SmallSpec())), "OK");
  const std::string bytes = EncodePlan(plan);
  EXPECT_EQ(bytes[4], 3);
  const auto back = DecodePlan(bytes);
  ASSERT_EQ(ToString(back.status()), "OK");
  EXPECT_EQ(back->beside, 2);
  EXPECT_EQ(EncodePlan(*back), bytes);
  const std::string text = FormatPlan(graph, plan);
  EXPECT_NE(text.find(": 2 segments, 2 beside each other\n"), text.npos) << text;
  const struct {
    std::function<void(Plan*)> spoil;
    std::string message;
  } cases[] = {
      {[](Plan* p) { p->beside = 0; }, "plan: 0 runs beside each other, of 2 on 4 cores"},
      {[](Plan* p) { p->beside = 3; }, "segment 0: plan: group 0: 2 cores, its share is 1"},
      {[](Plan* p) { p->segments[1].instances = 1; }, "segment 1: plan: made for graph *"},
      {[](Plan* p) { p->segments[0].plan.groups[0].cores = 3; },
       "segment 0: plan: group 0: 3 cores, its share is 2"},
      {[](Plan* p) { p->segments[1].plan.groups[0].cores = 0; },
       "segment 1: plan: group 0: 0 cores, its share is 2"},
      {[](Plan* p) { *p = p->segments[0].plan, p->beside = 2; }, "plan: *"},
  };
  for (const auto& c : cases) {
    Plan spoiled = plan;
    c.spoil(&spoiled);
    const std::string message = Message(ValidatePlan(graph, spoiled, SmallSpec()));
    const std::string wanted = c.message.substr(0, c.message.find('*'));
    EXPECT_EQ(message.substr(0, wanted.size()), wanted);
  }
}

// One mistake in Made::plan, and the message of ValidatePlan ("*": the rest does not matter).
struct Spoiled {
  const char* name;
  std::function<void(Plan*)> spoil;
  const char* message;
};
const Spoiled kSpoiled[] = {
    {"another graph", [](Plan* p) { p->graph = Digest(); },
     "plan: made for graph 000000000000, got *"},
    {"node in two groups", [](Plan* p) { p->groups[1].nodes = {1}; },
     "plan: node 1: in groups 0 and 1"},
    {"node in no group",
     [](Plan* p) {
       p->groups.pop_back();
       p->streams[0].launches.pop_back();
     },
     "plan: node 4: Add is in no group"},
    {"an input as a node", [](Plan* p) { p->groups[0].nodes = {0}; },
     "plan: group 0: node 0 is no operator that runs"},
    {"no such node", [](Plan* p) { p->groups[0].nodes = {9}; },
     "plan: group 0: node 9 is no operator that runs"},
    {"no such pattern", [](Plan* p) { p->groups[0].pattern = "what"; },
     "plan: group 0: device small has no pattern 'what'"},
    {"wrong pattern", [](Plan* p) { p->groups[0].pattern = "conv"; },
     "plan: group 0: Exp does not fit pattern 'conv'"},
    {"missing input", [](Plan* p) { p->groups[1].inputs.clear(); },
     "plan: group 1: inputs are not what its nodes read"},
    {"missing output", [](Plan* p) { p->groups[1].outputs.clear(); },
     "plan: group 1: outputs are not what others read"},
    {"impossible layout", [](Plan* p) { p->groups[1].outputs[0].layout = Layout::kBlocked16; },
     "plan: group 1: [2:0 blocked16] cannot have that layout"},
    {"an edge that is not there",
     [](Plan* p) {
       p->groups[1].inputs[0].edge = {7, 0};
     },
     "plan: group 1: no edge 7:0"},
    {"missing wait", [](Plan* p) { p->streams[1].launches[0].waits.clear(); },
     "plan: group 1: does not wait for group 0, which it reads"},
    {"read before written",
     [](Plan* p) { std::swap(p->streams[0].launches[0], p->streams[0].launches[1]); },
     "plan: group 2: does not wait for group 0, which it reads"},
    {"waits in a circle", [](Plan* p) { p->streams[0].launches[0].waits = {1}; },
     "stream 0: group 0 waits for itself in a circle"},
    {"launched twice",
     [](Plan* p) {
       p->streams[1].launches.push_back({3, {}});
     },
     "group 3: launched twice"},
    {"not launched", [](Plan* p) { p->streams[0].launches.pop_back(); },
     "plan: group 3: not launched"},
    {"launch out of range", [](Plan* p) { p->streams[0].launches[0].group = -1; },
     "stream 0: launches group -1 of 4"},
    {"wait out of range", [](Plan* p) { p->streams[1].launches[0].waits = {17}; },
     "group 1: waits for group 17, never launched"},
    {"too many cores", [](Plan* p) { p->streams[0].cores = 5; },
     "plan: a stream of 5 cores, the device has 4"},
    {"too many streams", [](Plan* p) { p->streams.resize(5); },
     "plan: 5 streams, the device has 4"},
    {"unplaced port", [](Plan* p) { p->places.erase(p->places.begin() + 1); },
     "plan: [1:0 plain]: has no place"},
    {"unsorted", [](Plan* p) { std::swap(p->places[0], p->places[1]); },
     "plan: places are not sorted"},
    {"beyond the arena", [](Plan* p) { p->arena_bytes = 700; },
     "plan: [3:0 plain]: 256 bytes at 512 do not fit a buffer of 700"},
    {"negative offset", [](Plan* p) { p->places[1].offset_bytes = -64; },
     "plan: [1:0 plain]: 256 bytes at -64 do not fit a buffer of 768"},
    {"huge offset", [](Plan* p) { p->places[1].offset_bytes = INT64_MAX - 63; },
     "plan: [1:0 plain]: 256 bytes at 9223372036854775744 do not fit a buffer of 768"},
    {"lives overlap", [](Plan* p) { p->places[2].offset_bytes = 0; },
     "plan: [1:0 plain] and [2:0 plain] share bytes while both are alive"},
    {"in the output of another", [](Plan* p) { p->places[1].kind = Place::Kind::kOutput; },
     "plan: [1:0 plain]: lies in the buffer of another tensor"},
    {"no such output", [](Plan* p) { p->places[4].index = 3; }, "plan: [4:0 plain]: output 3 of 1"},
    {"output in the arena", [](Plan* p) { p->places[4].kind = Place::Kind::kArena; },
     "plan: output 0: has 0 places, expected one"},
};

TEST(ValidatePlan, SaysWhatIsWrong) {
  const TwoBranches made;
  ASSERT_TRUE(ValidatePlan(made.graph, made.plan, SmallSpec()).ok());
  for (const Spoiled& c : kSpoiled) {
    Plan plan = made.plan;
    c.spoil(&plan);
    std::string message = Message(ValidatePlan(made.graph, plan, SmallSpec()));
    const std::string expected = c.message;
    if (expected.ends_with('*')) message = message.substr(0, expected.size() - 1) + "*";
    EXPECT_EQ(message, expected) << c.name;
  }
}

TEST(ValidatePlan, GroupsAreConvex) {
  TwoBranches made;
  Plan plan = made.plan;  // exp + add in one group, around relu and neg.
  plan.groups[0].nodes = {1, 4};
  plan.groups[0].inputs = {{{0, 0}}, {{2, 0}}, {{3, 0}}};
  plan.groups[0].outputs = {{{1, 0}}, {{4, 0}}};
  plan.groups.pop_back();
  plan.streams = {{0, {{0, {}}, {1, {}}, {2, {}}}}};
  EXPECT_EQ(Message(ValidatePlan(made.graph, plan, SmallSpec())),
            "plan: group 0: others read [1:0 plain], which pattern 'chain' does not allow");
  DeviceSpec spec = SmallSpec();
  for (GroupPattern& pattern : spec.patterns) pattern.steps[0].shared = true;
  EXPECT_EQ(Message(ValidatePlan(made.graph, plan, spec)),
            "plan: group 0: node 4 reads what node 2 makes of the group");
}

TEST(ValidatePlan, ViewsLieWhereTheySay) {
  const Graph graph = GraphOf(
      "input x f32[1,64]\na = softmax(x) axis=1\nb = softmax(a) axis=1\n"
      "output softmax(concat(a, b) axis=0) axis=1\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  ASSERT_EQ(plan.groups[2].pattern, kViewPattern);
  Plan spoiled = plan;
  spoiled.places[2].offset_bytes = 0;
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())),
            "plan: [2:0 plain]: does not lie inside [3:0 plain] where its view says");
  spoiled = plan;
  spoiled.streams[0].launches.push_back({2, {}});
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())),
            "plan: group 2: a view is launched");
}

TEST(ValidatePlan, AReorderIsOfOneEdge) {
  const Graph graph = GraphOf(
      "input x f32[1,16,4,4]\ninput r f32[1,16,4,4]\nw = const f32[16,16,1,1] seed 1\n"
      "b = const f32[16] seed 2\nc = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] "
      "dilations=[1,1]\noutput add(relu(c), r)\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  ASSERT_EQ(plan.groups[0].pattern, kReorderPattern);
  const std::string message = "plan: group 0: not a reorder of one edge";
  Plan spoiled = plan;
  spoiled.groups[0].inputs[0].edge = {graph.inputs()[1], 0};
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())), message);
  spoiled = plan;
  spoiled.groups[0].outputs.push_back(plan.groups[0].outputs[0]);
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())), message);
  spoiled = plan;
  spoiled.groups[0].inputs.push_back(plan.groups[0].inputs[0]);
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())), message);
}

TEST(ValidatePlan, CopiesFillFurtherOutputs) {
  const Graph graph = GraphOf(
      "input x f32[64]\nc = const f32[64] seed 1\ny = relu(x)\n"
      "output y\noutput \"again\" = y\noutput x\noutput c\n");
  RooflineTimes times(SmallSpec());
  const auto groups = *FormGroups(graph, SmallSpec(), {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), SmallSpec(), {});
  ASSERT_EQ(groups.size(), 4u);
  const Port x{{graph.inputs()[0], 0}};
  const Port y{graph.outputs()[0].edge};
  const Port c{graph.outputs()[3].edge};
  EXPECT_EQ(FindPlace(plan, x)->kind, Place::Kind::kInput);
  EXPECT_EQ(CopiesOf(graph, plan, x)[0].index, 2);
  EXPECT_EQ(FindPlace(plan, y)->index, 0);
  EXPECT_EQ(CopiesOf(graph, plan, y)[0].index, 1);
  EXPECT_EQ(CopiesOf(graph, plan, c)[0].index, 3);
  Plan spoiled = plan;
  std::erase_if(spoiled.places, [](const Place& place) { return place.index == 2; });
  EXPECT_EQ(Message(ValidatePlan(graph, spoiled, SmallSpec())),
            "plan: output 2: has 0 places, expected one");
}

TEST(PlanCodec, DecodesToTheSame) {
  TwoBranches made;
  made.plan.environment = "device=small;policy=1";
  made.plan.policy.tolerance = 0.01;
  made.plan.groups[1].kernel = "jit:avx2";
  const std::string bytes = EncodePlan(made.plan);
  const StatusOr<Plan> plan = DecodePlan(bytes);
  ASSERT_TRUE(plan.ok()) << ToString(plan.status());
  EXPECT_EQ(EncodePlan(*plan), bytes);
  EXPECT_EQ(plan->groups[1].kernel, "jit:avx2");
  EXPECT_EQ(FormatPlan(made.graph, *plan), FormatPlan(made.graph, made.plan));
  EXPECT_EQ(ToString(DecodePlan(bytes + "x").status()).substr(0, 9), "DATA_LOSS");
  EXPECT_EQ(ToString(DecodePlan("nonsense").status()),
            "DATA_LOSS: not a plan: magic is 0x736e6f6e");
}

TEST(PlanCodec, HostileBytesAreRefusedOrValidated) {
  const TwoBranches made;
  const std::string good = EncodePlan(made.plan);
  Random random(1);
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (uint64_t k = 0; k <= random.Below(3); ++k) {
      const int bit = static_cast<int>(random.Below(8));
      const size_t at = 40 + random.Below(bytes.size() - 40);
      bytes[at] = random.Below(2) == 0 ? static_cast<char>(bytes[at] ^ (1 << bit))
                                       : static_cast<char>(random.Below(6));
    }
    if (random.Below(16) == 0) bytes.resize(random.Below(bytes.size()));
    const StatusOr<Plan> plan = DecodePlan(bytes);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), StatusCode::kDataLoss);
      continue;
    }
    ++decoded;
    (void)ValidatePlan(made.graph, *plan, SmallSpec());
  }
  EXPECT_GT(decoded, 1000);
}

TEST(FormatPlan, OneLineALaunch) {
  const TwoBranches made;
  EXPECT_EQ(FormatPlan(made.graph, made.plan),
            fmt::format("plan of graph {}: 4 groups (0 views), 2 streams, arena 768 bytes\n"
                        "stream 0: cores 2\n"
                        "  0: chain Exp (0) -> 1\n"
                        "  2: chain Neg (1) -> 3\n"
                        "  3: chain Add (2, 3) -> 4  waits 1\n"
                        "stream 1: cores 2\n"
                        "  1: chain Relu (1) -> 2  waits 0\n",
                        made.graph.digest().Short()));
}

}  // namespace
}  // namespace ag
