#include "rules/verify/shrink.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

namespace ag {
namespace {

// A try takes a few hundred microseconds, so all take half a second at most.
constexpr int kTriesMax = 3000;
// Seeds for small whole numbers, tried in place of random values.
constexpr uint64_t kSmallSeeds = 12;

class Shrinker {
 public:
  Shrinker(const Rule& rule, const FailingCase& failing) : rule_(rule), failing_(failing) {
    best_.choices = failing.choices;
    const bool refused = Try(failing.choices);
    AG_CHECK(refused);
  }

  SmallestCase Run() {
    bool smaller = true;
    while (smaller && tries_ < kTriesMax) {
      smaller = false;
      for (const size_t length : {16, 4, 1}) smaller |= DropOrClear(length);
      smaller |= Lower();
    }
    SmallestCase result{best_.trial, std::get<0>(*best_.size), failing_.compare.seed};
    if (best_.trial.outcome == Trial::Outcome::kDiffers) TakeSmallValues(&result);
    return result;
  }

 private:
  using Size = std::tuple<int64_t, int, uint64_t>;  // Elements, nodes, sum of the choices.
  struct Best {
    std::vector<uint64_t> choices;
    std::optional<Size> size;
    Trial trial;
    Graph graph;
  };

  // Keeps the case when the rule is refused on it with the same outcome and it is smaller than the
  // best.
  bool Try(std::vector<uint64_t> choices) {
    if (++tries_ > kTriesMax) return false;
    Choices replay(std::move(choices));
    std::optional<Instance> instance = SampleInstance(*rule_.pattern, &replay, failing_.sample);
    if (!instance.has_value()) return false;
    const auto& made = replay.made();
    const Size size{instance->elements, instance->graph.size(),
                    std::accumulate(made.begin(), made.end(), uint64_t{0})};
    if (best_.size.has_value() && size >= *best_.size) return false;
    Trial trial = TryRule(rule_, instance->graph, failing_.compare);
    if (!trial.refused()) return false;
    if (best_.size.has_value() && trial.outcome != best_.trial.outcome) return false;
    best_ = {made, size, std::move(trial), std::move(instance->graph)};
    return true;
  }

  // From the back, so that dependent choices go before those on which they depend.
  bool DropOrClear(size_t length) {
    bool smaller = false;
    for (size_t end = best_.choices.size(); end >= length; --end) {
      if (end > best_.choices.size()) continue;
      const auto first = static_cast<std::ptrdiff_t>(end - length);
      const auto last = static_cast<std::ptrdiff_t>(end);
      std::vector<uint64_t> shorter = best_.choices;
      shorter.erase(shorter.begin() + first, shorter.begin() + last);
      if (Try(std::move(shorter))) {
        smaller = true;
        continue;
      }
      std::vector<uint64_t> cleared = best_.choices;
      if (std::all_of(cleared.begin() + first, cleared.begin() + last,
                      [](uint64_t choice) { return choice == 0; })) {
        continue;
      }
      std::fill(cleared.begin() + first, cleared.begin() + last, 0);
      smaller |= Try(std::move(cleared));
    }
    return smaller;
  }

  bool Lower() {
    bool smaller = false;
    for (size_t i = 0; i < best_.choices.size(); ++i) {
      for (const uint64_t less : {best_.choices[i] / 2, best_.choices[i] - 1}) {
        if (i >= best_.choices.size() || best_.choices[i] == 0 || less >= best_.choices[i]) break;
        std::vector<uint64_t> lower = best_.choices;
        lower[i] = less;
        smaller |= Try(std::move(lower));
      }
    }
    return smaller;
  }

  void TakeSmallValues(SmallestCase* result) {
    CompareOptions options = failing_.compare;
    options.values = Values::kSmall;
    for (options.seed = 1; options.seed <= kSmallSeeds; ++options.seed) {
      Trial trial = TryRule(rule_, best_.graph, options);
      const bool finite = trial.text.find("inf") == std::string::npos &&
                          trial.text.find("nan") == std::string::npos;
      if (!trial.refused() || !finite || trial.float_error == 0) continue;
      result->trial = std::move(trial);
      result->seed = options.seed;
      return;
    }
  }

  const Rule& rule_;
  const FailingCase& failing_;
  Best best_;
  int tries_ = 0;
};

}  // namespace

SmallestCase Shrink(const Rule& rule, const FailingCase& failing) {
  return Shrinker(rule, failing).Run();
}

}  // namespace ag
