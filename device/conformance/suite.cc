#include "device/conformance/suite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "graph/batch/part_of_batch.h"
#include "graph/batch/samples.h"
#include "graph/half.h"
#include "graph/operators_of.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/format/plan_format.h"
#include "plan/fusion/grouping.h"
#include "plan/fusion/pair_problem.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/planner.h"
#include "plan/schedule/segmenting.h"
#include "plan/segments.h"

namespace ag {
namespace {

// The largest error over the largest value of an output, and the share of the elements of an exact
// type (a comparison's, a cast's) that may differ.
struct Tolerance {
  double error = 0;
  double inexact = 0;
};
Tolerance ToleranceOf(std::string_view precision, const Graph& graph) {
  const std::string_view coarsest = CoarsestPrecision(precision, graph);
  return {KernelTolerance(coarsest), coarsest == "fp32" ? 0 : 0.02};
}

// Returns the tensor's values as the precision stores them.
Tensor Stored(const Tensor& tensor, std::string_view precision) {
  const DType stored = StoredDType(tensor.type().dtype, precision);
  if (stored == tensor.type().dtype) return tensor;
  Tensor rounded = Tensor::Zeros(tensor.type());
  const bool is_half = stored == DType::kFloat16;
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    const float value = tensor.As<float>()[i];
    rounded.Mutable<float>()[i] =
        is_half ? HalfToFloat(FloatToHalf(value)) : BFloat16ToFloat(FloatToBFloat16(value));
  }
  return rounded;
}

struct Subject {
  Graph graph;
  std::shared_ptr<MemoryWeights> weights;
  std::vector<Tensor> inputs, expected;
};

StatusOr<Subject> Parse(std::string_view text, std::string_view precision) {
  std::string lines(text);
  std::replace(lines.begin(), lines.end(), ';', '\n');
  Subject subject{.weights = std::make_shared<MemoryWeights>()};
  AG_LET(subject.graph, ParseGraph(lines, subject.weights.get()));
  for (const NodeId id : subject.graph.inputs()) {
    const Tensor input = RandomTensor(subject.graph.type({id, 0}), 11 + subject.inputs.size());
    subject.inputs.push_back(Stored(input, precision));
  }
  AG_LET(subject.expected, Evaluate(subject.graph, subject.inputs, *subject.weights));
  return subject;
}

Status CompareOne(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance) {
  double largest = 0, error = 0;
  int64_t different = 0;
  for (int64_t i = 0; i < expected.type().NumElements(); ++i) {
    const double a = expected.At(i), b = actual.At(i);
    if (std::isfinite(a)) largest = std::max(largest, std::abs(a));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      return Err(StatusCode::kInternal, "element {}: expected {}, got {}", i, a, b);
    }
    error = std::max(error, std::abs(a - b));
    ++different;
  }
  const bool exact = !IsFloat(expected.type().dtype);
  const auto different_max = tolerance.inexact * expected.type().NumElements();
  if (exact ? different <= different_max : error <= tolerance.error * largest + 1e-6) {
    return OkStatus();
  }
  return Err(StatusCode::kInternal, "{}: error {:.3g} of {:.3g}", expected.type().ToString(), error,
             largest);
}

Status Compare(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual,
               const Tolerance& tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    AG_TRY(CompareOne(expected[i], actual[i], tolerance), "output {}", i);
  }
  return OkStatus();
}

// Builds the plan, runs it twice, and compares the runs with the reference and with each other.
Status BuildAndCompare(Device& device, const Graph& graph, const Plan& plan,
                       const WeightSource& weights, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& expected) {
  AG_LET(const std::unique_ptr<Executable> executable, device.Build({graph, plan, weights}));
  std::vector<Tensor> first = EmptyOutputs(graph), second = EmptyOutputs(graph);
  AG_TRY(executable->Run(inputs, first), "first run");
  AG_TRY(Compare(expected, first, ToleranceOf(plan.policy.precision, graph)));
  AG_TRY(executable->Run(inputs, second), "second run");
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i].bytes() == second[i].bytes()) continue;
    return Err(StatusCode::kInternal, "output {}: two runs differ", i);
  }
  std::vector<Tensor> traced = EmptyOutputs(graph);
  std::vector<TraceEvent> trace;
  AG_TRY(executable->Time({inputs, traced, 1, Caches::kAsLeft, &trace}));
  std::set<int> seen, launched;
  for (const TraceEvent& event : trace) {
    if (!seen.insert(event.group).second || event.end < event.begin) {
      return Err(StatusCode::kInternal, "trace: group {} twice or backwards", event.group);
    }
  }
  for (const Stream& stream : plan.streams) {
    for (const Launch& launch : stream.launches) launched.insert(launch.group);
  }
  if (seen == launched) return OkStatus();
  return Err(StatusCode::kInternal, "trace: {} groups, the plan launches {}", seen.size(),
             launched.size());
}

// Checks the problem on synthetic data with one kernel.
Status CheckProblem(Device& device, const GroupProblem& problem, const std::string& kernel) {
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = kernel;
  const SyntheticWeights weights;
  std::vector<Tensor> inputs;
  for (const NodeId id : problem.graph.inputs()) {
    const Tensor input = RandomTensor(problem.graph.type({id, 0}), 5 + inputs.size());
    inputs.push_back(Stored(input, problem.precision));
  }
  AG_LET(const std::vector<Tensor> expected, Evaluate(problem.graph, inputs, weights));
  return BuildAndCompare(device, problem.graph, plan, weights, inputs, expected);
}

// Sets the layout at every port that can have it; returns false when none can.
bool SetLayouts(Layout layout, GroupProblem* problem) {
  bool any = false;
  const auto set = [&](const TensorType& type, Layout* at) {
    const bool fits = CanHave(type, layout) && type.shape.size() == 4 &&
                      (type.shape[1] >= 8 || layout == Layout::kChannelsLast8);
    *at = fits ? layout : Layout::kPlain;
    any |= fits;
  };
  const Graph& graph = problem->graph;
  for (size_t i = 0; i < problem->input_layouts.size(); ++i) {
    set(graph.type({graph.inputs()[i], 0}), &problem->input_layouts[i]);
  }
  for (size_t i = 0; i < problem->output_layouts.size(); ++i) {
    set(graph.type(graph.outputs()[i].edge), &problem->output_layouts[i]);
  }
  return any;
}

// Returns a plan of two streams in which every third group has all cores.
StatusOr<Plan> MakeWidePlan(const Device& device, const Graph& graph, bool grouped) {
  RooflineTimes times(device.spec());
  AG_LET(TimedGroups wide,
         FormTimedGroups(graph, device.spec(), Policy(), times, {.grouped = grouped}));
  TimedGroups narrow = wide;
  for (size_t g = 0; g < wide.groups.size(); ++g) {
    narrow.groups[g].cores = StreamCores(device.spec(), 2);
    narrow.times[g].ns = 1e6;
    wide.times[g].ns = g % 3 == 0 ? 1e5 : 1e6;
  }
  Schedule schedule = GreedyWideStreams(graph, narrow, wide, device.spec(), 2);
  return CompletePlan(graph, std::move(schedule.timed.groups), std::move(schedule.streams),
                      device.spec(), Policy());
}

// Runs the plan's segments one after the other, each over the whole batch, and returns the outputs.
StatusOr<std::vector<Tensor>> RunBreadthFirst(Device& device, const Subject& subject,
                                              const Plan& plan) {
  AG_LET(const std::vector<GraphPiece> pieces, PiecesOf(subject.graph, plan));
  std::map<Edge, std::string> bytes;  // Of the whole batch.
  for (size_t i = 0; i < subject.inputs.size(); ++i) {
    bytes[{subject.graph.inputs()[i], 0}] = subject.inputs[i].bytes();
  }
  for (size_t s = 0; s < pieces.size(); ++s) {
    const auto& [graph, inputs, outputs] = pieces[s];
    AG_LET(const auto piece, device.Build({.graph = graph,
                                           .plan = plan.segments[s].plan,
                                           .weights = *subject.weights,
                                           .keeps_layouts = true}));
    std::vector<std::string> results(outputs.size());
    for (int32_t run = 0; run < plan.segments[s].instances; ++run) {
      std::vector<Tensor> given, made = EmptyOutputs(graph);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType& type = graph.type({graph.inputs()[i], 0});
        const auto size = static_cast<size_t>(type.Bytes());
        given.push_back(Tensor::FromBytes(type, bytes.at(inputs[i]).substr(run * size, size)));
      }
      AG_TRY(piece->Run(given, made));
      for (size_t o = 0; o < outputs.size(); ++o) results[o] += made[o].bytes();
    }
    for (size_t o = 0; o < outputs.size(); ++o) bytes[outputs[o]] = std::move(results[o]);
  }
  std::vector<Tensor> results;
  for (const GraphOutput& output : subject.graph.outputs()) {
    results.push_back(Tensor::FromBytes(subject.graph.type(output.edge), bytes.at(output.edge)));
  }
  return results;
}

// Runs a plan of segments depth first and breadth first. False: the device runs no such plans.
StatusOr<bool> CompareSegments(Device& device, const Subject& subject, const Plan& plan) {
  const auto built = device.Build({subject.graph, plan, *subject.weights});
  if (built.status().code() == StatusCode::kUnimplemented) return false;
  AG_TRY(built.status());
  std::vector<Tensor> outputs = EmptyOutputs(subject.graph);
  AG_TRY((*built)->Run(subject.inputs, outputs));
  AG_TRY(Compare(subject.expected, outputs, ToleranceOf(plan.policy.precision, subject.graph)));
  AG_LET(const std::vector<Tensor> others, RunBreadthFirst(device, subject, plan));
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].bytes() == others[o].bytes()) continue;
    return Err(StatusCode::kInternal, "output {}: depth first differs from breadth first", o);
  }
  std::vector<TraceEvent> trace;
  AG_LET(
      const double ns,
      (*built)->Time({.inputs = subject.inputs, .outputs = outputs, .runs = 1, .trace = &trace}));
  size_t launches = 0;
  for (const Segment& segment : plan.segments) {
    for (const Stream& stream : segment.plan.streams) {
      launches += stream.launches.size() * static_cast<size_t>(segment.instances);
    }
  }
  if (ns > 0 && trace.size() == launches) return true;
  return Err(StatusCode::kInternal, "{} ns, {} events for {} launches", ns, trace.size(), launches);
}

}  // namespace

Status CheckPlans(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  const int streams_max = std::min(2, device.spec().streams_max);
  RooflineTimes times(device.spec());
  for (int streams = 1; streams <= streams_max; ++streams) {
    for (const bool grouped : {true, false}) {
      AG_LET(const Plan plan,
             MakePlan(subject.graph, device.spec(), policy, times, {.grouped = grouped}, streams));
      AG_TRY(BuildAndCompare(device, subject.graph, plan, *subject.weights, subject.inputs,
                             subject.expected),
             "{} streams, {}\n{}", streams, grouped ? "grouped" : "ungrouped",
             FormatPlan(subject.graph, plan));
    }
  }
  if (streams_max < 2 || device.spec().stream_cores == 0) return OkStatus();
  for (const bool grouped : {true, false}) {
    AG_LET(const Plan plan, MakeWidePlan(device, subject.graph, grouped));
    AG_TRY(BuildAndCompare(device, subject.graph, plan, *subject.weights, subject.inputs,
                           subject.expected),
           "wide and narrow, {}\n{}", grouped ? "grouped" : "ungrouped",
           FormatPlan(subject.graph, plan));
  }
  return OkStatus();
}

Status CheckValues(Device& device, std::string_view text,
                   const std::vector<std::vector<double>>& inputs,
                   const std::vector<double>& expected) {
  AG_LET(const Subject subject, Parse(text, "fp32"));
  std::vector<Tensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(Tensor::FromDoubles(subject.inputs[i].type(), inputs[i]));
  }
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(subject.graph, device.spec(), Policy(), times, {}, 1));
  AG_LET(const std::unique_ptr<Executable> executable,
         device.Build({subject.graph, plan, *subject.weights}));
  std::vector<Tensor> outputs = EmptyOutputs(subject.graph);
  AG_TRY(executable->Run(given, outputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double want = expected[i], got = outputs[0].At(static_cast<int64_t>(i));
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    if (std::abs(want - got) <= 2e-6 * std::max(1.0, std::abs(want))) continue;
    return Err(StatusCode::kInternal, "element {}: expected {}, got {}", i, want, got);
  }
  return OkStatus();
}

Status CheckColdRuns(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision, .cold_cache = true};
  AG_LET(const Subject subject, Parse(text, precision));
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(subject.graph, device.spec(), policy, times, {}, 1));
  AG_LET(const std::unique_ptr<Executable> executable,
         device.Build({subject.graph, plan, *subject.weights}));
  std::vector<Tensor> outputs = EmptyOutputs(subject.graph);
  for (int run = 0; run < 2; ++run) {
    const StatusOr<double> ns = executable->Time({subject.inputs, outputs, 1, Caches::kEvicted});
    if (!device.spec().can_evict) {
      if (ns.status().code() == StatusCode::kUnimplemented) continue;
      return Err(StatusCode::kInternal, "cold run: its spec says cold_cache no, got {}",
                 ToString(ns.status()));
    }
    AG_TRY(ns, "cold run");
    if (!std::isfinite(*ns) || *ns <= 0) {
      return Err(StatusCode::kInternal, "cold run: expected a time above 0 ns, got {}", *ns);
    }
  }
  AG_TRY(executable->Run(subject.inputs, outputs));
  return Compare(subject.expected, outputs, ToleranceOf(precision, subject.graph));
}

Status CheckKernels(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(subject.graph, device.spec(), policy, times, {}, 1));
  for (const Group& group : plan.groups) {
    if (group.pattern == kViewPattern) continue;
    const GroupProblem problem = ExtractGroup(subject.graph, group, plan.policy);
    AG_LET(const std::vector<std::string> kernels, device.Kernels(problem));
    if (kernels.empty()) return Err(StatusCode::kInternal, "{}: no kernels", group.pattern);
    for (const std::string& kernel : kernels) {
      AG_TRY(CheckProblem(device, problem, kernel), "{} by {}", group.pattern, kernel);
    }
  }
  return OkStatus();
}

Status CheckPairs(Device& device, std::string_view text, const std::string& precision) {
  if (device.spec().streams_max < 2) return OkStatus();
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(subject.graph, device.spec(), policy, times, {}, 1));
  std::vector<GroupProblem> problems;
  for (const Group& group : plan.groups) {
    if (group.pattern == kViewPattern || group.pattern == kReorderPattern) continue;
    problems.push_back(ExtractGroup(subject.graph, group, plan.policy));
    problems.back().cores = StreamCores(device.spec(), 2);
  }
  const SyntheticWeights weights;
  for (size_t i = 0; i < problems.size(); ++i) {
    const PairProblem pair{{problems[i], problems[(i + 1) % problems.size()]}, {"", ""}};
    AG_LET(const PairRun run, PlanOfPair(pair));
    std::vector<Tensor> inputs;
    for (const NodeId id : run.graph.inputs()) {
      const Tensor input = RandomTensor(run.graph.type({id, 0}), 5 + inputs.size());
      inputs.push_back(Stored(input, precision));
    }
    AG_LET(const std::vector<Tensor> expected, Evaluate(run.graph, inputs, weights));
    AG_TRY(BuildAndCompare(device, run.graph, run.plan, weights, inputs, expected), "{}",
           Summary(pair));
  }
  return OkStatus();
}

StatusOr<int> CheckSegments(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  const StatusOr<Samples> samples = FindSamples(subject.graph);
  if (!samples.ok() || samples->batch < 2) return 0;
  const std::vector<NodeId> nodes = OperatorsOf(subject.graph);
  for (const GraphOutput& output : subject.graph.outputs()) {
    if (!std::ranges::binary_search(nodes, output.edge.node)) return 0;
  }
  RooflineTimes times(device.spec());
  int32_t beside = 1;
  const auto make = [&](const Graph& piece, int32_t) {
    const GroupingOptions grouping{.cores = CoresBeside(device.spec(), beside)};
    return MakePlan(piece, device.spec(), policy, times, grouping, 1);
  };
  int64_t middle = 2;  // Parts of the segment in the middle.
  while (samples->batch % middle != 0) ++middle;
  const size_t step = std::max<size_t>(1, nodes.size() / 4);
  int checked = 0;
  for (size_t cut = 1; cut < nodes.size(); cut += step) {
    std::vector<Segment> segments(cut + 1 < nodes.size() ? 3 : 2);
    const auto begin = nodes.begin(), first = begin + static_cast<int64_t>(cut);
    segments[0] = {{begin, first}, static_cast<int32_t>(samples->batch), {}};
    segments[1] = {{first, first + 1}, static_cast<int32_t>(middle), {}};
    if (segments.size() > 2) segments[2].nodes.assign(first + 1, nodes.end());
    // Every other time runs go on beside each other.
    beside = (cut - 1) / step % 2 == 1 ? std::min(2, device.spec().cores) : 1;
    if (beside > 1 && segments.size() > 2) segments[2].instances = segments[1].instances;
    auto plan = MakeSegmentsPlan(subject.graph, device.spec(), std::move(segments), make);
    if (plan.status().code() == StatusCode::kUnimplemented) continue;
    AG_TRY(plan.status(), "cut {}", cut);
    plan->beside = beside;
    const StatusOr<bool> is_run = CompareSegments(device, subject, *plan);
    AG_TRY(is_run.status(), "cut {}\n{}", cut, FormatPlan(subject.graph, *plan));
    checked += *is_run ? 1 : 0;
  }
  return checked;
}

StatusOr<int> CheckInstances(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  const StatusOr<Samples> samples = FindSamples(subject.graph);
  if (!samples.ok() || samples->batch < 2) return 0;
  RooflineTimes times(device.spec());
  std::set<int64_t> counts{samples->batch};
  if (samples->batch % 2 == 0) counts.insert(2);
  for (const int64_t count : counts) {
    const StatusOr<Graph> part = PartOfBatch(subject.graph, count);
    if (!part.ok()) return 0;
    AG_LET(Plan instance, MakePlan(*part, device.spec(), policy, times, {}, 1));
    const auto instances = static_cast<int32_t>(count);
    const Plan plan = InstancesOf(std::move(instance), subject.graph, instances);
    const StatusOr<bool> is_run = CompareSegments(device, subject, plan);
    AG_TRY(is_run.status(), "{}", FormatPlan(subject.graph, plan));
    if (!*is_run) return Err(StatusCode::kInternal, "the device runs no instances");
  }
  return static_cast<int>(counts.size());
}

Status CheckLayouts(Device& device, std::string_view text, const std::string& precision) {
  const Policy policy{.precision = precision};
  AG_LET(const Subject subject, Parse(text, precision));
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(subject.graph, device.spec(), policy, times, {}, 1));
  for (const Group& group : plan.groups) {
    const GroupPattern* pattern = device.spec().FindPattern(group.pattern);
    if (pattern == nullptr) continue;
    std::vector<Layout> layouts = pattern->layouts;
    if (layouts.empty()) {
      layouts = {Layout::kBlocked8, Layout::kBlocked16, Layout::kChannelsLast,
                 Layout::kChannelsLast8};
    }
    for (const Layout layout : layouts) {
      GroupProblem problem = ExtractGroup(subject.graph, group, plan.policy);
      if (!SetLayouts(layout, &problem)) continue;
      const StatusOr<std::vector<std::string>> kernels = device.Kernels(problem);
      if (kernels.status().code() == StatusCode::kUnimplemented && layout != Layout::kPlain)
        continue;
      AG_TRY(kernels.status(), "{} in {}", group.pattern, LayoutName(layout));
      for (const std::string& kernel : *kernels) {
        AG_TRY(CheckProblem(device, problem, kernel), "{} in {} by {}", group.pattern,
               LayoutName(layout), kernel);
      }
    }
  }
  return OkStatus();
}

}  // namespace ag
