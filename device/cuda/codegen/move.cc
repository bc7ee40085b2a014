#include "device/cuda/codegen/move.h"

#include <algorithm>

namespace ag::cuda {
namespace {

// Returns the widest vector at which the move's first elements are aligned.
int64_t AlignedVector(const Move& move, int64_t vector) {
  while (move.from_offset % vector != 0 || move.to_offset % vector != 0) vector /= 2;
  return vector;
}

std::string Pointer(const TensorArgument& tensor, int64_t offset) {
  return offset == 0 ? tensor.name : fmt::format("{} + {}", tensor.name, offset);
}

// Writes one block of a move; `block` is its number within the move.
void LanesOfBlock(Text* text, const Move& move, const Lanes& lanes, const std::string& block) {
  const std::string from = Pointer(move.from, move.from_offset);
  const std::string to = Pointer(move.to, move.to_offset);
  const std::vector<std::string> at = BeginLanes(text, lanes, block);
  if (lanes.rest > 0) {
    const int64_t begin = lanes.count() * lanes.vector;
    const int64_t step = lanes.space.strides[1].back() / lanes.vector;
    text->Open("if (at == {})", lanes.count());
    text->Line("for ({} e = {}; e < {}; ++e) ({})[e] = ({})[e * {}];", lanes.type, begin,
               begin + lanes.rest, to, from, step);
    text->Line("return;");
    text->Close();
  }
  StoreLanes(text, lanes, 0, Plus(to, Offset(at, lanes.space.strides[0])),
             LoadLanes(lanes, 1, Plus(from, Offset(at, lanes.space.strides[1]))));
}

// Returns the lanes of a padded move: its channels and their padding are the innermost axis, in
// vectors of its target only. The source is not aligned like that.
Lanes PaddedLanes(const Move& move, int64_t vector, int64_t threads) {
  Space space{.sizes = move.sizes, .strides = {move.to_strides, move.from_strides}};
  space.sizes[1] += move.padding;
  space.Simplify();
  Lanes lanes{.vector = vector, .threads = threads, .type = IndexType(space)};
  space.CountVectors(vector);
  lanes.space = std::move(space);
  return lanes;
}

void PaddedLanesOfBlock(Text* text, const Move& move, const Lanes& lanes) {
  const std::vector<std::string> at = BeginLanes(text, lanes, "ag_block_x()");
  const int64_t channels = move.sizes[1], step = lanes.space.strides[1].back() / lanes.vector;
  text->Line("const int channel = {} * {};", at.back(), lanes.vector);
  text->Line("const {}* from = {};", move.from.type(),
             Plus(move.from.name, Offset(at, lanes.space.strides[1])));
  text->Line("ag_pack<{}, {}> y;", move.to.type(), lanes.vector);
  text->Line("AG_UNROLL");
  text->Open("for (int k = 0; k < {}; ++k)", lanes.vector);
  text->Line("ag_put(y.at[k], {});", Literal(0, move.to.stored));
  text->Line("if (channel + k < {}) y.at[k] = from[k * {}];", channels, step);
  text->Close();
  StoreLanes(text, lanes, 0, Plus(move.to.name, Offset(at, lanes.space.strides[0])), "y");
}

// The innermost axes of a transposing move: of the target, and of the source.
struct TileAxes {
  size_t written = 0, read = 0;
};
TileAxes TileAxesOf(const Space& space) {
  TileAxes axes{space.sizes.size() - 1, space.sizes.size() - 1};
  for (size_t axis = 0; axis < space.sizes.size(); ++axis) {
    if (space.strides[1][axis] == 1) axes.read = axis;
  }
  return axes;
}

}  // namespace

Space Move::space() const {
  Space space{.sizes = sizes, .strides = {to_strides, from_strides}};
  space.Simplify();
  return space;
}

bool IsTransposing(const Move& move) {
  const Space space = move.space();
  const TileAxes axes = TileAxesOf(space);
  return axes.read != axes.written && space.strides[0][axes.written] == 1 &&
         space.sizes[axes.read] >= 4 && space.sizes[axes.written] >= 4;
}

std::vector<std::string> MoveVariants(std::span<const Move> moves) {
  // The names of the longest move; narrower moves take as much of the vector as they can.
  const auto longest =
      std::ranges::max_element(moves, {}, [](const Move& move) { return NumElements(move.sizes); });
  const int64_t bytes = SizeOf(longest->to.stored);
  if (moves.size() > 1 || longest->padding == 0) return LaneVariants(longest->space(), bytes);
  // Channels in memory are whole vectors.
  return LaneVariants({.sizes = {longest->sizes[1] + longest->padding}, .strides = {{1}}}, bytes);
}

Status MoveByLanes(GroupText* group, std::span<const Move> moves, const std::string& variant) {
  const std::vector<int64_t> numbers = NumbersIn(variant);
  Text text;
  if (moves.size() == 1 && moves[0].padding > 0) {
    const Lanes lanes = PaddedLanes(moves[0], numbers[0], numbers[1]);
    PaddedLanesOfBlock(&text, moves[0], lanes);
    group->PaddingIsWritten();
    return group->EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text);
  }
  int64_t blocks = 0;
  for (const Move& move : moves) {
    const int64_t vector = AlignedVector(move, numbers[0]);
    const Lanes lanes = MakeLanes(move.space(), vector, numbers[1]);
    const int64_t begin = blocks;
    blocks += lanes.blocks();
    if (moves.size() == 1) {
      LanesOfBlock(&text, move, lanes, "ag_block_x()");
      continue;
    }
    text.Open("if (ag_block_x() < {})", blocks);
    LanesOfBlock(&text, move, lanes,
                 begin == 0 ? "ag_block_x()" : fmt::format("(ag_block_x() - {})", begin));
    text.Line("return;");
    text.Close();
  }
  return group->EndKernel({.grid = {blocks, 1, 1}, .threads = numbers[1]}, text);
}

Status MoveByTiles(GroupText* group, const Move& move) {
  Space space = move.space();
  const TileAxes axes = TileAxesOf(space);
  const std::string type = IndexType(space);
  const int64_t written = space.sizes[axes.written], read = space.sizes[axes.read];
  const int64_t step = space.strides[1][axes.written], apart = space.strides[0][axes.read];
  const int64_t columns = CeilDiv(written, 32), rows = CeilDiv(read, 32);
  space.sizes[axes.written] = space.sizes[axes.read] = 1;
  Text text;
  text.Line("AG_SHARED {} tile[32][33];", move.from.type());
  text.Line("const int lane = ag_thread() % 32, line = ag_thread() / 32;");
  text.Line("const {} column = {} * 32;", type, Remainder("ag_block_x()", columns));
  text.Line("const {} row = {} * 32;", type, Remainder(Quotient("ag_block_x()", columns), rows));
  text.Line("const {} rest = {};", type, Quotient("ag_block_x()", columns * rows));
  const std::vector<std::string> at = Coordinates(&text, space.sizes, "rest", "a", type);
  text.Line("const {}* from = {};", move.from.type(),
            Plus(Pointer(move.from, move.from_offset), Offset(at, space.strides[1])));
  text.Line("{}* to = {};", move.to.type(),
            Plus(Pointer(move.to, move.to_offset), Offset(at, space.strides[0])));
  text.Line("AG_UNROLL");
  text.Open("for (int k = line; k < 32; k += 8)");
  text.Line(
      "if (row + lane < {} && column + k < {}) tile[k][lane] = from[row + lane + (column + k) "
      "* {}];",
      read, written, step);
  text.Close();
  text.Line("ag_barrier();");
  text.Line("AG_UNROLL");
  text.Open("for (int k = line; k < 32; k += 8)");
  text.Line(
      "if (column + lane < {} && row + k < {}) to[column + lane + (row + k) * {}] = "
      "tile[lane][k];",
      written, read, apart);
  text.Close();
  return group->EndKernel({.grid = {columns * rows * space.Count(), 1, 1}, .threads = 256}, text);
}

}  // namespace ag::cuda
