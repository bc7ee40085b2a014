#include "device/open_device.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/thread.h"
#include "device/cuda_module.h"

namespace ag {
namespace {

std::string BuiltIn(const std::string& name) {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/" + name + ".spec");
}

TEST(OpenDevice, OpensTheCpu) {
  const auto all = OpenDevice("cpu");
  ASSERT_EQ(ToString(all.status()), "OK");
  EXPECT_EQ((*all)->spec().name, "cpu");
  EXPECT_FALSE((*all)->simulated());
  const auto one = OpenDevice("cpu:1");
  ASSERT_EQ(ToString(one.status()), "OK");
  EXPECT_EQ((*one)->spec().cores, 1);
  EXPECT_TRUE((*one)->environment().starts_with("cores=1;")) << (*one)->environment();
}

TEST(OpenDevice, OpensEveryBuiltInSpec) {
  for (const char* name : {"cpu", "h200", "rtx2080ti", "small", "stcp920"}) {
    const auto device = OpenDevice(std::string("sim:") + name);
    ASSERT_EQ(ToString(device.status()), "OK") << name;
    EXPECT_EQ((*device)->spec(), *ParseDeviceSpec(BuiltIn(name)));
    EXPECT_TRUE((*device)->simulated());
    EXPECT_TRUE((*device)->environment().starts_with(fmt::format("device=sim:{};", name)))
        << (*device)->environment();
  }
}

// A file gives the same device as the built-in name, with the same keys of measurements.
TEST(OpenDevice, OpensASpecFile) {
  const TempDir folder = *TempDir::Make("open-device-test");
  const std::string path = folder.path() + "/mine.spec";
  ASSERT_TRUE(WriteFileAtomically(path, BuiltIn("small")).ok());
  const auto file = OpenDevice("sim:" + path);
  ASSERT_EQ(ToString(file.status()), "OK");
  EXPECT_EQ((*file)->environment(), (*OpenDevice("sim:small"))->environment());
  ASSERT_TRUE(WriteFileAtomically(path, BuiltIn("small") + "drift 0.1\n").ok());
  EXPECT_NE((*OpenDevice("sim:" + path))->environment(), (*file)->environment());
}

TEST(OpenDevice, SaysWhatIsWrong) {
  const TempDir folder = *TempDir::Make("open-device-test");
  const std::string bad = folder.path() + "/bad.spec", fault = folder.path() + "/fault.spec";
  ASSERT_TRUE(WriteFileAtomically(bad, "name bad\nwheels 4\n").ok());
  ASSERT_TRUE(WriteFileAtomically(fault, BuiltIn("small") + "fault crash Nothing\n").ok());
  const std::string forms = ": expected one of cpu, cpu:<cores>, cuda:<ordinal>, sim:<spec>";
  const int cores = UsableCores();
  const struct {
    std::string name, status;
  } kCases[] = {
      {"", "INVALID_ARGUMENT: device \"\"" + forms},
      {"CPU", "INVALID_ARGUMENT: device \"CPU\"" + forms},
      {"gpu:0", "INVALID_ARGUMENT: device \"gpu:0\"" + forms},
      {"sim", "INVALID_ARGUMENT: device \"sim\"" + forms},
      {"sim:", "INVALID_ARGUMENT: device \"sim:\"" + forms},
      {"cpu:", "INVALID_ARGUMENT: device \"cpu:\": expected a number >= 1 after ':'"},
      {"cpu:0", "INVALID_ARGUMENT: device \"cpu:0\": expected a number >= 1 after ':'"},
      {"cpu:2x", "INVALID_ARGUMENT: device \"cpu:2x\": expected a number >= 1 after ':'"},
      {fmt::format("cpu:{}", cores + 1),
       fmt::format("INVALID_ARGUMENT: cpu: {} cores asked for, {} usable", cores + 1, cores)},
      {"cuda:-1", "INVALID_ARGUMENT: device \"cuda:-1\": expected a number >= 0 after ':'"},
      {"sim:smal",
       "NOT_FOUND: sim:smal: no such device spec; did you mean 'small'?; built-in are cpu, h200, "
       "rtx2080ti, small, stcp920"},
      {"sim:tpu",
       "NOT_FOUND: sim:tpu: no such device spec; did you mean 'cpu'?; built-in are cpu, h200, "
       "rtx2080ti, small, stcp920"},
      {"sim:/none.spec", "NOT_FOUND: read /none.spec: No such file or directory"},
      {"sim:" + bad, "INVALID_ARGUMENT: sim:" + bad + ": line 2: unknown word 'wheels'"},
      {"sim:" + fault, "INVALID_ARGUMENT: sim:" + fault +
                           ": fault: \"Nothing\" is neither a pattern nor an operator"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(OpenDevice(c.name).status()), c.status) << c.name;
  }
}

// When anything is missing (the module, the driver, a library, the GPU), one message says it, and
// the other devices work.
TEST(OpenDevice, SaysWhatAGpuIsMissing) {
  const auto gpu = OpenDevice("cuda:0");
  if (gpu.ok()) GTEST_SKIP() << "there is a GPU: " << (*gpu)->environment();
  const std::string status = ToString(gpu.status());
  const bool has_module = status.find("has no CUDA module") == status.npos;
  if (has_module && status.find("NVIDIA driver") == status.npos) {
    GTEST_SKIP() << "there is a driver: " << status;
  }
  EXPECT_TRUE(status.starts_with("UNIMPLEMENTED: cuda:0: ")) << status;
  EXPECT_TRUE(status.ends_with("cpu and sim:NAME work here")) << status;
  EXPECT_EQ(ToString(OpenDevice("cpu").status()), "OK");
}

TEST(OpenDevice, LooksForLibrariesWhereItIsTold) {
  const TempDir folder = *TempDir::Make("open-device-test");
  const std::string wheels = folder.path() + "/lib/python3.11/site-packages/nvidia/cudnn/lib";
  ASSERT_TRUE(MakeDirs(wheels).ok());
  ASSERT_EQ(setenv("AUTOGRAPH_CUDA_PATH", (folder.path() + ":/none").c_str(), 1), 0);
  ASSERT_EQ(setenv("VIRTUAL_ENV", folder.path().c_str(), 1), 0);
  const std::vector<std::string> folders = CudaLibraryFolders();
  unsetenv("AUTOGRAPH_CUDA_PATH");
  unsetenv("VIRTUAL_ENV");
  EXPECT_EQ(folders[0], folder.path());
  EXPECT_EQ(std::ranges::count(folders, wheels), 1);
  EXPECT_EQ(std::ranges::count(folders, "/none"), 0);

  // An environment that is not activated: its python3 is the first in PATH.
  ASSERT_TRUE(MakeDirs(folder.path() + "/bin").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/bin/python3", "").ok());
  const std::string path = std::getenv("PATH");
  ASSERT_EQ(setenv("PATH", (folder.path() + "/bin:" + path).c_str(), 1), 0);
  EXPECT_EQ(std::ranges::count(CudaLibraryFolders(), wheels), 1);
  ASSERT_EQ(setenv("PATH", path.c_str(), 1), 0);
  EXPECT_EQ(std::ranges::count(CudaLibraryFolders(), wheels), 0);
}

}  // namespace
}  // namespace ag
