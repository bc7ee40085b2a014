// The names of cuDNN's kernels, and the menu of kernels that its heuristics never offer.
#include <algorithm>
#include <charconv>
#include <optional>

#include "device/cuda/cudnn_candidates.h"

namespace ag::cuda {
namespace {

constexpr std::string_view kPrefix = "cudnn:e";

// Reads the number at the front; nullopt: there is none, or it does not fit.
std::optional<int64_t> TakeNumber(std::string_view* text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(end - text->data());
  return number;
}

bool TakeMark(char mark, std::string_view* text) {
  if (text->empty() || text->front() != mark) return false;
  text->remove_prefix(1);
  return true;
}

// The engine's kernel configurations by tile: pixels x channels x summed elements per step.
struct Tile {
  int64_t config, m, n, k;
};
constexpr Tile kTiles[] = {{36, 32, 32, 64}, {20, 64, 64, 32}, {12, 64, 64, 64}, {39, 16, 64, 32}};

// Estimates the product's microseconds from the bytes that each multiprocessor loads (about 67
// KB/us) and the rounds of blocks; splitting costs another pass.
double GuessMicros(const ProductShape& p, const Tile& tile, int64_t split, int sms) {
  const int64_t blocks =
      p.batch * ((p.m + tile.m - 1) / tile.m) * ((p.n + tile.n - 1) / tile.n) * split;
  const int64_t rounds = (blocks + sms - 1) / sms;
  const double loads = static_cast<double>(tile.m + tile.n) * p.k / split * 2;
  return static_cast<double>(rounds) * loads / 67e3 + (split > 1 ? 0.4 : 0);
}

}  // namespace

std::string CudnnName(const CudnnChoice& choice) {
  std::string name = fmt::format("{}{}", kPrefix, choice.engine);
  char mark = '/';
  for (const CudnnKnob& knob : choice.knobs) {
    name += fmt::format("{}{}={}", mark, knob.type, knob.value);
    mark = ',';
  }
  return name;
}

StatusOr<CudnnChoice> ParseCudnnName(std::string_view name) {
  const Status bad = Err(StatusCode::kInvalidArgument, "'{}' is no kernel of cuDNN", name);
  std::string_view rest = name;
  if (!rest.starts_with(kPrefix)) return bad;
  rest.remove_prefix(kPrefix.size());
  const std::optional<int64_t> engine = TakeNumber(&rest);
  if (!engine || *engine < 0) return bad;
  CudnnChoice choice{.engine = *engine};
  for (char mark = '/'; TakeMark(mark, &rest); mark = ',') {
    const std::optional<int64_t> type = TakeNumber(&rest);
    if (!type || *type < 0 || *type >= CUDNN_KNOB_TYPE_COUNTS || !TakeMark('=', &rest)) return bad;
    const std::optional<int64_t> value = TakeNumber(&rest);  // Some of the heuristics' are -1.
    if (!value || (!choice.knobs.empty() && choice.knobs.back().type >= *type)) return bad;
    choice.knobs.push_back({static_cast<int>(*type), *value});
  }
  if (!rest.empty() || CudnnName(choice) != name) return bad;  // Each choice has one name.
  return choice;
}

std::vector<CudnnChoice> CudnnMenu(int64_t engine, const ProductShape& product, int sms,
                                   size_t max) {
  struct Priced {
    double micros = 0;
    CudnnChoice choice;
  };
  std::vector<Priced> menu;
  for (const Tile& tile : kTiles) {
    for (int64_t split = 1; split <= 16; split *= 2) {
      if (split > 1 && product.k / split < 2 * tile.k) break;  // Nothing is left to overlap.
      menu.push_back(
          {GuessMicros(product, tile, split, sms),
           {engine,
            {{CUDNN_KNOB_TYPE_SPLIT_K_SLC, split}, {CUDNN_KNOB_TYPE_KERNEL_CFG, tile.config}}}});
    }
  }
  std::ranges::stable_sort(menu, {}, &Priced::micros);
  std::vector<CudnnChoice> choices;
  for (Priced& priced : menu) {
    if (choices.size() < max) choices.push_back(std::move(priced.choice));
  }
  return choices;
}

}  // namespace ag::cuda
