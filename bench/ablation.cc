// The gain of each part of a plan: the whole beside the same without the part, interleaved.
//   build/ablation MODEL.onnx [OUTPUT.onnx [DEVICE [SECONDS [parts]]]]     (DEVICE: cpu; SECONDS:
//   20)
// MODEL is the user's model, OUTPUT the result of `autograph optimize` (its plan is the whole);
// without OUTPUT the whole is MODEL's own tuned plan, and there are no rules to remove. Prints a
// line for each part: median, and its time over the whole's with the interval; above 1 the part
// pays. A part is also each pattern of several operators that the whole has groups of (attention,
// expansion, ...). Of a batch whose samples do not depend on each other there is a line for parts
// of 1, 2, 4, 8 and 16 samples, and for plans in segments ("2 to node 40, 8 to node 90"): below 1
// the parts pay. With `parts` there are these lines alone.
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/batch/samples.h"
#include "graph/inputs/make_inputs.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "runtime/model_weights.h"
#include "runtime/session.h"
#include "runtime/tune_plan.h"
#include "runtime/tuned_plans.h"
#include "worker/execute.h"

namespace ag {
namespace {

struct Subject {
  std::shared_ptr<const MappedFile> file;
  std::unique_ptr<ModelWeights> weights;
  Graph graph;
  std::unique_ptr<Session> carried;  // Null: the file carries no plan that fits.
};

struct Contender {
  std::string name;
  std::unique_ptr<Executable> owned;
  Executable* executable = nullptr;
};

class Ablation {
 public:
  explicit Ablation(Device& device) : device_(device) {}

  Status Run(const std::string& model, const std::string& output, double seconds, bool only_parts) {
    AG_LET(const Subject input, Load(model));
    AG_LET(const Subject whole, Load(output));
    int streams = 1;
    if (whole.carried != nullptr) {
      contenders_.push_back({"whole", nullptr, &whole.carried->executable()});
      streams = static_cast<int>(whole.carried->plan().streams.size());
      SetFused(whole.carried->plan());
    } else {
      AG_TRY(AddTuned(whole));
    }
    if (only_parts) return Print(whole.graph, seconds);
    if (streams > 1) AG_TRY(Add("one stream", whole, {.streams = 1, .instances = false}));
    if (output != model) AG_TRY(Add("no rules", input, {.streams = streams, .instances = false}));
    for (const Layout layout : LayoutsOf(whole.graph)) {
      AG_TRY(Add(std::string(LayoutName(layout)) + " only", whole,
                 {.streams = streams, .instances = false, .layout = layout}));
    }
    AG_TRY(Add("paths only", whole, {.pieces = false, .streams = streams, .instances = false}));
    for (const std::string& pattern : fused_) {
      AG_TRY(Add("without " + pattern, whole,
                 {.without = {pattern}, .streams = streams, .instances = false}));
    }
    AG_TRY(Add("ungrouped", whole, {.grouped = false, .streams = streams, .instances = false}));
    AG_TRY(
        Add("not measured", whole, GuessedPlan(whole.graph, device_.spec(), {.streams = streams})));
    return Print(whole.graph, seconds);
  }

 private:
  StatusOr<Subject> Load(const std::string& path) {
    Subject subject;
    AG_LET(subject.file, MappedFile::Open(path));
    const std::string_view bytes = subject.file->bytes();
    AG_LET(subject.carried, Session::Load(bytes, {.owner = subject.file}, device_));
    if (!subject.carried->uses_carried_plan()) subject.carried = nullptr;
    subject.weights = std::make_unique<ModelWeights>(bytes, subject.file);
    AG_LET(const ImportedModel imported, ImportOnnx(bytes, {}, *subject.weights));
    AG_LET(subject.graph, CleanUp(imported.graph, BuiltInRules()));
    return subject;
  }

  // The plans that tuning compares: of the whole batch, on parts of it, and in segments.
  Status AddTuned(const Subject& subject) {
    AG_LET(std::vector<Plan> plans, PlansToCompare(subject.graph, device_, {}));
    const StatusOr<Samples> samples = FindSamples(subject.graph);
    SetFused(plans.front());
    for (Plan& plan : plans) {
      std::vector<std::string> parts;
      for (const Segment& segment : plan.segments) {
        const int64_t size = samples->batch / segment.instances;
        parts.push_back(plan.segments.size() == 1
                            ? fmt::format("{}", size)
                            : fmt::format("{} to node {}", size, segment.nodes.back()));
      }
      const std::string beside =
          plan.beside > 1 ? fmt::format(", {} beside each other", plan.beside) : "";
      const std::string name =
          parts.empty() ? "whole" : "in parts of " + Join(parts, ", ") + beside;
      AG_TRY(Add(name, subject, std::move(plan)));
    }
    return OkStatus();
  }

  // The patterns of the plan's groups that have several steps which may not be missing: without
  // one, each of its operators is in a group of another pattern.
  void SetFused(const Plan& plan) {
    for (const GroupPattern& pattern : device_.spec().patterns) {
      const auto is_here = [&](const Group& group) { return group.pattern == pattern.name; };
      const auto needed = std::ranges::count(pattern.steps, false, &PatternStep::optional);
      if (needed > 1 && std::ranges::any_of(plan.groups, is_here)) fused_.push_back(pattern.name);
    }
  }

  std::vector<Layout> LayoutsOf(const Graph& graph) const {
    std::vector<Layout> layouts = LayoutChoices(graph, device_.spec());
    if (layouts.back() != Layout::kPlain) layouts.push_back(Layout::kPlain);
    return layouts;
  }

  Status Add(const std::string& name, const Subject& subject, const TuningOptions& options) {
    return Add(name, subject, TunedPlan(subject.graph, device_, options));
  }

  Status Add(const std::string& name, const Subject& subject, const StatusOr<Plan>& planned) {
    AG_LET(const Plan plan, planned);
    AG_LET(std::unique_ptr<Executable> executable,
           device_.Build({subject.graph, plan, *subject.weights}));
    Executable* borrowed = executable.get();
    contenders_.push_back({name, std::move(executable), borrowed});
    return OkStatus();
  }

  Status Print(const Graph& graph, double seconds) {
    std::vector<PlanToTime> plans;
    for (const Contender& contender : contenders_) {
      plans.push_back({contender.executable, UsualInputs(graph, 1), EmptyOutputs(graph)});
    }
    ProfileOptions options;
    options.comparison_time = Nanos(static_cast<int64_t>(seconds * 1e9));
    AG_LET(const auto alone, MeasureAlone(device_));
    AG_LET(const std::vector<PlanTiming> timings,
           ProfilePlans(device_, std::move(plans), options, RealClock()));
    for (size_t i = 0; i < timings.size(); ++i) {
      const PlanTiming& t = timings[i];
      AG_TRY(t.status, "{}", contenders_[i].name);
      std::printf("%-40s %9.3f ms  %.3fx the whole's time (%.3f to %.3f)\n",
                  contenders_[i].name.c_str(), t.latency.median_ns / 1e6, 1 / t.speedup,
                  1 / t.speedup_high, 1 / t.speedup_low);
    }
    return OkStatus();
  }

  Device& device_;
  std::vector<Contender> contenders_;
  std::vector<std::string> fused_;
};

Status RunAblation(int argc, char** argv) {
  const std::string model = argv[1], output = argc > 2 ? argv[2] : argv[1];
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(argc > 3 ? argv[3] : "cpu"));
  return Ablation(*device).Run(model, output, argc > 4 ? std::atof(argv[4]) : 20, argc > 5);
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ablation MODEL.onnx [OUTPUT.onnx [DEVICE [SECONDS [parts]]]]\n");
    return 2;
  }
  const ag::Status status = ag::RunAblation(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
