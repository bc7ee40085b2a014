#include "worker/testing/testing.h"

#include <algorithm>

#include "base/file.h"
#include "device/open_device.h"
#include "graph/text_form.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/planner.h"

namespace ag::testing {
namespace {

class SharedWeights : public WeightSource {
 public:
  explicit SharedWeights(std::shared_ptr<const MemoryWeights> weights)
      : weights_(std::move(weights)) {}
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    return weights_->Get(digest, type);
  }

 private:
  std::shared_ptr<const MemoryWeights> weights_;
};

}  // namespace

std::string SmallSpec(std::string_view lines) {
  const auto device = OpenDevice("sim:small");
  AG_CHECK(device.ok());
  return FormatDeviceSpec((*device)->spec()) + std::string(lines);
}

std::string CachedSpec() {
  const auto device = OpenDevice("sim:small");
  AG_CHECK(device.ok());
  DeviceSpec spec = (*device)->spec();
  spec.cache_bytes = 1'000'000;
  spec.cache_bytes_per_second = 1e12;
  return FormatDeviceSpec(spec);
}

std::string SimDevice(const std::string& folder, std::string_view lines) {
  const std::string path = folder + "/device.spec";
  AG_CHECK(WriteFileAtomically(path, SmallSpec(lines)).ok());
  return "sim:" + path;
}

Graph GraphOf(std::string_view text, MemoryWeights* weights) {
  std::string lines(text);
  std::replace(lines.begin(), lines.end(), ';', '\n');
  const StatusOr<Graph> graph = ParseGraph(lines, weights);
  AG_CHECK(graph.ok());
  return *graph;
}

Candidate Planned(std::string_view text, const DeviceSpec& spec, MemoryWeights* weights) {
  const Graph graph = GraphOf(text, weights);
  RooflineTimes times(spec);
  const auto plan = MakePlan(graph, spec, Policy(), times, {}, 1);
  AG_CHECK(plan.ok());
  return {graph, *plan};
}

std::string Problem(std::string_view text, const DeviceSpec& spec) {
  const Graph graph = GraphOf(text);
  RooflineTimes times(spec);
  const auto groups = FormGroups(graph, spec, Policy(), times);
  AG_CHECK(groups.ok() && groups->size() == 1);
  return EncodeGroupProblem(ExtractGroup(graph, groups->front(), Policy()));
}

std::unique_ptr<WeightSource> Share(std::shared_ptr<const MemoryWeights> weights) {
  return std::make_unique<SharedWeights>(std::move(weights));
}

}  // namespace ag::testing
