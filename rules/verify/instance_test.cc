#include "rules/verify/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "graph/text_form.h"
#include "rules/verify/instance_classes.h"
#include "rules/verify/verify.h"

namespace ag {
namespace {

RuleSet Parsed(const std::string& text) {
  const StatusOr<RuleSet> set = RuleSet::Parse(text, "f.rules");
  EXPECT_TRUE(set.ok()) << ToString(set.status());
  return *set;
}

// Returns a rule with the operator on both sides: "relu.c(a) => relu.c(a)".
RuleSet Itself(const OpInfo& info) {
  static constexpr const char* kNames[] = {"a", "b", "c", "d", "e"};
  std::vector<std::string> operands;
  const int arity = info.arity_max < 0 ? 2 : info.arity_max;
  for (int i = 0; i < arity; ++i) operands.emplace_back(kNames[i]);
  const std::string term = fmt::format("{}.n({}){}", info.text_name, fmt::join(operands, ", "),
                                       info.kind == OpKind::kSplit ? "[0]" : "");
  return Parsed(fmt::format("r [exact]: {} => {}", term, term));
}

bool IsSampleable(const OpInfo& info) {
  return (info.traits & (kLeaf | kBarrier)) == 0;  // The operators that a rule may name.
}

std::string TextOf(const AttributeValue& value) {
  if (const auto* list = std::get_if<Ints>(&value)) return fmt::format("{}", fmt::join(*list, ","));
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* f = std::get_if<double>(&value)) return fmt::format("{}", *f);
  return std::get<std::string>(value);
}

TEST(Instance, EveryOperatorIsSampledInEveryClassThatItAdmits) {
  for (const OpInfo& info : AllOps()) {
    if (!IsSampleable(info)) continue;
    const RuleSet set = Itself(info);
    const VerifyReport report = Verify(set.rules()[0]);
    EXPECT_TRUE(report.proved) << info.text_name << ": " << report.counter_example;
    EXPECT_GE(report.instances, 200) << info.text_name;
  }
}

TEST(Instance, EveryAttributeTakesSeveralValues) {
  for (const OpInfo& info : AllOps()) {
    if (!IsSampleable(info)) continue;
    const RuleSet set = Itself(info);
    std::map<std::string, std::set<std::string>> values;
    for (uint64_t seed = 0; seed < 600; ++seed) {
      const auto instance = SampleInstance(*set.rules()[0].pattern, seed, 4);
      if (!instance.has_value()) continue;
      for (const Node& node : instance->graph.nodes()) {
        if (node.op != info.kind) continue;
        for (const auto& [name, value] : node.attributes->items()) {
          values[name].insert(TextOf(value));
        }
      }
    }
    for (const AttributeSchema& schema : info.attributes) {
      EXPECT_GE(values[schema.name].size(), 2u) << info.text_name << " " << schema.name;
    }
  }
}

TEST(Instance, OneSeedGivesOneGraphAndItsChoicesGiveItAgain) {
  const RuleSet set = Parsed("r [exact]: relu(conv.c(x, w, b)) => relu(conv.c(x, w, b))");
  const RulePattern& pattern = *set.rules()[0].pattern;
  int sampled = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Choices fresh(seed);
    const auto instance = SampleInstance(pattern, &fresh, {.size = 4});
    if (!instance.has_value()) continue;
    ++sampled;
    EXPECT_EQ(SampleInstance(pattern, seed, 4)->graph.digest(), instance->graph.digest());
    Choices again(fresh.made());
    EXPECT_EQ(SampleInstance(pattern, &again, {.size = 4})->graph.digest(),
              instance->graph.digest());
  }
  EXPECT_GE(sampled, 10);
}

TEST(Instance, NoChoicesAtAllGiveTheSimplestCase) {
  const RuleSet set = Parsed("r [exact]: each i: conv.c(x, w[i], b[i]) => conv.c(x, w[i], b[i])");
  Choices none{std::vector<uint64_t>()};
  const auto instance = SampleInstance(*set.rules()[0].pattern, &none, {.size = 5});
  ASSERT_TRUE(instance.has_value());
  EXPECT_EQ(FormatGraph(instance->graph),
            "input x0 f64[1,1,1,1]\ninput x1 f64[1,1,1,1]\ninput x2 f64[1]\n"
            "input x3 f64[1,1,1,1]\ninput x4 f64[1]\n"
            "v5 = conv(x0, x1, x2) dilations=[1,1] pads=[0,0,0,0] strides=[1,1]\n"
            "v6 = conv(x0, x3, x4) dilations=[1,1] pads=[0,0,0,0] strides=[1,1]\n"
            "output \"o0\" = v5\noutput \"o1\" = v6\n");
}

struct ClassCase {
  const char* rule;
  std::vector<std::string> classes;  // Besides "axis of size 1", which always applies.
};

TEST(InstanceClasses, ApplyByOperatorsAndLiteralAttributes) {
  const ClassCase kCases[] = {
      {"relu(x) => x", {}},
      {"conv(x, w, b) => x",
       {"asymmetric pads", "batch > 1", "depthwise", "dilated", "group > 1", "strided"}},
      {"conv(x, w, b; group=1, strides=[1, 1], dilations=d) => x",
       {"asymmetric pads", "batch > 1", "dilated"}},
      {"conv(x, w, b; group=g, pads=[0, 0, 0, 0]) => x",
       {"batch > 1", "depthwise", "dilated", "group > 1", "strided"}},
      {"max_pool(x) => x", {"asymmetric pads", "batch > 1", "dilated", "strided"}},
      {"add(x, y) => x", {"broadcast"}},
      {"add(x, y) => x if same_shape(x, y)", {}},
      {"mul(x, sigmoid(x)) => x", {}},
      {"mul(add(x, 3), relu(x)) => x", {}},
      {"add(conv.c(x, w, b), conv.c(x, v, d)) => x if same_shape(w, v)",
       {"asymmetric pads", "batch > 1", "depthwise", "dilated", "group > 1", "strided"}},
      {"where(c, x, y) => x", {"broadcast"}},
      {"matmul(x, y) => x", {"batch > 1"}},
      {"transpose(matmul(x, y); perm=[1, 0]) => x", {}},
      {"concat(x, y; axis=a) => x", {"uneven cuts"}},
      {"concat(x, tanh(x); axis=a) => x", {}},
      {"concat(split.s(x)[i]...; axis=a) => x", {"uneven cuts"}},
  };
  for (const ClassCase& c : kCases) {
    const RuleSet set = Parsed(fmt::format("r [exact]: {}", c.rule));
    std::set<std::string> expected(c.classes.begin(), c.classes.end());
    expected.insert("axis of size 1");
    EXPECT_EQ(ApplicableClasses(*set.rules()[0].pattern), expected) << c.rule;
  }
}

TEST(InstanceClasses, AreReadOffTheMatchedNodes) {
  const Graph graph = *ParseGraph(
      "input x f64[2,4,5,5]\ninput w f64[4,1,2,2]\ninput b f64[4]\ninput y f64[4,1,1]\n"
      "c = conv(x, w, b) group=4 strides=[2,1] pads=[0,1,1,1] dilations=[1,2]\n"
      "output z = add(c, y)\n");
  std::vector<NodeId> conv, add;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == OpKind::kConv) conv.push_back(id);
    if (graph.node(id).op == OpKind::kAdd) add.push_back(id);
  }
  EXPECT_EQ(ClassesOf(graph, conv),
            (std::set<std::string>{"asymmetric pads", "axis of size 1", "batch > 1", "depthwise",
                                   "dilated", "group > 1", "strided"}));
  EXPECT_EQ(ClassesOf(graph, add), (std::set<std::string>{"axis of size 1", "broadcast"}));
}

TEST(InstanceClasses, ARuleFailsWithoutAnInstanceOfAClassThatApplies) {
  const RuleSet set = Parsed(
      "r [rounding]: add(conv.c(x, w, b), conv.c(x, v, d)) => conv.c(x, add(w, v), add(b, d)) "
      "if same_shape(w, v)");
  const VerifyReport few = Verify(set.rules()[0], {.instances_min = 1, .class_samples_max = 0});
  EXPECT_FALSE(few.proved);
  EXPECT_THAT(few.counter_example,
              testing::HasSubstr("no instance of class 'depthwise', which the operators admit, was "
                                 "sampled"));
  const VerifyReport all = Verify(set.rules()[0], {.instances_min = 1});
  EXPECT_TRUE(all.proved) << all.counter_example;
}

TEST(InstanceClasses, GuardsThatRuleAClassOutAreToldFromBadLuck) {
  const RuleSet set = Parsed(
      "r [rounding]: add(conv.c(x, w, b; group=g), conv.c(x, v, d)) => conv.c(x, add(w, v), "
      "add(b, d)) if same_shape(w, v), g == 1");
  const VerifyReport report = Verify(set.rules()[0]);
  EXPECT_TRUE(report.proved) << report.counter_example;
  std::set<std::string> ruled_out;
  for (const auto& [name, samples] : report.ruled_out) {
    ruled_out.insert(name);
    EXPECT_GT(samples, 500) << name;
  }
  EXPECT_EQ(ruled_out, (std::set<std::string>{"depthwise", "group > 1"}));
}

}  // namespace
}  // namespace ag
