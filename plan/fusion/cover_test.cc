// Groups that are connected pieces of the graph: several outputs, trees, and the cheapest cover by
// them.
#include "plan/fusion/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/learned_times.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// One operation and one byte take 1 ns, a launch 100.
DeviceSpec SpecOf(std::string_view patterns) {
  const StatusOr<DeviceSpec> spec = ParseDeviceSpec(
      "name pieces\ndtypes f32,bool\ncores 1\nflops_per_second 1e9\nbytes_per_second 1e9\n"
      "launch_ns 100\nmemory_bytes 1000000\nalignment_bytes 64\n" +
      std::string(patterns));
  AG_CHECK(spec.ok());
  return *spec;
}

DeviceSpec PiecesSpec(std::string_view marks = "<>") {
  return SpecOf(fmt::format(
      "pattern dense = MatMul [Add] layouts plain\n"
      "pattern chain = {{elementwise}}{0}+ max 16 layouts plain\n"
      "pattern norm = LayerNorm|RmsNorm layouts plain\n"
      "pattern chain_norm = {{elementwise}}{0}+ LayerNorm|RmsNorm max 16 layouts plain\n"
      "pattern move = {{movement}} layouts plain\n",
      marks));
}

// Returns the groups, each with the number of its outputs where there are several.
std::string GroupsOf(std::string_view text, const DeviceSpec& spec) {
  const Graph graph = GraphOf(text);
  RooflineTimes times(spec);
  const auto groups = FormGroups(graph, spec, {}, times);
  if (!groups.ok()) return ToString(groups.status());
  std::vector<std::string> lines = Summary(graph, *groups);
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t outputs = (*groups)[i].outputs.size();
    if (outputs > 1) lines[i] += fmt::format(" ({} outputs)", outputs);
  }
  return Join(lines, "; ");
}

double SumOf(const TimedGroups& timed) {
  return std::accumulate(timed.times.begin(), timed.times.end(), 0.0,
                         [](double sum, const GroupTime& time) { return sum + time.ns; });
}

constexpr std::string_view kRows =
    "input x f32[4,8]\ninput y f32[4,8]\ns = const f32[8] seed 1\nb = const f32[8] seed 2\n"
    "w = const f32[8,8] seed 3\n";

TEST(FormGroups, AreConnectedPieces) {
  const struct {
    const char* name;
    const char* text;
    const char* groups;
  } kCases[] = {
      {"residual and norm",
       "h = add(x, y)\nn = layer_norm(h, s, b) axis=1\noutput add(h, matmul(n, w))\n",
       "chain_norm Add+LayerNorm (2 outputs); dense MatMul+Add"},
      {"a norm alone reads the sum", "output layer_norm(add(x, y), s, b) axis=1\n",
       "chain_norm Add+LayerNorm"},
      {"a sum that is its own scale is none",
       "h = add(s, b)\ninput v f32[8]\nk = exp(v)\noutput layer_norm(v, k, k) axis=0\n",
       "chain Exp; norm LayerNorm"},
      {"a middle value is an output", "e = exp(x)\noutput neg(e)\noutput matmul(e, w)\n",
       "chain Exp+Neg (2 outputs); dense MatMul"},
      {"a graph output inside", "e = exp(x)\noutput e\noutput neg(e)\n",
       "chain Exp+Neg (2 outputs)"},
      {"read twice inside", "e = add(x, y)\noutput mul(e, sigmoid(e))\n", "chain Add+Sigmoid+Mul"},
      {"read twice by one operator", "e = add(x, y)\noutput mul(e, e)\n", "chain Add+Mul"},
      {"a way around the group", "e = exp(x)\noutput add(e, matmul(e, w))\n",
       "chain Exp; dense MatMul+Add"},
      {"a tree", "output add(mul(x, y), sub(x, y))\n", "chain Mul+Sub+Add"},
      {"a tree with an output", "m = mul(x, y)\noutput add(m, sub(x, y))\noutput matmul(m, w)\n",
       "chain Mul+Sub+Add (2 outputs); dense MatMul"},
      {"a tree and norm", "output layer_norm(add(mul(x, y), sub(x, y)), s, b) axis=1\n",
       "chain_norm Mul+Sub+Add+LayerNorm"},
      {"a smaller operand stays outside", "input v f32[8]\noutput add(mul(x, y), exp(v))\n",
       "chain Exp; chain Mul+Add"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(GroupsOf(std::string(kRows) + c.text, PiecesSpec()), c.groups) << c.name;
  }
}

// Without the marks: paths of operators with one reader.
TEST(FormGroups, ArePathsWithoutMarks) {
  const std::string rows(kRows);
  const DeviceSpec spec = PiecesSpec("");
  EXPECT_EQ(GroupsOf(rows + "e = exp(x)\noutput neg(e)\noutput matmul(e, w)\n", spec),
            "chain Exp; chain Neg; dense MatMul");
  EXPECT_EQ(GroupsOf(rows + "output add(mul(x, y), sub(x, y))\n", spec),
            "chain Sub; chain Mul+Add");
  EXPECT_EQ(GroupsOf(rows + "e = exp(x)\noutput neg(e)\noutput matmul(e, w)\n", PiecesSpec("<")),
            "chain Exp; chain Neg; dense MatMul");
  EXPECT_EQ(GroupsOf(rows + "output add(mul(x, y), sub(x, y))\n", PiecesSpec(">")),
            "chain Sub; chain Mul+Add");
}

// Tensors of 128 bytes, scale and bias of 32. Apart: 3 x 128 + 100, 2 x 128 + 64 + 100, and again
// 3 x 128 + 100. With two outputs: 4 x 128 + 64 + 100, and the last sum.
TEST(FormGroups, TimesOfTwoOutputsByHand) {
  const Graph graph = GraphOf(std::string(kRows) +
                              "h = add(x, y)\nn = layer_norm(h, s, b) axis=1\noutput add(n, h)\n");
  const auto sum = [&](const DeviceSpec& spec, bool grouped) {
    RooflineTimes times(spec);
    const TimedGroups timed = *FormTimedGroups(graph, spec, {}, times, {.grouped = grouped});
    return SumOf(timed);
  };
  EXPECT_DOUBLE_EQ(sum(PiecesSpec(), false), 484 + 420 + 484);
  EXPECT_DOUBLE_EQ(sum(PiecesSpec(""), true), 484 + 420 + 484);
  EXPECT_DOUBLE_EQ(sum(PiecesSpec(), true), 676 + 484);
}

TEST(MakeGroup, TheLastOperatorsOutputsComeFirst) {
  const Graph graph = GraphOf("input x f32[4]\ne = exp(x)\noutput e\noutput neg(e)\n");
  NodeLayouts layouts;
  layouts.of.assign(graph.size(), Layout::kPlain);
  const Group group = MakeGroup(graph, layouts, {1, 2});
  EXPECT_EQ(group.outputs, (std::vector<Port>{{{2, 0}}, {{1, 0}}}));
  EXPECT_EQ(group.inputs, (std::vector<Port>{{{0, 0}}}));
}

// Returns a random graph of operators over f32[4,8], with values that several read, up to two
// norms, and up to two outputs.
std::string RandomGraph(Random* random, int operators) {
  std::string text(kRows);
  std::vector<std::string> values{"x", "y"}, unread;
  const auto pick = [&] {
    const bool is_near = !unread.empty() && random->Below(3) > 0;
    const std::vector<std::string>& from = is_near ? unread : values;
    return from[random->Below(from.size())];
  };
  for (int i = 0; i < operators; ++i) {
    const std::string a = pick(), b = pick(), name = fmt::format("n{}", i);
    switch (random->Below(6)) {
      case 0:
      case 1:
        text += fmt::format("{} = {}({})\n", name, random->Below(2) == 0 ? "exp" : "neg", a);
        break;
      case 2:
        text += fmt::format("{} = rms_norm({}, s) axis=1\n", name, a);
        break;
      default:
        text += fmt::format("{} = {}({}, {})\n", name, random->Below(2) == 0 ? "add" : "mul", a, b);
        std::erase(unread, b);
    }
    std::erase(unread, a);
    values.push_back(name);
    unread.push_back(name);
  }
  for (const std::string& value : unread) text += fmt::format("output {}\n", value);
  if (random->Below(3) == 0) text += fmt::format("output {}\n", values[2]);
  return text;
}

// Answers by a hash of the problem, so that no structure of the times helps. In some graphs larger
// groups are cheaper, as on a device.
class HashedTimes : public GroupTimes {
 public:
  explicit HashedTimes(double per_operator) : per_operator_(per_operator) {}
  GroupTime Time(const GroupProblem& problem) override {
    const Digest digest = Sha256(EncodeGroupProblem(problem));
    return {.ns = 500.0 + digest.bytes[0] + per_operator_ * problem.graph.size()};
  }

 private:
  const double per_operator_;
};

// The least sum over all covers by pieces, found by trying all sets of operators.
class AllCovers {
 public:
  AllCovers(const Graph& graph, GroupTimes& times) : graph_(graph), times_(times) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!graph.is_constant(id) && graph.node(id).op != OpKind::kInput) operators_.push_back(id);
    }
    layouts_.of.assign(graph.size(), Layout::kPlain);
    cost_.assign(size_t{1} << operators_.size(), -1);
    for (uint32_t set = 1; set < cost_.size(); ++set) cost_[set] = CostOf(set);
    best_.assign(cost_.size(), -1);
  }

  double Best() { return Best(static_cast<uint32_t>(cost_.size() - 1)); }

 private:
  // Returns the least cost of the operators of `left`.
  double Best(uint32_t left) {
    if (left == 0) return 0;
    double& best = best_[left];
    if (best >= 0) return best;
    best = 1e30;
    const uint32_t first = left & -left;
    const uint32_t others = left & ~first;
    for (uint32_t more = others;; more = (more - 1) & others) {
      const double cost = cost_[first | more];
      if (cost >= 0) best = std::min(best, cost + Best(others & ~more));
      if (more == 0) return best;
    }
  }

  // Returns the time of the set as one group, the cheapest of the patterns; -1: it is none.
  double CostOf(uint32_t set) {
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < operators_.size(); ++i) {
      if ((set >> i & 1u) != 0) nodes.push_back(operators_[i]);
    }
    if (!IsPiece(nodes)) return -1;
    const bool is_norm = graph_.node(nodes.back()).op == OpKind::kRmsNorm;
    Group group = MakeGroup(graph_, layouts_, nodes);
    group.pattern = !is_norm ? "chain" : nodes.size() == 1 ? "norm" : "chain_norm";
    return times_.Time(ExtractGroup(graph_, group, {})).ns;
  }

  bool IsPiece(const std::vector<NodeId>& nodes) const {
    const NodeId last = nodes.back();
    int outputs = 1;
    for (const NodeId id : nodes) {
      if (id == last) continue;
      if (!Has(graph_.node(id).op, kElementwise)) return false;
      bool is_linked = false, is_output = graph_.is_output({id, 0});
      for (const Use& use : graph_.uses({id, 0})) {
        const bool is_inside = std::ranges::count(nodes, use.node) > 0;
        is_linked |= is_inside;
        is_output |= !is_inside;
        if (!is_inside && use.node < last) return false;
      }
      if (!is_linked) return false;
      outputs += is_output;
    }
    return outputs <= kOutputsMax;
  }

  const Graph& graph_;
  GroupTimes& times_;
  NodeLayouts layouts_;
  std::vector<NodeId> operators_;
  std::vector<double> cost_, best_;  // By set of operators.
};

// Whether an operator of the group has two operands in it.
bool IsTree(const Graph& graph, const Group& group) {
  return std::ranges::any_of(group.nodes, [&](NodeId id) {
    const auto& inputs = graph.node(id).inputs;
    return inputs.size() == 2 && inputs[0] != inputs[1] &&
           std::ranges::all_of(inputs, [&](Edge edge) {
             return std::ranges::binary_search(group.nodes, edge.node);
           });
  });
}

TEST(FormGroups, PiecesAreAsCheapAsTheBestCover) {
  const DeviceSpec spec = PiecesSpec();
  int several = 0, trees = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Graph graph = GraphOf(RandomGraph(&random, 4 + static_cast<int>(random.Below(5))));
    const double per_operator = static_cast<double>(random.Below(3)) * -16;
    HashedTimes times(per_operator), fresh(per_operator);
    const TimedGroups timed = *FormTimedGroups(graph, spec, {}, times);
    double copies = 0;  // Of graph outputs, which all covers have.
    for (size_t i = 0; i < timed.groups.size(); ++i) {
      const Group& group = timed.groups[i];
      if (group.nodes.empty()) copies += timed.times[i].ns;
      several += group.outputs.size() > 1;
      trees += IsTree(graph, group);
    }
    EXPECT_DOUBLE_EQ(SumOf(timed) - copies, AllCovers(graph, fresh).Best()) << "seed " << seed;
    const auto plan = MakePlan(graph, spec, {}, times, {}, 1);
    ASSERT_TRUE(plan.ok()) << Message(plan.status());
    EXPECT_EQ(Message(ValidatePlan(graph, *plan, spec)), "") << "seed " << seed;
  }
  EXPECT_GT(several, 100);
  EXPECT_GT(trees, 50);
}

// Beyond kSmallTree operators a beam is left of the trees.
TEST(FormGroups, ABeamOfLargeTreesIsNearTheBestCover) {
  const DeviceSpec spec = PiecesSpec();
  double over = 0, over_max = 0;
  constexpr int kSeeds = 40;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::string text(kRows);  // A binary tree with 7 leaves of one operator each.
    std::vector<std::string> open;
    for (int i = 0; i < 7; ++i) {
      text += fmt::format("l{} = exp({})\n", i, i % 2 == 0 ? "x" : "y");
      open.push_back(fmt::format("l{}", i));
    }
    Random random(seed);
    for (int i = 0; open.size() > 1; ++i) {
      std::swap(open[random.Below(open.size())], open.back());
      const std::string a = open.back();
      open.pop_back();
      std::string& b = open[random.Below(open.size())];
      text += fmt::format("t{} = {}({}, {})\n", i, random.Below(2) == 0 ? "add" : "sub", a, b);
      b = fmt::format("t{}", i);
    }
    const Graph graph = GraphOf(text + "output " + open[0] + "\n");
    HashedTimes times(-16), fresh(-16);
    const double best = AllCovers(graph, fresh).Best();
    const TimedGroups timed = *FormTimedGroups(graph, spec, {}, times);
    const double ratio = SumOf(timed) / best;
    EXPECT_GE(ratio, 1 - 1e-9) << "seed " << seed;
    over += (ratio - 1) / kSeeds;
    over_max = std::max(over_max, ratio - 1);
  }
  RecordProperty("mean_over_best", std::to_string(over));
  RecordProperty("most_over_best", std::to_string(over_max));
  EXPECT_LT(over, 0.02);
  EXPECT_LT(over_max, 0.15);
}

// Trees on trees: the number of candidates stays bounded.
TEST(FormGroups, IsFastOnLargeTrees) {
  std::string text(kRows);
  std::vector<std::string> open;
  for (int i = 0; i < 512; ++i) {
    text += fmt::format("l{} = exp({})\n", i, i % 2 == 0 ? "x" : "y");
    open.push_back(fmt::format("l{}", i));
  }
  for (int i = 0; open.size() > 1; ++i) {
    std::vector<std::string> next;
    for (size_t k = 0; k + 1 < open.size(); k += 2) {
      next.push_back(fmt::format("t{}_{}", i, k));
      text += fmt::format("{} = add({}, {})\n", next.back(), open[k], open[k + 1]);
    }
    open = next;
  }
  const Graph graph = GraphOf(text + "output " + open[0] + "\n");
  const DeviceSpec spec = PiecesSpec();
  LearnedTimes times(spec, nullptr);
  const Nanos begin = RealClock().Now();
  ASSERT_TRUE(FormGroups(graph, spec, {}, times).ok());
  ASSERT_TRUE(FormGroups(graph, spec, {}, times).ok());
  const double ms = static_cast<double>((RealClock().Now() - begin).count()) / 1e6;
  RecordProperty("milliseconds", std::to_string(ms));
  EXPECT_LT(ms, 5000) << "generous, for sanitizers and busy machines; 100 ms are usual";
}

}  // namespace
}  // namespace ag
