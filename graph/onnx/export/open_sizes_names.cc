// Sizes and constants that follow from open sizes, as ONNX nodes: Shape, Gather, arithmetic,
// Concat.
#include <algorithm>
#include <limits>

#include "graph/onnx/export/exporter.h"
#include "graph/onnx/export/open_sizes.h"

namespace ag {
namespace {

using Entries = std::vector<OpenSizes::Entry>;

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

bool IsOpenEntry(const OpenSizes::Entry& entry) {
  return !entry.formula.has_value() || !entry.formula->is_constant();
}

SizeFormula Literal(int64_t value) { return {{}, value, 1}; }

// In a reshape 0 keeps the operand's size, and one -1 is what remains.
void SimplifyReshape(const OpenSizes& open, Edge operand, int rank, Entries& entries) {
  const auto is_zero = [](const OpenSizes::Entry& entry) {
    return std::ranges::find(entry.values, 0) != entry.values.end();
  };
  if (std::ranges::any_of(entries, is_zero)) return;
  for (int i = 0; i < std::min(rank, static_cast<int>(entries.size())); ++i) {
    if (IsOpenEntry(entries[i]) && open.ValuesOf({operand, i}) == entries[i].values) {
      entries[i].formula = Literal(0);
    }
  }
  auto rest = std::ranges::find_if(entries, [](const auto& e) { return !e.formula.has_value(); });
  if (rest == entries.end()) rest = std::ranges::find_if(entries, IsOpenEntry);
  if (rest != entries.end()) rest->formula = Literal(-1);
}

// In an expand 1 keeps the operand's size.
void SimplifyExpand(const OpenSizes& open, Edge operand, int rank, Entries& entries) {
  const int before = static_cast<int>(entries.size()) - rank;
  for (int i = std::max(before, 0); i < static_cast<int>(entries.size()); ++i) {
    if (IsOpenEntry(entries[i]) && open.ValuesOf({operand, i - before}) == entries[i].values) {
      entries[i].formula = Literal(1);
    }
  }
}

// Bounds of a slice may count from the end.
void SimplifySlice(const OpenSizes& open, const Node& node, bool ends, Entries& entries) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!IsOpenEntry(entries[i])) continue;
    const auto axis = static_cast<int>(node.IntList("axes")[i]);
    const std::vector<int64_t> sizes = open.ValuesOf({node.inputs[0], axis});
    const int64_t behind = entries[i].values[0] - sizes[0];
    bool same = true;
    for (size_t k = 0; k < sizes.size(); ++k) {
      same = same && entries[i].values[k] - sizes[k] == behind;
    }
    if (same && behind < 0) entries[i].formula = Literal(behind);
    if (same && behind == 0 && ends) entries[i].formula = Literal(kToTheEnd);
  }
}

void SimplifyList(const OpenSizes& open, const Graph& graph, NodeId id, std::string_view attribute,
                  Entries& entries) {
  const Node& node = graph.node(id);
  const Edge operand = node.inputs[0];
  const int rank = static_cast<int>(graph.type(operand).shape.size());
  if (node.op == OpKind::kReshape) SimplifyReshape(open, operand, rank, entries);
  if (node.op == OpKind::kExpand) SimplifyExpand(open, operand, rank, entries);
  if (node.op == OpKind::kSlice) SimplifySlice(open, node, attribute == "ends", entries);
}

bool HoldsIntegers(const Tensor& tensor) {
  const DType dtype = tensor.type().dtype;
  return dtype == DType::kInt64 || dtype == DType::kInt32;
}

}  // namespace

std::string Exporter::SizeName(const SizePlace& place) {
  std::string& name = size_names_[place];
  if (!name.empty()) return name;
  std::string& shape = shape_names_[place.edge];
  if (shape.empty()) shape = Append("Shape", {names_.at(place.edge)});
  return name = Append("Gather", {shape, IntsName({place.axis})}, {IntAttribute("axis", 0)});
}

std::string Exporter::FormulaName(const SizeFormula& formula) {
  if (formula.is_constant()) return IntsName({formula.plus});
  std::string& known = formula_names_[formula];
  if (!known.empty()) return known;
  std::string sum;
  for (const SizeFormula::Term& term : formula.terms) {
    std::string product;
    for (const SizePlace& size : term.sizes) {
      const std::string factor = SizeName(size);
      product = product.empty() ? factor : Append("Mul", {product, factor});
    }
    if (term.times != 1) product = Append("Mul", {product, IntsName({term.times})});
    sum = sum.empty() ? product : Append("Add", {sum, product});
  }
  if (formula.plus != 0) sum = Append("Add", {sum, IntsName({formula.plus})});
  if (formula.divide != 1) sum = Append("Div", {sum, IntsName({formula.divide})});
  return known = sum;
}

// Writes a list of sizes; runs of literals are one initializer.
std::string Exporter::ListName(std::span<const SizeFormula> list) {
  std::vector<std::string> pieces;
  std::vector<int64_t> literals;
  const auto flush = [&] {
    if (!literals.empty()) pieces.push_back(IntsName(literals));
    literals.clear();
  };
  for (const SizeFormula& formula : list) {
    if (formula.is_constant()) {
      literals.push_back(formula.plus);
      continue;
    }
    flush();
    pieces.push_back(FormulaName(formula));
  }
  flush();
  if (pieces.size() == 1) return pieces[0];
  if (pieces.empty()) return IntsName({});
  return Append("Concat", std::move(pieces), {IntAttribute("axis", 0)});
}

StatusOr<std::string> Exporter::SizesName(NodeId id, std::string_view attribute) {
  std::optional<Entries> entries = open_.List(id, attribute);
  if (!entries) return IntsName(graph_.node(id).IntList(attribute));
  SimplifyList(open_, graph_, id, attribute, *entries);
  std::vector<SizeFormula> list;
  for (const OpenSizes::Entry& entry : *entries) {
    if (entry.formula) {
      list.push_back(*entry.formula);
      continue;
    }
    std::vector<Ints> examples;
    for (size_t i = 0; i < entry.values.size(); ++i) {
      examples.emplace_back();
      for (const OpenSizes::Entry& e : *entries) examples.back().push_back(e.values[i]);
    }
    return Err(StatusCode::kFailedPrecondition, "no size gives its {}: {}", attribute,
               open_.Examples(examples));
  }
  return ListName(list);
}

// Returns the formula of each size of a value.
StatusOr<std::vector<SizeFormula>> Exporter::FormulasOf(Edge edge, NodeId reader) const {
  std::vector<SizeFormula> list;
  const auto rank = static_cast<int>(graph_.type(edge).shape.size());
  for (int axis = 0; axis < rank; ++axis) {
    const auto formula = open_.Formula(open_.ValuesOf({edge, axis}), reader);
    if (!formula) {
      return Err(StatusCode::kFailedPrecondition, "no size gives dimension {} of a constant", axis);
    }
    list.push_back(*formula);
  }
  return list;
}

// Writes a constant whose value follows from open sizes: a list of sizes, one value everywhere, or
// places along an axis.
StatusOr<std::string> Exporter::OpenConstantName(Edge edge) {
  AG_LET(const std::vector<Tensor> tensors, open_.Tensors(edge.node, weights_));
  const Shape& shape = graph_.type(edge).shape;
  const DType dtype = graph_.type(edge).dtype;
  AG_LET(const std::vector<SizeFormula> sizes, FormulasOf(edge, writing_));
  const bool is_fixed = std::ranges::all_of(sizes, &SizeFormula::is_constant);
  if (is_fixed && shape.size() <= 1 && HoldsIntegers(tensors[0])) {
    std::vector<SizeFormula> list;
    for (int64_t i = 0; i < tensors[0].type().NumElements(); ++i) {
      std::vector<int64_t> values;
      for (const Tensor& t : tensors) values.push_back(static_cast<int64_t>(t.At(i)));
      const auto formula = open_.Formula(values, writing_);
      if (!formula) return Err(StatusCode::kFailedPrecondition, "no size gives a constant of it");
      list.push_back(*formula);
    }
    std::string name = ListName(list);
    if (shape.empty()) name = Append("Reshape", {name, IntsName({})});
    if (dtype == DType::kInt64) return name;
    return Append("Cast", {name}, {IntAttribute("to", DTypeToOnnx(dtype))});
  }
  const std::optional<OpenConstant> made = OpenConstantOf(tensors);
  if (!made) {
    return Err(StatusCode::kFailedPrecondition,
               "its constant {} has other values at other sizes, which no rule known here gives",
               graph_.type(edge).ToString());
  }
  std::string name;
  if (made->kind == OpenConstant::Kind::kSpread) name = AddInitializer(made->part[0]);
  if (made->kind == OpenConstant::Kind::kPlaces) name = PlacesName(dtype, *made, sizes);
  if (made->kind == OpenConstant::Kind::kMask) name = MaskName(dtype, *made, sizes);
  return Append("Expand", {name, ListName(sizes)});
}

// Writes 0, 1, ... up to a size, along the axis with `axes_behind` axes of one element behind it.
std::string Exporter::RangeName(const SizeFormula& size, size_t axes_behind) {
  const std::string end = Append("Reshape", {FormulaName(size), IntsName({})});
  const std::string range =
      Append("Range", {ScalarName(DType::kInt64, 0), end, ScalarName(DType::kInt64, 1)});
  if (axes_behind == 0) return range;
  std::vector<int64_t> shape(axes_behind + 1, 1);
  shape[0] = -1;
  return Append("Reshape", {range, IntsName(shape)});
}

std::string Exporter::PlacesName(DType dtype, const OpenConstant& places,
                                 std::span<const SizeFormula> sizes) {
  std::string name = RangeName(sizes[places.axis], sizes.size() - 1 - places.axis);
  if (places.step != 1) name = Append("Mul", {name, ScalarName(DType::kInt64, places.step)});
  if (places.first != 0) name = Append("Add", {name, ScalarName(DType::kInt64, places.first)});
  if (dtype == DType::kInt64) return name;
  return Append("Cast", {name}, {IntAttribute("to", DTypeToOnnx(dtype))});
}

std::string Exporter::MaskName(DType dtype, const OpenConstant& mask,
                               std::span<const SizeFormula> sizes) {
  const std::string column = RangeName(sizes.back(), 0),
                    row = RangeName(sizes[sizes.size() - 2], 1);
  const auto offset = static_cast<double>(mask.offset);
  const std::string end = Append("Add", {row, ScalarName(DType::kInt64, offset)});
  const std::string is_left = Append("Less", {column, end});
  return Append("Where", {is_left, ScalarName(dtype, mask.first), ScalarName(dtype, mask.other)});
}

}  // namespace ag
