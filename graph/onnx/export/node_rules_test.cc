#include "graph/onnx/export/node_rules.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

TEST(NodeRulesTest, FollowARewriting) {
  const auto graph = [](const char* text) {
    MemoryWeights weights;
    return *ParseGraph(text, &weights);
  };
  NodeRules made_by(graph("input x f32[2]\noutput y = exp(neg(relu(x)))"));
  const Graph second = graph("input x f32[2]\noutput y = reciprocal(exp(relu(x)))");
  made_by.Next(second, "exp-of-neg");
  const Graph third = graph("input x f32[2]\noutput y = reciprocal(exp(abs(x)))");
  made_by.Next(third, "positive");
  made_by.Next(third, "");
  std::string text;
  for (NodeId id = 0; id < third.size(); ++id) {
    text += fmt::format("{}:{} ", Info(third.node(id).op).text_name, made_by.rules()[id]);
  }
  EXPECT_EQ(text, "input: abs:positive exp:exp-of-neg reciprocal:exp-of-neg ");
}

}  // namespace
}  // namespace ag
