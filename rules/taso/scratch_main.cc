#include <cstdlib>
#include "base/file.h"
#include "rules/taso/import.h"
using namespace ag;
int main(int argc, char** argv) {
  auto rules = ReadTasoFile(*ReadFile(argv[1]));
  std::vector<TasoImport> all;
  std::vector<TasoRule> some;
  for (auto& r : *rules) {
    if (argc > 2 && r.name != argv[2]) continue;
    const clock_t t = clock();
    some.push_back(r);
    all.push_back(ImportTasoRule(r, {}));
    fmt::print(stderr, "{} {} {} ms\n", r.name, all.back().proved,
               (clock() - t) * 1000 / CLOCKS_PER_SEC);
  }
  fmt::print("{}\n", FormatTasoImport(some, all, "graph_subst.pb"));
}
