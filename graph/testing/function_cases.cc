#include "graph/testing/function_cases.h"

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
    {"sin", "sin(x)", kEdges, {}, {kNan, -0.8268795405320025, -0.9092974268256817, -0.479425538604203, -0.0, 0, 0.479425538604203, 0.9092974268256817, 0.8268795405320025, kNan, kNan}},
    {"cos", "cos(x)", kEdges, {}, {kNan, 0.5623790762907029, -0.4161468365471424, 0.8775825618903728, 1, 1, 0.8775825618903728, -0.4161468365471424, 0.5623790762907029, kNan, kNan}},
    {"tan", "tan(x)", kEdges, {}, {kNan, -1.4703241557027185, 2.185039863261519, -0.5463024898437905, -0.0, 0, 0.5463024898437905, -2.185039863261519, 1.4703241557027185, kNan, kNan}},
    {"atan", "atan(x)", kEdges, {}, {-1.5707963267948966, -1.5697963271282298, -1.1071487177940904, -0.4636476090008061, -0.0, 0, 0.4636476090008061, 1.1071487177940904, 1.5697963271282298, 1.5707963267948966, kNan}},
    {"sinh", "sinh(x)", kEdges, {}, {-kInf, -kInf, -3.626860407847019, -0.5210953054937474, -0.0, 0, 0.5210953054937474, 3.626860407847019, kInf, kInf, kNan}},
    {"cosh", "cosh(x)", kEdges, {}, {kInf, kInf, 3.7621956910836314, 1.1276259652063807, 1, 1, 1.1276259652063807, 3.7621956910836314, kInf, kInf, kNan}},
    {"floor", "floor(x)", kEdges, {}, {-kInf, -1000, -2, -1, 0, 0, 0, 2, 1000, kInf, kNan}},
    {"ceil", "ceil(x)", kEdges, {}, {-kInf, -1000, -2, 0, 0, 0, 1, 2, 1000, kInf, kNan}},
    {"round", "round(x)", kEdges, {}, {-kInf, -1000, -2, 0, 0, 0, 0, 2, 1000, kInf, kNan}},
    {"neg", "neg(x)", kEdges, {}, {kInf, 1000, 2, 0.5, 0, -0.0, -0.5, -2, -1000, -kInf, kNan}},
    {"abs", "abs(x)", kEdges, {}, {kInf, 1000, 2, 0.5, 0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"reciprocal", "reciprocal(x)", kEdges, {}, {-0.0, -0.001, -0.5, -2, -kInf, kInf, 2, 0.5, 0.001, 0, kNan}},
    {"sign", "sign(x)", kEdges, {}, {-1, -1, -1, -1, 0, 0, 1, 1, 1, 1, kNan}},
    {"is_nan", "is_nan(x)", kEdges, {}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {"is_inf", "is_inf(x)", kEdges, {}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}},
    {"is_inf negative", "is_inf(x) detect_positive=0", kEdges, {}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"is_inf positive", "is_inf(x) detect_negative=0", kEdges, {}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}},
    {"relu", "relu(x)", kEdges, {}, {0, 0, 0, 0, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"leaky_relu", "leaky_relu(x) alpha=0.1", kEdges, {}, {-kInf, -100, -0.2, -0.05, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"thresholded_relu", "thresholded_relu(x) alpha=0", kEdges, {}, {0, 0, 0, 0, 0, 0, 0.5, 2, 1000, kInf, 0}},
    {"thresholded_relu default", "thresholded_relu(x)", kEdges, {}, {0, 0, 0, 0, 0, 0, 0, 2, 1000, kInf, 0}},
    {"thresholded_relu lower", "thresholded_relu(x) alpha=-1", kEdges, {}, {0, 0, 0, -0.5, -0.0, 0, 0.5, 2, 1000, kInf, 0}},
    {"sigmoid", "sigmoid(x)", kEdges, {}, {0, 0, 0.11920292202211755, 0.3775406687981454, 0.5, 0.5, 0.6224593312018546, 0.8807970779778823, 1, 1, kNan}},
    {"hard_sigmoid", "hard_sigmoid(x) alpha=0.25 beta=0.375", kEdges, {}, {0, 0, 0, 0.25, 0.375, 0.375, 0.5, 0.875, 1, 1, kNan}},
    {"hard_swish", "hard_swish(x)", kEdges, {}, {kNan, -0.0, -0.33333333333333337, -0.20833333333333334, -0.0, 0, 0.2916666666666667, 1.6666666666666665, 1000, kInf, kNan}},
    {"swish", "swish(x)", kEdges, {}, {kNan, -0.0, -0.2384058440442351, -0.1887703343990727, -0.0, 0, 0.3112296656009273, 1.7615941559557646, 1000, kInf, kNan}},
    {"elu", "elu(x)", kEdges, {}, {-1, -1, -0.8646647167633873, -0.3934693402873666, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"elu alpha", "elu(x) alpha=0.25", kEdges, {}, {-0.25, -0.25, -0.21616617919084682, -0.09836733507184164, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"selu", "selu(x)", kEdges, {}, {-1.7580993175032003, -1.7580993175032003, -1.520166448410809, -0.6917581786176537, -0.0, 0, 0.5253505, 2.101402, 1050.701, kInf, kNan}},
    {"selu alpha, gamma", "selu(x) alpha=2 gamma=0.5", kEdges, {}, {-1, -1, -0.8646647167633873, -0.3934693402873666, -0.0, 0, 0.25, 1, 500, kInf, kNan}},
    {"celu", "celu(x)", kEdges, {}, {-1, -1, -0.8646647167633873, -0.3934693402873666, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"celu alpha", "celu(x) alpha=2", kEdges, {}, {-2, -2, -1.2642411176571153, -0.44239843385719024, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"softplus", "softplus(x)", kEdges, {}, {0, 0, 0.1269280110429725, 0.4740769841801067, 0.6931471805599453, 0.6931471805599453, 0.9740769841801067, 2.1269280110429727, 1000, kInf, kNan}},
    {"softsign", "softsign(x)", kEdges, {}, {kNan, -0.999000999000999, -0.6666666666666666, -0.3333333333333333, -0.0, 0, 0.3333333333333333, 0.6666666666666666, 0.999000999000999, kNan, kNan}},
    {"mish", "mish(x)", kEdges, {}, {kNan, -0.0, -0.2525014826957089, -0.22074377465173, -0.0, 0, 0.3752452113048951, 1.9439589595339946, 1000, kInf, kNan}},
    {"round halves", "round(x)", {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 8388609}, {}, {-2, -2, -0.0, 0, 2, 2, 4, 8388609}},
    {"prelu", "prelu(x, y)", kEdges, {0.5, -1, 0.25, 2, 3, 4, 5, 6, 7, 8, 9}, {-kInf, 1000, -0.5, -1, -0.0, 0, 0.5, 2, 1000, kInf, kNan}},
    {"and", "and(x, y)", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}},
    {"or", "or(x, y)", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1}},
    {"xor", "xor(x, y)", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}},
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
