#include "device/cuda/codegen/testing/case_groups.h"

#include <algorithm>
#include <set>

#include "graph/text_form.h"
#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag::cuda {
namespace {

// Sets the layout at every port that can have it. Returns false when none can, or when
// channels_last8 would only be another name of channels_last.
bool SetLayouts(Layout layout, GroupProblem* problem) {
  bool any = false;
  const Graph& graph = problem->graph;
  const auto set = [&](const TensorType& type, Layout* at) {
    *at = CanHave(type, layout) ? layout : Layout::kPlain;
    const bool is_name = layout == Layout::kChannelsLast8 && *at == layout &&
                         HasSameBytes(type, layout, Layout::kChannelsLast);
    any |= *at == layout && !is_name;
  };
  for (size_t i = 0; i < problem->input_layouts.size(); ++i) {
    set(graph.type({graph.inputs()[i], 0}), &problem->input_layouts[i]);
  }
  for (size_t i = 0; i < problem->output_layouts.size(); ++i) {
    set(graph.type(graph.outputs()[i].edge), &problem->output_layouts[i]);
  }
  return any;
}

std::string NameOf(const GroupProblem& problem) {
  std::string name = problem.pattern;
  for (const Node& node : problem.graph.nodes()) {
    if (!Has(node.op, kLeaf)) name += fmt::format(" {}", Info(node.op).name);
  }
  for (const Layout layout : problem.output_layouts) name += fmt::format(" {}", LayoutName(layout));
  return name;
}

}  // namespace

StatusOr<std::vector<NamedProblem>> GroupsOfCase(const std::string& source_dir,
                                                 std::string_view text, bool all_layouts) {
  DeviceSpec spec = LoadSpec(source_dir, "h200");
  spec.dtypes.push_back(DType::kFloat64);  // Generated kernels have it; no plan asks for it.
  std::string lines(text);
  std::replace(lines.begin(), lines.end(), ';', '\n');
  MemoryWeights weights;
  AG_LET(const Graph graph, ParseGraph(lines, &weights));
  std::vector<NamedProblem> found;
  std::set<std::string> known;
  const auto add = [&](const GroupProblem& problem) {
    if (known.insert(EncodeGroupProblem(problem)).second)
      found.push_back({NameOf(problem), problem});
  };
  RooflineTimes times(spec);
  for (const bool grouped : {true, false}) {
    AG_LET(const std::vector<Group> groups,
           FormGroups(graph, spec, Policy(), times, {.grouped = grouped}));
    for (const Group& group : groups) {
      const GroupProblem problem = ExtractGroup(graph, group, Policy());
      if (group.pattern != kViewPattern) add(problem);
      const GroupPattern* pattern = spec.FindPattern(group.pattern);
      if (!all_layouts || pattern == nullptr) continue;
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast, Layout::kChannelsLast8}) {
        const bool is_listed =
            pattern->layouts.empty() || std::ranges::count(pattern->layouts, layout) > 0;
        GroupProblem other = problem;
        if (is_listed && SetLayouts(layout, &other)) add(other);
      }
    }
  }
  return found;
}

}  // namespace ag::cuda
