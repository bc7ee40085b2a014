#include "graph/onnx/export/size_formula.h"

#include <algorithm>

namespace ag {
namespace {

using Values = std::vector<int64_t>;

constexpr int64_t kPartsMax = 64;

bool IsConstant(std::span<const int64_t> values) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
}

// Returns times and plus with values = times * sizes + plus.
std::optional<std::pair<int64_t, int64_t>> Line(std::span<const int64_t> values,
                                                const Values& sizes) {
  size_t other = 1;
  while (other < sizes.size() && sizes[other] == sizes[0]) ++other;
  if (other == sizes.size()) return std::nullopt;
  const int64_t run = sizes[other] - sizes[0], rise = values[other] - values[0];
  if (rise % run != 0 || rise == 0) return std::nullopt;
  const int64_t times = rise / run, plus = values[0] - times * sizes[0];
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (times * sizes[i] + plus != values[i]) return std::nullopt;
  }
  return std::pair(times, plus);
}

// A product of sizes.
struct SizeProduct {
  std::vector<SizePlace> sizes;
  Values values;
};

std::vector<SizeProduct> Products(std::span<const KnownSize> known, size_t factors) {
  std::vector<SizeProduct> all = {{{}, {}}};
  std::vector<size_t> last = {0};
  for (size_t f = 0; f < factors; ++f) {
    std::vector<SizeProduct> longer;
    std::vector<size_t> longer_last;
    for (size_t p = 0; p < all.size(); ++p) {
      for (size_t k = last[p]; k < known.size(); ++k) {
        SizeProduct product = all[p];
        product.sizes.push_back(known[k].place);
        if (f == 0) product.values.assign(known[k].values.size(), 1);
        for (size_t i = 0; i < product.values.size(); ++i) {
          if (__builtin_mul_overflow(product.values[i], known[k].values[i], &product.values[i])) {
            product.values[i] = 0;
          }
        }
        longer.push_back(std::move(product));
        longer_last.push_back(k);
      }
    }
    all = std::move(longer);
    last = std::move(longer_last);
  }
  return all;
}

std::optional<SizeFormula> LineOfProduct(std::span<const int64_t> values,
                                         std::span<const SizeProduct> products, bool proportional) {
  for (const SizeProduct& product : products) {
    const auto line = Line(values, product.values);
    if (!line || (proportional && line->second != 0)) continue;
    return SizeFormula{{{line->first, product.sizes}}, line->second, 1};
  }
  return std::nullopt;
}

std::optional<SizeFormula> SumOfTwo(std::span<const int64_t> values,
                                    std::span<const KnownSize> known) {
  for (size_t a = 0; a < known.size(); ++a) {
    for (size_t b = a + 1; b < known.size(); ++b) {
      Values sum = known[a].values;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += known[b].values[i];
      const auto line = Line(values, sum);
      if (!line || line->first != 1) continue;
      return SizeFormula{{{1, {known[a].place}}, {1, {known[b].place}}}, line->second, 1};
    }
  }
  return std::nullopt;
}

// Returns (size + plus) / parts, as strides and pools make it. Few forms: with many, one of them
// would fit by chance.
std::optional<SizeFormula> PartOf(std::span<const int64_t> values,
                                  std::span<const SizeProduct> products, bool even) {
  for (const SizeProduct& size : products) {
    for (int64_t parts = 2; parts <= kPartsMax; parts = even ? parts + 1 : parts * 2) {
      for (int64_t plus = 0; plus < (even ? 1 : parts); ++plus) {
        const auto fits = [&](size_t i) {
          return (!even || size.values[i] % parts == 0) &&
                 (size.values[i] + plus) / parts == values[i];
        };
        size_t i = 0;
        while (i < values.size() && fits(i)) ++i;
        if (i == values.size()) return SizeFormula{{{1, size.sizes}}, plus, parts};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<SizeFormula> FindFormula(std::span<const int64_t> values,
                                       std::span<const KnownSize> known) {
  if (IsConstant(values)) return SizeFormula{{}, values[0], 1};
  for (const KnownSize& size : known) {
    if (std::ranges::equal(size.values, values)) return SizeFormula{{{1, {size.place}}}, 0, 1};
  }
  const auto ones = Products(known, 1), twos = Products(known, 2), threes = Products(known, 3);
  for (const bool proportional : {true, false}) {
    for (const auto* products : {&ones, &twos}) {
      if (auto found = LineOfProduct(values, *products, proportional)) return found;
    }
    if (!proportional) continue;
    if (auto found = LineOfProduct(values, threes, true)) return found;
    if (auto found = SumOfTwo(values, known)) return found;
  }
  if (auto found = PartOf(values, ones, /*even=*/true)) return found;
  if (auto found = PartOf(values, ones, /*even=*/false)) return found;
  return PartOf(values, twos, /*even=*/true);
}

}  // namespace ag
