#include "device/cuda/codegen/product.h"

#include <algorithm>

#include "device/cuda/codegen/product_tile.h"

namespace ag::cuda {
namespace {

constexpr int64_t kThreads = 256;  // 16 x 16, each with a square of sums.
constexpr int64_t kDepth = 16;     // Of a slice.

// Estimates the cycles of the slowest SM for one cut: the products at the rate that the part of the
// tile in a thread or warp allows, a fixed time for each round of blocks, and another kernel where
// the depth is cut.
double CyclesOf(const Product& p, const TileCut& cut, int sms) {
  const double side = static_cast<double>(cut.rows * cut.columns) /
                      static_cast<double>(16 * (cut.rows + cut.columns));
  const double rate = cut.uses_matrix_cores ? 600 * side / (side + 2) : 128 * side / (side + 0.75);
  const double depth = static_cast<double>(CeilDiv(p.depth, cut.parts));
  const auto rounds = static_cast<double>(CeilDiv(BlocksOf(p, cut), sms));
  const double tile = depth * static_cast<double>(cut.rows * cut.columns) / rate;
  const double computed = depth * static_cast<double>(cut.rows) * p.left.work / 128;
  return rounds * (tile + computed + 1500) + (cut.parts > 1 ? 3500 : 0);
}

std::string NameOf(const TileCut& cut) {
  return fmt::format("{}/{}x{}", cut.uses_matrix_cores ? "mma" : "tile", cut.rows, cut.columns) +
         (cut.parts > 1 ? fmt::format("/{}", cut.parts) : "");
}

// Returns the names of the best cuts of one kind.
std::vector<std::string> BestCuts(const Product& product, const Chip& chip, bool uses_matrix_cores,
                                  size_t count) {
  static constexpr std::pair<int64_t, int64_t> kTiles[] = {
      {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}, {64, 32}, {32, 32}, {16, 64}, {64, 16}};
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [rows, columns] : kTiles) {
    // A tile twice as large as the product in one direction is half empty.
    if (rows > 16 && rows >= 2 * product.rows) continue;
    if (columns > 16 && columns >= 2 * product.columns) continue;
    for (const int64_t parts : {1, 2, 4, 8, 16}) {
      if (parts > 1 && product.depth / parts < 64) continue;
      const TileCut cut{rows, columns, parts, uses_matrix_cores};
      ranked.emplace_back(CyclesOf(product, cut, chip.sms), NameOf(cut));
    }
  }
  if (ranked.empty()) ranked.emplace_back(0, NameOf({16, 64, 1, uses_matrix_cores}));
  std::ranges::stable_sort(ranked, {}, [](const auto& r) { return r.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(ranked.size(), count); ++i) names.push_back(ranked[i].second);
  return names;
}

// Writes the sums of one slice of the depth.
void AddSlice(std::string_view type, int64_t rows, int64_t columns, Text* text) {
  text->Line("AG_UNROLL");
  text->Open("for (int d = 0; d < {}; ++d)", kDepth);
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

// Writes the body of the kernel that adds up partial sums and applies the epilogue.
GroupText::Launch AddParts(const Product& p, int64_t parts, const Epilogue& epilogue,
                           const TensorArgument& partial, Text* text) {
  constexpr int64_t kLanes = 128;
  int64_t vector = epilogue.VectorOf(p.column_axis, 4);
  while (p.columns % vector != 0) vector /= 2;
  const int64_t total = p.batches * p.rows * p.columns, across = p.columns / vector;
  const std::string_view type = ComputedType(p.dtype);
  const std::string type_of_index = IsWide(total) ? "long long" : "int";
  text->Line("const {0} at = ({0})ag_block_x() * {1} + ag_thread();", type_of_index, kLanes);
  text->Line("if (at >= {}) return;", total / vector);
  const std::vector<std::string> at =
      Coordinates(text, {p.batches, p.rows, across}, "at", "a", type_of_index);
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
  if (!SuitsMatrixCores(product, chip)) return BestCuts(product, chip, false, 4);
  std::vector<std::string> names = BestCuts(product, chip, true, 4);
  std::ranges::move(BestCuts(product, chip, false, 1), std::back_inserter(names));
  return names;
}

TileCut TileCutOf(const std::string& variant) {
  const std::vector<int64_t> numbers = NumbersIn(variant);
  return {numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1, variant.starts_with("mma")};
}

GroupText::Launch TileKernel(const Product& p, const TileCut& cut, const Epilogue& epilogue,
                             const TensorArgument* partial, Text* text) {
  if (cut.uses_matrix_cores) return MatrixTileKernel(p, cut, epilogue, partial, text);
  const std::string_view type = ComputedType(p.dtype);
  const int64_t rows = cut.rows / 16, columns = cut.columns / 16;  // Of a thread.
  const OperandTile left(p.left, "left", "row0", p.rows, {.lines = cut.rows});
  const OperandTile right(p.right, "right", "column0", p.columns, {.lines = cut.columns});
  text->Line("const int tx = ag_thread() % 16, ty = ag_thread() / 16;");
  BeginTiles(p, cut, kDepth, left, right, text);
  text->Line("{} acc[{}][{}] = {{}};", type, rows, columns);
  LoopSlices(
      kDepth, false, left, right, [&] { AddSlice(type, rows, columns, text); }, text);
  WriteTile(p, cut, epilogue, partial, text);
  return {.grid = {BlocksOf(p, cut), 1, 1}, .threads = kThreads};
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
    const GroupText::Launch launch = body(nullptr, &text);
    return group->EndKernel(launch, text);
  }
  const Shape shape{parts, product.batches, product.rows, product.columns};
  DType sums = IsFloat(product.dtype) ? DType::kFloat32 : DType::kInt64;
  if (product.dtype == DType::kFloat64) sums = DType::kFloat64;
  group->NeedWorkspace(NumElements(shape) * SizeOf(sums));
  const TensorArgument partial = group->Workspace(0, sums, shape);
  const GroupText::Launch launch = body(&partial, &text);
  AG_TRY(group->EndKernel(launch, text));
  group->BeginKernel("add_parts");
  const TensorArgument from = group->Workspace(0, sums, shape);
  AG_TRY(end.epilogue->Bind(group, end.view, end.bias));
  Text sum;
  const GroupText::Launch finish = AddParts(product, parts, *end.epilogue, from, &sum);
  return group->EndKernel(finish, sum);
}

}  // namespace ag::cuda
