// The parts that the kernels of products share: a block's place in the product, and operands' tiles
// in shared memory. Private to the room. One thread at a time for one Text.
#pragma once

#include "device/cuda/codegen/product.h"

namespace ag::cuda {

// The order of a tile in shared memory.
enum class TileOrder : uint8_t {
  kByDepth,  // [depth][line], of the computed type: threads read neighbouring lines.
  kByLine,   // [line][depth], of the stored type, for matrix instructions.
};

struct TileShape {
  int64_t lines = 64, depth = 16;
  int64_t threads = 256;  // Of the block; all of them fill the tile.
  TileOrder order = TileOrder::kByDepth;
};

// One operand's tile: the next slice is read into registers while the current one is summed, then
// stored in shared memory. `first` names the tile's first line.
class OperandTile {
 public:
  OperandTile(const ProductOperand& operand, std::string name, std::string first, int64_t lines_max,
              const TileShape& shape)
      : operand_(operand),
        name_(std::move(name)),
        first_(std::move(first)),
        lines_max_(lines_max),
        shape_(shape) {}

  void Declare(std::string_view computed_type, Text* text) const;
  // Writes the text that reads the slice that begins at depth k0; zeros beyond the operand's end.
  void Fetch(bool is_whole_depth, Text* text) const;
  // Writes the text that stores the slice in shared memory. `rounded`: by ag_tf32.
  void Keep(bool rounded, Text* text) const;

 private:
  int64_t vectors() const { return shape_.lines * shape_.depth / operand_.vector; }
  int64_t steps() const { return CeilDiv(vectors(), shape_.threads); }
  void OpenSteps(Text* text) const;

  const ProductOperand& operand_;
  const std::string name_, first_;
  const int64_t lines_max_;
  const TileShape shape_;
};

// Numbers of blocks along the product's tiles.
inline int64_t TilesAcross(const Product& p, const TileCut& cut) {
  return CeilDiv(p.columns, cut.columns);
}
inline int64_t TilesDown(const Product& p, const TileCut& cut) { return CeilDiv(p.rows, cut.rows); }
inline int64_t BlocksOf(const Product& p, const TileCut& cut) {
  return TilesAcross(p, cut) * TilesDown(p, cut) * p.batches * cut.parts;
}

// Declares batch, part, row0, column0, the depths [begin, end) of the block, and the function
// fetch(k0) that reads a slice of both tiles.
void BeginTiles(const Product& p, const TileCut& cut, int64_t depth, const OperandTile& left,
                const OperandTile& right, Text* text);

// Writes the loop over the slices; `add` writes the sums of one.
void LoopSlices(int64_t depth, bool rounded, const OperandTile& left, const OperandTile& right,
                const std::function<void()>& add, Text* text);

}  // namespace ag::cuda
