#include "device/cuda/codegen/product.h"

#include <algorithm>

namespace ag::cuda {
namespace {

constexpr int64_t kThreads = 256;  // 16 x 16, each with a square of sums.
constexpr int64_t kPad = 4;        // Keeps lines of a tile aligned and off each other's banks.

// Cycles of the slowest SM for one cut: products at the rate that a thread's square of sums allows,
// a fixed time for each round of blocks, and another kernel where the depth is cut.
double CyclesOf(const Product& p, const TileCut& cut, int sms) {
  const double side = static_cast<double>(cut.rows * cut.columns) /
                      static_cast<double>(16 * (cut.rows + cut.columns));
  const double rate = 128 * side / (side + 0.75);
  const int64_t blocks = CeilDiv(p.rows, cut.rows) * CeilDiv(p.columns, cut.columns) * p.batches;
  const double depth = static_cast<double>(CeilDiv(p.depth, cut.parts));
  const auto rounds = static_cast<double>(CeilDiv(blocks * cut.parts, sms));
  const double tile = depth * static_cast<double>(cut.rows * cut.columns) / rate;
  return rounds * (tile + 1500) + (cut.parts > 1 ? 3500 : 0);
}

std::string NameOf(const TileCut& cut) {
  return fmt::format("tile/{}x{}", cut.rows, cut.columns) +
         (cut.parts > 1 ? fmt::format("/{}", cut.parts) : "");
}

// One operand's tile: read into registers while the slice before is added up, then put into shared
// memory.
class OperandTile {
 public:
  OperandTile(const ProductOperand& operand, std::string name, std::string first, int64_t lines,
              int64_t lines_max)
      : operand_(operand),
        name_(std::move(name)),
        first_(std::move(first)),
        lines_(lines),
        lines_max_(lines_max) {}

  void Declare(std::string_view type, Text* text) const {
    text->Line("AG_SHARED {} {}[{}][{}];", type, name_, TileCut::kDepth, lines_ + kPad);
    text->Line("ag_pack<{}, {}> {}_next[{}];", operand_.type, operand_.vector, name_, steps());
  }

  // Reads the slice that begins at depth k0, zeros beyond its end.
  void Fetch(bool is_whole_depth, Text* text) const {
    OpenSteps(text);
    text->Line("const int line = {} + l, k = k0 + d;", first_);
    text->Line("{}_next[i] = {{}};", name_);
    std::vector<std::string> conditions;
    if (lines_max_ % lines_ != 0) conditions.push_back(fmt::format("line < {}", lines_max_));
    if (!is_whole_depth) conditions.push_back("k < end");
    const bool is_guarded = !conditions.empty();
    if (is_guarded) text->Open("if ({})", Join(conditions, " && "));
    std::string valid;
    const std::string address = operand_.address(text, &valid);
    text->Line("{}{}_next[i] = ag_load<{}>({});",
               valid.empty() ? "" : fmt::format("if ({}) ", valid), name_, operand_.vector,
               address);
    if (is_guarded) text->Close();
    text->Close();
  }

  void Keep(Text* text) const {
    OpenSteps(text);
    text->Line("AG_UNROLL");
    text->Line("for (int v = 0; v < {}; ++v) {}[d{}][l{}] = ag_get({}_next[i].at[v]);",
               operand_.vector, name_, operand_.along_depth ? " + v" : "",
               operand_.along_depth ? "" : " + v", name_);
    text->Close();
  }

 private:
  int64_t vectors() const { return lines_ * TileCut::kDepth / operand_.vector; }
  int64_t steps() const { return CeilDiv(vectors(), kThreads); }

  // For each of the thread's vectors i: the line l and the depth d within the tile.
  void OpenSteps(Text* text) const {
    const int64_t vector = operand_.vector;
    text->Line("AG_UNROLL");
    text->Open("for (int i = 0; i < {}; ++i)", steps());
    text->Line("const int e = ag_thread() + i * {};", kThreads);
    if (vectors() % kThreads != 0) text->Line("if (e >= {}) break;", vectors());
    if (operand_.along_depth) {
      const int64_t per_line = TileCut::kDepth / vector;
      text->Line("const int l = e / {}, d = e % {} * {};", per_line, per_line, vector);
    } else {
      const int64_t per_depth = lines_ / vector;
      text->Line("const int l = e % {} * {}, d = e / {};", per_depth, vector, per_depth);
    }
  }

  const ProductOperand& operand_;
  const std::string name_, first_;
  const int64_t lines_, lines_max_;
};

// The sums of one slice of the depth.
void AddSlice(std::string_view type, int64_t rows, int64_t columns, Text* text) {
  text->Line("AG_UNROLL");
  text->Open("for (int d = 0; d < {}; ++d)", TileCut::kDepth);
  text->Line("const ag_pack<{0}, {1}> a = ag_load<{1}>(&left[d][ty * {1}]);", type, rows);
  text->Line("const ag_pack<{0}, {1}> b = ag_load<{1}>(&right[d][tx * {1}]);", type, columns);
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", rows);
  text->Line("AG_UNROLL");
  text->Line("for (int j = 0; j < {}; ++j) acc[i][j] += a.at[i] * b.at[j];", columns);
  text->Close();
  text->Close();
}

// Writes the thread's sums.
void WriteTile(const Product& p, const TileCut& cut, const Epilogue& epilogue,
               const TensorArgument* partial, Text* text) {
  const int64_t rows = cut.rows / 16, columns = cut.columns / 16;
  int64_t vector = std::min<int64_t>(columns, 4);
  if (partial == nullptr) vector = epilogue.VectorOf(p.column_axis, vector);
  while (p.columns % vector != 0) vector /= 2;
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", rows);
  text->Line("const int row = row0 + ty * {} + i;", rows);
  text->Line("if (row >= {}) continue;", p.rows);
  text->Line("AG_UNROLL");
  text->Open("for (int j = 0; j < {}; j += {})", columns, vector);
  text->Line("const int column = column0 + tx * {} + j;", columns);
  text->Line("if (column >= {}) continue;", p.columns);
  if (partial == nullptr) {
    epilogue.Apply(text, p.at("row", "column"), p.column_axis, vector, "acc[i][j + k]");
  } else {
    StorePart(p, *partial, vector, "acc[i][j + k]", text);
  }
  text->Close();
  text->Close();
}

// The body of the kernel that adds up partial sums and finishes.
GroupText::Launch AddParts(const Product& p, int64_t parts, const Epilogue& epilogue,
                           const TensorArgument& partial, Text* text) {
  constexpr int64_t kLanes = 128;
  int64_t vector = epilogue.VectorOf(p.column_axis, 4);
  while (p.columns % vector != 0) vector /= 2;
  const int64_t total = p.batches * p.rows * p.columns, across = p.columns / vector;
  const std::string_view type = ComputedType(p.dtype);
  text->Line("const int at = ag_block_x() * {} + ag_thread();", kLanes);
  text->Line("if (at >= {}) return;", total / vector);
  const std::vector<std::string> at =
      Coordinates(text, {p.batches, p.rows, across}, "at", "a", "int");
  text->Line("const int batch = {}, row = {}, column = ({}) * {};", at[0], at[1], at[2], vector);
  p.split_batch(text);
  text->Line("{} acc[{}] = {{}};", type, vector);
  text->Line("AG_UNROLL");
  text->Open("for (int part = 0; part < {}; ++part)", parts);
  text->Line("const ag_pack<{0}, {1}> p = ag_load<{1}>({2} + (long long)part * {3} + at * {1});",
             type, vector, partial.name, total);
  text->Line("AG_UNROLL");
  text->Line("for (int k = 0; k < {}; ++k) acc[k] += p.at[k];", vector);
  text->Close();
  epilogue.Apply(text, p.at("row", "column"), p.column_axis, vector, "acc[k]");
  return {.grid = {CeilDiv(total / vector, kLanes), 1, 1}, .threads = kLanes};
}

}  // namespace

std::vector<std::string> TileVariants(const Product& product, const Chip& chip) {
  static constexpr std::pair<int64_t, int64_t> kTiles[] = {
      {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}, {64, 32}, {32, 32}, {16, 64}, {64, 16}};
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [rows, columns] : kTiles) {
    // A tile twice as large as the product in one direction is half empty.
    if (rows > 16 && rows >= 2 * product.rows) continue;
    if (columns > 16 && columns >= 2 * product.columns) continue;
    for (const int64_t parts : {1, 2, 4, 8, 16}) {
      if (parts > 1 && product.depth / parts < 64) continue;
      const TileCut cut{rows, columns, parts};
      ranked.emplace_back(CyclesOf(product, cut, chip.sms), NameOf(cut));
    }
  }
  if (ranked.empty()) ranked.emplace_back(0, "tile/16x64");
  std::ranges::stable_sort(ranked, {}, [](const auto& r) { return r.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(ranked.size(), 4); ++i) {
    names.push_back(ranked[i].second);
  }
  return names;
}

TileCut TileCutOf(const std::string& variant) {
  const std::vector<int64_t> numbers = NumbersIn(variant);
  return {numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1};
}

StatusOr<GroupText::Launch> TileKernel(const Product& p, const TileCut& cut,
                                       const Epilogue& epilogue, const TensorArgument* partial,
                                       Text* text) {
  const std::string_view type = ComputedType(p.dtype);
  const int64_t rows = cut.rows / 16, columns = cut.columns / 16;  // Of a thread.
  const int64_t across = CeilDiv(p.columns, cut.columns), down = CeilDiv(p.rows, cut.rows);
  const int64_t slices = CeilDiv(CeilDiv(p.depth, TileCut::kDepth), cut.parts);
  const int64_t part_depth = std::max<int64_t>(slices, 1) * TileCut::kDepth;
  const OperandTile left(p.left, "left", "row0", cut.rows, p.rows);
  const OperandTile right(p.right, "right", "column0", cut.columns, p.columns);
  const bool is_whole = p.depth % TileCut::kDepth == 0;
  left.Declare(type, text);
  right.Declare(type, text);
  text->Line("const int tx = ag_thread() % 16, ty = ag_thread() / 16;");
  const std::vector<std::string> at =
      Coordinates(text, {p.batches, cut.parts, down, across}, "ag_block_x()", "b", "int");
  text->Line("const int batch = {}, part = {}, row0 = {} * {}, column0 = {} * {};", at[0], at[1],
             at[2], cut.rows, at[3], cut.columns);
  text->Line("const int begin = part * {0}, end = ag_min({1}, begin + {0});", part_depth, p.depth);
  p.split_batch(text);
  p.begin_reading(text);
  text->Open("const auto fetch = [&](int k0)");
  left.Fetch(is_whole, text);
  right.Fetch(is_whole, text);
  text->Close(";");
  text->Line("{} acc[{}][{}] = {{}};", type, rows, columns);
  text->Line("if (begin < end) fetch(begin);");
  text->Open("for (int k0 = begin; k0 < end; k0 += {})", TileCut::kDepth);
  left.Keep(text);
  right.Keep(text);
  text->Line("ag_barrier();");
  text->Line("if (k0 + {0} < end) fetch(k0 + {0});", TileCut::kDepth);
  AddSlice(type, rows, columns, text);
  text->Line("ag_barrier();");
  text->Close();
  WriteTile(p, cut, epilogue, partial, text);
  return GroupText::Launch{.grid = {across * down * p.batches * cut.parts, 1, 1},
                           .threads = kThreads};
}

void StorePart(const Product& p, const TensorArgument& partial, int64_t vector,
               const std::string& sum, Text* text) {
  text->Line("ag_pack<{}, {}> y;", partial.type(), vector);
  text->Line("AG_UNROLL");
  text->Line("for (int k = 0; k < {}; ++k) y.at[k] = {};", vector, sum);
  text->Line("ag_store({} + (((long long)part * {} + batch) * {} + row) * {} + column, y);",
             partial.name, p.batches, p.rows, p.columns);
}

Status EndProduct(GroupText* group, const Product& product, int64_t parts, const ProductEnd& end,
                  const ProductBody& body) {
  Text text;
  if (parts == 1) {
    AG_TRY(end.epilogue->Bind(group, end.view, end.bias));
    AG_LET(const GroupText::Launch launch, body(nullptr, &text));
    return group->EndKernel(launch, text);
  }
  const Shape shape{parts, product.batches, product.rows, product.columns};
  DType sums = IsFloat(product.dtype) ? DType::kFloat32 : DType::kInt64;
  if (product.dtype == DType::kFloat64) sums = DType::kFloat64;
  group->NeedWorkspace(NumElements(shape) * SizeOf(sums));
  const TensorArgument partial = group->Workspace(0, sums, shape);
  AG_LET(const GroupText::Launch launch, body(&partial, &text));
  AG_TRY(group->EndKernel(launch, text));
  group->BeginKernel("add_parts");
  const TensorArgument from = group->Workspace(0, sums, shape);
  AG_TRY(end.epilogue->Bind(group, end.view, end.bias));
  Text sum;
  const GroupText::Launch finish = AddParts(product, parts, *end.epilogue, from, &sum);
  return group->EndKernel(finish, sum);
}

}  // namespace ag::cuda
