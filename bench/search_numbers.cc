// The speed and the memory of the search on models of the zoo:
//   build/search_numbers [ROUNDS [MODEL...]]          (1 and the four largest)
// A hashed roofline of sim:cpu gives the groups' times, so that only the search is timed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "device/open_device.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/testing/fake_measurer.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

// Returns one line of /proc/self/status, in MiB.
double StatusMib(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

double Seconds(Nanos t) { return static_cast<double>(t.count()) / 1e9; }

Status Search(const std::string& name, int rounds) {
  Clock& clock = RealClock();
  SearchRequest request;
  {
    MemoryWeights weights;
    AG_LET(const Graph graph, BuildZooModel(name, {}, &weights));
    AG_LET(request.input, CleanUp(graph, BuiltInRules()));
  }
  AG_LET(const std::unique_ptr<Device> device, OpenDevice("sim:cpu"));
  request.rules = &BuiltInRules();
  request.spec = device->spec();
  request.options.limits.rounds_max = rounds;
  request.options.limits.time_max = std::chrono::minutes(10);
  FakeMeasurer measurer(request.spec);
  measurer.keeps_calls = false;
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak counts from here.
  const double before_mib = StatusMib("VmRSS:");
  const Nanos begin = clock.Now();
  AG_LET(const SearchResult result, FindPlan(request, measurer, clock));
  const double seconds = Seconds(clock.Now() - begin);
  std::printf(
      "%-14s %5d nodes  %5d graphs  %4d expansions  %6.1f s  %6.0f graphs/s  "
      "%6.0f MiB more at the peak  %.3fx  %s\n",
      name.c_str(), request.input.size(), result.graphs, result.expansions, seconds,
      result.graphs / seconds, StatusMib("VmHWM:") - before_mib, result.timing.speedup,
      result.graph.digest().Short().c_str());
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  if (names.empty()) names = {"inception_v3", "bert", "nasnet_mobile", "nasnet_a"};
  for (const std::string& name : names) {
    if (const ag::Status status = ag::Search(name, rounds); !status.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), ag::Message(status).c_str());
      return 1;
    }
  }
}
