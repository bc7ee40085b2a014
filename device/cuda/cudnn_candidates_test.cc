// Tests of cuDNN's candidates for the zoo's convolutions on an H200 and an H100, without a device.
#include "device/cuda/cudnn_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/cuda/testing/testing.h"
#include "plan/fusion/group_problem.h"
#include "plan/fusion/grouping.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag::cuda {
namespace {

DeviceProperties Properties(const std::string& name) {
  AG_CHECK(HasDriverOrStub());
  return *DeviceProperties::FromJson(DevicePropertiesText(name));
}

// Returns the distinct convolution groups of a zoo model, with channels last, padded where they are
// no multiple of 8, and whether each has more than one channel in a group.
struct ZooGroup {
  GroupProblem problem;
  Plan plan;
  bool is_depthwise = false;
  bool is_padded = false;
};

std::vector<ZooGroup> ConvolutionsOf(const std::string& model) {
  MemoryWeights weights;
  const Graph graph = *CleanUp(*BuildZooModel(model, {}, &weights), BuiltInRules());
  DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  // Both convolutions of a separable group can also run alone, and then cuDNN can run them.
  std::erase_if(spec.patterns, [](const GroupPattern& p) { return p.name == "separable"; });
  RooflineTimes times(spec);
  std::vector<ZooGroup> found;
  std::set<std::string> known;
  const std::vector<Group> groups = *FormGroups(graph, spec, Policy(), times);
  for (const Group& group : groups) {
    if (group.pattern != "conv") continue;
    ZooGroup zoo{.problem = ExtractGroup(graph, group, Policy())};
    if (!known.insert(EncodeGroupProblem(zoo.problem)).second) continue;
    zoo.plan = SingleGroupPlan(zoo.problem);
    const Node& conv = zoo.problem.graph.node(zoo.plan.groups[0].nodes[0]);
    const Shape& w = zoo.problem.graph.type(conv.inputs[1]).shape;
    zoo.is_depthwise = w[1] == 1 && conv.Int("group") > 1;
    const auto is_padded = [](Layout layout) { return layout == Layout::kChannelsLast8; };
    zoo.is_padded = std::ranges::any_of(zoo.problem.input_layouts, is_padded) ||
                    std::ranges::any_of(zoo.problem.output_layouts, is_padded);
    found.push_back(std::move(zoo));
  }
  return found;
}

// The candidates of one group.
struct Count {
  int all = 0;
  int ready = 0;  // On tensor cores, without a hidden copy, not compiled at run time.
};

Count CountOf(const ZooGroup& zoo, const DeviceProperties& device, Precision precision) {
  const Chip chip;
  const GroupContext context{zoo.problem.graph, zoo.plan.groups[0], precision, chip};
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(context);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto candidates = CudnnCandidates(*graph, device, precision, chip);
  EXPECT_TRUE(candidates.ok()) << candidates.status();
  Count count;
  for (const CudnnCandidate& candidate : *candidates) {
    ++count.all;
    if (candidate.notes.tensor_core && !candidate.has_copy &&
        !candidate.notes.compiles_at_run_time) {
      ++count.ready;
    }
    EXPECT_EQ(RefusalOf(candidate.notes, precision, graph->stored), "");
    if (!candidate.notes.compiles_at_run_time) {
      // Its name is enough to make it.
      const auto read = ParseCudnnName(CudnnName(candidate.choice));
      EXPECT_TRUE(read.ok()) << read.status();
      const auto again = FindCudnnCandidate(*graph, device, precision, *read);
      EXPECT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->workspace_bytes, candidate.workspace_bytes);
    }
    EXPECT_GE(candidate.workspace_bytes, 0);
  }
  return count;
}

// Every convolution that is not depthwise has several ready kernels on tensor cores in the three
// precisions that allow them (that of an image by 7 x 7 few or none); the others have at least one
// kernel.
TEST(CudnnCandidates, CoverTheZoo) {
  const DeviceProperties h200 = Properties("h200");
  const struct {
    std::string model;
    size_t shapes;
    int tf32, fp16, bf16;  // Ready kernels, at least, of each shape; 0: not checked.
  } cases[] = {
      {"resnet50", 27, 3, 14, 14},  {"resnext50", 28, 3, 3, 0},      {"inception_v3", 43, 3, 14, 0},
      {"squeezenet", 18, 3, 14, 0}, {"nasnet_mobile", 61, 3, 14, 0},
  };
  for (const auto& c : cases) {
    const std::vector<ZooGroup> groups = ConvolutionsOf(c.model);
    EXPECT_EQ(groups.size(), c.shapes) << c.model;
    for (const ZooGroup& group : groups) {
      const std::string what = c.model + ": " + group.problem.graph.type({1, 0}).ToString() + " " +
                               group.problem.graph.type({0, 0}).ToString();
      const Node& conv = group.problem.graph.node(group.plan.groups[0].nodes[0]);
      const Shape& w = group.problem.graph.type(conv.inputs[1]).shape;
      const bool is_usual = !group.is_depthwise && w[2] * w[3] < 49;
      const auto expect = [&](Precision precision, int ready_min) {
        const Count count = CountOf(group, h200, precision);
        EXPECT_GE(count.all, 1) << what;
        EXPECT_GE(count.ready, is_usual ? ready_min : 0) << what;
        return count;
      };
      EXPECT_EQ(expect(Precision::kFp32, 0).ready, 0) << what;  // No TF32.
      expect(Precision::kTf32, c.tf32);
      expect(Precision::kFp16, c.fp16);
      if (c.bf16 > 0) expect(Precision::kBf16, c.bf16);
    }
  }
}

// Returns the same group with its exact channels.
ZooGroup Unpadded(const ZooGroup& padded) {
  ZooGroup zoo = padded;
  for (auto* layouts : {&zoo.problem.input_layouts, &zoo.problem.output_layouts}) {
    std::ranges::replace(*layouts, Layout::kChannelsLast8, Layout::kChannelsLast);
  }
  zoo.plan = SingleGroupPlan(zoo.problem);
  return zoo;
}

// Convolutions of 3, 11, 22, 42, 44 and 84 channels: padded, they have several kernels on tensor
// cores that do not copy. With exact channels, all copy whole tensors in tf32, and most in fp16
// where the image is such a tensor (a result alone is mostly not copied there).
TEST(CudnnCandidates, PaddedChannelsNeedNoCopies) {
  const DeviceProperties h200 = Properties("h200");
  const struct {
    std::string model;
    int tf32, fp16;  // Convolutions whose tensors are no multiple of 16 bytes of channels.
  } cases[] = {{"nasnet_mobile", 14, 21}, {"nasnet_a", 8, 14}, {"squeezenet", 1, 1}};
  for (const auto& c : cases) {
    int tf32 = 0, fp16 = 0;
    for (const ZooGroup& padded : ConvolutionsOf(c.model)) {
      if (padded.is_depthwise || !padded.is_padded) continue;
      const ZooGroup exact = Unpadded(padded);
      const Graph& graph = padded.problem.graph;
      const int64_t in = graph.type({graph.inputs()[0], 0}).shape[1];
      const int64_t out = graph.type(graph.outputs()[0].edge).shape[1];
      const std::string what = fmt::format("{}: {} to {}", c.model, in, out);
      if (in % 4 != 0 || out % 4 != 0) {
        ++tf32;
        EXPECT_EQ(CountOf(exact, h200, Precision::kTf32).ready, 0) << what;
      }
      EXPECT_GE(CountOf(padded, h200, Precision::kTf32).ready, 17) << what;
      ++fp16;
      const Count with = CountOf(padded, h200, Precision::kFp16);
      EXPECT_GE(with.ready, 25) << what;
      if (in % 8 != 0) {
        EXPECT_LE(CountOf(exact, h200, Precision::kFp16).ready, 3) << what;
      }
    }
    EXPECT_EQ(tf32, c.tf32) << c.model;
    EXPECT_EQ(fp16, c.fp16) << c.model;
  }
}

// Every activation of the spec's pattern runs in one launch with its convolution.
TEST(CudnnCandidates, TakeEveryActivation) {
  const DeviceProperties h200 = Properties("h200");
  for (const std::string activation :
       {"relu(c)", "leaky_relu(c) alpha=0.1", "clip(c) min=0 max=6", "clip(c) min=-1 max=1",
        "sigmoid(c)", "tanh(c)", "swish(c)", "gelu(c)", "gelu(c) approximate=\"tanh\"",
        "hard_sigmoid(c)", "hard_swish(c)"}) {
    for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
      const TextGroup group(fmt::format(R"(
input x f32[1,64,14,14]
w = const f32[64,64,3,3] seed 1
b = const f32[64] seed 2
c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]
output y = {}
)",
                                        activation),
                            precision);
      const CudnnGraph graph = *BuildCudnnGraph(group.context());
      const auto candidates = CudnnCandidates(graph, h200, precision, group.chip);
      ASSERT_TRUE(candidates.ok()) << candidates.status();
      EXPECT_GE(candidates->size(), 1u) << activation << " " << static_cast<int>(precision);
    }
  }
}

std::vector<CudnnCandidate> CandidatesOf(const TextGroup& group, const DeviceProperties& device) {
  const CudnnGraph graph = *BuildCudnnGraph(group.context());
  auto candidates = CudnnCandidates(graph, device, group.precision, group.chip);
  AG_CHECK(candidates.ok());
  return *std::move(candidates);
}
constexpr std::string_view kImage = R"(
input x f32[1,256,28,28]
w = const f32[256,256,3,3] seed 1
b = const f32[256] seed 2
output y = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
)";

// Without TF32 there are few kernels, so the tiles of those without a copy are listed.
TEST(CudnnCandidates, OfferTheTilesOfPlainUnits) {
  const TextGroup group(kImage, Precision::kFp32);
  int without_copy = 0;
  for (const CudnnCandidate& candidate : CandidatesOf(group, Properties("h200"))) {
    EXPECT_FALSE(candidate.notes.tensor_core);
    without_copy += !candidate.has_copy;
  }
  EXPECT_GE(without_copy, 5);
}

// Every kernel transposes a plain image: all are marked, and so come last beside others.
TEST(CudnnCandidates, MarkTheCopiesOfPlainImages) {
  TextGroup group(kImage);
  group.group.inputs[0].layout = Layout::kPlain;
  group.group.outputs[0].layout = Layout::kPlain;
  int ready = 0, copies = 0;
  for (const CudnnCandidate& candidate : CandidatesOf(group, Properties("h200"))) {
    ready += candidate.notes.tensor_core && !candidate.has_copy;

    copies += candidate.has_copy;
  }
  EXPECT_EQ(ready, 0);
  EXPECT_GE(copies, 8);
}

// Channels last: no copy among the first ten, and none of these has a large workspace.
TEST(CudnnCandidates, BeginWithoutCopies) {
  for (const std::string device : {"h200", "h100"}) {
    for (const Precision precision : {Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
      const auto candidates = CandidatesOf(TextGroup(kImage, precision), Properties(device));
      ASSERT_GE(candidates.size(), 20u);
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_FALSE(candidates[i].has_copy) << CudnnName(candidates[i].choice);
        EXPECT_LE(candidates[i].workspace_bytes, 16 << 20) << CudnnName(candidates[i].choice);
      }
    }
  }
}

}  // namespace
}  // namespace ag::cuda
