#include "device/cuda/cudnn_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/cuda/testing/testing.h"

namespace ag::cuda {
namespace {

constexpr std::string_view kConvolution = R"(
input x f32[1,64,14,14]
input r f32[1,64,14,14]
w = const f32[64,64,3,3] seed 1
b = const f32[64] seed 2
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], r))
)";
constexpr std::string_view kSwish = R"(
input x f32[1,512,7,7]
w = const f32[512,512,3,3] seed 1
b = const f32[512] seed 2
output y = swish(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
)";

std::unique_ptr<CudnnSource> OpenDeviceless(const CudnnOptions& options = {}) {
  AG_CHECK(HasDriverOrStub());
  return *CudnnSource::Deviceless(DevicePropertiesText("h200"), options);
}

// A made kernel with the memory that it uses.
struct Made {
  HostWeights weights;
  StatusOr<std::unique_ptr<GroupKernel>> kernel;
};
void MakeIn(Made* made, CudnnSource& source, const TextGroup& group, const std::string& name) {
  Constants constants(group.graph, group.weights);
  made->kernel = source.Make(group.context(), name, constants, made->weights.memory);
  made->weights.Wait();
}

TEST(DeviceProperties, AreReadFromTextAndWrittenBack) {
  for (const std::string device : {"h200", "h100"}) {
    const std::string text = DevicePropertiesText(device);
    const StatusOr<DeviceProperties> read = DeviceProperties::FromJson(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read->ToJson(), text);
  }
}

TEST(DeviceProperties, OtherTextsAreRefused) {
  for (const std::string text : {"{}", "{\"deviceVer\": 900}", "no JSON"}) {
    const Status status = DeviceProperties::FromJson(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    const std::string begin = fmt::format("{} bytes of JSON: device properties: ", text.size());
    EXPECT_EQ(Message(status).substr(0, begin.size()), begin);
  }
}

// A name means the same kernel in another process: a source that never listed it finds it.
TEST(CudnnSource, EveryNameCanBeMadeAgain) {
  const TextGroup group(kConvolution);
  const std::vector<std::string> names = *OpenDeviceless()->Kernels(group.context());
  ASSERT_GT(names.size(), 20u);
  EXPECT_EQ(*OpenDeviceless()->Kernels(group.context()), names);
  const auto source = OpenDeviceless();
  for (const std::string& name : names) {
    Made made;
    MakeIn(&made, *source, group, name);
    EXPECT_TRUE(made.kernel.ok()) << made.kernel.status();
  }
}

TEST(CudnnSource, WeightsLieAsTheImageDoesInTheStoredType) {
  const TextGroup group(kConvolution);
  const auto source = OpenDeviceless();
  Made made;
  MakeIn(&made, *source, group, (*source->Kernels(group.context()))[0]);
  ASSERT_TRUE(made.kernel.ok()) << made.kernel.status();
  EXPECT_EQ(made.weights.memory.held_bytes(), 64 * 64 * 3 * 3 * 2 + 64 * 2);
}

TEST(CudnnSource, WithoutADeviceNothingRuns) {
  const TextGroup group(kConvolution);
  const auto source = OpenDeviceless();
  const std::string name = (*source->Kernels(group.context()))[0];
  Made made;
  MakeIn(&made, *source, group, name);
  ASSERT_TRUE(made.kernel.ok()) << made.kernel.status();
  EXPECT_EQ(ToString((*made.kernel)->Enqueue(nullptr, {}, false)),
            "FAILED_PRECONDITION: " + name + ": made without a device");
}

TEST(CudnnSource, OtherKernelsAreRefused) {
  const TextGroup group(kConvolution, Precision::kFp32);
  const auto source = OpenDeviceless();
  const struct {
    std::string name, message;
  } cases[] = {
      {"generated:rows", "INVALID_ARGUMENT: 'generated:rows' is no kernel of cuDNN"},
      {"cudnn:e51", "INVALID_ARGUMENT: cudnn:e51: computes in tf32"},
  };
  for (const auto& c : cases) {
    Made made;
    MakeIn(&made, *source, group, c.name);
    EXPECT_EQ(ToString(made.kernel.status()), c.message);
  }
  for (const std::string name : {"cudnn:e9999", "cudnn:e11/24=5", "cudnn:e11/2=9999"}) {
    Made made;
    MakeIn(&made, *source, group, name);
    EXPECT_EQ(made.kernel.status().code(), StatusCode::kInvalidArgument) << made.kernel.status();
  }
}

// Where no precompiled engine takes the epilogue, the menu's small tiles come first; one of them
// compiles here.
TEST(CudnnSource, EnginesThatCompileAtRunTime) {
  const TextGroup group(kSwish);
  const auto source = OpenDeviceless();
  const StatusOr<std::vector<std::string>> names = source->Kernels(group.context());
  ASSERT_TRUE(names.ok()) << names.status();
  ASSERT_GE(names->size(), 5u);
  const CudnnChoice first = *ParseCudnnName((*names)[0]);
  ASSERT_EQ(first.knobs.size(), 2u) << (*names)[0];
  EXPECT_GT(first.knobs[0].value, 1) << (*names)[0];
  Made made;
  MakeIn(&made, *source, group, (*names)[0]);
  ASSERT_TRUE(made.kernel.ok()) << made.kernel.status();
  EXPECT_GT((*made.kernel)->workspace_bytes(), 0);  // Partial sums.
}

// Another process reads compiled code; damaged code is compiled anew.
TEST(CudnnSource, CompiledKernelsAreKeptInAFolder) {
  const TempDir dir = *TempDir::Make("plans");
  const TextGroup group(kSwish);
  const std::string name = (*OpenDeviceless()->Kernels(group.context()))[0];
  const auto workspace_of_new_source = [&] {
    const auto source = OpenDeviceless({.plan_folder = dir.path()});
    Made made;
    MakeIn(&made, *source, group, name);
    EXPECT_TRUE(made.kernel.ok()) << made.kernel.status();
    return made.kernel.ok() ? (*made.kernel)->workspace_bytes() : -1;
  };
  const int64_t compiled = workspace_of_new_source();
  const std::vector<std::string> names = *ListDir(dir.path());
  ASSERT_EQ(names.size(), 1u);
  const std::string path = dir.path() + "/" + names[0];
  const std::string kept = *ReadFile(path);
  EXPECT_GT(kept.size(), 10'000u);  // With the kernel's code.
  EXPECT_EQ(workspace_of_new_source(), compiled);
  EXPECT_EQ(*ReadFile(path), kept);  // Not compiled again, which would give other bytes.
  ASSERT_TRUE(WriteFileAtomically(path, kept.substr(0, kept.size() / 2)).ok());
  EXPECT_EQ(workspace_of_new_source(), compiled);
  EXPECT_GT(ReadFile(path)->size(), kept.size() * 3 / 4);
}

// The kernels that were compiled at run time; waits for a number of them.
class Compiled {
 public:
  void Note(const std::string& kernel) {
    {
      const MutexLock lock(mutex_);
      kernels_.push_back(kernel);
    }
    changed_.NotifyAll();
  }
  std::vector<std::string> WaitFor(size_t count) {
    const MutexLock lock(mutex_);
    while (kernels_.size() < count) changed_.Wait(mutex_);
    std::vector<std::string> kernels = kernels_;
    std::ranges::sort(kernels);
    return kernels;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> kernels_ AG_GUARDED_BY(mutex_);
};

// A swish that makes every engine compile, of a size that compiles quickly.
constexpr std::string_view kSmallSwish = R"(
input x f32[1,64,7,7]
w = const f32[64,64,1,1] seed 1
b = const f32[64] seed 2
output y = swish(conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])
)";

TEST(CudnnSource, PreparesWhatCompilesAtRunTimeOnce) {
  const TextGroup group(kSmallSwish);
  Compiled compiled;
  const auto source = OpenDeviceless(
      {.threads = 2, .on_compiled = [&](const std::string& kernel) { compiled.Note(kernel); }});
  std::vector<std::string> names = *source->Kernels(group.context());
  source->Prepare(group.context());
  source->Prepare(group.context());
  std::ranges::sort(names);
  EXPECT_EQ(compiled.WaitFor(names.size()), names);
  for (const std::string& name : names) {
    Made made;
    MakeIn(&made, *source, group, name);
    EXPECT_TRUE(made.kernel.ok()) << made.kernel.status();
  }
  EXPECT_EQ(compiled.WaitFor(0), names);
}

TEST(CudnnSource, EndsWithWorkLeft) {
  Compiled compiled;
  {
    const TextGroup group(kSmallSwish);
    const auto source = OpenDeviceless(
        {.threads = 2, .on_compiled = [&](const std::string& kernel) { compiled.Note(kernel); }});
    source->Prepare(group.context());
    (void)compiled.WaitFor(1);  // The others are queued or running.
  }
  EXPECT_LT(compiled.WaitFor(1).size(),
            OpenDeviceless()->Kernels(TextGroup(kSmallSwish).context())->size());
}

// Equal groups share a compiled kernel; different groups do not.
TEST(CudnnGraph, SignaturesTellGraphsApart) {
  const auto signature = [](std::string_view attributes, std::string_view activation) {
    const TextGroup group(fmt::format(R"(
input x f32[1,16,14,14]
w = const f32[16,16,3,3] seed 1
b = const f32[16] seed 2
c = conv(x, w, b) {}
output y = {}
)",
                                      attributes, activation));
    return BuildCudnnGraph(group.context())->signature;
  };
  constexpr std::string_view kSame = "strides=[1,1] pads=[1,1,1,1] dilations=[1,1]";
  const std::string one = signature(kSame, "clip(c) min=-1 max=1");
  EXPECT_EQ(signature(kSame, "clip(c) min=-1 max=1"), one);
  EXPECT_NE(signature(kSame, "clip(c) min=-1 max=2"), one);
  EXPECT_NE(signature(kSame, "swish(c)"), one);
  EXPECT_NE(signature("strides=[1,1] pads=[2,2,2,2] dilations=[2,2]", "clip(c) min=-1 max=1"), one);
  EXPECT_NE(signature("strides=[1,1] pads=[0,2,2,0] dilations=[1,1]", "clip(c) min=-1 max=1"), one);
}

}  // namespace
}  // namespace ag::cuda
