// The search's rules on attention as exporters write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/testing.h"
#include "rules/verify/compare.h"

namespace ag {
namespace {

// Returns the graph after the rule is applied at its largest place, and clean-up.
StatusOr<Graph> ApplyRule(const Graph& graph, const std::string& name) {
  Rewrite largest;
  for (const Rewrite& rewrite : FindRewrites(graph, BuiltInRules())) {
    const bool larger = rewrite.roots.size() > largest.roots.size();
    if (rewrite.rule->name == name && larger) largest = rewrite;
  }
  if (largest.rule == nullptr) return Err(StatusCode::kNotFound, "{} applies nowhere", name);
  AG_LET(const Graph after, Apply(graph, largest));
  return CleanUp(after, BuiltInRules());
}

std::string OperatorsOf(const Graph& graph) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const OpKind op = graph.node(id).op;
    if (!Has(op, kLeaf) && !graph.is_constant(id)) names.push_back(Info(op).text_name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

// Head dimension 4, three heads, five tokens, as PyTorch exports BERT.
constexpr std::string_view kBert = R"(
input x f32[1,5,12]
input m f32[1,1,1,5]
q = reshape(add(matmul(x, const f32[12,12] seed 1), const f32[12] seed 2)) shape=[1,5,3,4]
k = reshape(add(matmul(x, const f32[12,12] seed 3), const f32[12] seed 4)) shape=[1,5,3,4]
v = reshape(add(matmul(x, const f32[12,12] seed 5), const f32[12] seed 6)) shape=[1,5,3,4]
s = matmul(transpose(q) perm=[0,2,1,3], transpose(k) perm=[0,2,3,1])
p = softmax(add(div(s, const f32 {2}), m)) axis=3
c = transpose(matmul(p, transpose(v) perm=[0,2,1,3])) perm=[0,2,1,3]
output y = matmul(reshape(c) shape=[1,5,12], const f32[12,12] seed 7)
)";

struct WayCase {
  const char* name;
  std::string_view before;
  std::vector<std::string> rules;
  const char* operators;  // The operators that remain, in order.
};

const WayCase kCases[] = {
    {"query, key and value of all heads are one product, split where heads lie one after another",
     kBert,
     {"matmul-add-merge-siblings", "reshape-out-of-split", "transpose-out-of-split"},
     "matmul add reshape transpose split transpose matmul mul add softmax matmul transpose "
     "reshape matmul"},
    {"the scale goes into the query's weights",
     kBert,
     {"scale-into-left", "binary-past-transpose", "binary-past-reshape"},
     "matmul add reshape transpose matmul add reshape transpose matmul add softmax matmul add "
     "reshape transpose matmul transpose reshape matmul"},
    {"a scale on both sides of the product, as scaled_dot_product_attention is exported",
     "input q f32[1,3,5,4]\ninput k f32[1,3,5,4]\nr = const f32 {0.5}\n"
     "t = transpose(k) perm=[0,1,3,2]\n"
     "output y = softmax(matmul(mul(q, r), mul(t, r))) axis=3\n",
     {"scale-out-of-right", "scale-out-of-left"},
     "transpose matmul mul softmax"},
    {"a dense layer between reshapes, as GPT-2's Conv1D is exported",
     "input x f32[1,5,12]\n"
     "d = matmul(reshape(x) shape=[5,12], const f32[12,36] seed 1)\n"
     "output y = reshape(add(const f32[36] seed 2, d)) shape=[1,5,36]\n",
     {"matmul-past-reshape", "binary-past-reshape"},
     "matmul add"},
    {"only the first token of what follows the attention is read",
     "input x f32[2,5,12]\ninput r f32[2,5,12]\n"
     "d = add(matmul(x, const f32[12,12] seed 1), const f32[12] seed 2)\n"
     "n = layer_norm(add(d, r), const f32[12] seed 3, const f32[12] seed 4) axis=2\n"
     "output y = tanh(gather(n, const i64 {0}) axis=1)\n",
     {"gather-past-layer-norm", "gather-past-binary", "gather-past-binary-broadcast",
      "gather-past-matmul"},
     "gather matmul add gather add layer_norm tanh"},
};

TEST(Attention, RulesReachWhatTheirCasesSay) {
  for (const WayCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const Graph before = MustParse(std::string(c.before));
    StatusOr<Graph> graph = CleanUp(before, BuiltInRules());
    for (const std::string& rule : c.rules) {
      ASSERT_TRUE(graph.ok()) << ToString(graph.status());
      graph = ApplyRule(*graph, rule);
    }
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    EXPECT_EQ(OperatorsOf(*graph), c.operators) << FormatGraph(*graph);
    const Comparison same = Compare(before, *graph, uint64_t{1});
    EXPECT_TRUE(same.computed && same.equal) << same.difference;
  }
}

}  // namespace
}  // namespace ag
