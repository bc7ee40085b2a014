#include "device/cuda/launch/generated_source.h"

#include <gtest/gtest.h>

#include <set>

#include "device/cuda/launch/gpu_device.h"
#include "device/cuda/launch/testing/host_device.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/fusion/group_problem.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag::cuda {
namespace {

// A network of one generated kernel of each kind: its plan on two streams, captured, replayed in
// random orders.
TEST(GeneratedSource, RunsAWholePlan) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends the process in kernels that are compiled without it";
#endif
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "input x f32[1,6,5,5]\n"
      "w = const f32[8,6,3,3] seed 1\nb = const f32[8] seed 2\nv = const f32[8,4] seed 3\n"
      "a = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n"
      "p = average_pool(a) kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,0] dilations=[1,1]\n"
      "m = reduce_mean(a) axes=[2,3] keepdims=0\n"
      "d = matmul(m, v)\n"
      "output s = softmax(d) axis=1\n"
      "output p\n",
      &weights);
  const std::vector<Tensor> inputs = {RandomTensor(graph.type({graph.inputs()[0], 0}), 3)};
  const std::vector<Tensor> expected = *Evaluate(graph, inputs, weights);
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  const auto device = OpenHostDevice(HostKernels::kGenerated, spec, 7);
  RooflineTimes times(spec);
  for (const char* precision : {"fp32", "fp16"}) {
    const Plan plan = *MakePlan(graph, spec, {.precision = precision}, times, {}, 2);
    const auto executable = device->Build({graph, plan, weights});
    if (executable.status().code() == StatusCode::kUnimplemented) {
      GTEST_SKIP() << executable.status();  // No compiler on this machine.
    }
    ASSERT_EQ(ToString(executable.status()), "OK");
    std::vector<Tensor> outputs;
    for (const Tensor& tensor : expected) outputs.push_back(Tensor::Zeros(tensor.type()));
    ASSERT_EQ(ToString((*executable)->Run(inputs, outputs).status()), "OK");
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (int64_t k = 0; k < outputs[i].type().NumElements(); ++k) {
        EXPECT_NEAR(outputs[i].At(k), expected[i].At(k), precision[2] == '3' ? 1e-5 : 4e-3);
      }
    }
  }
}

// Compiles nothing; records the requests.
class Recorder : public Compiler {
 public:
  explicit Recorder(std::set<std::string>* prepared) : prepared_(*prepared) {}
  StatusOr<std::string> Compile(const std::string&, int) override {
    return Err(StatusCode::kInternal, "not here");
  }
  void Prepare(const std::string& source, int compute_capability) override {
    EXPECT_EQ(compute_capability, 90);
    prepared_.insert(source);
  }

 private:
  std::set<std::string>& prepared_;
};

TEST(GeneratedSource, BeginsToCompileEveryVariant) {
  std::set<std::string> prepared;
  GpuParts parts;
  parts.driver = std::make_unique<HostDriver>(HostDriver::Options{});
  std::vector<std::unique_ptr<KernelSource>> sources;
  sources.push_back(MakeGeneratedSource(*parts.driver, std::make_unique<Recorder>(&prepared)));
  parts.sources = std::make_unique<KernelSources>(std::move(sources));
  parts.spec = LoadSpec(AG_SOURCE_DIR, "h200");
  const auto device = MakeGpuDevice(std::move(parts));
  const Graph graph = GraphOf("input x f32[64,64]\ninput y f32[64,64]\noutput z = matmul(x, y)\n");
  RooflineTimes times(device->spec());
  const Plan plan = *MakePlan(graph, device->spec(), {}, times, {}, 1);
  const GroupProblem problem = ExtractGroup(graph, plan.groups[0], plan.policy);
  device->Prepare(problem);
  EXPECT_EQ(prepared.size(), device->Kernels(problem)->size());
  EXPECT_GE(prepared.size(), 2u);
  const SyntheticWeights weights;
  EXPECT_TRUE(Message(device->Build({graph, plan, weights}).status()).ends_with("not here"));
}

}  // namespace
}  // namespace ag::cuda
