// Tiles of matrix products by the matrix instructions of warps: 16 rows x 8 columns of sums and 32
// bytes of depth at a time. Thread g * 4 + t of a warp has row (or column) g and word t of a
// fragment, of eight rows and four words.

#include "device/cuda/codegen/product_tile.h"

namespace ag::cuda {
namespace {

// The division of a block's tile among its warps.
struct WarpCut {
  int64_t down = 2, across = 2;    // Warps.
  int64_t rows = 16, columns = 8;  // Sums of one warp.
  int64_t threads() const { return 32 * down * across; }
};

WarpCut WarpsOf(const TileCut& cut) {
  WarpCut warps;
  if (cut.rows == 16) {
    warps = {.down = 1, .across = 4};
  } else if (cut.columns == 16) {
    warps = {.down = 4, .across = 1};
  } else if (cut.rows >= 64 && cut.columns >= 64) {
    warps = cut.rows > cut.columns ? WarpCut{.down = 4, .across = 2} : WarpCut{.across = 4};
  }
  warps.rows = cut.rows / warps.down;
  warps.columns = cut.columns / warps.across;
  return warps;
}

// Returns the elements in 64 bytes, the depth of a slice. One instruction takes half of them.
int64_t DepthOf(const Product& p) { return p.left.type == "float" ? 16 : 32; }

// Writes the sums of one slice.
void AddSlice(const Product& p, const WarpCut& warps, Text* text) {
  const int64_t depth = DepthOf(p), rows = warps.rows / 16, columns = warps.columns / 8;
  text->Line("AG_UNROLL");
  text->Open("for (int d = 0; d < {}; d += {})", depth, depth / 2);
  text->Line("unsigned a[{}][4], b[{}][2];", rows, columns);
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", rows);
  text->Line("const unsigned* upper = ag_words(&left[warp_row + i * 16 + g][d]);");
  text->Line("const unsigned* lower = ag_words(&left[warp_row + i * 16 + g + 8][d]);");
  text->Line(
      "a[i][0] = upper[t], a[i][1] = lower[t], a[i][2] = upper[t + 4], a[i][3] = lower[t + "
      "4];");
  text->Close();
  text->Line("AG_UNROLL");
  text->Open("for (int j = 0; j < {}; ++j)", columns);
  text->Line("const unsigned* word = ag_words(&right[warp_column + j * 8 + g][d]);");
  text->Line("b[j][0] = word[t], b[j][1] = word[t + 4];");
  text->Close();
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", rows);
  text->Line("AG_UNROLL");
  text->Line("for (int j = 0; j < {}; ++j) ag_multiply<{}>(acc[i][j], a[i], b[j]);", columns,
             p.left.type);
  text->Close();
  text->Close();
}

// Writes the sums of a thread: two neighbours in two rows of each instruction's result.
void WriteTile(const Product& p, const WarpCut& warps, const Epilogue& epilogue,
               const TensorArgument* partial, Text* text) {
  int64_t vector = partial == nullptr ? epilogue.VectorOf(p.column_axis, 2) : 2;
  if (p.columns % vector != 0) vector = 1;
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", warps.rows / 8);
  text->Line("const int row = row0 + warp_row + i * 8 + g;");
  text->Line("if (row >= {}) continue;", p.rows);
  text->Line("AG_UNROLL");
  text->Open("for (int j = 0; j < {}; j += {})", warps.columns / 4, vector);
  text->Line("const int column = column0 + warp_column + j / 2 * 8 + t * 2 + j % 2;");
  text->Line("if (column >= {}) continue;", p.columns);
  const std::string sum = "acc[i / 2][j / 2][i % 2 * 2 + j % 2 + k]";
  if (partial == nullptr) {
    epilogue.Apply(text, p.at("row", "column"), p.column_axis, vector, sum);
  } else {
    StorePart(p, *partial, vector, sum, text);
  }
  text->Close();
  text->Close();
}

}  // namespace

bool SuitsMatrixCores(const Product& p, const Chip& chip) {
  if (chip.compute_capability < 80 || p.left.type != p.right.type) return false;
  if (p.left.type == "float") return p.allows_tf32;
  return p.left.type == "ag_f16" || p.left.type == "ag_bf16";
}

GroupText::Launch MatrixTileKernel(const Product& p, const TileCut& cut, const Epilogue& epilogue,
                                   const TensorArgument* partial, Text* text) {
  const WarpCut warps = WarpsOf(cut);
  TileShape shape{.lines = cut.rows,
                  .depth = DepthOf(p),
                  .threads = warps.threads(),
                  .order = TileOrder::kByLine};
  const OperandTile left(p.left, "left", "row0", p.rows, shape);
  shape.lines = cut.columns;
  const OperandTile right(p.right, "right", "column0", p.columns, shape);
  text->Line("const int warp = ag_thread() / 32, g = ag_thread() % 32 / 4, t = ag_thread() % 4;");
  text->Line("const int warp_row = {} * {}, warp_column = {} * {};", Quotient("warp", warps.across),
             warps.rows, Remainder("warp", warps.across), warps.columns);
  BeginTiles(p, cut, shape.depth, left, right, text);
  text->Line("float acc[{}][{}][4] = {{}};", warps.rows / 16, warps.columns / 8);
  LoopSlices(
      shape.depth, p.left.type == "float", left, right, [&] { AddSlice(p, warps, text); }, text);
  WriteTile(p, warps, epilogue, partial, text);
  return {.grid = {BlocksOf(p, cut), 1, 1}, .threads = warps.threads()};
}

}  // namespace ag::cuda
