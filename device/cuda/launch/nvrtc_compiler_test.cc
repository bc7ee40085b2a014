#include "device/cuda/launch/nvrtc_compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/bytes.h"
#include "base/file.h"
#include "base/frames.h"
#include "base/text.h"
#include "device/conformance/cases.h"
#include "device/cuda/codegen/case_groups.h"
#include "device/cuda/codegen/host_check.h"

namespace ag::cuda {
namespace {

// A child that does what the text says: "crash", "hang", "refuse", else answers with the text.
int Misbehave(int socket) {
  while (true) {
    const StatusOr<Frame> request = ReceiveFrame(socket);
    if (!request.ok()) return 0;
    const std::string& text = request->payload;
    const auto says = [&](std::string_view word) { return text.find(word) != std::string::npos; };
    if (says("please crash")) std::raise(SIGSEGV);
    if (says("please exit")) return 3;
    if (says("please hang")) pause();
    const NvrtcFrame type = says("please refuse") ? NvrtcFrame::kRefused : NvrtcFrame::kDone;
    const std::string answer =
        type == NvrtcFrame::kDone ? text.substr(text.rfind('\n') + 1) : std::string(5000, 'e');
    if (!SendFrame(socket, static_cast<uint32_t>(type), answer).ok()) return 0;
  }
}

// The test program is its own compiler: before main, because gtest brings the main.
const int kRole = [] {
  RegisterChildRole(kNvrtcRole, Misbehave);
  const StatusOr<std::string> line = ReadFile("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (size_t at = 0; line.ok() && at < line->size(); at += arguments.back().size() + 1) {
    arguments.emplace_back(line->c_str() + at);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int code = RunChildRole(static_cast<int>(argv.size()), argv.data());
  if (code >= 0) ::_exit(code);
  return code;
}();

NvrtcCompiler::Options ToOurselves() {
  return {.program = SelfExe(), .children = 1, .version = "test"};
}

std::string Said(const StatusOr<std::string>& image) {
  return image.ok() ? *image : ToString(image.status());
}

TEST(NvrtcCompiler, SaysWhatBecameOfEachTextAndGoesOn) {
  ASSERT_EQ(kRole, -1);
  NvrtcCompiler::Options options = ToOurselves();
  options.timeout = std::chrono::milliseconds(300);
  NvrtcCompiler compiler(options);
  const std::vector<std::string> sources{"// one\ngood",         "// two\nplease crash",
                                         "// three\nfine",       "// four\nplease exit",
                                         "// five\nplease hang", "// six\nlast"};
  const auto images = compiler.CompileAll(sources, 90);
  EXPECT_EQ(Said(images[0]), "good");
  const std::string died = Said(images[1]);
  EXPECT_TRUE(died.starts_with("UNAVAILABLE: NVRTC: // two: the compiler ended: ")) << died;
  EXPECT_TRUE(died.find("SIGSEGV") != std::string::npos) << died;
  EXPECT_EQ(Said(images[2]), "fine");
  const std::string left = Said(images[3]);
  EXPECT_TRUE(left.starts_with("UNAVAILABLE: NVRTC: // four: the compiler ended: ")) << left;
  EXPECT_TRUE(left.ends_with("exit code 3")) << left;
  EXPECT_EQ(Said(images[4]), "DEADLINE_EXCEEDED: NVRTC: // five: nothing after 0.3 s");
  EXPECT_EQ(Said(images[5]), "last");
  EXPECT_EQ(compiler.children_started(), 4);  // Each of the three that went was replaced.
}

TEST(NvrtcCompiler, CutsTheLogOfWhatIsRefused) {
  NvrtcCompiler compiler(ToOurselves());
  EXPECT_EQ(Said(compiler.Compile("// bad\nplease refuse", 90)),
            "INTERNAL: NVRTC: // bad: " + std::string(2000, 'e'));
}

TEST(NvrtcCompiler, KeepsImagesWithoutAChild) {
  const StatusOr<TempDir> folder = TempDir::Make("nvrtc");
  ASSERT_TRUE(folder.ok());
  NvrtcCompiler::Options options = ToOurselves();
  options.folder = folder->path() + "/images";
  EXPECT_EQ(Said(NvrtcCompiler(options).Compile("// a\nimage", 90)), "image");
  // The same text, without a program to compile it.
  options.program = "/nowhere/autograph-nvrtc";
  NvrtcCompiler later(options);
  EXPECT_EQ(Said(later.Compile("// a\nimage", 90)), "image");
  EXPECT_EQ(later.children_started(), 0);
  // Another architecture, another version: other images.
  const std::string missing =
      "NOT_FOUND: NVRTC: // a: NVRTC: no program '/nowhere/autograph-nvrtc'";
  EXPECT_EQ(Said(later.Compile("// a\nimage", 80)), missing);
  options.version = "other";
  EXPECT_EQ(Said(NvrtcCompiler(options).Compile("// a\nimage", 90)), missing);
}

TEST(NvrtcCompiler, TakesADamagedImageForNone) {
  const StatusOr<TempDir> folder = TempDir::Make("nvrtc");
  ASSERT_TRUE(folder.ok());
  NvrtcCompiler::Options options = ToOurselves();
  options.folder = folder->path();
  EXPECT_EQ(Said(NvrtcCompiler(options).Compile("// a\nimage", 90)), "image");
  const StatusOr<std::vector<std::string>> names = ListDir(folder->path());
  ASSERT_TRUE(names.ok() && names->size() == 1);
  const std::string path = folder->path() + "/" + names->front();
  const std::string whole = *ReadFile(path);
  std::string changed = whole;
  changed.back() ^= 1;
  for (const std::string& bytes : {changed, whole.substr(0, whole.size() - 1), std::string()}) {
    ASSERT_EQ(ToString(WriteFileAtomically(path, bytes)), "OK");
    NvrtcCompiler compiler(options);
    EXPECT_EQ(Said(compiler.Compile("// a\nimage", 90)), "image");
    EXPECT_EQ(compiler.children_started(), 1);
    EXPECT_EQ(*ReadFile(path), whole);
  }
}

TEST(ImageCache, ForgetsTheOldestBeyondItsSize) {
  const StatusOr<TempDir> folder = TempDir::Make("images");
  ASSERT_TRUE(folder.ok());
  ImageCache cache(folder->path(), 5000);
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    cache.Put(Sha256(name), std::string(1000, *name));
  EXPECT_EQ(ListDir(folder->path())->size(), 4u);
  int known = 0;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    const std::optional<std::string> image = cache.Get(Sha256(name));
    if (!image) continue;
    ++known;
    EXPECT_EQ(*image, std::string(1000, *name));
  }
  EXPECT_EQ(known, 4);
}

// The real compiler, where this build has it.
class RealNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    options_.program = NvrtcCompiler::ProgramBeside(std::string(AG_BINARY_DIR) + "/");
    if (options_.program.empty()) GTEST_SKIP() << "this build has no autograph-nvrtc";
    NvrtcCompiler compiler(options_);
    const StatusOr<std::string> image = compiler.Compile("", 90);
    if (Said(image).find("libnvrtc.so was found") != std::string::npos) {
      GTEST_SKIP() << Said(image);
    }
    ASSERT_TRUE(image.ok()) << Said(image);
  }
  NvrtcCompiler::Options options_;
};

TEST_F(RealNvrtc, SaysWhatIsWrongWithAText) {
  NvrtcCompiler compiler(options_);
  const std::string said = Said(compiler.Compile("// nonsense\nint f() { return x; }\n", 90));
  EXPECT_TRUE(said.starts_with("INTERNAL: NVRTC: // nonsense: ")) << said;
  EXPECT_NE(said.find("identifier \"x\" is undefined"), std::string::npos) << said;
}

// Groups of the conformance cases as a few texts: by their first variant, or in every layout and
// by every one.
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

void ExpectCubins(NvrtcCompiler* compiler, const std::vector<std::string>& sources,
                  int compute_capability) {
  for (const StatusOr<std::string>& image : compiler->CompileAll(sources, compute_capability)) {
    ASSERT_TRUE(image.ok()) << Said(image);
    EXPECT_EQ(image->substr(1, 3), "ELF");
  }
}

TEST_F(RealNvrtc, CompilesTheFirstVariantOfEveryGroup) {
  NvrtcCompiler compiler(options_);
  ExpectCubins(&compiler, SourcesOfCases(Precision::kFp16, false), 90);
}

TEST_F(RealNvrtc, CompilesEverything) {
  const char* value = std::getenv("AG_CUDA_KERNELS");
  if (value == nullptr || std::string_view(value) != "long") {
    GTEST_SKIP() << "AG_CUDA_KERNELS=long asks for it";
  }
  NvrtcCompiler compiler(options_);
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16}) {
    const std::vector<std::string> sources = SourcesOfCases(precision, true);
    for (const int compute_capability : {80, 90}) {
      SCOPED_TRACE(fmt::format("{} sm_{}", static_cast<int>(precision), compute_capability));
      ExpectCubins(&compiler, sources, compute_capability);
    }
  }
}

}  // namespace
}  // namespace ag::cuda
