// Compares children cleaned up around their rewrite with children cleaned up as a whole.
#include "rules/match/child_graphs.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/passes/clean_up.h"
#include "graph/testing/random_graph.h"
#include "graph/text_form.h"
#include "rules/match/match_set.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

struct Counts {
  int local = 0;
  int whole = 0;
};

// The places lead from the parent's matches to the child's.
void ExpectMatchesFollow(const MatchSet& before, const RuleIndex& search, const ChildGraph& child) {
  int64_t last = 0;
  for (const Site& site : before.sites()) last = std::max(last, site.serial);
  const Serials serials = child.is_local ? Serials::kKept : Serials::kNew;
  const MatchSet followed = before.Next(child.graph, child.place, serials);
  const MatchSet anew(search, child.graph);
  ASSERT_EQ(followed.sites().size(), anew.sites().size());
  std::set<int64_t> numbers;
  for (size_t i = 0; i < anew.sites().size(); ++i) {
    const Site& site = followed.sites()[i];
    EXPECT_EQ(site.rule, anew.sites()[i].rule);
    EXPECT_EQ(site.roots, anew.sites()[i].roots);
    EXPECT_EQ(site.variant, anew.sites()[i].variant);
    EXPECT_EQ(followed.At(site).bindings->slots, anew.At(anew.sites()[i]).bindings->slots);
    EXPECT_TRUE(numbers.insert(site.serial).second);
    EXPECT_TRUE(child.is_local || site.serial > last);
  }
}

void CheckChildren(const Graph& parent, const RuleSet& rules, Counts* counts) {
  const RuleIndex clean_up(rules, RuleIndex::Kind::kCleanUp);
  ChildGraphs children(parent, clean_up, {.parent_is_clean = true});
  const RuleIndex search(rules, RuleIndex::Kind::kSearch);
  const MatchSet before(search, parent);
  for (const Rewrite& rewrite : FindRewrites(parent, rules)) {
    SCOPED_TRACE(rewrite.rule->name);
    const StatusOr<Graph> raw = Apply(parent, rewrite);
    const StatusOr<StructureHash> hash = children.Try(rewrite);
    ASSERT_EQ(hash.ok(), raw.ok()) << ToString(raw.status());
    if (!raw.ok()) {
      EXPECT_EQ(ToString(hash.status()), ToString(raw.status()));
      continue;
    }
    EXPECT_TRUE(*hash == HashOfStructure(RemoveNoOps(*raw).value()));
    const StatusOr<Graph> wanted = CleanUp(*raw, rules);
    const StatusOr<ChildGraph> child = children.Make();
    ASSERT_TRUE(wanted.ok() && child.ok()) << ToString(child.status());
    const StatusOr<Graph> found = CleanUp(child->graph, rules);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(FormatGraph(*found), FormatGraph(*wanted));
    EXPECT_TRUE(child->hash == HashOfStructure(*wanted));
    EXPECT_EQ(child->graph.size(), wanted->size());  // Clean-up only changed the order.
    ++(child->is_local ? counts->local : counts->whole);
    ExpectMatchesFollow(before, search, *child);
  }
}

// The rules need not be true to leave work for clean-up.
constexpr std::string_view kManyPlaces = R"(
to-sub [exact]: add(x, y) => sub(x, neg(y))
to-add [exact]: sub(x, y) => add(neg(y), x)
to-zero [exact]: neg(x) => sub(0, x)
to-swish [exact]: relu(x) => mul(x, sigmoid(x))
to-no-op [exact]: tanh(x) => reshape(tanh(x); shape=shape(x))
to-another [exact]: max(x, y) => mul(x, y)
)";

TEST(ChildGraphs, AreWhatCleanUpMakesOfThem) {
  const StatusOr<RuleSet> more = RuleSet::Parse(kManyPlaces, "more");
  ASSERT_TRUE(more.ok()) << ToString(more.status());
  const StatusOr<RuleSet> rules = RuleSet::Join(BuiltInRules(), *more);
  ASSERT_TRUE(rules.ok());
  Counts counts;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed, nullptr, {.nodes = 20 + static_cast<int>(seed % 60)});
    const StatusOr<Graph> clean = CleanUp(graph, *rules);
    ASSERT_TRUE(clean.ok());
    CheckChildren(*clean, *rules, &counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.local, 300);
  EXPECT_GT(counts.whole, 20);
}

struct ChildCase {
  const char* name;
  const char* parent;
  const char* rules;
  bool local;
};

// The kinds of work that a rewrite may leave; each kind must come up.
const ChildCase kChildCases[] = {
    {"nothing", "input x f32[2]\noutput y = tanh(relu(relu(x)))\n",
     "a [exact]: relu(relu(x)) => relu(x)", true},
    {"a no-op", "input x f32[2]\noutput y = relu(x)\n",
     "a [exact]: relu(x) => reshape(relu(x); shape=[2])", true},
    {"two reshapes in a row", "input x f32[4]\noutput y = reshape(relu(x)) shape=[2,2]\n",
     "a [exact]: relu(x) => reshape(relu(reshape(x; shape=[4,1])); shape=[4])", true},
    {"a twin", "input x f32[2]\noutput a = tanh(relu(x))\noutput b = tanh(abs(x))\n",
     "a [exact]: abs(x) => relu(x)", false},
    {"a twin with its operands swapped",
     "input x f32[2]\ninput z f32[2]\noutput a = mul(x, z)\noutput b = sub(x, z)\n",
     "a [exact]: sub(x, z) => mul(z, neg(neg(x)))\n"
     "b [exact, clean-up]: neg(neg(x)) => x",
     false},
    {"an equal constant", "input x f32[2]\noutput y = mul(relu(x), const f32[] {2})\n",
     "a [exact]: relu(x) => mul(relu(x), 2)", false},
    {"a composite", "input x f32[2]\noutput y = mul(x, tanh(x))\n",
     "a [exact]: tanh(x) => sigmoid(x)\nb [exact, clean-up]: mul(x, sigmoid(x)) => swish(x)",
     false},
};

TEST(ChildGraphs, SeeWhatIsLeftToCleanUp) {
  for (const ChildCase& c : kChildCases) {
    SCOPED_TRACE(c.name);
    const StatusOr<Graph> parent = ParseGraph(c.parent);
    const StatusOr<RuleSet> rules = RuleSet::Parse(c.rules, "test");
    ASSERT_TRUE(parent.ok() && rules.ok()) << ToString(parent.status()) << ToString(rules.status());
    Counts counts;
    CheckChildren(*parent, *rules, &counts);
    EXPECT_GT(c.local ? counts.local : counts.whole, 0);
    EXPECT_EQ(c.local ? counts.whole : counts.local, 0);
  }
}

TEST(ChildGraphs, OfAParentThatIsNotCleanAreCleanedUpAsAWhole) {
  const StatusOr<Graph> parent =
      ParseGraph("input x f32[2]\noutput y = relu(relu(x))\noutput z = reshape(x) shape=[2]\n");
  ASSERT_TRUE(parent.ok());
  const RuleSet rules = *RuleSet::Parse("once [exact]: relu(relu(x)) => relu(x)", "test.rules");
  const RuleIndex clean_up(rules, RuleIndex::Kind::kCleanUp);
  ChildGraphs children(*parent, clean_up);
  ASSERT_TRUE(children.Try(FindRewrites(*parent, rules).at(0)).ok());
  EXPECT_EQ(FormatGraph(children.Make()->graph),
            "input x f32[2]\nv1 = relu(x)\noutput \"y\" = v1\noutput \"z\" = x\n");
  ChildGraphs small(*parent, clean_up, {.nodes_max = 1});
  ASSERT_TRUE(small.Try(FindRewrites(*parent, rules).at(0)).ok());
  EXPECT_EQ(ToString(small.Make().status()), "RESOURCE_EXHAUSTED: graph: 3 nodes, at most 1");
}

}  // namespace
}  // namespace ag
