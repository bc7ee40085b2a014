#include "device/cuda/launch/compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>

#include "base/bytes.h"
#include "base/file.h"
#include "base/frames.h"
#include "base/process.h"
#include "base/testing/test_role.h"
#include "device/conformance/cases.h"
#include "device/cuda/codegen/testing/case_groups.h"
#include "device/cuda/codegen/testing/host_check.h"
#include "device/cuda/launch/compiled_cache.h"

namespace ag::cuda {
namespace {

// A child that does what the last line of the text says, else answers with it.
int Misbehave(int socket) {
  while (true) {
    const StatusOr<Frame> request = ReceiveFrame(socket);
    if (!request.ok()) return 0;
    const std::string line = request->payload.substr(request->payload.rfind('\n') + 1);
    if (line == "crash") std::raise(SIGABRT);
    if (line == "exit") return 3;
    if (line == "hang") pause();
    const bool is_refused = line == "refuse";
    const Status sent =
        SendFrame(socket, is_refused ? kNvrtcFailedFrame : kNvrtcImageFrame,
                  is_refused ? EncodeStatus(Err(StatusCode::kInvalidArgument, "no sense")) : line);
    if (!sent.ok()) return 0;
  }
}

// The test program is its own compiler; registered before main, because gtest brings the main.
const int kRole = RunRoleBeforeMain(kNvrtcRole, Misbehave);

std::string Said(const StatusOr<std::string>& image) {
  return image.ok() ? *image : ToString(image.status());
}

class FakeNvrtc : public testing::Test {
 protected:
  std::unique_ptr<Compiler> Make(Nanos time_max = Nanos(20'000'000'000),
                                 const std::string& program = SelfExe()) const {
    return MakeNvrtcCompiler(
        {.program = program, .cache_folder = folder_.path(), .children = 1, .time_max = time_max});
  }
  const TempDir folder_ = *TempDir::Make("compiler-test");
};

TEST_F(FakeNvrtc, SaysWhatBecameOfEachTextAndGoesOn) {
  ASSERT_EQ(kRole, -1);
  const auto compiler = Make(std::chrono::milliseconds(300));
  EXPECT_EQ(Said(compiler->Compile("// one\ngood", 90)), "good");
  const std::string died = Said(compiler->Compile("// two\ncrash", 90));
  EXPECT_TRUE(died.starts_with("INTERNAL: // two: the compiler died: ")) << died;
  EXPECT_NE(died.find("SIGABRT"), std::string::npos) << died;
  EXPECT_EQ(Said(compiler->Compile("// three\nfine", 90)), "fine");
  const std::string left = Said(compiler->Compile("// four\nexit", 90));
  EXPECT_TRUE(left.starts_with("INTERNAL: // four: the compiler died: ")) << left;
  EXPECT_TRUE(left.ends_with("exit code 3")) << left;
  EXPECT_EQ(Said(compiler->Compile("// five\nhang", 90)),
            "DEADLINE_EXCEEDED: // five: the compiler took longer than 0.3 s");
  EXPECT_EQ(Said(compiler->Compile("// six\nrefuse", 90)), "INVALID_ARGUMENT: // six: no sense");
  EXPECT_EQ(Said(compiler->Compile("// seven\nlast", 90)), "last");
}

TEST_F(FakeNvrtc, KeepsImagesWithoutAChild) {
  EXPECT_EQ(Said(Make()->Compile("// a\nimage", 90)), "image");
  const auto later = Make(Nanos(1'000'000'000), "/nowhere/autograph-nvrtc");
  EXPECT_EQ(Said(later->Compile("// a\nimage", 90)), "image");
  const std::string missing = Said(later->Compile("// a\nimage", 80));  // Another architecture.
  EXPECT_TRUE(missing.starts_with("NOT_FOUND: // a: ")) << missing;
  EXPECT_NE(missing.find("/nowhere/autograph-nvrtc"), std::string::npos) << missing;
}

TEST_F(FakeNvrtc, CompilesAheadWhatIsPrepared) {
  const auto compiler = Make();
  for (int i = 0; i < 5; ++i) compiler->Prepare(fmt::format("// {}\nimage {}", i, i), 90);
  for (int i = 5; i-- > 0;) {
    EXPECT_EQ(Said(compiler->Compile(fmt::format("// {}\nimage {}", i, i), 90)),
              fmt::format("image {}", i));
  }
}

// Prepared sources that are no longer needed are dropped with the compiler.
TEST_F(FakeNvrtc, MayBeLeftWithWorkInItsQueue) {
  const auto compiler = Make(Nanos(50'000'000));
  for (int i = 0; i < 5; ++i) compiler->Prepare(fmt::format("// {}\nhang", i), 90);
}

TEST(CompiledCache, FindsWhatItWasGivenAndNothingThatIsSpoilt) {
  const TempDir folder = *TempDir::Make("image-cache-test");
  const CompiledCache cache(folder.path() + "/a/b", 1 << 20);
  const Digest key = Sha256("key");
  EXPECT_FALSE(cache.Find(key).has_value());
  cache.Put(key, "image");
  EXPECT_EQ(cache.Find(key), "image");
  EXPECT_FALSE(cache.Find(Sha256("other")).has_value());
  const std::string path = folder.path() + "/a/b/" + key.Hex();
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_FALSE(cache.Find(key).has_value());
  ASSERT_TRUE(WriteFileAtomically(path, "short").ok());
  EXPECT_FALSE(cache.Find(key).has_value());
}

TEST(CompiledCache, LetsTheOldestGo) {
  const TempDir folder = *TempDir::Make("image-cache-test");
  const std::string image(1000, 'x');
  {
    const CompiledCache cache(folder.path(), 1 << 20);
    for (int i = 0; i < 10; ++i) cache.Put(Sha256(fmt::format("{}", i)), image);
  }
  const CompiledCache cache(folder.path(), 5000);
  EXPECT_LE(ListDir(folder.path())->size(), 2u);
}

TEST(CompiledCache, DoesWithoutAFolderThatCannotBeMade) {
  const CompiledCache cache("/proc/none", 1);
  cache.Put(Sha256("key"), "image");
  EXPECT_FALSE(cache.Find(Sha256("key")).has_value());
}

// The real compiler, where this build has it.
class RealNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const std::string program = std::string(AG_BINARY_DIR) + "/autograph-nvrtc";
    if (!FileExists(program)) GTEST_SKIP() << "this build has no autograph-nvrtc";
    compiler_ = MakeNvrtcCompiler({.library_folders = "/usr/local/cuda/lib64",
                                   .program = program,
                                   .cache_folder = folder_.path()});
    const StatusOr<std::string> image = compiler_->Compile("// empty\n", 90);
    if (image.status().code() == StatusCode::kUnimplemented) GTEST_SKIP() << image.status();
    ASSERT_EQ(ToString(image.status()), "OK");
  }
  const TempDir folder_ = *TempDir::Make("compiler-test");
  std::unique_ptr<Compiler> compiler_;
};

TEST_F(RealNvrtc, SaysWhatIsWrongWithAText) {
  const std::string said = Said(compiler_->Compile("// nonsense\nint f() { return x; }\n", 90));
  EXPECT_TRUE(said.starts_with("INVALID_ARGUMENT: // nonsense: ")) << said;
  EXPECT_NE(said.find("identifier \"x\" is undefined"), std::string::npos) << said;
}

// Groups of the conformance cases as a few texts: by their first variant, or in every layout by
// every variant.
std::vector<std::string> SourcesOfCases(Precision precision, bool all) {
  constexpr size_t kTogether = 40;
  std::vector<GroupCheck> checks;
  std::vector<std::string> sources;
  const auto flush = [&] {
    if (!checks.empty()) sources.push_back(JoinSources(checks));
    checks.clear();
  };
  for (const std::span<const ConformanceCase> cases : {OperatorCases(), NetworkCases()}) {
    for (const ConformanceCase& c : cases) {
      const auto problems = GroupsOfCase(AG_SOURCE_DIR, c.text, all);
      EXPECT_EQ(ToString(problems.status()), "OK") << c.name;
      for (size_t i = 0; problems.ok() && i < problems->size(); ++i) {
        auto found = ChecksOf(std::string(c.name), (*problems)[i].problem, precision);
        EXPECT_EQ(ToString(found.status()), "OK") << c.name;
        if (!found.ok()) continue;
        if (!all) found->resize(1);
        std::ranges::move(*found, std::back_inserter(checks));
      }
      if (checks.size() >= kTogether) flush();
    }
  }
  flush();
  return sources;
}

void ExpectCubins(Compiler* compiler, const std::vector<std::string>& sources,
                  int compute_capability) {
  for (const std::string& source : sources) compiler->Prepare(source, compute_capability);
  for (const std::string& source : sources) {
    const StatusOr<std::string> image = compiler->Compile(source, compute_capability);
    ASSERT_TRUE(image.ok()) << Said(image);
    EXPECT_EQ(image->substr(1, 3), "ELF");
  }
}

TEST_F(RealNvrtc, CompilesTheFirstVariantOfEveryGroup) {
  ExpectCubins(compiler_.get(), SourcesOfCases(Precision::kFp16, false), 90);
}

// A joined text gives every function another name; a kernel's own must not be one of CUDA's.
TEST_F(RealNvrtc, CompilesEachFunctionByItsOwnName) {
  std::map<std::string, std::string> sources;  // One of each function.
  for (const ConformanceCase& c : OperatorCases()) {
    const auto problems = GroupsOfCase(AG_SOURCE_DIR, c.text, false);
    ASSERT_EQ(ToString(problems.status()), "OK") << c.name;
    for (const NamedProblem& p : *problems) {
      const auto checks = ChecksOf(p.name, p.problem, Precision::kFp16);
      ASSERT_EQ(ToString(checks.status()), "OK") << c.name;
      for (const GroupCheck& check : *checks) {
        for (const GeneratedKernel& kernel : check.generated.kernels) {
          sources.try_emplace(kernel.function, check.generated.source);
        }
      }
    }
  }
  EXPECT_GE(sources.size(), 12u);
  std::vector<std::string> texts;
  for (const auto& [function, source] : sources) texts.push_back(source);
  ExpectCubins(compiler_.get(), texts, 90);
}

TEST_F(RealNvrtc, CompilesEverything) {
  const char* value = std::getenv("AG_CUDA_KERNELS");
  if (value == nullptr || std::string_view(value) != "long") {
    GTEST_SKIP() << "AG_CUDA_KERNELS=long asks for it";
  }
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
    const std::vector<std::string> sources = SourcesOfCases(precision, true);
    for (const int compute_capability : {80, 90}) {
      SCOPED_TRACE(fmt::format("{} sm_{}", static_cast<int>(precision), compute_capability));
      ExpectCubins(compiler_.get(), sources, compute_capability);
    }
  }
}

}  // namespace
}  // namespace ag::cuda
