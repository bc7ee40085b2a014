// Matrix products in tiles: a block has a tile of the result, walks along the depth with a slice of
// both operands in shared memory, and each thread keeps a small square of sums. Dense layers and
// convolutions are such products; they differ in how an element of an operand is found.
#pragma once

#include <functional>

#include "device/cuda/codegen/epilogue.h"

namespace ag::cuda {

// An operand: lines (rows of the left one, columns of the right one) of `depth` elements.
struct ProductOperand {
  std::string_view type;     // Stored.
  bool along_depth = false;  // Neighbours in memory are neighbours along the depth, else of lines.
  int64_t vector = 1;        // How many of them are read at once; divides their number.
  // Writes what finding the element (line, k) needs; returns its address, or "" with a condition in
  // *valid that says whether it exists (zero otherwise). Names are those of int variables.
  std::function<std::string(Text* text, std::string* valid)> address;
  // Where elements are computed and not read, address returns an expression that is the pack.
  bool is_computed = false;
  double work = 0;  // Multiplications that computing one takes.
  // A condition by which neighbour v of the element counts as zero, whatever lies there; "": none.
  std::string is_zero;
};

struct Product {
  int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  DType dtype = DType::kFloat32;  // Of the graph; sums are of its computed type.
  ProductOperand left, right;
  // Writes what the coordinates need of `batch`, and then what the operands need of it.
  std::function<void(Text*text)> split_batch, begin_reading;
  // The epilogue's coordinates of (batch, row, column), by the names of variables.
  std::function<std::vector<std::string>(const std::string& row, const std::string& column)> at;
  size_t column_axis = 2;    // Which of these axes columns run along.
  bool allows_tf32 = false;  // f32 operands may be rounded to tf32.
};

// How a product is cut.
struct TileCut {
  int64_t rows = 64, columns = 64;  // Of a block's tile: multiples of 16.
  int64_t parts = 1;                // Blocks that share the depth of one tile.
  bool uses_matrix_cores = false;   // Else each product is an instruction of a thread.
};

// "tile/64x64", "tile/64x64/4" (the depth cut in 4) and "mma/64x64" (by matrix instructions), best
// guess first.
std::vector<std::string> TileVariants(const Product& product, const Chip& chip);
TileCut TileCutOf(const std::string& variant);

// The body of the kernel whose arguments are bound; it ends in the epilogue, or where `partial` is
// given (a workspace tensor [parts, batches, rows, columns]) writes its sums there.
GroupText::Launch TileKernel(const Product& product, const TileCut& cut, const Epilogue& epilogue,
                             const TensorArgument* partial, Text* text);

// The same by the matrix instructions of warps: f16, bf16, and f32 rounded to tf32 where the policy
// allows it. Sums are f32.
bool SuitsMatrixCores(const Product& product, const Chip& chip);
GroupText::Launch MatrixTileKernel(const Product& product, const TileCut& cut,
                                   const Epilogue& epilogue, const TensorArgument* partial,
                                   Text* text);

// Writes a pack of `vector` neighbouring sums ("sum[v]", ...) of (part, batch, row, column).
void StorePart(const Product& product, const TensorArgument& partial, int64_t vector,
               const std::string& sum, Text* text);

// How the kernels of a product end.
struct ProductEnd {
  Epilogue* epilogue = nullptr;
  Epilogue::View view = Epilogue::View::kProduct;
  std::optional<Edge> bias;
};

// Completes the kernel in the making, whose operands are named: `body` writes it, as TileKernel
// does. With parts > 1 a second kernel adds up the partial sums and finishes.
using ProductBody = std::function<GroupText::Launch(const TensorArgument* partial, Text* text)>;
Status EndProduct(GroupText* group, const Product& product, int64_t parts, const ProductEnd& end,
                  const ProductBody& body);

}  // namespace ag::cuda
