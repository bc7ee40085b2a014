#include <cstdlib>
#include "base/file.h"
#include "rules/taso/builtins.h"
#include "rules/taso/coverage.h"
using namespace ag;
int main(int argc, char** argv) {
  auto rules = ReadTasoFile(*ReadFile(argv[1]));
  if (!rules.ok()) {
    fmt::print("{}\n", ToString(rules.status()));
    return 1;
  }
  for (auto& b : TasoBuiltins()) rules->push_back(b);
  RuleSet set = RuleSet::Shipped();
  std::vector<TasoCoverage> all;
  for (auto& r : *rules) {
    if (argc > 2 && r.name != argv[2]) continue;
    const clock_t t = clock();
    all.push_back(CoverTasoRule(r, set, {}));
    fmt::print("{}  [{} ms, {}/{}/{}]\n", FormatTasoCoverage(all.back()),
               (clock() - t) * 1000 / CLOCKS_PER_SEC, all.back().tested, all.back().held,
               all.back().reached);
  }
  fmt::print("{}\n", TasoCoverageSummary(all));
}
