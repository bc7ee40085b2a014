#include "device/cuda/codegen/rows.h"

#include <algorithm>
#include <bit>

namespace ag::cuda {

int64_t RowVectorOf(int64_t count, int64_t bytes) {
  int64_t vector = std::min<int64_t>(16 / bytes, 8);
  while (count % vector != 0) vector /= 2;
  return vector;
}

std::vector<std::string> RowVariants(int64_t count, int64_t vector) {
  const auto threads =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(CeilDiv(count, 2 * vector))));
  const int64_t best = std::clamp<int64_t>(threads, 4, 1024);
  std::vector<std::string> names{fmt::format("rows/{}", best)};
  if (best > 4) names.push_back(fmt::format("rows/{}", best / 2));
  if (best < 1024) names.push_back(fmt::format("rows/{}", best * 2));
  if (best != 32 && best != 16 && best != 64) names.push_back("rows/32");
  return names;
}

RowCut CutOf(int64_t rows, int64_t count, int64_t vector, const std::string& variant) {
  return {.rows = rows, .count = count, .vector = vector, .threads = NumbersIn(variant)[0]};
}

RowText::RowText(Text* text, const RowCut& cut, const TensorArgument& from)
    : text_(*text), cut_(cut), from_(from) {
  const bool is_wide = IsWide(cut.rows * cut.count);
  text_.Line("const int lane = ag_thread() % {};", cut.threads);
  text_.Line("const int row = ag_block_x() * {} + ag_thread() / {};", cut.rows_per_block(),
             cut.threads);
  text_.Line("const bool is_row = row < {};", cut.rows);
  text_.Line("const {} base = {}row * {};", is_wide ? "long long" : "int",
             is_wide ? "(long long)" : "", cut.count);
  if (!keeps()) return;
  text_.Line("{} x[{}];", type(), cut.vectors() * cut.vector);
  OpenVectors();
  text_.Line("const ag_pack<{0}, {1}> p = ag_load<{1}>({2} + base + e);", from_.type(), cut.vector,
             from_.name);
  text_.Line("AG_UNROLL");
  text_.Line("for (int k = 0; k < {0}; ++k) x[j * {0} + k] = ag_get(p.at[k]);", cut.vector);
  CloseVectors();
}

void RowText::OpenVectors() {
  if (keeps()) {
    text_.Line("AG_UNROLL");
    text_.Open("for (int j = 0; j < {}; ++j)", cut_.vectors());
    text_.Line("const int e = (j * {} + lane) * {};", cut_.threads, cut_.vector);
    text_.Open("if (is_row && e < {})", cut_.count);
    return;
  }
  text_.Open("if (is_row)");
  text_.Open("for (int e = lane * {}; e < {}; e += {})", cut_.vector, cut_.count,
             cut_.threads * cut_.vector);
  text_.Line("const ag_pack<{0}, {1}> p = ag_load<{1}>({2} + base + e);", from_.type(), cut_.vector,
             from_.name);
}

void RowText::CloseVectors() {
  text_.Close();
  text_.Close();
}

std::string RowText::Element() const {
  if (keeps()) return fmt::format("{}& v = x[j * {} + k];", type(), cut_.vector);
  return fmt::format("const {} v = ag_get(p.at[k]);", type());
}

void RowText::ForEach(const std::string& body) {
  OpenVectors();
  text_.Line("AG_UNROLL");
  text_.Open("for (int k = 0; k < {}; ++k)", cut_.vector);
  text_.Line("{}", Element());
  text_.Line("{}", body);
  text_.Close();
  CloseVectors();
}

void RowText::Fold(const std::string& fold, const std::string& variable) {
  std::string scratch = fmt::format("({}*)0", type());
  if (cut_.threads > 32) {
    scratch = fmt::format("scratch{}", folds_++);
    text_.Line("AG_SHARED {} {}[{}];", type(), scratch, cut_.threads / 32);
  }
  text_.Line("{} = ag_fold<{}, {}>({}, {});", variable, fold, cut_.threads, variable, scratch);
}

void RowText::Store(const TensorArgument& to, const std::string& value,
                    std::span<const TensorArgument> operands) {
  OpenVectors();
  for (size_t i = 0; i < operands.size(); ++i) {
    text_.Line("const ag_pack<{0}, {1}> p{2} = ag_load<{1}>({3} + e);", operands[i].type(),
               cut_.vector, i, operands[i].name);
  }
  text_.Line("ag_pack<{}, {}> y;", to.type(), cut_.vector);
  text_.Line("AG_UNROLL");
  text_.Open("for (int k = 0; k < {}; ++k)", cut_.vector);
  text_.Line("{}", Element());
  for (size_t i = 0; i < operands.size(); ++i) {
    text_.Line("const {} c{} = ag_get(p{}.at[k]);", type(), i, i);
  }
  text_.Line("ag_put(y.at[k], {});", value);
  text_.Close();
  text_.Line("ag_store({} + base + e, y);", to.name);
  CloseVectors();
}

GroupText::Launch RowText::launch() const {
  return {.grid = {CeilDiv(cut_.rows, cut_.rows_per_block()), 1, 1},
          .threads = cut_.threads * cut_.rows_per_block()};
}

}  // namespace ag::cuda
