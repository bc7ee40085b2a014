// How good the first guess and the measuring policy are on shapes that nobody has tuned for.
//   build/kernel_policy [--shapes N] [--seed S] [FAMILY...]     (N: 50)
// For each family of groups N random shapes: every kernel timed in full (exhaustive), the policy of
// ProfileGroup (successive halving, kernels that lost at the nearest shapes before left out), and
// the first guess, which measures nothing. The kernels that these name are then run in turn, with
// that of a second exhaustive measurement, which shows what noise alone does. Prints the times over
// that of the exhaustive choice (median, worst, share of shapes within 10 %), and the seconds that
// both ways of measuring took.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/random.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "device/profile/timing_data.h"
#include "graph/text_form.h"
#include "plan/fusion/group_problem.h"
#include "plan/interval.h"

namespace ag {
namespace {

constexpr int kTurns = 21;
constexpr Nanos kGroupTime{10'000'000};  // As a tuned session.

class Shapes {
 public:
  explicit Shapes(uint64_t seed) : random_(seed) {}

  int64_t From(int64_t low, int64_t high) { return random_.Between(low, high); }
  // Returns a multiple of `step`, small ones as often as large ones.
  int64_t Channels(int64_t step, int64_t low, int64_t high) {
    const double log = std::log2(static_cast<double>(high) / static_cast<double>(low));
    const double size = static_cast<double>(low) * std::exp2(log * random_.Unit());
    return std::max<int64_t>(1, std::llround(size / static_cast<double>(step))) * step;
  }

 private:
  Random random_;
};

struct Family {
  const char* name;
  const char* pattern;
  bool is_image;  // Its tensors lie in the layouts of convolutions.
  std::string (*make)(Shapes& shapes);
};

std::string Convolution(Shapes& s, int64_t window, bool is_depthwise) {
  const int64_t c = s.Channels(16, 16, 512), o = is_depthwise ? c : s.Channels(16, 16, 512);
  const int64_t side = s.From(7, 56), stride = window == 1 ? 1 : s.From(1, 4) == 4 ? 2 : 1;
  const int64_t pad = window / 2;
  return fmt::format(
      "input i0 f32[1,{},{},{}]\noutput o0 = relu(conv(i0, const f32[{},{},{},{}] seed 1, const "
      "f32[{}] seed 2) strides=[{},{}] pads=[{},{},{},{}] dilations=[1,1] group={})",
      c, side, side, o, is_depthwise ? 1 : c, window, window, o, stride, stride, pad, pad, pad, pad,
      is_depthwise ? c : 1);
}

std::string Product(Shapes& s) {
  const int64_t m = s.Channels(1, 1, 512), k = s.Channels(16, 64, 3072);
  const int64_t n = s.Channels(16, 64, 3072);
  return fmt::format(
      "input i0 f32[{},{}]\noutput o0 = add(matmul(i0, const f32[{},{}] seed 1), const f32[{}] "
      "seed 2)",
      m, k, k, n, n);
}

std::string Attention(Shapes& s) {
  const int64_t heads = s.Channels(1, 4, 24), depth = 16 * s.From(2, 6), keys = s.From(32, 256);
  return fmt::format(
      "input i0 f32[{0},{2},{1}]\ninput i1 f32[{0},{1},{2}]\ninput i2 f32[{0},{2},{1}]\noutput o0 "
      "= matmul(softmax(mul(matmul(i0, i1), const f32 {{0.125}})) axis=2, i2)",
      heads, depth, keys);
}

std::string Norm(Shapes& s) {
  const int64_t rows = s.From(16, 400), width = s.Channels(16, 96, 2048);
  return fmt::format(
      "input i0 f32[{0},{1}]\noutput o0 = layer_norm(i0, const f32[{1}] seed 1, const f32[{1}] "
      "seed 2) axis=1",
      rows, width);
}

std::string Softmax(Shapes& s) {
  return fmt::format("input i0 f32[{},{}]\noutput o0 = softmax(i0) axis=1", s.Channels(1, 64, 4096),
                     s.From(16, 1024));
}

std::string Chain(Shapes& s) {
  const int64_t c = s.Channels(16, 16, 512), side = s.From(7, 56);
  return fmt::format(
      "input i0 f32[1,{0},{1},{1}]\ninput i1 f32[1,{0},{1},{1}]\noutput o0 = relu(add(mul(i0, "
      "const f32[{0},1,1] seed 1), i1))",
      c, side);
}

std::string Pool(Shapes& s) {
  const int64_t c = s.Channels(16, 16, 512), side = s.From(8, 112);
  return fmt::format(
      "input i0 f32[1,{},{},{}]\noutput o0 = max_pool(i0) kernel_shape=[3,3] strides=[2,2] "
      "dilations=[1,1] "
      "pads=[1,1,1,1]",
      c, side, side);
}

const Family kFamilies[] = {
    {"conv_1x1", "conv", true, [](Shapes& s) { return Convolution(s, 1, false); }},
    {"conv_3x3", "conv", true, [](Shapes& s) { return Convolution(s, 3, false); }},
    {"depthwise", "conv", true, [](Shapes& s) { return Convolution(s, 3, true); }},
    {"product", "dense", false, Product},
    {"attention", "attention", false, Attention},
    {"norm", "layer_norm", false, Norm},
    {"softmax", "softmax", false, Softmax},
    {"chain", "chain", true, Chain},
    {"pool", "pool", true, Pool},
};

// Times over that of the exhaustive choice.
struct Overs {
  std::vector<double> all;
  std::string Text() const {
    const auto near = std::ranges::count_if(all, [](double over) { return over <= 1.1; });
    return fmt::format("{:.3f}, {:.3f}, {:3.0f} %", Median(all), *std::ranges::max_element(all),
                       100.0 * static_cast<double>(near) / static_cast<double>(all.size()));
  }
};

class Bench {
 public:
  explicit Bench(Device& device) : device_(device) {}

  Status Print(const Family& family, int count, uint64_t seed) {
    Shapes shapes(seed);
    Row row;
    for (int i = 0; i < count; ++i) {
      AG_LET(const GroupProblem problem, ProblemOf(family, shapes));
      AG_TRY(Add(problem, &row));
    }
    std::printf("%-10s %3d %5.1f | %s | %s | %s | %7.2f %7.2f\n", family.name, count,
                static_cast<double>(row.kernels) / count, row.again.Text().c_str(),
                row.policy.Text().c_str(), row.guess.Text().c_str(), row.exhaustive_s,
                row.policy_s);
    std::fflush(stdout);
    return OkStatus();
  }

 private:
  struct Row {
    Overs again, policy, guess;
    size_t kernels = 0;
    double exhaustive_s = 0, policy_s = 0;
  };

  Status Add(const GroupProblem& problem, Row* row) {
    AG_LET(const std::vector<std::string> names, device_.Kernels(problem));
    row->kernels += names.size();
    double again_s = 0;
    const ProfileOptions exhaustive{.group_time = kGroupTime, .halving = false};
    const ProfileOptions policy{.group_time = kGroupTime, .history = &history_};
    AG_LET(const std::string best, Choose(problem, exhaustive, &row->exhaustive_s));
    AG_LET(const std::string pick, Choose(problem, policy, &row->policy_s));
    AG_LET(const std::string second, Choose(problem, exhaustive, &again_s));
    AG_LET(auto ns, InTurn(problem, {best, second, pick, names[0]}));
    row->again.all.push_back(ns[second] / ns[best]);
    row->policy.all.push_back(ns[pick] / ns[best]);
    row->guess.all.push_back(ns[names[0]] / ns[best]);
    return OkStatus();
  }

  StatusOr<GroupProblem> ProblemOf(const Family& family, Shapes& shapes) {
    GroupProblem problem;
    AG_LET(problem.graph, ParseGraph(family.make(shapes)));
    problem.pattern = family.pattern;
    Layout layout = Layout::kPlain;
    if (family.is_image) {
      std::vector<Layout> layouts = device_.spec().FindPattern("conv")->layouts;
      std::erase(layouts, Layout::kPlain);
      layout = layouts[static_cast<size_t>(shapes.From(0, std::ssize(layouts) - 1))];
    }
    problem.input_layouts.assign(problem.graph.inputs().size(), layout);
    problem.output_layouts.assign(problem.graph.outputs().size(), layout);
    return problem;
  }

  StatusOr<std::string> Choose(const GroupProblem& problem, const ProfileOptions& options,
                               double* seconds) {
    const Nanos begin = RealClock().Now();
    AG_LET(const Measurement measured, ProfileGroup(device_, problem, options, RealClock()));
    *seconds += static_cast<double>((RealClock().Now() - begin).count()) / 1e9;
    return measured.kernel;
  }

  // Returns the median of each kernel, run in turn.
  StatusOr<std::map<std::string, double>> InTurn(const GroupProblem& problem,
                                                 const std::vector<std::string>& kernels) {
    const TimingData data;
    std::vector<Tensor> inputs, outputs;
    data.FillBuffers(problem.graph, &inputs, &outputs);
    std::map<std::string, std::unique_ptr<Executable>> built;
    std::map<std::string, std::vector<double>> samples;
    for (const std::string& kernel : kernels) {
      Plan plan = SingleGroupPlan(problem);
      plan.groups[0].kernel = kernel;
      AG_LET(built[kernel], device_.Build({problem.graph, plan, data}));
    }
    const int turns = built.size() > 1 ? kTurns : 1;
    for (int turn = 0; turn < turns; ++turn) {
      for (const auto& [kernel, executable] : built) {
        AG_LET(const double ns, executable->Time({inputs, outputs, 1, Caches::kInputs}));
        samples[kernel].push_back(ns);
      }
    }
    std::map<std::string, double> medians;
    for (const auto& [kernel, ns] : samples) medians[kernel] = Median(ns);
    return medians;
  }

  Device& device_;
  KernelHistory history_;
};

Status Run(int argc, char** argv) {
  int count = 50;
  uint64_t seed = 1;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--shapes" && i + 1 < argc) {
      count = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--seed" && i + 1 < argc) {
      seed = static_cast<uint64_t>(std::atoll(argv[++i]));
    } else {
      wanted.push_back(word);
    }
  }
  AG_LET(const std::unique_ptr<Device> device, OpenDevice("cpu"));
  AG_LET(const auto alone, MeasureAlone(*device));
  Bench bench(*device);
  std::printf(
      "family, shapes, kernels | over exhaustive (median, worst, within 10 %%): exhaustive again | "
      "policy | guess | seconds: exhaustive, policy\n");
  for (const Family& family : kFamilies) {
    if (!wanted.empty() && std::ranges::count(wanted, family.name) == 0) continue;
    AG_TRY(bench.Print(family, count, seed), "{}", family.name);
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const ag::Status status = ag::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
