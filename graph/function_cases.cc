#include "graph/function_cases.h"

#include <limits>

namespace ag {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::initializer_list<double> kEdges = {-kInf, -1000, -2,   -0.5, -0.0, 0,
                                                  0.5,   2,     1000, kInf, kNan};

// clang-format off
constexpr FunctionCase kFunctionCases[] = {
    {"exp", "exp(x)", kEdges, {}, {0, 0, 0.1353352832366127, 0.6065306597126334, 1, 1, 1.6487212707001282, 7.38905609893065, kInf, kInf, kNan}},
    {"log", "log(x)", kEdges, {}, {kNan, kNan, kNan, kNan, -kInf, -kInf, -0.6931471805599453, 0.6931471805599453, 6.907755278982137, kInf, kNan}},
    {"sqrt", "sqrt(x)", kEdges, {}, {kNan, kNan, kNan, kNan, -0.0, 0, 0.7071067811865476, 1.4142135623730951, 31.622776601683793, kInf, kNan}},
    {"erf", "erf(x)", kEdges, {}, {-1, -1, -0.9953222650189527, -0.5204998778130465, -0.0, 0, 0.5204998778130465, 0.9953222650189527, 1, 1, kNan}},
    {"tanh", "tanh(x)", kEdges, {}, {-1, -1, -0.9640275800758169, -0.46211715726000974, -0.0, 0, 0.46211715726000974, 0.9640275800758169, 1, 1, kNan}},
    {"floor", "floor(x)", kEdges, {}, {-kInf, -1000, -2, -1, 0, 0, 0, 2, 1000, kInf, kNan}},
    {"ceil", "ceil(x)", kEdges, {}, {-kInf, -1000, -2, 0, 0, 0, 1, 2, 1000, kInf, kNan}},
    {"neg", "neg(x)", kEdges, {}, {kInf, 1000, 2, 0.5, 0, -0.0, -0.5, -2, -1000, -kInf, kNan}},
    {"abs", "abs(x)", kEdges, {}, {kInf, 1000, 2, 0.5, 0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"reciprocal", "reciprocal(x)", kEdges, {}, {-0.0, -0.001, -0.5, -2, -kInf, kInf, 2, 0.5, 0.001, 0, kNan}},
    {"relu", "relu(x)", kEdges, {}, {0, 0, 0, 0, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"leaky_relu", "leaky_relu(x) alpha=0.1", kEdges, {}, {-kInf, -100, -0.2, -0.05, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"sigmoid", "sigmoid(x)", kEdges, {}, {0, 0, 0.11920292202211755, 0.3775406687981454, 0.5, 0.5, 0.6224593312018546, 0.8807970779778823, 1, 1, kNan}},
    {"hard_sigmoid", "hard_sigmoid(x) alpha=0.25 beta=0.375", kEdges, {}, {0, 0, 0, 0.25, 0.375, 0.375, 0.5, 0.875, 1, 1, kNan}},
    {"hard_swish", "hard_swish(x)", kEdges, {}, {kNan, -0.0, -0.33333333333333337, -0.20833333333333334, -0.0, 0, 0.2916666666666667, 1.6666666666666665, 1000, kInf, kNan}},
    {"swish", "swish(x)", kEdges, {}, {kNan, -0.0, -0.2384058440442351, -0.1887703343990727, -0.0, 0, 0.3112296656009273, 1.7615941559557646, 1000, kInf, kNan}},
    {"and", "and(x, y)", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}},
    {"or", "or(x, y)", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1}},
    {"not", "not(x)", {0, 1}, {}, {1, 0}},
};
// clang-format on

}  // namespace

std::span<const FunctionCase> FunctionCases() { return kFunctionCases; }

OpKind OpOf(const FunctionCase& c) {
  return OpKindFromText(c.text.substr(0, c.text.find('('))).value();
}

std::string StatementsOf(const FunctionCase& c, std::string_view shape, std::string_view before) {
  const std::string type = fmt::format("{}{}", Has(OpOf(c), kLogic) ? "bool" : "f32", shape);
  std::string text = before.empty() ? fmt::format("input x {}; ", type) : std::string(before);
  if (c.y.size() > 0) text += fmt::format("input y {}; ", type);
  return text + fmt::format("output z = {}", c.text);
}

}  // namespace ag
