// Sums of products by subscripts, determinants, and boxes chosen by their scores.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "absl/strings/str_split.h"
#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// The axes of one operand, or of the result: letters, and for the axes of an ellipsis the numbers
// 0, 1, ... counted from the last one.
using Labels = std::vector<int>;

// Returns the labels of "ab...c" for a tensor of `rank`.
StatusOr<Labels> LabelsOf(std::string_view term, int64_t rank, int64_t ellipsis_rank) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (term.substr(i).starts_with("...")) {
      for (int64_t k = ellipsis_rank; k-- > 0;) labels.push_back(static_cast<int>(k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      labels.push_back(c);
    } else {
      return Err(StatusCode::kInvalidArgument, "equation: {} is no subscript", Quoted(term));
    }
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank) {
    return Err(StatusCode::kInvalidArgument,
               "equation: {} has {} subscripts, the operand has rank {}", Quoted(term),
               labels.size(), rank);
  }
  return labels;
}

bool HasEllipsis(std::string_view term) { return term.find("...") != std::string_view::npos; }

// An equation with the sizes of its labels.
struct Contraction {
  std::vector<Labels> operands;
  Labels result;
  std::map<int, int64_t> sizes;
};

Status LearnSizes(const OperatorCall& call, Contraction& sum) {
  for (size_t i = 0; i < sum.operands.size(); ++i) {
    for (size_t axis = 0; axis < sum.operands[i].size(); ++axis) {
      const int64_t size = call.ShapeOf(i)[axis];
      const auto [known, added] = sum.sizes.emplace(sum.operands[i][axis], size);
      if (known->second == 1) known->second = size;
      if (added || size == 1 || size == known->second) continue;
      return Err(StatusCode::kInvalidArgument, "equation: one subscript has the sizes {} and {}",
                 known->second, size);
    }
  }
  return OkStatus();
}

StatusOr<Contraction> ReadEquation(OperatorCall& call) {
  std::string equation = call.String("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const std::vector<std::string> terms = absl::StrSplit(left, ',');
  if (terms.size() != call.size()) {
    return Err(StatusCode::kInvalidArgument, "equation: {} has {} operands, the node has {}",
               Quoted(equation), terms.size(), call.size());
  }
  AG_TRY(call.CheckInputs(call.size(), call.size()));
  int64_t ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!call.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
    const auto letters = static_cast<int64_t>(terms[i].size()) - 3;
    if (HasEllipsis(terms[i])) ellipsis = std::max(ellipsis, call.Rank(i) - letters);
  }
  Contraction sum;
  std::map<int, int> uses;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto letters = static_cast<int64_t>(terms[i].size()) - 3;
    const int64_t own = HasEllipsis(terms[i]) ? call.Rank(i) - letters : 0;
    if (own < 0) return Err(StatusCode::kInvalidArgument, "equation: {}", Quoted(terms[i]));
    AG_LET(Labels labels, LabelsOf(terms[i], call.Rank(i), own));
    for (const int label : labels) ++uses[label];
    sum.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    AG_LET(sum.result, LabelsOf(equation.substr(arrow + 2), -1, ellipsis));
  } else {  // The axes of the ellipsis, then the letters that occur once, in order.
    for (int64_t k = ellipsis; k-- > 0;) sum.result.push_back(static_cast<int>(k));
    for (const auto& [label, count] : uses) {
      if (label >= 'A' && count == 1) sum.result.push_back(label);
    }
  }
  AG_TRY(LearnSizes(call, sum));
  for (const int label : sum.result) {
    if (!sum.sizes.contains(label) || std::ranges::count(sum.result, label) > 1) {
      return Err(StatusCode::kInvalidArgument, "equation: the result of {} repeats or invents one",
                 Quoted(equation));
    }
  }
  return sum;
}

// Returns the distance in elements for a step along each of `order`; 0 for an axis that the tensor
// lacks or repeats.
Ints StepsOf(const Labels& labels, const Shape& shape, const Labels& order) {
  Ints steps(order.size(), 0);
  int64_t stride = 1;
  for (size_t axis = labels.size(); axis-- > 0; stride *= shape[axis]) {
    if (shape[axis] == 1) continue;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] == labels[axis]) steps[i] += stride;  // A diagonal repeats its label.
    }
  }
  return steps;
}

// Walks over all `left` values of the labels of `order`, those of the result first, and adds the
// product of the operands to the element of the result.
template <class W>
Status AddProducts(OperatorCall& call, const Contraction& sum, const Labels& order, int64_t left) {
  std::vector<std::vector<W>> values;
  std::vector<Ints> steps;
  Ints sizes;
  for (const int label : order) sizes.push_back(sum.sizes.at(label));
  const Shape shape(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sum.result.size()));
  for (size_t i = 0; i < sum.operands.size(); ++i) {
    values.push_back(Widened<W>(call.In(i)));
    steps.push_back(StepsOf(sum.operands[i], call.ShapeOf(i), order));
  }
  const Ints to = StepsOf(sum.result, shape, order);
  std::vector<W> out(static_cast<size_t>(NumElements(shape)));
  Ints at(order.size(), 0), offsets(values.size() + 1, 0);
  for (; left > 0; --left) {
    W product = 1;
    for (size_t i = 0; i < values.size(); ++i)
      product = Times(product, values[i][static_cast<size_t>(offsets[i])]);
    W& target = out[static_cast<size_t>(offsets.back())];
    target = Plus(target, product);
    for (size_t axis = order.size(); axis-- > 0;) {
      const bool wraps = ++at[axis] == sizes[axis];
      const int64_t by = wraps ? 1 - sizes[axis] : 1;
      for (size_t i = 0; i < values.size(); ++i) offsets[i] += by * steps[i][axis];
      offsets.back() += by * to[axis];
      if (!wraps) break;
      at[axis] = 0;
    }
  }
  return GiveNarrowed(call, 0, {call.TypeOf(0), shape}, out);
}

constexpr double kTermsMax = 1e11;

Status RunEinsum(OperatorCall& call) {
  AG_LET(const Contraction sum, ReadEquation(call));
  Labels order = sum.result;
  for (const auto& [label, size] : sum.sizes) {
    if (std::ranges::count(order, label) == 0) order.push_back(label);
  }
  double terms = 1;
  Shape shape;
  for (const int label : order) {
    const int64_t size = sum.sizes.at(label);
    terms *= static_cast<double>(size);
    if (shape.size() < sum.result.size()) shape.push_back(size);
  }
  if (terms > kTermsMax) {
    return Err(StatusCode::kResourceExhausted, "{} products are more than {}", terms, kTermsMax);
  }
  const DType dtype = call.TypeOf(0);
  AG_TRY(call.MakeBytes(0, {dtype, shape}));
  if (call.types_only()) return OkStatus();
  return ForWide(dtype, [&]<class W>() {
    return AddProducts<W>(call, sum, order, static_cast<int64_t>(terms));
  });
}

// By elimination with the largest pivot.
double Determinant(Doubles m, int64_t n) {
  double result = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    }
    if (m[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      for (int64_t k = 0; k < n; ++k) std::swap(m[pivot * n + k], m[c * n + k]);
      result = -result;
    }
    result *= m[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double by = m[r * n + c] / m[c * n + c];
      for (int64_t k = c; k < n; ++k) m[r * n + k] -= by * m[c * n + k];
    }
  }
  return result;
}

Status RunDet(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  Shape shape = call.ShapeOf(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2]) {
    return Err(StatusCode::kInvalidArgument, "expected square matrices, got {}",
               call.Type(0).ToString());
  }
  const int64_t n = shape.back();
  shape.resize(shape.size() - 2);
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));  // Checks the size.
  const Doubles in = call.In(0).ToDoubles();
  Doubles out;
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    const auto first = in.begin() + i * n * n;
    out.push_back(Determinant(Doubles(first, first + n * n), n));
  }
  call.Give(0, Tensor::FromDoubles({call.TypeOf(0), shape}, out));
  return OkStatus();
}

// A box by its corners, in whatever order they were given.
using Box = std::array<double, 4>;
Box BoxOf(const Doubles& boxes, int64_t at, bool by_center) {
  const double* b = boxes.data() + at * 4;
  if (by_center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

struct KeptBox {
  Box box;
  double area = 0;
};
KeptBox WithArea(const Box& box) { return {box, (box[2] - box[0]) * (box[3] - box[1])}; }

// Returns the common area over that of both together.
double Overlap(const KeptBox& a, const KeptBox& b) {
  const double height = std::min(a.box[2], b.box[2]) - std::max(a.box[0], b.box[0]);
  if (height <= 0) return 0;
  const double width = std::min(a.box[3], b.box[3]) - std::max(a.box[1], b.box[1]);
  if (width <= 0) return 0;
  const double both = height * width;
  return both / (a.area + b.area - both);
}

// Operands: boxes [N,B,4], scores [N,C,B], the most boxes of a class, two thresholds. The result
// lists (batch, class, box), by falling score in each class.
Status RunNonMaxSuppression(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 5));
  for (const size_t i : {0, 1}) AG_TRY(call.CheckRank(i, 3));
  const Shape &b = call.ShapeOf(0), &s = call.ShapeOf(1);
  if (b[2] != 4 || b[0] != s[0] || b[1] != s[2]) {
    return Err(StatusCode::kInvalidArgument, "boxes {} do not fit scores {}",
               call.Type(0).ToString(), call.Type(1).ToString());
  }
  int64_t most = 0;
  if (call.Has(2)) {
    AG_LET(most, call.IntAt(2));
  }
  for (const size_t i : {3, 4}) {
    if (!call.Has(i) || call.Type(i).NumElements() == 1) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
               call.Type(i).ToString());
  }
  const double overlap_max = call.Has(3) ? call.NumberAt(3) : 0;
  const double score_min = call.Has(4) ? call.NumberAt(4) : -INFINITY;
  const bool by_center = call.Int("center_point_box", 0) != 0;
  const Doubles boxes = call.In(0).ToDoubles(), scores = call.In(1).ToDoubles();
  std::vector<int64_t> found;
  for (int64_t row = 0; most > 0 && s[2] > 0 && row < s[0] * s[1]; ++row) {
    const double* score = scores.data() + row * s[2];
    std::vector<int64_t> candidates;
    for (int64_t i = 0; i < s[2]; ++i) {
      if (score[i] > score_min) candidates.push_back(i);
    }
    std::ranges::stable_sort(candidates, [&](int64_t x, int64_t y) { return score[x] > score[y]; });
    std::vector<KeptBox> kept;
    for (const int64_t i : candidates) {
      if (static_cast<int64_t>(kept.size()) == most) break;
      const KeptBox box = WithArea(BoxOf(boxes, row / s[1] * b[1] + i, by_center));
      const bool hidden = std::ranges::any_of(
          kept, [&](const KeptBox& other) { return Overlap(other, box) > overlap_max; });
      if (hidden) continue;
      kept.push_back(box);
      found.insert(found.end(), {row / s[1], row % s[1], i});
    }
  }
  AG_LET(int64_t * out, call.Make<int64_t>(0, {static_cast<int64_t>(found.size() / 3), 3}));
  std::ranges::copy(found, out);
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> ProductOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Einsum", RunEinsum},
      {"Det", RunDet},
      {"NonMaxSuppression", RunNonMaxSuppression, ResultSizes::kFromValues},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
