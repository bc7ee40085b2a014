// Runs plans of random graphs in random orders on a memory of symbols. Each group writes its own
// symbols, and every reader must find them. This file does not use lives or happens-before.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/random.h"
#include "plan/format/plan_format.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/placement.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using Symbols = std::vector<uint64_t>;  // One per 4 bytes.

// The available values of a random network: f32 of [1,C,2,2], or [1,4C].
class RandomNetwork {
 public:
  explicit RandomNetwork(Random* random) : random_(*random) {}

  Graph Make(int operators) {
    values_.push_back(builder_.Input("x", {DType::kFloat32, {1, 32, 2, 2}}));
    values_.push_back(builder_.Input("y", {DType::kFloat32, {1, 16, 2, 2}}));
    for (int i = 0; i < operators; ++i) AddOne();
    const int outputs = 1 + static_cast<int>(random_.Below(12));
    for (int i = 0; i < outputs; ++i) {
      const size_t last = std::min<size_t>(values_.size(), 20);
      const Edge edge =
          random_.Below(8) == 0 ? Pick() : values_[values_.size() - 1 - random_.Below(last)];
      builder_.Output(edge, fmt::format("o{}", i));
    }
    if (random_.Below(4) == 0) builder_.Output(Constant({1, 8}), "c");
    return *builder_.Build();
  }

 private:
  Edge Pick() { return values_[random_.Below(values_.size())]; }
  Edge Constant(Shape shape) {
    const TensorType type{DType::kFloat32, std::move(shape)};
    return builder_.Constant(type, Sha256(fmt::format("{}", ++constants_)));
  }
  const Shape& ShapeOf(Edge edge) const { return builder_.type(edge).shape; }
  void Keep(StatusOr<Edge> edge) {
    if (edge.ok()) values_.push_back(*edge);
  }

  void AddConv(Edge a) {
    const int64_t channels = 8 * (1 + static_cast<int64_t>(random_.Below(4)));
    const Edge w = Constant({channels, ShapeOf(a)[1], 1, 1});
    const Edge b = Constant({channels});
    const Attributes attributes{{"strides", Ints{1, 1}},
                                {"pads", Ints{0, 0, 0, 0}},
                                {"dilations", Ints{1, 1}},
                                {"group", int64_t{1}}};
    Keep(builder_.Add1(OpKind::kConv, {a, w, b}, attributes));
  }

  void AddSplit(Edge a) {
    const int64_t half = ShapeOf(a)[1] / 2;
    const Attributes attributes{{"axis", int64_t{1}}, {"sizes", Ints{half, half}}};
    const StatusOr<NodeId> node = builder_.Add(OpKind::kSplit, {{a}}, attributes);
    if (!node.ok()) return;
    values_.push_back({*node, 0});
    values_.push_back({*node, 1});
  }

  void AddSlice(Edge a) {
    const int64_t begin = 16 * static_cast<int64_t>(random_.Below(2));
    const Attributes attributes{
        {"axes", Ints{1}}, {"starts", Ints{begin}}, {"ends", Ints{begin + 16}}, {"steps", Ints{1}}};
    if (ShapeOf(a)[1] > 16) Keep(builder_.Add1(OpKind::kSlice, {a}, attributes));
  }

  void AddOne() {
    const Edge a = Pick();
    const Edge b = Pick();
    const bool is_image = ShapeOf(a).size() == 4;
    const int64_t axis = 1;
    switch (random_.Below(8)) {
      case 0:
      case 1:
        return is_image ? AddConv(a) : Keep(builder_.Add1(OpKind::kRelu, {a}));
      case 2:
        return Keep(builder_.Add1(OpKind::kRelu, {a}));
      case 3:
        return Keep(builder_.Add1(OpKind::kAdd, {a, b}));
      case 4:
      case 5:
        return Keep(builder_.Add1(OpKind::kConcat, {a, b}, {{"axis", axis}}));
      case 6:
        return is_image && random_.Below(2) == 0 ? AddSlice(a) : AddSplit(a);
      default: {
        const Shape& shape = ShapeOf(a);
        const Ints flat{1, shape[1] * 4};
        const Ints image{1, shape[1] / 4, 2, 2};
        return Keep(builder_.Add1(OpKind::kReshape, {a}, {{"shape", is_image ? flat : image}}));
      }
    }
  }

  Random& random_;
  GraphBuilder builder_;
  std::vector<Edge> values_;
  int constants_ = 0;
};

class Machine {
 public:
  Machine(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      if (IsCopy(plan.groups[g])) continue;
      for (const Port& port : plan.groups[g].outputs) writer_[port] = static_cast<int>(g);
    }
  }

  // Runs every launch; draws the order of begins and ends from those that streams and waits allow.
  std::string Run(Random* random) {
    Reset();
    size_t left = 0;
    for (const Stream& stream : plan_.streams) left += stream.launches.size();
    std::vector<size_t> next(plan_.streams.size());
    std::vector<bool> running(plan_.streams.size()), done(plan_.groups.size());
    for (int idle = 0; left > 0 && idle < 100'000; ++idle) {
      const size_t s = random->Below(plan_.streams.size());
      if (next[s] == plan_.streams[s].launches.size()) continue;
      const Launch& launch = plan_.streams[s].launches[next[s]];
      if (running[s]) {
        End(launch.group);
        done[launch.group] = true;
        running[s] = false;
        ++next[s];
        --left;
      } else if (std::ranges::all_of(launch.waits, [&](int w) { return bool(done[w]); })) {
        Begin(launch.group);
        running[s] = true;
      }
    }
    if (left > 0) return "the plan does not end";
    CheckOutputs();
    return error_;
  }

  // Sets offset in the arena and bytes by group.
  void SetWorkspaces(std::vector<std::pair<int64_t, int64_t>> workspaces) {
    workspaces_ = std::move(workspaces);
  }

 private:
  using Buffer = std::pair<Place::Kind, int32_t>;

  // A group's own symbols in its workspace, while the group runs.
  std::span<uint64_t> WorkspaceOf(int g) {
    if (workspaces_.empty() || workspaces_[g].second == 0) return {};
    Symbols& arena = memory_[{Place::Kind::kArena, 0}];
    return std::span(arena).subspan(workspaces_[g].first / 4, workspaces_[g].second / 4);
  }
  static uint64_t WorkspaceSymbol(int g) { return ~uint64_t{0} - 1 - static_cast<uint64_t>(g); }

  size_t CellsOf(const Port& port) const {
    return LayoutBytes(graph_.type(port.edge), port.layout) / 4;
  }
  static uint64_t Symbol(const Port& port, uint64_t i) {
    const uint64_t edge = static_cast<uint64_t>(port.edge.node * 64 + port.edge.output);
    return (edge * 4 + static_cast<uint64_t>(port.layout)) << 32 | i;
  }
  Symbols Fresh(const Port& port) const {
    Symbols symbols(CellsOf(port));
    for (size_t i = 0; i < symbols.size(); ++i) symbols[i] = Symbol(port, i);
    return symbols;
  }

  // Returns the symbols that a reader must find: those of the launched writer, through views.
  Symbols Expected(const Port& port) const {
    const auto it = writer_.find(port);
    if (it == writer_.end() || plan_.groups[it->second].pattern != kViewPattern) return Fresh(port);
    const Group& view = plan_.groups[it->second];
    Symbols first = Expected(view.inputs[0]);
    if (view.nodes.empty()) return first;
    const Node& node = graph_.node(view.nodes[0]);
    if (node.op == OpKind::kConcat) {
      Symbols all;
      for (const Port& in : view.inputs) {
        const Symbols part = Expected(in);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    size_t begin = 0;  // All cuts are along channels at batch 1: dense runs.
    if (node.op == OpKind::kSlice) begin = node.IntList("starts")[0] * 4;
    if (node.op == OpKind::kSplit) begin = port.edge.output * CellsOf(port);
    return Symbols(first.begin() + begin, first.begin() + begin + CellsOf(port));
  }

  std::span<uint64_t> Cells(const Place& place) {
    Symbols& buffer = memory_[{place.kind, place.index}];
    return std::span(buffer).subspan(place.offset_bytes / 4, CellsOf(place.port));
  }

  void Reset() {
    error_.clear();
    memory_.clear();
    memory_[{Place::Kind::kArena, 0}].resize(plan_.arena_bytes / 4 + 1);
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      memory_[{Place::Kind::kInput, static_cast<int32_t>(i)}] = Fresh({{graph_.inputs()[i], 0}});
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Port port{graph_.outputs()[i].edge};
      memory_[{Place::Kind::kOutput, static_cast<int32_t>(i)}].resize(CellsOf(port));
    }
  }

  void CheckInputs(int g) {
    for (const Port& port : plan_.groups[g].inputs) {
      const Symbols expected = Expected(port);
      if (std::ranges::equal(Cells(*FindPlace(plan_, port)), expected)) continue;
      error_ =
          fmt::format("group {} finds wrong data at {}:{}", g, port.edge.node, port.edge.output);
    }
  }

  void Begin(int g) {
    CheckInputs(g);
    std::ranges::fill(WorkspaceOf(g), WorkspaceSymbol(g));
    if (IsCopy(plan_.groups[g])) return;
    for (const Port& port : plan_.groups[g].outputs) {
      std::ranges::fill(Cells(*FindPlace(plan_, port)), ~uint64_t{0});
    }
  }

  void End(int g) {
    CheckInputs(g);
    for (const uint64_t symbol : WorkspaceOf(g)) {
      if (symbol != WorkspaceSymbol(g)) error_ = fmt::format("group {} lost its workspace", g);
    }
    const Group& group = plan_.groups[g];
    for (const Port& port : group.outputs) {
      const Symbols symbols = IsCopy(group) ? Expected(port) : Fresh(port);
      if (IsCopy(group)) {
        for (const Place& place : CopiesOf(graph_, plan_, port)) {
          std::ranges::copy(symbols, Cells(place).begin());
        }
      } else {
        std::ranges::copy(symbols, Cells(*FindPlace(plan_, port)).begin());
      }
    }
  }

  void CheckOutputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Symbols expected = Expected({graph_.outputs()[i].edge});
      if (memory_[{Place::Kind::kOutput, static_cast<int32_t>(i)}] == expected) continue;
      error_ = fmt::format("output {} is wrong", i);
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  std::map<Port, int> writer_;
  std::map<Buffer, Symbols> memory_;
  std::string error_;
  std::vector<std::pair<int64_t, int64_t>> workspaces_;
};

struct Made {
  Graph graph;
  Plan plan;
};

Made MakePlan(uint64_t seed, const DeviceSpec& spec, int operators) {
  Random random(seed);
  Made made;
  made.graph = RandomNetwork(&random).Make(operators);
  RooflineTimes times(spec);
  const std::vector<Group> groups = *FormGroups(made.graph, spec, {}, times);
  std::vector<double> ns;
  for (size_t i = 0; i < groups.size(); ++i) ns.push_back(100 + 100 * random.Unit());
  const int streams = 1 + static_cast<int>(random.Below(4));
  StatusOr<Plan> plan = CompletePlan(
      made.graph, groups,
      streams == 1 ? OneStream(made.graph, groups)
                   : GreedyStreams(MakeScheduleProblem(made.graph, groups, ns, spec, {}, streams)),
      spec, {});
  EXPECT_TRUE(plan.ok()) << "seed " << seed << ": " << ToString(plan.status());
  if (plan.ok()) made.plan = *std::move(plan);
  return made;
}

TEST(Placement, RandomPlansFindTheirDataInEveryOrder) {
  const DeviceSpec small = LoadSpec(AG_SOURCE_DIR, "small");
  const DeviceSpec gpu = LoadSpec(AG_SOURCE_DIR, "h200");
  int views = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Made made = MakePlan(seed, seed % 3 == 0 ? gpu : small, 30);
    views += std::ranges::count(made.plan.groups, kViewPattern, &Group::pattern);
    Machine machine(made.graph, made.plan);
    Random random(seed);
    for (int run = 0; run < 10; ++run) {
      ASSERT_EQ(machine.Run(&random), "") << "seed " << seed << "\n"
                                          << FormatPlan(made.graph, made.plan);
    }
  }
  EXPECT_GT(views, 100);
}

// Random workspaces for half of the launched groups.
struct Workspaces {
  std::vector<int64_t> bytes, offsets;
};
Workspaces AddWorkspaces(Made* made, const DeviceSpec& spec, Random* random) {
  Workspaces workspaces;
  for (const Group& group : made->plan.groups) {
    const bool has = group.pattern != kViewPattern && random->Below(2) == 0;
    workspaces.bytes.push_back(has ? 4 * (1 + static_cast<int64_t>(random->Below(200))) : 0);
  }
  workspaces.offsets = *PlaceWorkspaces(made->graph, spec, workspaces.bytes, &made->plan);
  return workspaces;
}

std::vector<std::pair<int64_t, int64_t>> Zip(const Workspaces& workspaces) {
  std::vector<std::pair<int64_t, int64_t>> zipped;
  for (size_t g = 0; g < workspaces.bytes.size(); ++g) {
    zipped.emplace_back(workspaces.offsets[g], workspaces.bytes[g]);
  }
  return zipped;
}

TEST(Placement, NothingIsWrittenToAWorkspaceWhileItsGroupRuns) {
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  int grown = 0, shared = 0, noticed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Made made = MakePlan(seed, spec, 30);
    Random random(seed);
    const int64_t before = made.plan.arena_bytes;
    Workspaces workspaces = AddWorkspaces(&made, spec, &random);
    const int64_t all =
        std::accumulate(workspaces.bytes.begin(), workspaces.bytes.end(), int64_t{0});
    grown += made.plan.arena_bytes > before ? 1 : 0;
    shared += made.plan.arena_bytes < before + all ? 1 : 0;
    ASSERT_EQ(ToString(ValidatePlan(made.graph, made.plan, spec)), "OK");
    Machine machine(made.graph, made.plan);
    machine.SetWorkspaces(Zip(workspaces));
    for (int run = 0; run < 10; ++run) ASSERT_EQ(machine.Run(&random), "") << "seed " << seed;
    // One offset for all: the machine detects it.
    for (int64_t& offset : workspaces.offsets) offset = 0;
    machine.SetWorkspaces(Zip(workspaces));
    for (int run = 0; run < 3; ++run) {
      if (machine.Run(&random).empty()) continue;
      ++noticed;
      break;
    }
  }
  EXPECT_GT(shared, 30);
  EXPECT_GT(noticed, 30);
  EXPECT_GT(grown, 0);
}

TEST(Placement, TheMachineNoticesSharedBytes) {
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  int noticed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Made made = MakePlan(seed, spec, 30);
    for (Place& place : made.plan.places) {
      if (place.kind == Place::Kind::kArena) place.offset_bytes = 0;
    }
    Random random(seed);
    if (!Machine(made.graph, made.plan).Run(&random).empty()) ++noticed;
  }
  EXPECT_GT(noticed, 10);
}

TEST(Placement, EveryWaitIsNeeded) {
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  int waits = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Made made = MakePlan(seed, spec, 30);
    for (size_t s = 0; s < made.plan.streams.size(); ++s) {
      for (size_t l = 0; l < made.plan.streams[s].launches.size(); ++l) {
        for (size_t w = 0; w < made.plan.streams[s].launches[l].waits.size(); ++w) {
          Plan without = made.plan;
          auto& list = without.streams[s].launches[l].waits;
          list.erase(list.begin() + static_cast<int64_t>(w));
          EXPECT_FALSE(ValidatePlan(made.graph, without, spec).ok()) << "seed " << seed;
          ++waits;
        }
      }
    }
  }
  EXPECT_GT(waits, 100);
}

TEST(Placement, MemoryIsShared) {
  std::string text = "input x f32[1024]\ny0 = softmax(x) axis=0\n";
  for (int i = 1; i < 20; ++i) text += fmt::format("y{} = softmax(y{}) axis=0\n", i, i - 1);
  const Graph graph = GraphOf(text + "output y19\n");
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  RooflineTimes times(spec);
  const std::vector<Group> groups = *FormGroups(graph, spec, {}, times);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), spec, {});
  EXPECT_EQ(plan.arena_bytes, 2 * 4096);
  const DeviceSpec gpu = LoadSpec(AG_SOURCE_DIR, "h200");  // fp16 needs half the bytes.
  EXPECT_EQ(CompletePlan(graph, groups, OneStream(graph, groups), gpu, {.precision = "fp16"})
                ->arena_bytes,
            2 * 2048);
  DeviceSpec tiny = spec;
  tiny.memory_bytes = 8191;
  EXPECT_EQ(ToString(CompletePlan(graph, groups, OneStream(graph, groups), tiny, {}).status()),
            "RESOURCE_EXHAUSTED: plan: needs 8192 bytes, device small has 8191");
}

TEST(Placement, DenseConcatenationsNestAtBatchOne) {
  // DenseNet: each layer's concat contains the one before.
  const std::string conv = " strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n";
  std::string text =
      "input x f32[1,16,2,2]\nb = const f32[16] seed 1\n"
      "w0 = const f32[16,16,1,1] seed 2\nc0 = conv(x, w0, b)" +
      conv;
  for (int i = 1; i <= 3; ++i) {
    text += fmt::format(
        "w{0} = const f32[16,{1},1,1] seed {0}3\nl{0} = conv(c{2}, w{0}, b){3}"
        "c{0} = concat(c{2}, l{0}) axis=1\n",
        i, 16 * i, i - 1, conv);
  }
  const Graph graph = GraphOf(text + "output c3\n");
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  RooflineTimes times(spec);
  const std::vector<Group> groups = *FormGroups(graph, spec, {}, times);
  EXPECT_EQ(std::ranges::count(groups, kViewPattern, &Group::pattern), 3);
  const Plan plan = *CompletePlan(graph, groups, OneStream(graph, groups), spec, {});
  EXPECT_EQ(plan.arena_bytes, 64 * 16 + 16 * 16);  // The last concat, and x in blocks.
}

}  // namespace
}  // namespace ag
