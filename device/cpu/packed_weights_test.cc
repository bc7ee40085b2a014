#include "device/cpu/packed_weights.h"

#include <gtest/gtest.h>

#include <atomic>

#include "device/cpu/cpu_device.h"
#include "device/cpu/host.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/fusion/group_time.h"
#include "plan/schedule/planner.h"

namespace ag::cpu {
namespace {

TEST(PackedWeights, OneFormOfOneConstantIsMadeOnceWhileItIsHeld) {
  PackedWeights weights;
  int packs = 0;
  const auto pack = [&] { return ++packs, AlignedBuffer::Make(640); };
  const Desc plain = PlainDesc({16, 10}), turned = PlainDesc({10, 16});
  const Digest a = Sha256("a"), b = Sha256("b");
  auto first = *weights.Get(a, plain, plain, pack);
  EXPECT_EQ(*weights.Get(a, plain, plain, pack), first);
  EXPECT_EQ(packs, 1);
  const auto other_form = *weights.Get(a, turned, plain, pack);
  const auto other_origin = *weights.Get(a, plain, turned, pack);
  const auto other_name = *weights.Get(b, plain, plain, pack);
  EXPECT_EQ(packs, 4);
  EXPECT_EQ(weights.bytes(), 4u * 640);
  first.reset();
  EXPECT_EQ(weights.bytes(), 3u * 640);
  EXPECT_TRUE(weights.Get(a, plain, plain, pack).ok());
  EXPECT_EQ(packs, 5);
}

TEST(PackedWeights, KnowsTheFormsThatAreHeld) {
  PackedWeights weights;
  const auto pack = [] { return AlignedBuffer::Make(640); };
  const Desc plain = PlainDesc({16, 10}), turned = PlainDesc({10, 16});
  const Digest a = Sha256("a");
  auto first = *weights.Get(a, plain, plain, pack);
  const auto second = *weights.Get(a, turned, plain, pack);
  EXPECT_EQ(weights.FormsOf(a, plain), (std::vector<Desc>{plain, turned}));
  first.reset();
  EXPECT_EQ(weights.FormsOf(a, plain), std::vector<Desc>{turned});
  EXPECT_TRUE(weights.FormsOf(a, turned).empty());
  EXPECT_TRUE(weights.FormsOf(Sha256("b"), plain).empty());
}

TEST(PackedWeights, DevicesOfAProcessShareCopiesAndChooseAlone) {
  PackedWeights one, other;
  int packs = 0;
  const auto pack = [&] { return ++packs, AlignedBuffer::Make(640); };
  const Desc plain = PlainDesc({16, 10});
  const Digest a = Sha256("a");
  auto first = *one.Get(a, plain, plain, pack);
  EXPECT_TRUE(other.FormsOf(a, plain).empty());
  auto second = *other.Get(a, plain, plain, pack);
  EXPECT_EQ(first, second);
  EXPECT_EQ(packs, 1);
  first.reset();
  EXPECT_EQ(other.bytes(), 640u) << "the other holder keeps it";
  second.reset();
  EXPECT_EQ(one.bytes() + other.bytes(), 0u);
  second = *other.Get(a, plain, plain, pack);
  EXPECT_EQ(packs, 2);
}

TEST(PackedWeights, AFailureIsNotKept) {
  PackedWeights weights;
  const Desc plain = PlainDesc({1});
  const auto fail = [] { return Err(StatusCode::kResourceExhausted, "full"); };
  EXPECT_FALSE(weights.Get(Sha256("a"), plain, plain, fail).ok());
  EXPECT_TRUE(weights.Get(Sha256("a"), plain, plain, [] { return AlignedBuffer::Make(64); }).ok());
}

// Counts the constants that are read.
class CountedWeights : public WeightSource {
 public:
  explicit CountedWeights(const MemoryWeights& weights, bool names_content)
      : weights_(weights), names_content_(names_content) {}
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    ++reads;
    return weights_.Get(digest, type);
  }
  bool names_content() const override { return names_content_; }
  mutable std::atomic<int> reads = 0;  // Kernels are made on several threads.

 private:
  const MemoryWeights& weights_;
  const bool names_content_;
};

// Two executables of one model read its weights once and compute the same.
TEST(PackedWeights, ExecutablesOfADeviceShareThem) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "input x f32[1,32]\nw = const f32[32,32] seed 1\nv = const f32[32,32] seed 2\n"
      "output y = matmul(x, add(w, v))\n",
      &weights);
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = 1});
  RooflineTimes times(device->spec());
  const Plan plan = *MakePlan(graph, device->spec(), Policy(), times, {.grouped = false}, 1);
  const std::vector<Tensor> inputs = {RandomTensor({DType::kFloat32, {1, 32}}, 1)};
  for (const bool names_content : {true, false}) {
    const CountedWeights counted(weights, names_content);
    std::vector<std::unique_ptr<Executable>> executables;
    std::vector<std::string> results;
    for (int i = 0; i < 3; ++i) {
      executables.push_back(*device->Build({graph, plan, counted}));
      std::vector<Tensor> outputs = {Tensor::Zeros({DType::kFloat32, {1, 32}})};
      ASSERT_TRUE(executables.back()->Run(inputs, outputs).ok());
      results.emplace_back(outputs[0].bytes());
    }
    EXPECT_EQ(counted.reads, names_content ? 2 : 6);
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// A plan for other sizes that prefers what is held reads no weights again, and computes the same up
// to the order of sums. With AVX-512 the form of the weights of a Winograd convolution hangs on the
// sizes: a size that has another form packs once.
TEST(PackedWeights, PlansForOtherSizesShareThem) {
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = 2});
  RooflineTimes times(device->spec());
  struct Model {
    const char* text;
    std::vector<Shape> shapes;
    bool is_winograd = false;  // Where oneDNN has it.
  };
  const Model kModels[] = {
      {"w = const f32[64,64,3,3] seed 1\nb = const f32[64] seed 2\n"
       "c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\noutput y = relu(c)\n",
       {{1, 64, 8, 8}, {2, 64, 8, 8}, {3, 64, 20, 12}, {1, 64, 1, 40}},
       true},
      {"w = const f32[64,64,5,5] seed 1\nb = const f32[64] seed 2\n"
       "c = conv(x, w, b) strides=[1,1] pads=[2,2,2,2] dilations=[1,1]\noutput y = relu(c)\n",
       {{1, 64, 8, 8}, {2, 64, 8, 8}, {3, 64, 20, 12}, {1, 64, 16, 40}}},
      {"w = const f32[64,256] seed 1\noutput y = matmul(x, w)\n",
       {{1, 64}, {2, 64}, {40, 64}, {300, 64}}}};
  for (const auto& [text, shapes, is_winograd] : kModels) {
    MemoryWeights weights;
    std::vector<std::unique_ptr<Executable>> executables;
    for (const Shape& shape : shapes) {
      const TensorType type{DType::kFloat32, shape};
      const Graph graph =
          *ParseGraph(fmt::format("input x {}\n{}", type.ToString(), text), &weights);
      const Plan plan = *MakePlan(graph, device->spec(), Policy(), times, {}, 1);
      const CountedWeights counted(weights, true);
      executables.push_back(*device->Build(
          {.graph = graph, .plan = plan, .weights = counted, .prefers_held_weights = true}));
      const bool may_read =
          executables.size() == 1 || (is_winograd && InstructionSet() == "avx512");
      EXPECT_TRUE(may_read || counted.reads == 0) << type.ToString();
      const std::vector<Tensor> inputs = {RandomTensor(type, 1)};
      std::vector<Tensor> outputs = EmptyOutputs(graph);
      ASSERT_TRUE(executables.back()->Run(inputs, outputs).ok());
      const Tensor expected = (*Evaluate(graph, inputs, weights))[0];
      for (int64_t i = 0; i < expected.type().NumElements(); ++i) {
        ASSERT_NEAR(outputs[0].At(i), expected.At(i), 1e-3) << type.ToString();
      }
    }
  }
}

}  // namespace
}  // namespace ag::cpu
