// Matrix products in tiles, for dense layers and convolutions, which differ in the address of an
// operand's element. A block has a tile of the result and moves along the depth with a slice of
// both operands in shared memory; each thread keeps a small square of sums. One thread at a time
// for one GroupText.
//
// Invariants of a tile kernel:
//   - The blocks cover every (batch, part of the depth, tile) once. A part begins at a multiple of
//     the slice's depth and ends at the product's depth at the latest.
//   - Elements beyond an operand's lines or the depth count as zero, so the sums need no checks.
//   - A slice is written to shared memory, then a barrier, then the sums read it, then a barrier;
//     the next slice is read into registers meanwhile.
//   - Sums are added in an order that only depends on the shape and the cut; with several parts a
//     second kernel adds them up. So two runs are bit-identical.
#pragma once

#include <functional>

#include "device/cuda/codegen/epilogue.h"

namespace ag::cuda {

// An operand: lines (rows of the left one, columns of the right one) of `depth` elements.
struct ProductOperand {
  std::string_view type;     // Stored.
  bool along_depth = false;  // Memory runs along the depth, else along the lines.
  int64_t vector = 1;        // How many neighbours are read at once; divides their number.
  // Writes the text that finds element (line, k) and returns its address, or "" with a condition in
  // *valid that says whether it exists (zero otherwise). `line` and `k` are names of int variables.
  std::function<std::string(Text* text, std::string* valid)> address;
  // Elements are computed and not read: address returns an expression that is the pack.
  bool is_computed = false;
  double work = 0;  // Multiplications for computing one.
  // A condition by which neighbour v of the element counts as zero, whatever is in memory; "":
  // none.
  std::string is_zero;
};

struct Product {
  int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  DType dtype = DType::kFloat32;  // Of the graph; sums are of its computed type.
  ProductOperand left, right;
  // Write the text that the coordinates, and then the operands, need of `batch`.
  std::function<void(Text*text)> split_batch, begin_reading;
  // Returns the epilogue's coordinates of (batch, row, column), by the names of variables.
  std::function<std::vector<std::string>(const std::string& row, const std::string& column)> at;
  size_t column_axis = 2;    // The axis of these that columns run along.
  bool allows_tf32 = false;  // f32 operands may be rounded to tf32.
};

// The cut of a product.
struct TileCut {
  int64_t rows = 64, columns = 64;  // Of a block's tile: multiples of 16.
  int64_t parts = 1;                // Blocks that share the depth of one tile.
  bool uses_matrix_cores = false;   // Else each product is an instruction of a thread.
};

// Returns the names of cuts, best guess first: "tile/64x64", "tile/64x64/4" (the depth cut in 4)
// and "mma/64x64" (by matrix instructions).
std::vector<std::string> TileVariants(const Product& product, const Chip& chip);
TileCut TileCutOf(const std::string& variant);

// Writes the body of the kernel whose arguments are bound. It ends in the epilogue, or where
// `partial` is given (a workspace tensor [parts, batches, rows, columns]) writes its sums there.
GroupText::Launch TileKernel(const Product& product, const TileCut& cut, const Epilogue& epilogue,
                             const TensorArgument* partial, Text* text);

// Do the same by the matrix instructions of warps: f16, bf16, and f32 rounded to tf32 where the
// policy allows it. Sums are f32.
bool SuitsMatrixCores(const Product& product, const Chip& chip);
GroupText::Launch MatrixTileKernel(const Product& product, const TileCut& cut,
                                   const Epilogue& epilogue, const TensorArgument* partial,
                                   Text* text);

// Writes a pack of `vector` neighbouring sums ("sum[v]", ...) of (part, batch, row, column).
void StorePart(const Product& product, const TensorArgument& partial, int64_t vector,
               const std::string& sum, Text* text);

// The end of the kernels of a product.
struct ProductEnd {
  Epilogue* epilogue = nullptr;
  Epilogue::View view = Epilogue::View::kProduct;
  std::optional<Edge> bias;
};

// Completes the current kernel, whose operands are named: `body` writes it, as TileKernel does.
// With parts > 1 a second kernel adds up the partial sums and applies the epilogue.
using ProductBody = std::function<GroupText::Launch(const TensorArgument* partial, Text* text)>;
Status EndProduct(GroupText* group, const Product& product, int64_t parts, const ProductEnd& end,
                  const ProductBody& body);

}  // namespace ag::cuda
