#include "device/cuda/codegen/product_tile.h"

#include <algorithm>

namespace ag::cuda {

void OperandTile::Declare(std::string_view computed_type, Text* text) const {
  // The padding of a line keeps it aligned to 16 bytes and neighbouring lines on different banks.
  if (shape_.order == TileOrder::kByDepth) {
    text->Line("AG_SHARED {} {}[{}][{}];", computed_type, name_, shape_.depth, shape_.lines + 4);
  } else {
    text->Line("AG_SHARED {0} {1}[{2}][{3} + 16 / sizeof({0})];", operand_.type, name_,
               shape_.lines, shape_.depth);
  }
  text->Line("ag_pack<{}, {}> {}_next[{}];", operand_.type, operand_.vector, name_, steps());
}

void OperandTile::OpenSteps(Text* text) const {
  const int64_t vector = operand_.vector;
  text->Line("AG_UNROLL");
  text->Open("for (int i = 0; i < {}; ++i)", steps());
  text->Line("const int e = ag_thread() + i * {};", shape_.threads);
  if (vectors() % shape_.threads != 0) text->Line("if (e >= {}) break;", vectors());
  if (operand_.along_depth) {
    const int64_t per_line = shape_.depth / vector;
    text->Line("const int l = e / {}, d = e % {} * {};", per_line, per_line, vector);
  } else {
    const int64_t per_depth = shape_.lines / vector;
    text->Line("const int l = e % {} * {}, d = e / {};", per_depth, vector, per_depth);
  }
}

void OperandTile::Fetch(bool is_whole_depth, Text* text) const {
  OpenSteps(text);
  text->Line("const int line = {} + l, k = k0 + d;", first_);
  text->Line("{}_next[i] = {{}};", name_);
  std::vector<std::string> conditions;
  if (lines_max_ % shape_.lines != 0) conditions.push_back(fmt::format("line < {}", lines_max_));
  if (!is_whole_depth) conditions.push_back("k < end");
  const bool is_guarded = !conditions.empty();
  if (is_guarded) text->Open("if ({})", Join(conditions, " && "));
  std::string valid;
  const std::string address = operand_.address(text, &valid);
  const std::string value =
      operand_.is_computed ? address : fmt::format("ag_load<{}>({})", operand_.vector, address);
  text->Line("{}{}_next[i] = {};", valid.empty() ? "" : fmt::format("if ({}) ", valid), name_,
             value);
  if (!operand_.is_zero.empty()) {
    text->Line("AG_UNROLL");
    text->Open("for (int v = 0; v < {}; ++v)", operand_.vector);
    text->Line("if ({}) {}_next[i].at[v] = {{}};", operand_.is_zero, name_);
    text->Close();
  }
  if (is_guarded) text->Close();
  text->Close();
}

void OperandTile::Keep(bool rounded, Text* text) const {
  OpenSteps(text);
  const std::string each = fmt::format("for (int v = 0; v < {}; ++v)", operand_.vector);
  const std::string value = fmt::format("{}_next[i].at[v]", name_);
  text->Line("AG_UNROLL");
  if (shape_.order == TileOrder::kByDepth) {
    text->Line("{} {}[d{}][l{}] = ag_get({});", each, name_, operand_.along_depth ? " + v" : "",
               operand_.along_depth ? "" : " + v", value);
  } else if (!operand_.along_depth) {
    text->Line("{} {}[l + v][d] = {};", each, name_,
               rounded ? fmt::format("ag_tf32({})", value) : value);
  } else {
    if (rounded) text->Line("{0} {1} = ag_tf32({1});", each, value);
    text->Line("ag_copy<sizeof({0}_next[i])>(&{0}[l][d], &{0}_next[i]);", name_);
  }
  text->Close();
}

void BeginTiles(const Product& p, const TileCut& cut, int64_t depth, const OperandTile& left,
                const OperandTile& right, Text* text) {
  const std::string_view type = ComputedType(p.dtype);
  const int64_t slices = CeilDiv(CeilDiv(p.depth, depth), cut.parts);
  const int64_t part_depth = std::max<int64_t>(slices, 1) * depth;
  left.Declare(type, text);
  right.Declare(type, text);
  const std::vector<std::string> at =
      Coordinates(text, {p.batches, cut.parts, TilesDown(p, cut), TilesAcross(p, cut)},
                  "ag_block_x()", "b", "int");
  text->Line("const int batch = {}, part = {}, row0 = {} * {}, column0 = {} * {};", at[0], at[1],
             at[2], cut.rows, at[3], cut.columns);
  text->Line("const int begin = part * {0}, end = ag_min({1}, begin + {0});", part_depth, p.depth);
  p.split_batch(text);
  p.begin_reading(text);
  text->Open("const auto fetch = [&](int k0)");
  left.Fetch(p.depth % depth == 0, text);
  right.Fetch(p.depth % depth == 0, text);
  text->Close(";");
}

void LoopSlices(int64_t depth, bool rounded, const OperandTile& left, const OperandTile& right,
                const std::function<void()>& add, Text* text) {
  text->Line("if (begin < end) fetch(begin);");
  text->Open("for (int k0 = begin; k0 < end; k0 += {})", depth);
  left.Keep(rounded, text);
  right.Keep(rounded, text);
  text->Line("ag_barrier();");
  text->Line("if (k0 + {0} < end) fetch(k0 + {0});", depth);
  add();
  text->Line("ag_barrier();");
  text->Close();
}

}  // namespace ag::cuda
