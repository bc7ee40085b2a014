#include "graph/reference/scalar.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"
#include "graph/reference/evaluate_as.h"
#include "graph/text_form.h"

namespace ag {
namespace {

template <class T>
T Of(double v) {
  return Scalar<T>::Of(v);
}

template <class T>
class ExactTest : public testing::Test {};
using ExactTypes = testing::Types<Rational, Residue>;
TYPED_TEST_SUITE(ExactTest, ExactTypes);

TYPED_TEST(ExactTest, IsAField) {
  using T = TypeParam;
  const Array<T> r = RandomArray<T>({DType::kFloat32, {300}}, 5);
  for (size_t i = 0; i + 2 < r.values.size(); ++i) {
    const T a = r.values[i], b = r.values[i + 1], c = r.values[i + 2];
    EXPECT_TRUE((a + b) * c == a * c + b * c);
    EXPECT_TRUE(a - b + b == a);
    if (!(b == T{})) {
      EXPECT_TRUE(a / b * b == a);
    }
  }
}

TYPED_TEST(ExactTest, ConstantsAreTheSimplestFractions) {
  using T = TypeParam;
  EXPECT_TRUE(Of<T>(0.1) == Of<T>(1) / Of<T>(10));
  EXPECT_TRUE(Of<T>(1.0 / 3) == Of<T>(1) / Of<T>(3));
  EXPECT_TRUE(Of<T>(1e-5) == Of<T>(1) / Of<T>(100000));
  EXPECT_TRUE(Of<T>(-2.5) + Of<T>(2.5) == T{});
  EXPECT_TRUE(Of<T>(0.1 * 0.2) == Of<T>(0.1) * Of<T>(0.2));
  EXPECT_TRUE(Scalar<T>::Poisoned(Of<T>(std::numeric_limits<double>::infinity())));
}

TYPED_TEST(ExactTest, PoisonSpreadsAndEqualsNothing) {
  using T = TypeParam;
  const T bad = Of<T>(1) / T{};
  EXPECT_TRUE(Scalar<T>::Poisoned(bad));
  EXPECT_TRUE(Scalar<T>::Poisoned(bad * T{} + Of<T>(1)));
  EXPECT_FALSE(bad == bad);
}

TYPED_TEST(ExactTest, PowersOfSmallIntegersMultiply) {
  using T = TypeParam;
  using S = Scalar<T>;
  const T x = Of<T>(3) / Of<T>(7);
  EXPECT_TRUE(S::Pow(x, Of<T>(3)) == x * x * x);
  EXPECT_TRUE(S::Pow(x, Of<T>(-1)) == Of<T>(7) / Of<T>(3));
  EXPECT_TRUE(S::Pow(x, Of<T>(0.5)) == S::Sqrt(x));
  EXPECT_EQ(S::ToInt(Of<T>(-5)), -5);
  EXPECT_EQ(S::ToInt(Of<T>(0.5)), std::nullopt);
}

TYPED_TEST(ExactTest, UninterpretedFunctionsTellArgumentsApart) {
  using T = TypeParam;
  using S = Scalar<T>;
  EXPECT_TRUE(S::Erf(Of<T>(2)) == S::Erf(Of<T>(1) + Of<T>(1)));
  EXPECT_FALSE(S::Erf(Of<T>(2)) == S::Erf(Of<T>(3)));
  EXPECT_FALSE(S::Erf(Of<T>(2)) == S::Log(Of<T>(2)));
  EXPECT_TRUE(S::Erf(T{}) == T{});
  const auto clip = [](double v, double bound) {
    return S::Opaque(OpKind::kClip, Of<T>(v), {Of<T>(bound)});
  };
  EXPECT_TRUE(clip(2, 1) == clip(2, 1));
  EXPECT_FALSE(clip(2, 1) == clip(2, 2));
  EXPECT_TRUE(S::Poisoned(S::Opaque(OpKind::kClip, Of<T>(2), {S::Poison()})));
}

TEST(RationalTest, OverflowIsPoison) {
  Rational x = Of<Rational>(3);
  for (int i = 0; i < 7; ++i) x = x * x;
  EXPECT_TRUE(Scalar<Rational>::Poisoned(x));
}

TEST(RationalTest, OrderAgreesWithDouble) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto draw = [&] { return std::pair(random.Between(-50, 50), random.Between(1, 20)); };
    const auto [a, b] = draw();
    const auto [c, d] = draw();
    const Rational x = Of<Rational>(static_cast<double>(a)) / Of<Rational>(static_cast<double>(b));
    const Rational y = Of<Rational>(static_cast<double>(c)) / Of<Rational>(static_cast<double>(d));
    EXPECT_EQ(Scalar<Rational>::Less(x, y), a * d < c * b);
  }
}

TEST(ResidueTest, ExpIsAHomomorphism) {
  using S = Scalar<Residue>;
  const Array<Residue> r = RandomArray<Residue>({DType::kFloat32, {50}}, 9);
  for (size_t i = 0; i + 1 < r.values.size(); ++i) {
    const Residue a = r.values[i], b = r.values[i + 1];
    EXPECT_TRUE(S::Exp(a + b) == S::Exp(a) * S::Exp(b));
    EXPECT_TRUE(S::Exp(a - b) == S::Exp(a) / S::Exp(b));
    EXPECT_FALSE(S::Exp(a) == S::Exp(b));
  }
  EXPECT_TRUE(S::Exp(Residue{}) == Of<Residue>(1));
}

TEST(ResidueTest, TheGeneratorHasOrderQ) {
  // exp of an integer n is g^n. g^q = 1 and g is not 1, and q is prime.
  const Residue q_minus_1{0, Residue::kQ - 1}, one{0, 1};
  EXPECT_TRUE(Scalar<Residue>::Exp(q_minus_1) * Scalar<Residue>::Exp(one) == Of<Residue>(1));
  EXPECT_FALSE(Scalar<Residue>::Exp(one) == Of<Residue>(1));
}

// Compares two graphs over the same random inputs in the prime field.
bool Agree(const std::string& left, const std::string& right) {
  std::vector<Array<Residue>> results[2];
  const std::string calls[] = {left, right};
  for (int i = 0; i < 2; ++i) {
    MemoryWeights weights;
    const std::string inputs = "input x f32[2,4]\ninput y f32[2,4]\ninput v f32[4]\n";
    const Graph graph = ParseGraph(inputs + "output \"r\" = " + calls[i], &weights).value();
    std::vector<Array<Residue>> values;
    for (size_t k = 0; k < graph.inputs().size(); ++k) {
      values.push_back(RandomArray<Residue>(graph.node(graph.inputs()[k]).outputs[0], k + 1));
    }
    const ConstantValue<Residue> constant = [&](NodeId id) -> StatusOr<Array<Residue>> {
      const Node& node = graph.node(id);
      AG_LET(const Tensor tensor, weights.Get(node.constant->digest, node.outputs[0]));
      return ArrayOf<Residue>(tensor.type().shape, tensor.ToDoubles());
    };
    results[i] = EvaluateAs<Residue>(graph, values, constant).value();
  }
  return results[0][0].values == results[1][0].values;
}

TEST(ResidueTest, ProvesEquationsAndRefutesOthers) {
  EXPECT_TRUE(Agree("mul(x, add(y, v))", "add(mul(x, y), mul(x, v))"));
  EXPECT_TRUE(Agree("exp(add(x, y))", "mul(exp(x), exp(y))"));
  EXPECT_TRUE(Agree("sigmoid(x)", "reciprocal(add(exp(neg(x)), const f32 {1}))"));
  EXPECT_TRUE(Agree("softmax(x) axis=1", "softmax(add(x, const f32 {5})) axis=1"));
  EXPECT_TRUE(Agree("swish(x)", "mul(sigmoid(x), x)"));
  EXPECT_TRUE(Agree("pow(x, const f32 {2})", "mul(x, x)"));
  EXPECT_TRUE(Agree("relu(concat(x, y) axis=0)", "concat(relu(x), relu(y)) axis=0"));
  EXPECT_TRUE(Agree("max(x, max(y, v))", "max(max(v, x), y)"));
  EXPECT_TRUE(Agree("pad(relu(x)) pads=[0,1,0,0]", "relu(pad(x) pads=[0,1,0,0])"));
  EXPECT_TRUE(
      Agree("layer_norm(x, v, v) axis=1", "layer_norm(add(x, const f32 {3}), v, v) axis=1"));
  EXPECT_TRUE(
      Agree("rms_norm(x, v) axis=1", "mul(rms_norm(x, add(v, v)) axis=1, const f32 {0.5})"));
  EXPECT_FALSE(Agree("rms_norm(x, v) axis=1", "rms_norm(add(x, x), v) axis=1"));
  EXPECT_FALSE(Agree("exp(add(x, y))", "add(exp(x), exp(y))"));
  EXPECT_FALSE(Agree("relu(neg(x))", "neg(relu(x))"));
  EXPECT_FALSE(Agree("clip(x) min=0 max=6", "relu(x)"));
  EXPECT_FALSE(Agree("pad(sigmoid(x)) pads=[0,1,0,0]", "sigmoid(pad(x) pads=[0,1,0,0])"));
  EXPECT_FALSE(Agree("max(x, y)", "x"));
}

TEST(EvaluateAsTest, PoisonedOutputsAreErrors) {
  const Graph graph = ParseGraph("input x f32[1]\noutput \"y\" = reciprocal(x)").value();
  const auto outputs = EvaluateAs<Rational>(graph, {Array<Rational>({1})}, nullptr);
  EXPECT_EQ(ToString(outputs.status()),
            "FAILED_PRECONDITION: node 1, reciprocal: exact arithmetic"
            " overflowed or divided by zero");
}

}  // namespace
}  // namespace ag
