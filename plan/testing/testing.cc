#include "plan/testing/testing.h"

#include "graph/text_form.h"

namespace ag {

DeviceSpec LoadSpec(const std::string& source_dir, const std::string& name) {
  StatusOr<DeviceSpec> spec = ReadDeviceSpec(source_dir + "/deploy/devices/" + name + ".spec");
  AG_CHECK(spec.ok());
  return *std::move(spec);
}

Graph GraphOf(std::string_view text) {
  StatusOr<Graph> graph = ParseGraph(text);
  if (!graph.ok()) fmt::print(stderr, "{}\n{}\n", ToString(graph.status()), text);
  AG_CHECK(graph.ok());
  return *std::move(graph);
}

GroupProblem ReluProblem(int64_t size) {
  GroupProblem problem;
  problem.graph = GraphOf(fmt::format("input x f32[{}]\noutput y = relu(x)", size));
  problem.pattern = "chain";
  problem.input_layouts = problem.output_layouts = {Layout::kPlain};
  return problem;
}

std::vector<std::string> Summary(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    std::string line = IsCopy(group) ? "copy" : group.pattern;
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      line += fmt::format("{}{}", i == 0 ? " " : "+", Info(graph.node(group.nodes[i]).op).name);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ag
